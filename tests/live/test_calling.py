"""How a member is called, and how a connection ends whose other end says nothing more."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from antecede.live import keys
from antecede.live.drivers import calling
from antecede.live.peer import Peer
from antecede.live.tls import Tls
from tests.live.loops import until
from tests.live.observation import observe


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


async def test_who_listens_is_reached() -> None:
    with listening() as door, await calling.reach("127.0.0.1", door.getsockname()[1]) as reached:
        assert reached.getpeername() == door.getsockname()


async def test_where_nobody_listens_that_is_said_at_once() -> None:
    with listening() as door:
        port = door.getsockname()[1]
    async with asyncio.timeout(10):
        with pytest.raises(ConnectionRefusedError):
            await calling.reach("127.0.0.1", port)


async def test_an_attempt_without_an_answer_is_followed_by_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "AGAIN_S", 0.01)
    tried: list[socket.socket] = []
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def lossy(one: socket.socket, address: Any) -> None:
        tried.append(one)
        if len(tried) <= calling.AT_ONCE + 2:
            await loop.create_future()
        await connect(one, address)

    monkeypatch.setattr(loop, "sock_connect", lossy)
    with listening() as door, await calling.reach("127.0.0.1", door.getsockname()[1]) as reached:
        assert reached is tried[-1]
        await asyncio.sleep(0.05)
        still_open = [one for one in tried if one.fileno() >= 0]
        assert still_open == [reached]


async def test_who_says_nothing_more_does_not_keep_its_connection(tmp_path: Path) -> None:
    keys.make_authority(tmp_path)
    for name in ("ann", "bob"):
        keys.make_member(tmp_path, name)
    tls = {name: Tls(tmp_path / f"{name}.pem", tmp_path / "ca.pem") for name in ("ann", "bob")}
    more: dict[str, Any] = {"listen": "127.0.0.1:0", "tls": tls["ann"]}
    async with Peer("ann", handshake_timeout_s=0.2, **more) as ann:
        await ann.bootstrap()
        host, port = ann.address.split(":")
        silent = await asyncio.to_thread(_shown, tls["bob"].client(), host, int(port))
        with silent:
            await until(lambda: observe(ann).connections, 10)
            await until(lambda: not observe(ann).connections, 10)


def _shown(context: ssl.SSLContext, host: str, port: int) -> ssl.SSLSocket:
    """Show a certificate, and say nothing."""
    return context.wrap_socket(socket.create_connection((host, port)))
