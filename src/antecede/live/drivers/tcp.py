"""A node over TCP, mostly with TLS: sockets, calls, turns, and the thread of its store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from antecede.errors import AntecedeError, RemoteError, StoreError
from antecede.live.diary import Diary, Entry
from antecede.live.diary import write as write_entry
from antecede.live.drivers.addresses import split_address
from antecede.live.drivers.clock_watch import ClockWatch
from antecede.live.drivers.door import HANDSHAKE_S, Door
from antecede.live.drivers.writer import Writer
from antecede.live.node import Node
from antecede.live.settings import NS
from antecede.live.store import Store

LOG: Final = logging.getLogger("antecede.live")
BUDGET: Final = 1 << 18
"""Bytes of batches that are written to a connection at once."""
HIGH_WATER: Final = 1 << 18
GATHERED: Final = 1 << 17
"""Bytes that make a batch at once."""
CALL_S: Final = 5.0
LINGER_NS: Final = NS
"""How long a connection that nobody reads from holds up those who send."""
CLOSING_S: Final = 2.0
SNAPSHOT_BYTES: Final = 8 << 20
SNAPSHOT_ROWS: Final = 4096
LOAD_BATCHES: Final = 256
MAX_READY: Final = 1 << 16
"""Messages that wait for the application before nothing more is read."""


class Secure(Protocol):
    """What is needed of certificates: contexts for both ends, and whose a certificate is."""

    def server(self) -> ssl.SSLContext:
        """Return the context for those who call."""
        ...

    def client(self) -> ssl.SSLContext:
        """Return the context for whom one calls."""
        ...

    def name_of(self, certificate: bytes) -> str:
        """Return the member's name in a certificate (DER). Raises RemoteError without one."""
        ...


