"""TCP driver of a node: sockets, dials, steps, and the thread of its store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import islice
from typing import Any, Final, cast

from antecede.errors import AntecedeError, RemoteError, StoreError
from antecede.live.diary import LogEntry, StatusLogger
from antecede.live.diary import write as write_entry
from antecede.live.drivers.calling import reach
from antecede.live.drivers.calls import Dialer, Secure, read_name
from antecede.live.drivers.clock_watch import ClockWatch
from antecede.live.drivers.door import Listener
from antecede.live.drivers.handshakes import NO_GREETING, is_alert, is_for_good, why_no_handshake
from antecede.live.drivers.writer import Writer
from antecede.live.events import member_of
from antecede.live.lanes import SignedBatch
from antecede.live.node import Node
from antecede.live.settings import NS
from antecede.live.store import PeerStore

LOG: Final = logging.getLogger("antecede.live")
BUDGET: Final = 1 << 18
WRITTEN_APART: Final = 1 << 20
"""Size beyond which the parts of a write are not joined."""
HIGH_WATER: Final = 1 << 18
BULK: Final = 1 << 13
BULK_TIMES: Final = 4
"""Factor of the linger time after a batch of BULK bytes, for senders limited by the processor."""
GATHERED: Final = 1 << 17
"""Bytes that end the linger time."""
LINGER_NS: Final = NS
"""Time for which a connection that does not read delays the senders."""
CLOSING_S: Final = 2.0
FAREWELL_S: Final = 0.5
"""Time for the other end to read the last frames."""
SNAPSHOT_BYTES: Final = 8 << 20
SNAPSHOT_ROWS: Final = 4096
GATHERED_ROWS: Final = 256
"""Inputs that are written at once without an own batch among them."""
LOAD_BATCHES: Final = 256
MAX_READY: Final = 1 << 16
"""Pending messages beyond which reading stops."""


class Connection(asyncio.Protocol):
    """TCP connection."""

    def __init__(self, driver: TcpDriver, *, dialed: bool) -> None:
        self._driver, self._dialed = driver, dialed
        self._early: list[bytes] = []
        self.transport: asyncio.Transport | None = None
        self.number = 0
        self.paused_since: int | None = None
        """Time since which the socket is full. None: it is not."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection after the handshake."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self.transport.set_write_buffer_limits(high=HIGH_WATER)
        self._driver.handle_connection(self, dialed=self._dialed)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes, which may come with the end of the handshake."""
        if self.number:
            self._driver.handle_bytes(self, data)
        else:
            self._early.append(data)

    def begin(self, number: int) -> None:
        """Set the connection's number and handle earlier bytes."""
        self.number = number
        for data in self._early:
            self._driver.handle_bytes(self, data)
        self._early.clear()

    def pause_writing(self) -> None:
        """Stop writing to a full socket."""
        self.paused_since = time.monotonic_ns()

    def resume_writing(self) -> None:
        """Continue writing."""
        self.paused_since = None
        self._driver.soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection."""
        self._driver.handle_close(self, exc)


class TcpDriver:
    """Driver of a node in the running loop. `ready` is called with new messages for the
    application, `changed` after other events. `done` returns the number of messages that the
    application has finished.
    """

    def __init__(
        self,
        node: Node,
        *,
        secure: Secure | None,
        store: PeerStore | None,
        ready: Callable[[], None],
        changed: Callable[[], None],
        done: Callable[[], int],
    ) -> None:
        self.node, self._secure, self._store = node, secure, store
        self._ready, self._changed, self._done = ready, changed, done
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(store, self._handle_failure) if store is not None else None
        self._writing = False
        self._logged_rows = self._logged_bytes = 0
        self._has_snapshot = store is not None and store.get("snapshot") is not None
        self._noted_done = node.done
        self.connections: dict[int, Connection] = {}
        self._numbers = 0
        self._calls = Dialer(self._connect, secure)
        self.call = self._calls.call
        self._reaching: set[str] = set()
        self.turn_due = False
        self.clock: ClockWatch | None = None
        if node.clock_monitor is not None:
            self.clock = ClockWatch(node, node.clock_monitor, self._note, store, self._writer)
        self._door: Listener | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._acknowledging: asyncio.TimerHandle | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._storing: asyncio.TimerHandle | None = None
        self._flushed_ns = self._flushed = 0
        """Time and bytes of the newest batch."""
        self._closed = False
        self._reading = True
        self._diary = StatusLogger()
        self.broken: AntecedeError | None = None
        """Error that stopped the driver. None: it runs."""

    # -- start and end -----------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        context = self._secure.server if self._secure is not None else None
        self._door = Listener(context, lambda: Connection(self, dialed=False), self._no_handshake)
        return await self._door.open(host, port)

    def start(self) -> None:
        """Start the timers."""
        for text in self._secure.warnings(time.time()) if self._secure is not None else ():
            self._note(LogEntry("certificate", text, {"reason": text}))
        self._tick()

    def show(self) -> int:
        """Report the clock to the node in orders by clocks; return the monotonic clock."""
        now = time.monotonic_ns()
        if self.clock is not None:
            self.clock.show(now)
        return now

    async def close(self) -> None:
        """Close all connections after the pending writes, and close the store."""
        self.finish(self._done())
        self._turn()
        if self.clock is not None:
            self.clock.end()
        await self._wait_for_writes()
        self.node.acknowledge()  # else others keep, and report as lost, batches that it has
        self._turn()
        for entry in self._diary.sample(self.node, time.monotonic_ns()):
            self._note(entry)
        self._closed = True
        for timer in (self._timer, self._acknowledging, self._gathering, self._storing):
            if timer is not None:
                timer.cancel()
        if self._door is not None:
            self._door.close()
        self._calls.close()
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

    async def _wait_for_writes(self) -> None:
        """Wait until the store has all rows."""
        while self._writer is not None and self.broken is None:
            if not self._writing and not self._write(force=self.node.done > self._noted_done):
                return
            await asyncio.sleep(0.001)

    # -- connections -------------------------------------------------------------------------------

    def _no_handshake(self, error: Exception) -> None:
        kind = "certificate" if isinstance(error, ssl.SSLError) else "handshake"
        self.node.rejected[kind] += 1
        self.node.last_rejection = f"unknown client: {why_no_handshake(error)}"

    async def _connect(self, address: str, host: str, port: int, more: dict[str, Any]) -> None:
        self._reaching.add(address)
        try:
            reached = await reach(host, port)
        finally:
            self._reaching.discard(address)
        await self._loop.create_connection(
            lambda: Connection(self, dialed=True), sock=reached, **more
        )

    def handle_connection(self, connection: Connection, *, dialed: bool) -> None:
        """Register a connection with the node."""
        transport = connection.transport
        assert transport is not None
        try:
            name = read_name(self._secure, transport)
        except RemoteError as error:
            self.node.rejected["certificate"] += 1
            self.node.last_rejection = str(error)
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

    def _stop_calling(self) -> None:
        """Cancel dials of members that have dialed this one meanwhile."""
        node = self.node
        members = node.ordering.members if node.ordering is not None else {}
        for lane in node.greeted:
            if (address := members.get(lane, "")) in self._reaching:
                self._calls.cancel(address)

    def handle_bytes(self, connection: Connection, data: bytes) -> None:
        """Pass received bytes to the node."""
        if connection.number in self.connections:
            self.node.receive(connection.number, data, self.show())
            self.soon()

    def handle_close(self, connection: Connection, error: Exception | None) -> None:
        """Unregister a connection."""
        if self.connections.pop(connection.number, None) is not None:
            link = self.node.links.get(connection.number)
            if link is not None and not link.lane and is_alert(error):  # about the own certificate
                self.node.rejections.note(link, why_no_handshake(cast(Exception, error)))
            if self._secure is None:
                self._cut_short(connection.number)
            self.node.link_down(connection.number, time.monotonic_ns())
            self.soon()

    def _cut_short(self, number: int) -> None:
        """Record the reason if a joining member's connection ended without HELLO."""
        link = self.node.links.get(number)
        waits = self.node.ordering is None and not self.node.refusal
        if waits and link is not None and link.dialed and not (link.lane or link.closing):
            self.node.refusal = NO_GREETING

    # -- steps -------------------------------------------------------------------------------------

    def soon(self) -> None:
        """Schedule a step."""
        if not self.turn_due:
            self.turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self.turn_due = False
        if self._closed or self.broken is not None:
            return
        node = self.node
        now = self.show()
        if self._may_flush(now):
            node.turn()
        if node.ordering is not None and node.ordering.delivered:
            self._ready()
        if self._writer is not None and not self._writing:
            self._write_in_time()
        for number in node.writable():
            connection = self.connections[number]
            if connection.paused_since is None:
                self._pull(connection, now)
            else:
                self._end_paused(connection)
        self._load()
        if node.timers.hurried:
            self._call_due(now)
        if self._reaching:
            self._stop_calling()
        if node.news and self._acknowledging is None:
            delay = node.acknowledge_every_ns / NS
            self._acknowledging = self._loop.call_later(delay, self._acknowledge)
        self._changed()

    def _acknowledge(self) -> None:
        self._acknowledging = None
        self.node.acknowledge()
        self.soon()

    def _may_flush(self, now: int) -> bool:
        """Return whether the sent messages become a batch now. At once with little recent data,
        else after the linger time. Not while the store or most members are busy.
        """
        ordering = self.node.ordering
        if ordering is None or not ordering.unsent:
            return True
        if self._writing or self.is_choked():
            return False
        linger_ns = self.node.settings.linger_ns * (1 if self._flushed < BULK else BULK_TIMES)
        left = self._flushed_ns + linger_ns - now
        if left > 0 and ordering.waiting_bytes < GATHERED:
            if self._gathering is None:
                self._gathering = self._loop.call_later(left / NS, self._end_linger)
            return False
        self._flushed_ns, self._flushed = now, ordering.waiting_bytes
        return True

    def _end_linger(self) -> None:
        self._gathering = None
        self.soon()

    def _pull(self, connection: Connection, now: int) -> None:
        number, transport = connection.number, connection.transport
        link = self.node.links.get(number)
        # A closing transport accepts no writes, and a second `close` breaks one with TLS. A write
        # would then raise and stop the timers.
        if link is None or transport is None or transport.is_closing():
            return
        parts = self.node.pull(number, BUDGET, now)
        if parts:
            size = sum(map(len, parts))
            if size < WRITTEN_APART:
                transport.write(b"".join(parts))
            else:
                for part in parts:
                    transport.write(part)
            if size >= BUDGET and connection.paused_since is None:
                self.soon()
        if link.closing:
            self._hang_up(connection)

    def _hang_up(self, connection: Connection) -> None:
        """Close a connection, and abort it soon after: the other end may be unreachable."""
        transport = connection.transport
        if transport is not None and not transport.is_closing():
            transport.close()
            # The other end may not read the TLS close either.
            self._loop.call_later(FAREWELL_S, transport.abort)

    def _end_paused(self, connection: Connection) -> None:
        """Abort a connection that is closing and does not read."""
        link = self.node.links.get(connection.number)
        if link is not None and link.closing and connection.transport is not None:
            connection.transport.abort()

    def count_buffered(self) -> int:
        """Return the bytes written to connections and not sent by the system yet."""
        transports = (one.transport for one in self.connections.values())
        return sum(
            one.get_write_buffer_size()
            for one in transports
            if one is not None and not one.is_closing()
        )

    def is_choked(self) -> bool:
        """Return whether most connections are full."""
        if not self.connections:
            return False
        now = time.monotonic_ns()
        slow = sum(
            one.paused_since is not None and now - one.paused_since < LINGER_NS
            for one in self.connections.values()
        )
        return 2 * slow > len(self.connections)

    def behind(self, at_most: int) -> bool:
        """Return whether more than `at_most` bytes of own batches wait for most connections. A
        sender in a loop leaves no time to write them.
        """
        node = self.node
        ordering = node.ordering
        if ordering is None or ordering.lanes.bytes <= at_most:
            return False
        now = time.monotonic_ns()
        cursors = sorted(
            link.cursors[node.lane]
            for number, link in node.links.items()
            if node.lane in link.cursors and not link.closing and not self._lingers(number, now)
        )
        if not cursors:
            return False
        lane = ordering.lanes.by_name[node.lane]
        waiting = lane.newest - cursors[(len(cursors) - 1) // 2]
        sizes = (len(batch.wire) for batch in islice(reversed(lane.batches), max(0, waiting)))
        return sum(sizes) > at_most

    def _lingers(self, number: int, now: int) -> bool:
        """Return whether a connection has been full for so long that senders ignore it."""
        since = self.connections[number].paused_since
        return since is not None and now - since >= LINGER_NS

    def _tick(self) -> None:
        if self._closed:
            return
        node, now = self.node, self.show()
        if not self._reading:  # while not reading, silence means nothing
            for link in node.links.values():
                link.heard_ns = now
        node.tick(now)
        if self.clock is not None:
            self.clock.look(now)
        self._call_due(now)
        self.finish(self._done())
        if node.done > self._noted_done and not self._writing:
            self._write(force=True)
        self._turn()
        for entry in self._diary.sample(node, now):
            self._note(entry)
        delay = max(0.001, (node.timers.due(time.monotonic_ns()) - time.monotonic_ns()) / NS)
        self._timer = self._loop.call_later(delay, self._tick)

    async def own_behind(self, number: int) -> AsyncIterator[tuple[int, SignedBatch]]:
        """Yield (number, batch) of own batches behind a number, from memory or store."""
        lane, store = self.node.active.lanes.by_name[self.node.lane], self._store
        while number + 1 < lane.first and store is not None and self._writer is not None:
            read = partial(store.behind, self.node.lane, number, LOAD_BATCHES)
            found: asyncio.Future[list[tuple[int, SignedBatch]]] = self._loop.create_future()
            self._writer.do(read, found.set_result)
            batches = await found
            if not batches:
                return
            for number, batch in batches:
                yield number, batch
        for one in list(lane.after(number)):
            yield one

    def note(self, event: str, text: str, **fields: Any) -> None:
        """Write an entry to the log."""
        self._note(LogEntry(event, text, fields))

    def _note(self, entry: LogEntry) -> None:
        write_entry(LOG, self.node.name, self.node.settings.group_name, entry)

    def finish(self, count: int) -> None:
        """Finish the first `count` messages; stored with the next rows."""
        if self._store is not None:
            self.node.finish(count)

    def _call_due(self, now: int) -> None:
        for lane, address in self.node.timers.dials(now):
            self.call(address, partial(self._handle_dial, member_of(lane)))

    def _handle_dial(self, name: str, error: Exception | None) -> None:
        """Delay dials of a member with a foreign certificate."""
        if is_for_good(error):
            self.node.rejections.delay(name, time.monotonic_ns())

    def read(self, go_on: bool) -> None:
        """Read from connections, or pause while the application lags."""
        if go_on == self._reading:
            return
        self._reading = self.node.is_reading = go_on
        for connection in self.connections.values():
            transport = connection.transport
            if transport is not None and not transport.is_closing():
                transport.resume_reading() if go_on else transport.pause_reading()

    # -- the store ---------------------------------------------------------------------------------

    def _write_in_time(self) -> None:
        """Write rows now if an own batch waits for that. Received batches only wait for their
        acknowledgement, so they are written together: a transaction costs more than a batch.
        """
        ordering = self.node.ordering
        if ordering is None:
            return
        if ordering.urgent_rows or len(ordering.rows) >= GATHERED_ROWS or not self._has_snapshot:
            self._write()
        elif ordering.rows and self._storing is None:
            delay = self.node.settings.ack_delay_ns / 2 / NS
            self._storing = self._loop.call_later(delay, self._end_row_linger)

    def _end_row_linger(self) -> None:
        self._storing = None
        if not self._closed and self.broken is None and not self._writing:
            self._write()

    def _write(self, *, force: bool = False) -> bool:
        """Pass new rows to the store; return whether there were any."""
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
        done, owners = node.done, node.take_owners()
        self._noted_done = done
        self._writing = True
        writer.do(
            lambda: store.write(rows, done, snapshot, oldest, owners),
            lambda _: self._wrote(frontier),
        )
        return True

    def _wrote(self, frontier: dict[str, int]) -> None:
        self._writing = False
        self.node.handle_stored(frontier)
        self._turn()

    def _load(self) -> None:
        node, writer, store = self.node, self._writer, self._store
        if writer is None or store is None:
            return
        for number, lane, behind in node.loads():
            writer.do(
                partial(store.behind, lane, behind, LOAD_BATCHES),
                partial(self._handle_loaded, number, lane),
            )

    def _handle_loaded(self, number: int, lane: str, found: Any) -> None:
        self.node.handle_loaded(number, lane, found)
        self.soon()

    def _handle_failure(self, error: StoreError) -> None:
        """Stop after a failure of the store, since nothing more can be acknowledged."""
        self.broken = error
        self._note(LogEntry("store_failed", str(error), {"reason": str(error)}))
        for connection in list(self.connections.values()):
            if connection.transport is not None:
                connection.transport.abort()
        self._ready()
        self._changed()
