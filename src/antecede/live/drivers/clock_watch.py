"""Clock poller of a node: reads the clock and its error, and reports violations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from antecede.live.clocks import ask
from antecede.live.diary import LogEntry
from antecede.live.drivers.writer import Writer
from antecede.live.node import Node
from antecede.live.settings import NS
from antecede.live.store import PeerStore
from antecede.live.timekeeping import BoundViolation, ClockMonitor

ASK_NS: Final = 2 * NS
KEEP_NS: Final = 5 * NS


class ClockWatch:
    """Poller for a node with an order by clocks. `note` writes to the log."""

    def __init__(
        self,
        node: Node,
        keeping: ClockMonitor,
        note: Callable[[LogEntry], None],
        store: PeerStore | None,
        writer: Writer | None,
    ) -> None:
        self._node, self._keeping, self._note = node, keeping, note
        self._store, self._writer = store, writer
        self.alarmed: Callable[[BoundViolation], None] | None = None
        """Callback of the application for violations."""
        self._asking: asyncio.Task[None] | None = None
        self._asked_ns: int | None = None
        self._kept, self._kept_ns = b"", 0

    def show(self, now: int) -> None:
        """Report the system clock to the node."""
        self._node.shows(time.time_ns(), now)

    async def begin(self) -> None:
        """Read the clock error and restore the delays of the store."""
        await self._ask()
        kept = None if self._store is None else self._store.get("delays")
        if kept:
            self._keeping.remember(kept)

    async def _ask(self) -> None:
        told = await asyncio.to_thread(ask, self._node.settings.clock_error_ns)
        self._keeping.system_says(*told)

    def look(self, now: int) -> None:
        """Read the clock error at intervals, report violations, store delays."""
        if self._asked_ns is None:
            self._asked_ns = now
        elif now - self._asked_ns >= ASK_NS and (self._asking is None or self._asking.done()):
            self._asked_ns = now
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        for alarm in self._keeping.take_violations(now):
            fields = {**alarm._asdict(), "id": str(alarm.id or "")}
            self._note(LogEntry("bound_violation", str(alarm), fields))
            if self.alarmed is not None:
                self._tell(alarm)
        if now - self._kept_ns >= KEEP_NS:
            self._kept_ns = now
            self.keep()

    def _tell(self, alarm: BoundViolation) -> None:
        """Call the application's function. Its exceptions go to the loop's handler."""
        assert self.alarmed is not None
        try:
            self.alarmed(alarm)
        except Exception as error:
            context = {"message": "on_bound_violation= of a live peer raised", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def keep(self) -> None:
        """Store the delays if they changed."""
        found = self._keeping.pack_delays()
        if self._store is None or self._writer is None or found == self._kept:
            return
        if self._keeping.delays:
            self._kept = found
            self._writer.do(partial(self._store.put, "delays", found), lambda _: None)

    def end(self) -> None:
        """Stop reading, and store the delays."""
        if self._asking is not None:
            self._asking.cancel()
        self.keep()