class Connection(asyncio.Protocol):
    """One TCP connection, from its first byte to its last."""

    def __init__(self, driver: TcpDriver, *, dialed: bool) -> None:
        self._driver, self._dialed = driver, dialed
        self._early: list[bytes] = []
        self.transport: asyncio.Transport | None = None
        self.number = 0
        self.paused_since: int | None = None
        """Since when the socket takes no more; None: it does."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands, and both certificates were shown where there are any."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by name
        self.transport.set_write_buffer_limits(high=HIGH_WATER)
        self._driver.connected(self, dialed=self._dialed)

    def data_received(self, data: bytes) -> None:
        """Bytes have come: perhaps together with the last ones of the handshake."""
        if self.number:
            self._driver.received(self, data)
        else:
            self._early.append(data)

    def begin(self, number: int) -> None:
        """Be connection `number` from now on."""
        self.number = number
        for data in self._early:
            self._driver.received(self, data)
        self._early.clear()

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self.paused_since = time.monotonic_ns()

    def resume_writing(self) -> None:
        """It does again."""
        self.paused_since = None
        self._driver.soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._driver.lost(self)


class TcpDriver:
    """Runs one node in the running loop. `ready` is called when there is something for the
    application, `changed` when something else happened; `done` tells up to which place the
    application is done.
    """

    def __init__(
        self,
        node: Node,
        *,
        secure: Secure | None,
        store: Store | None,
        ready: Callable[[], None],
        changed: Callable[[], None],
        done: Callable[[], int],
    ) -> None:
        self.node, self._secure, self._store = node, secure, store
        self._ready, self._changed, self._done = ready, changed, done
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(store, self._failed) if store is not None else None
        self._writing = False
        self._logged_rows = self._logged_bytes = 0
        self._has_snapshot = store is not None and store.get("snapshot") is not None
        self._noted_done = node.done
        self.connections: dict[int, Connection] = {}
        self._numbers = 0
        self._calling: dict[str, asyncio.Task[None]] = {}
        self._turn_due = False
        self.clock: ClockWatch | None = None
        """None: the order goes by no clock."""
        if node.time is not None:
            self.clock = ClockWatch(node, node.time, self._note, store, self._writer)
        self._door: Door | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._acknowledging: asyncio.TimerHandle | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._flushed_ns = 0
        self._closed = False
        self._reading = True
        self._diary = Diary()
        self.broken: AntecedeError | None = None
        """Why nothing goes on; None: it does."""

    # -- beginning and end -------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> int:
        """Take calls from now on; returns the port. Raises OSError where that cannot be."""
        context = self._secure.server if self._secure is not None else None
        self._door = Door(context, lambda: Connection(self, dialed=False), self._no_handshake)
        return await self._door.open(host, port)

    def start(self) -> None:
        """Let time pass."""
        self._tick()

    def show(self) -> int:
        """Let the node look at the clock, where its order goes by one.

        Returns what the one shows that never goes back.
        """
        now = time.monotonic_ns()
        if self.clock is not None:
            self.clock.show(now)
        return now

    async def close(self) -> None:
        """End all connections once what is to be written is written, and close the store."""
        self.done(self._done())
        self._turn()
        if self.clock is not None:
            self.clock.end()
        await self._written()
        for entry in self._diary.look(self.node, time.monotonic_ns()):
            self._note(entry)
        self._closed = True
        for timer in (self._timer, self._acknowledging, self._gathering):
            if timer is not None:
                timer.cancel()
        if self._door is not None:
            self._door.close()
        for task in list(self._calling.values()):
            task.cancel()
        for connection in list(self.connections.values()):
            if connection.transport is not None:
                connection.transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                while self.connections:
                    await asyncio.sleep(0.005)
        for connection in list(self.connections.values()):
            if connection.transport is not None:
                connection.transport.abort()
        if self._writer is not None:
            await self._writer.close()
        if self._store is not None:
            self._store.close()

    async def _written(self) -> None:
        """Wait until the store has what there is."""
        while self._writer is not None and self.broken is None:
            if not self._writing and not self._write(force=self.node.done > self._noted_done):
                return
            await asyncio.sleep(0.001)

    # -- connections -------------------------------------------------------------------------------

    def _no_handshake(self, error: Exception) -> None:
        kind = "certificate" if isinstance(error, ssl.SSLError) else "handshake"
        self.node.refused[kind] += 1
        self.node.last_refusal = f"somebody who called: {error}"

    def call(self, address: str, done: Callable[[Exception | None], None] | None = None) -> None:
        """Call a member, unless that is being done."""
        if address in self._calling or self._closed:
            return
        task = self._loop.create_task(self._call(address, done))
        self._calling[address] = task
        task.add_done_callback(lambda _: self._calling.pop(address, None))

    async def _call(self, address: str, done: Callable[[Exception | None], None] | None) -> None:
        error: Exception | None = None
        try:
            host, port = split_address(address)
            context = self._secure.client() if self._secure is not None else None
            more: dict[str, Any] = {"ssl_handshake_timeout": HANDSHAKE_S} if context else {}
            async with asyncio.timeout(CALL_S):
                await self._loop.create_connection(
                    lambda: Connection(self, dialed=True), host, port, ssl=context, **more
                )
        except (OSError, TimeoutError, AntecedeError) as failed:
            error = failed
        if done is not None:
            done(error)

    def connected(self, connection: Connection, *, dialed: bool) -> None:
        """A connection stands."""
        transport = connection.transport
        assert transport is not None
        try:
            name = self._name(transport)
        except RemoteError as error:
            self.node.refused["certificate"] += 1
            self.node.last_refusal = str(error)
            transport.abort()
            return
        if self._closed:
            transport.abort()
            return
        self._numbers += 1
        self.connections[self._numbers] = connection
        self.node.link_up(self._numbers, name, time.monotonic_ns(), dialed=dialed)
        connection.begin(self._numbers)
        self.soon()

    def _name(self, transport: asyncio.Transport) -> str:
        if self._secure is None:
            return ""
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return self._secure.name_of(shown or b"")

    def received(self, connection: Connection, data: bytes) -> None:
        """Bytes have come."""
        if connection.number in self.connections:
            self.node.receive(connection.number, data, self.show())
            self.soon()

    def lost(self, connection: Connection) -> None:
        """A connection is over."""
        if self.connections.pop(connection.number, None) is not None:
            self.node.link_down(connection.number, time.monotonic_ns())
            self.soon()

    # -- turns -------------------------------------------------------------------------------------

    def soon(self) -> None:
        """Have a turn when the loop has nothing else to do."""
        if not self._turn_due:
            self._turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_due = False
        if self._closed or self.broken is not None:
            return
        node = self.node
        now = self.show()
        if self._may_flush(now):
            node.turn()
        if node.ordering is not None and node.ordering.delivered:
            self._ready()
        if self._writer is not None and not self._writing:
            self._write()
        for connection in list(self.connections.values()):
            if connection.paused_since is None:
                self._pull(connection, now)
        self._load()
        if node.upkeep.hurried:
            self._call_due(now)
        if node.news and self._acknowledging is None:
            delay = node.settings.acknowledge_ns / NS
            self._acknowledging = self._loop.call_later(delay, self._acknowledge)
        self._changed()

    def _acknowledge(self) -> None:
        self._acknowledging = None
        self.node.acknowledge()
        self.soon()

    def _may_flush(self, now: int) -> bool:
        """Whether what was said becomes a batch now: with little said lately at once, else
        once in the time to gather, and while the store or the others are busy not at all.
        """
        ordering = self.node.ordering
        if ordering is None or not ordering.unsent:
            return True
        if self._writing or self.choked():
            return False
        left = self._flushed_ns + self.node.settings.gather_ns - now
        if left > 0 and ordering.waiting_bytes < GATHERED:
            if self._gathering is None:
                self._gathering = self._loop.call_later(left / NS, self._gathered)
            return False
        self._flushed_ns = now
        return True

    def _gathered(self) -> None:
        self._gathering = None
        self.soon()

    def _pull(self, connection: Connection, now: int) -> None:
        number, transport = connection.number, connection.transport
        link = self.node.links.get(number)
        if link is None or transport is None:
            return
        parts = self.node.pull(number, BUDGET, now)
        if parts:
            data = b"".join(parts)
            transport.write(data)
            if len(data) >= BUDGET and connection.paused_since is None:
                self.soon()
        if link.closing:
            transport.close()

    def choked(self) -> bool:
        """Whether most of those who listen take no more at present."""
        if not self.connections:
            return False
        now = time.monotonic_ns()
        slow = sum(
            one.paused_since is not None and now - one.paused_since < LINGER_NS
            for one in self.connections.values()
        )
        return 2 * slow > len(self.connections)

    def _tick(self) -> None:
        if self._closed:
            return
        node, now = self.node, self.show()
        node.tick(now)
        if self.clock is not None:
            self.clock.look(now)
        self._call_due(now)
        self.done(self._done())
        if node.done > self._noted_done and not self._writing:
            self._write(force=True)
        self._turn()
        for entry in self._diary.look(node, now):
            self._note(entry)
        delay = max(0.001, (node.upkeep.due(time.monotonic_ns()) - time.monotonic_ns()) / NS)
        self._timer = self._loop.call_later(delay, self._tick)

    def _note(self, entry: Entry) -> None:
        write_entry(LOG, self.node.name, self.node.settings.room, entry)

    def done(self, place: int) -> None:
        """The application is done with all up to this place: noted with the next that is stored."""
        if self._store is not None:
            self.node.acknowledged(place)

    def _call_due(self, now: int) -> None:
        for _, address in self.node.upkeep.dials(now):
            self.call(address)

    def read(self, go_on: bool) -> None:
        """Read from the others, or leave that to the kernel while the application is behind."""
        if go_on == self._reading:
            return
        self._reading = go_on
        for connection in self.connections.values():
            transport = connection.transport
            if transport is not None and not transport.is_closing():
                transport.resume_reading() if go_on else transport.pause_reading()

    # -- the store ---------------------------------------------------------------------------------

    def _write(self, *, force: bool = False) -> bool:
        """Give the store what is new; returns whether there was something."""
        node, writer, store = self.node, self._writer, self._store
        if writer is None or store is None or node.ordering is None:
            return False
        rows, frontier = node.take_rows()
        if not rows and not force and self._has_snapshot:
            return False
        self._logged_rows += len(rows)
        self._logged_bytes += sum(len(row.batch.wire) for row in rows)
        snapshot = oldest = None
        full = self._logged_rows >= SNAPSHOT_ROWS or self._logged_bytes >= SNAPSHOT_BYTES
        if full or not self._has_snapshot:
            snapshot = node.snapshot()
            oldest = node.ordering.oldest()
            self._logged_rows = self._logged_bytes = 0
            self._has_snapshot = True
        done = self._noted_done = node.done
        self._writing = True
        writer.do(
            lambda: store.write(rows, done, snapshot, oldest), lambda _: self._wrote(frontier)
        )
        return True

    def _wrote(self, frontier: dict[str, int]) -> None:
        self._writing = False
        self.node.stored(frontier)
        self._turn()

    def _load(self) -> None:
        """Read batches from the store that are not in memory any more."""
        node, writer, store = self.node, self._writer, self._store
        if writer is None or store is None:
            return
        for number, lane, behind in node.loads():
            writer.do(
                partial(store.behind, lane, behind, LOAD_BATCHES),
                partial(self._loaded, number, lane),
            )

    def _loaded(self, number: int, lane: str, found: Any) -> None:
        self.node.loaded(number, lane, found)
        self.soon()

    def _failed(self, error: StoreError) -> None:
        """The store cannot go on, so neither can the peer: nothing more is acknowledged."""
        self.broken = error
        self._note(Entry("store_failed", str(error), {"reason": str(error)}))
        for connection in list(self.connections.values()):
            if connection.transport is not None:
                connection.transport.abort()
        self._ready()
        self._changed()
