"""Peers over UDP on this machine: the API that a program uses, a bad network, and attackers."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from antecede.clocks.bounds import Bounds
from antecede.errors import LocalError, PeerError
from antecede.live import wire
from antecede.live.datagrams.envelopes import HEAD_BYTES, Offer
from antecede.live.datagrams.peer import DatagramPeer
from antecede.live.events import Id, Message, View
from antecede.live.keys import make_authority, make_member
from antecede.live.peer import Peer
from antecede.live.status import as_text
from antecede.live.tls import Tls
from tests.live.loops import run, take, until

MATRIX: dict[str, Any] = {
    "order": "matrix",
    "options": {"recovering": True, "heartbeat_s": 0.1, "retry_s": 0.1},
}
BOUNDS = Bounds[Any](accuracy_s=0.0001, least_s=0.00001, most_s=2)
CLOCKED: dict[str, Any] = {"retry_s": 0.1, "heartbeat_s": 0.1, "bounds": BOUNDS}


def peer(name: str, **more: Any) -> DatagramPeer:
    usual = {"listen": "127.0.0.1:0", "insecure": True, "room": "test", **MATRIX}
    made = Peer(name, transport="udp", **{**usual, **more})
    assert isinstance(made, DatagramPeer)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("keys")
    make_authority(made)
    for name in ("a", "b", "c", "mallory"):
        make_member(made, name)
    return made


def tls(folder: Path, name: str, authority: Path | None = None) -> Tls:
    return Tls(folder / f"{name}.pem", (authority or folder) / "ca.pem")


def secure(folder: Path, name: str) -> dict[str, Any]:
    return {"tls": tls(folder, name), "insecure": False}


class Relay:
    """In front of a member: hands on calls, and of the datagrams those that it does not lose."""

    def __init__(self, seed: int, loss: float) -> None:
        self.draw, self.loss = random.Random(seed), loss
        self.seen: list[bytes] = []
        self.target = ("", 0)
        self.port = 0

    async def __aenter__(self) -> Relay:
        loop = asyncio.get_running_loop()
        self.server = await asyncio.start_server(self._called, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", self.port))
        self.socket.setblocking(False)
        loop.add_reader(self.socket, self._come)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self.socket)
        self.socket.close()
        self.server.close()

    def _come(self) -> None:
        with suppress(BlockingIOError):
            while True:
                datagram = self.socket.recv(65536)
                self.seen.append(datagram)
                if self.draw.random() >= self.loss:
                    self.socket.sendto(datagram, self.target)

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(*self.target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pipe(reader, back), _pipe(there, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def behind(stack: AsyncExitStack, name: str, loss: float, **more: Any) -> DatagramPeer:
    """Return a peer that the others reach over a relay only."""
    relay = await stack.enter_async_context(Relay(ord(name[0]), loss))
    made = peer(name, address=f"127.0.0.1:{relay.port}", **more)
    await stack.enter_async_context(made)
    host, port = made._running._socket.getsockname()[:2]  # type: ignore[union-attr]
    relay.target = host, port
    made.relay = relay  # type: ignore[attr-defined]
    return made


# -- what a program sees --------------------------------------------------------------------------


def test_one_argument_more_and_the_group_goes_over_udp(folder: Path) -> None:
    async def work() -> None:
        async with (
            peer("a", **secure(folder, "a")) as a,
            peer("b", **secure(folder, "b")) as b,
        ):
            await a.found()
            await b.join(a.address)
            sent = await a.send(b"lunch?")
            [asked] = await take(b, 1)
            assert (asked.sender, asked.payload, asked.id) == ("a", b"lunch?", sent)
            await b.send(b"yes")
            assert [one.payload for one in await take(a, 1)] == [b"yes"]
            assert a.members == b.members == ("a", "b")
            for k in range(10):
                a.send_nowait(b"%d" % k)
            async for said in b.batches():
                assert said.payloads == [b"%d" % k for k in range(10)]
                break
            large = bytes(range(256)) * 800
            await a.send(large)
            assert [one.payload for one in await take(b, 1)] == [large]
            status = a.status()
            assert status.healthy
            assert (status.sent, status.delivered, status.others) == (12, 1, "1 live")
            assert "in room 'test', order matrix" in as_text(status)

    run(work)


def test_views_come_with_the_messages_and_who_leaves_is_waited_for() -> None:
    async def work() -> None:
        async with peer("a") as a, peer("c") as c:
            await a.found()
            await c.join(a.address)
            async with peer("b") as b:
                await b.join(c.address)
                await b.send(b"here")
            seen = []
            async for event in a.events():
                assert isinstance(event, View | Message)
                seen.append(str(event.change) if isinstance(event, View) else event.payload)
                if len(seen) == 5:
                    break
            assert seen == ["a joined", "c joined", "b joined", b"here", "b left"]
            await until(lambda: c.members == ("a", "c"))

    run(work)


def test_many_join_at_once_through_anybody() -> None:
    async def work() -> None:
        names = [f"m{k}" for k in range(6)]
        async with AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(peer(name)) for name in names]
            await peers[0].found()
            await peers[1].join(peers[0].address)
            await asyncio.gather(
                *(one.join(peers[k % 2].address) for k, one in enumerate(peers[2:]))
            )
            await until(lambda: all(one.members == tuple(names) for one in peers))
            for one in peers:
                one.send_nowait(one.name.encode())
            got = await asyncio.gather(*(take(one, 5) for one in peers))
            for one, messages in zip(peers, got, strict=True):
                assert {m.payload.decode() for m in messages} == set(names) - {one.name}

    run(work)


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [
        MATRIX,
        {"order": "linear", "options": CLOCKED},
        {"order": "linear-physical", "options": CLOCKED},
    ],
    ids=["matrix", "linear", "linear-physical"],
)
def test_nothing_is_missing_where_a_fifth_of_the_datagrams_is_lost(
    folder: Path, order: dict[str, Any]
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            a, b, c = [
                await behind(stack, name, 0.2, **order, **secure(folder, name)) for name in "abc"
            ]
            await a.found()
            await b.join(a.address)
            await c.join(b.address)
            await until(lambda: a.members == b.members == c.members == ("a", "b", "c"))

            async def talk(one: DatagramPeer) -> None:
                for k in range(150):
                    await one.send(b"%s%d" % (one.name.encode(), k))
                    await asyncio.sleep(0.003)

            talking = asyncio.gather(*map(talk, (a, b, c)))
            got = await asyncio.gather(*(take(one, 300) for one in (a, b, c)))
            await talking
            for one, messages in zip((a, b, c), got, strict=True):
                for other in "abc":
                    said = [m.payload for m in messages if m.sender == other]
                    wanted = [b"%s%d" % (other.encode(), k) for k in range(150)]
                    assert said == (wanted if other != one.name else [])
            seen = [datagram for one in (a, b, c) for datagram in one.relay.seen]  # type: ignore[attr-defined]
            assert len(seen) > 500
            assert not any(b"a149" in datagram for datagram in seen)  # sealed

    run(work)


def test_who_is_silent_is_put_out_and_its_next_life_comes_back() -> None:
    async def work() -> None:
        more = {"put_out_s": 0.6, "silence_s": 0.5}
        async with peer("a", **more) as a, peer("b", **more) as b:
            await a.found()
            await b.join(a.address)
            async with AsyncExitStack() as stack:
                c = await stack.enter_async_context(peer("c", **more))
                await c.join(a.address)
                await c.send(b"last words")
                await take(b, 1)
                await c.close()  # as a crash
            await until(lambda: a.members == b.members == ("a", "b"))
            assert [m.payload for m in await take(a, 1)] == [b"last words"]
            async with peer("c", **more) as c:
                await c.join(b.address)
                await c.send(b"back")
                assert [m.payload for m in await take(a, 1)] == [b"back"]

    run(work)


def test_who_is_put_out_by_hand_is_told() -> None:
    async def work() -> None:
        async with peer("a") as a, peer("b") as b:
            await a.found()
            await b.join(a.address)
            with pytest.raises(LocalError, match="not another member"):
                a.put_out("zoe")
            a.put_out("b", "a test")
            with pytest.raises(PeerError, match="put out of the group: a test"):
                await take(b, 1)
            with pytest.raises(PeerError, match="put out"):
                await b.send(b"x")
            assert not b.status().healthy

    run(work)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"insecure": False}, "needs tls="),
        ({"name": "a~b"}, "without '~'"),
        ({"order": "reply", "options": {}}, "does not recover what is lost"),
        ({"order": "causal", "options": {}}, 'transport="tcp"'),
        ({"options": {}}, "recovering"),
        ({"store": "x.db"}, "nothing is stored"),
        ({"trace": "x"}, "does not go over datagrams"),
        ({"acknowledge": "explicit"}, "does not go over datagrams"),
        ({"listen": None}, "needs listen="),
        ({"listen": "here"}, "HOST:PORT"),
        ({"partition": "majority"}, "no argument 'partition'"),
        ({"window_s": 1}, "no argument 'window_s'"),
        ({"history": 3}, "a peer over UDP has no argument 'history': over TCP it has"),
        ({"relay_s": 3}, "a peer over UDP has no argument 'relay_s': over TCP it has"),
        ({"datagrm": 3}, r"did you mean datagram=\?"),
        ({"datagram": "1"}, "datagram= is a whole number, not '1'"),
        ({"clock": 3}, "clock= returns nanoseconds"),
        ({"listen": ("x", 1)}, "HOST:PORT, not"),
        ({"tls": "keys"}, "it is one or the other"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(LocalError, match=why):
        peer(**{"name": "a", **arguments})
    with pytest.raises(LocalError, match='transport= is "tcp" or "udp"'):
        Peer("a", transport="carrier pigeon", insecure=True)


def test_what_cannot_be_said_is_refused() -> None:
    async def work() -> None:
        async with peer("a", largest=100) as a:
            with pytest.raises(PeerError, match="in no group yet"):
                await a.send(b"x")
            await a.found()
            with pytest.raises(LocalError, match="largest=100"):
                await a.send(bytes(101))
            with pytest.raises(LocalError, match="is bytes"):
                await a.send("text")  # type: ignore[arg-type]
            with pytest.raises(LocalError, match="answer no others"):
                await a.send(b"x", reply_to=[Id("b~00000000", 1)])
            with pytest.raises(LocalError, match="does not tell its past"):
                a.past()
            with pytest.raises(LocalError, match="nothing to acknowledge"):
                a.acknowledge(Message("b~00000000", 1, b""))
            assert (await a.send(b"x")).number == 1

    run(work)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"room": "other"}, "its room= differs"),
        ({"order": "linear", "options": CLOCKED}, "its order= differs"),
        ({"options": {**MATRIX["options"], "differences": True}}, "its options= differs"),
    ],
)
def test_whoever_is_of_another_group_is_told_what_differs(more: dict[str, Any], why: str) -> None:
    async def work() -> None:
        async with peer("a") as a, peer("b", **more) as b:
            await a.found()
            with pytest.raises(PeerError, match=why):
                await b.join(a.address)
            assert a.members == ("a",)

    run(work)


def test_a_peer_over_tcp_is_told_that_this_is_another_group() -> None:
    async def work() -> None:
        async with peer("a") as a, Peer("b", listen="127.0.0.1:0", insecure=True, room="test") as b:
            await a.found()
            with pytest.raises(PeerError, match="differs"):
                await b.join(a.address)

    run(work)


def test_nobody_there_is_said() -> None:
    async def work() -> None:
        async with peer("a") as a, peer("b") as b:
            with pytest.raises(PeerError, match=r"nobody at 127\.0\.0\.1:1 lets a in"):
                await a.join("127.0.0.1:1", timeout_s=0.3)
            with pytest.raises(PeerError, match="lets a in"):
                await a.join(b.address, timeout_s=0.5)  # in no group itself

    run(work)


def test_status_is_served() -> None:
    async def work() -> None:
        async with peer("a", status="127.0.0.1:0") as a:
            await a.found()
            host, port = a.status_address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"antecede_" in answer

    run(work)


def test_the_page_prints_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs/live/udp.md").read_text()
    example, expected = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")


# -- attackers ------------------------------------------------------------------------------------


async def two(stack: AsyncExitStack, folder: Path) -> tuple[DatagramPeer, DatagramPeer]:
    """Return two members, the second behind a relay that keeps what it has seen."""
    a = await stack.enter_async_context(peer("a", **secure(folder, "a")))
    b = await behind(stack, "b", 0.0, **secure(folder, "b"))
    await a.found()
    await b.join(a.address)
    for k in range(20):
        await a.send(b"%d" % k)
    assert len(await take(b, 20)) == 20
    return a, b


async def answers(one: DatagramPeer, datagrams: list[bytes]) -> list[bytes]:
    """Send datagrams to a peer; return what comes back within a while."""
    host, port = one._running._socket.getsockname()[:2]  # type: ignore[union-attr]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
        mine.bind(("127.0.0.1", 0))
        mine.setblocking(False)
        for datagram in datagrams:
            mine.sendto(datagram, (host, port))
        await asyncio.sleep(0.3)
        found = []
        with suppress(BlockingIOError):
            while True:
                found.append(mine.recv(65536))
    return found


def test_forged_replayed_and_cut_datagrams_are_dropped_counted_and_not_answered(
    folder: Path,
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            _, b = await two(stack, folder)
            seen: list[bytes] = b.relay.seen  # type: ignore[attr-defined]
            place, dropped = b.node.place, b._running.envelopes.dropped
            before = dropped.copy()
            replayed = list(seen)
            draw = random.Random(1)
            fresh = seen[-1][:8] + (1 << 40).to_bytes(8, "big") + draw.randbytes(100)
            forged = [fresh, *(one[:-1] + bytes((one[-1] ^ 1,)) for one in seen[:5])]
            cut = [seen[0][:k] for k in range(HEAD_BYTES)]
            strangers = [draw.randbytes(size) for size in (1, 8, 16, 40, 1200, 9000)]
            assert await answers(b, [*replayed, *forged, *cut, *strangers]) == []
            found = dropped - before
            assert found["replayed"] >= len(replayed)
            assert found["forged"] == 1  # the others have counters that have come
            assert found["short"] + found["stranger"] >= len(cut) + len(strangers) - 1
            assert b.node.place == place
            assert any("datagram" in kind for kind in b.status().refused)

    run(work)


def test_who_is_no_member_of_the_authority_gets_no_session(folder: Path, tmp_path: Path) -> None:
    async def work() -> None:
        make_authority(tmp_path)
        make_member(tmp_path, "b")
        async with (
            peer("a", **secure(folder, "a")) as a,
            peer("b", tls=tls(tmp_path, "b"), insecure=False) as b,
            peer("c") as c,
        ):
            await a.found()
            for one in (b, c):
                with pytest.raises(PeerError, match="in: "):
                    await one.join(a.address, timeout_s=1)
            assert a.members == ("a",)
            assert not a.node.sessions
            assert a.node.refused["certificate"] >= 1

    run(work)


def test_a_certificate_is_one_members(folder: Path) -> None:
    async def work() -> None:
        async with peer("a", **secure(folder, "a")) as a:
            await a.found()
            host, port = a.address.split(":")
            context: ssl.SSLContext = tls(folder, "mallory").client()
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            offer = bytes(Offer.draw(random.Random(1).randbytes))
            hello = a.node.hello(offer)._replace(lane="b~00000000", address="127.0.0.1:9")
            writer.write(wire.pack_hello(hello))
            assert b"mallory speaks as b~00000000" in await reader.read(1000)
            writer.close()
            assert not a.node.sessions

    run(work)


def test_what_is_sealed_for_one_session_opens_in_no_other(folder: Path) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            a, b = await two(stack, folder)
            seen: list[bytes] = list(b.relay.seen)  # type: ignore[attr-defined]
            c = await stack.enter_async_context(peer("c", **secure(folder, "c")))
            await c.join(a.address)
            await until(lambda: len(c.node.routes) == 2)
            before = c._running.envelopes.dropped["stranger"]
            names = [*c._running.envelopes._numbers]
            moved = [name + one[8:] for name in names for one in seen]
            assert await answers(c, [*seen, *moved]) == []
            dropped = c._running.envelopes.dropped
            assert dropped["stranger"] - before >= len(seen)
            assert dropped["forged"] >= len(moved) // 2
            assert not a.node.refused

    run(work)


def test_who_calls_and_says_nothing_or_nonsense_is_cut_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        monkeypatch.setattr("antecede.live.drivers.udp.HANDSHAKE_S", 0.2)
        monkeypatch.setattr("antecede.live.drivers.udp.INTRODUCTIONS", 3)
        async with peer("a") as a, AsyncExitStack() as stack:
            await a.found()
            host, port = a.address.split(":")
            calls = [await asyncio.open_connection(host, int(port)) for _ in range(6)]
            for said in (b"\xff" * 30, b"GET / HTTP/1.1\r\n\r\n", b"\x02\x05x"):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(said)
                with suppress(ConnectionError):
                    await reader.read(2000)
                writer.close()
            for reader, writer in calls:
                with suppress(ConnectionError):
                    assert await reader.read(10) == b""
                writer.close()
            assert not a._running._introductions
            b = await stack.enter_async_context(peer("b"))
            await b.join(a.address)

    run(work)


def test_nothing_is_sent_or_taken_after_a_leave() -> None:
    async def work() -> None:
        async with peer("a") as a, peer("b") as b:
            await a.found()
            await b.join(a.address)
            taking = asyncio.create_task(take(b, 2))
            await a.send(b"before")
            await until(lambda: a.members == ("a", "b"))
            await asyncio.sleep(0.2)
            await b.leave()
            assert [m.payload for m in await taking] == [b"before"]
            await b.leave()
            for late in (b.send(b"x"), b.join(a.address), b.found(), b.room(), take(b, 1)):
                with pytest.raises(PeerError, match=r"^b has left$"):
                    await late
            with pytest.raises(PeerError, match=r"^b has left$"):
                b.put_out("a")
            assert b.status().trouble == "it has left"

    run(work)


def test_a_peer_begins_once_and_is_in_one_group() -> None:
    async def work() -> None:
        async with peer("a") as a, peer("b") as b:
            with pytest.raises(LocalError, match="a has begun already"):
                await a.__aenter__()
            await a.found()
            await a.kept()
            with pytest.raises(LocalError, match="a is in a group already"):
                await a.join(b.address)
            with pytest.raises(LocalError, match="keeps no history"):
                _ = a.history
        for late in (a.found(), a.join(b.address), a.leave(), a.room(), a.kept()):
            with pytest.raises(PeerError, match="a has ended"):
                await late

    run(work)


def test_nobody_there_is_said_of_this_call_and_not_of_the_last() -> None:
    async def work() -> None:
        async with peer("a") as a:
            with pytest.raises(PeerError, match="calls itself"):
                await a.join(a.address, timeout_s=2)
            with pytest.raises(PeerError, match=r"nobody at 127\.0\.0\.1:1 lets") as told:
                await a.join("127.0.0.1:1", timeout_s=0.5)
            assert "calls itself" not in str(told.value)

    run(work)
