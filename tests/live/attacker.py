"""A member with a sound certificate that speaks the wire by hand."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, ClassVar

from antecede.core.clocks.encoding.wire import block, varint
from antecede.core.clocks.lanes import unit
from antecede.core.group import Group
from antecede.core.group.frames import format as frame
from antecede.live import batches, keys, wire
from antecede.live.batches import Batch
from antecede.live.events import Change, ChangeKind, member_of
from antecede.live.lanes import SignedBatch
from antecede.live.peer import Peer
from antecede.live.seals import CertifiedSignatures
from antecede.live.settings import Settings
from antecede.live.tls import Tls
from tests.live.loops import until
from tests.live.observation import observe
from tests.live.peer_control import is_sending

ROOM = "attacked"
NAMES = ("alice", "bob", "carol", "mallory")
PATIENCE_S = 20.0


def make_keys(folder: Path) -> Path:
    keys.make_authority(folder)
    for name in NAMES:
        keys.make_member(folder, name)
    return folder


def tls(folder: Path, name: str) -> Tls:
    return Tls(keys.member_path(folder, name), folder / keys.AUTHORITY)


def peer(folder: Path, name: str, **more: Any) -> Peer:
    settings = {"group_name": ROOM, "listen": "127.0.0.1:0", **more}
    return Peer(name, tls=tls(folder, name), **settings)


@contextlib.asynccontextmanager
async def honest(folder: Path, *names: str, **more: Any) -> AsyncIterator[list[Peer]]:
    """A group of honest members, all connected."""
    async with asyncio.timeout(60), contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(hung_up)  # after the peers have closed
        peers = [await stack.enter_async_context(peer(folder, name, **more)) for name in names]
        await peers[0].bootstrap()
        for one in peers[1:]:
            await one.join(peers[0].address)
        await until(lambda: all(len(observe(one).connected) >= len(names) - 1 for one in peers))
        await until(lambda: all(len(one.members) == len(names) for one in peers))
        yield peers


async def settled(*peers: Peer) -> None:
    """Wait until all have what all have said."""

    def same() -> bool:
        states = [observe(one) for one in peers]
        return not any(map(is_sending, peers)) and all(
            other.newest(one.sender_id) == one.newest(one.sender_id)
            for one in states
            for other in states
        )

    await until(same)


async def talk(peers: Iterable[Peer], count: int = 3) -> None:
    """All say something, and all get what the others say, each in order, and nothing else of them.

    What a stranger to these says is passed over.
    """
    some = list(peers)
    stamp = time.monotonic_ns()
    names = {one.name for one in some}
    for one in some:
        for k in range(count):
            await one.send(f"{stamp} {one.name} {k}".encode())
    for one in some:
        wanted = {name: [f"{stamp} {name} {k}" for k in range(count)] for name in names}
        del wanted[one.name]
        got: dict[str, list[str]] = {name: [] for name in wanted}
        async with asyncio.timeout(PATIENCE_S):
            async for message in one:
                if message.sender in got and message.payload.startswith(f"{stamp} ".encode()):
                    got[message.sender].append(message.payload.decode())
                if sum(map(len, got.values())) == count * len(got):
                    break
        assert got == wanted, one.name


class Line:
    """A connection of the attacker's."""

    made: ClassVar[list[Line]] = []
    """Those that `hung_up` has not waited for yet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.made.append(self)
        self.reader, self.writer = reader, writer
        self._rest = b""

    async def say(self, *frames: bytes) -> None:
        self.writer.writelines(frames)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def frame(self) -> tuple[int, bytes]:
        """Return the next frame; (-1, b"") where the connection has ended."""
        while True:
            found, _, _ = wire.split_frames(self._rest)
            if found:
                kind, start, end = found[0]
                body, self._rest = self._rest[start:end], self._rest[end:]
                return kind, body
            try:
                data = await self.reader.read(1 << 16)
            except (ConnectionError, OSError):
                data = b""
            if not data:
                return -1, b""
            self._rest += data

    async def until(self, kind: int) -> bytes:
        """Return the body of the next frame of a kind; empty where the connection ends before."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found, body = await self.frame()
                if found in (kind, -1):
                    return body

    async def last_word(self) -> str:
        """Return with which word the other end ends it."""
        said = await self.until(wire.BYE)
        await self.until(-1)
        return said.decode()

    def pause_reading(self) -> None:
        transport = self.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()

    def close(self) -> None:
        self.writer.close()


