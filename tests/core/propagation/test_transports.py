"""Context propagation over NATS, which runs here, and in messages of RabbitMQ, which does not."""

from __future__ import annotations

import asyncio
import os
import runpy
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from antecede.core.propagation import ContextPropagator, MessageContext
from antecede.errors import DecodeError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def example(name: str, library: str) -> dict[str, Any]:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    return runpy.run_path(str(EXAMPLES / name))


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[str]:
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    server = shutil.which("nats-server", path=path)
    if server is None:
        pytest.skip("nats-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def test_over_nats_a_reply_follows_its_request_and_a_stream_keeps_the_causes(
    nats_server: str,
) -> None:
    main = example("context_over_nats.py", "nats")["main"]

    async def bounded() -> Any:
        async with asyncio.timeout(30):
            return await main(nats_server)

    assert asyncio.run(bounded()) == [
        MessageContext("shop:demo:1", ()),
        MessageContext("stock:demo:1", ("shop:demo:1",)),
        MessageContext("shop:demo:2", ("stock:demo:1",)),
    ]


def test_in_a_message_of_rabbitmq_the_stamp_is_in_the_table_of_headers() -> None:
    properties_of = example("context_over_rabbitmq.py", "pika")["properties_of"]
    from pika import BasicProperties

    sender, receiver = (ContextPropagator(name, incarnation="i") for name in ("a", "b"))
    sent = properties_of(sender, content_type="text/plain", headers={"x-tries": 1})
    read = BasicProperties()
    read.decode(b"".join(sent.encode()))  # as it goes over the wire
    assert (read.message_id, read.content_type, read.headers["x-tries"]) == (
        "a:i:1",
        "text/plain",
        1,
    )
    with receiver.handle(read.headers) as stamp:
        assert stamp == MessageContext("a:i:1", ())
        answer = properties_of(receiver)
    assert answer.headers == {"antecede-id": "b:i:1", "antecede-causes": "a:i:1"}
    with pytest.raises(DecodeError, match="expected text or bytes"):
        receiver.receive({**answer.headers, "antecede-id": 5})
    assert receiver.receive(BasicProperties().headers) is None