async def hung_up() -> None:
    """End the attacker's connections, and wait until they have: the loop ends with the test.

    At once: one that does not read would never hear the other end's last word.
    """
    while Line.made:
        writer = Line.made.pop().writer
        writer.transport.abort()
        with contextlib.suppress(OSError):
            async with asyncio.timeout(PATIENCE_S):
                await writer.wait_closed()


class Attacker:
    """Mallory: whom it calls, and what it says there, is the test's affair."""

    def __init__(self, folder: Path, life: str = "00000000", *, name: str = "mallory") -> None:
        self.tls = tls(folder, name)
        self.lane = f"{name}~{life}"
        self.settings = Settings(group_name=ROOM)
        self.seals = CertifiedSignatures(self.tls, ROOM, self.lane, time.time)
        self.group: Group | None = None
        """Ordering group, which makes its batches."""
        self.batches: list[SignedBatch] = []
        self.sent = 0
        """Messages in these."""
        self.group_tag = b""
        self.lines: list[Line] = []
        self.names: list[str] = []

    async def call(self, one: Peer) -> Line:
        host, port = one.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port), ssl=self.tls.client())
        line = Line(reader, writer)
        self.lines.append(line)
        return line

    def hello(self, **changes: Any) -> bytes:
        room, options = self.settings.tags()
        hello = wire.Hello(
            *(room, self.settings.order, options, self.group_tag, b"view"),
            *(self.lane, "", self.seals.owner(self.lane), {}),
        )
        return wire.pack_hello(hello._replace(**changes))

    async def join(self, *peers: Peer) -> list[Line]:
        """Be let in by the first, and be connected with all."""
        first = await self.call(peers[0])
        await first.say(self.hello())
        welcome = wire.unpack_join_reply(await first.until(wire.JOIN_REPLY))
        self.group_tag = welcome.group
        self.group = self.settings.group(self.lane, welcome.invitation)
        self.announce(Change(ChangeKind.JOINED, self.lane))
        self.names = [self.lane, *welcome.members]
        lines = [first]
        for one in peers[1:]:
            line = await self.call(one)
            await line.say(self.hello())
            lines.append(line)
        for line in lines:
            await line.say(wire.pack_names(self.names), self.own(1))
        await until(lambda: all(member_of(self.lane) in one.members for one in peers))
        return lines

    def say(self, payload: bytes = b"hello") -> int:
        """Make the next batch of its own; returns its number."""
        self.sent += 1
        return self._make_batch(Batch(self.sent, [payload]))

    def announce(self, *changes: Change) -> int:
        """Make the next batch of its own, of changes of the group; returns its number."""
        return self._make_batch(Batch(self.sent + 1, [], changes))

    def _make_batch(self, batch: Batch) -> int:
        assert self.group is not None
        sent = self.group.send(batches.pack(batch))
        self.batches.append(self.seal(sent.seq, bytes(sent)))
        return sent.seq

    def sealed(self, number: int) -> SignedBatch:
        return self.batches[number - 1]

    def seal(self, number: int, raw: bytes) -> SignedBatch:
        return SignedBatch(self.seals.seal(number, raw), raw)

    def parts(self, number: int) -> Any:
        return frame.unpack("idr", self.sealed(number).wire)

    def seal_with_cause(self, number: int, cause: tuple[str, int]) -> SignedBatch:
        """Return a batch of its own with one more cause: sender id and number."""
        assert self.group is not None
        protocol, known = self.group._state.protocol, self.group._state.roster.numbers
        parts = self.parts(number)
        message = protocol.decode(parts.control, parts.payload)
        sender_id, seq = cause
        place = known.get(sender_id, 77)
        message = message._replace(causes=message.causes | unit(place, seq))
        names = {**parts.names, place: sender_id}
        raw = frame.pack(parts._replace(control=protocol.encode(message), names=names))
        return self.seal(number, raw)

    def own(self, number: int) -> bytes:
        """Return the frame of a batch of its own."""
        return self.batch(self.lane, number, self.sealed(number))

    def batch(self, lane: str, number: int, sealed: SignedBatch) -> bytes:
        place = self.names.index(lane)
        return wire.pack_frame(
            wire.BATCH, varint(place), varint(number), block(sealed.seal), sealed.wire
        )

    def close(self) -> None:
        for line in self.lines:
            line.close()
