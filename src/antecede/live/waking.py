"""Notifier for an asyncio loop: wait for a change, wake all waiters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Notifier:
    """Waiters for the next change."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Wake all waiters."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def next_change(self, timeout_s: float | None) -> None:
        """Wait for the next `wake` or until the time is over. None: no limit."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        if timeout_s is None:
            await future
            return
        await asyncio.wait([future], timeout=timeout_s)
        self._waiting.discard(future)

    async def until(
        self,
        true: Callable[[], bool],
        timeout_s: float | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> bool:
        """Wait until a condition is true or the time is over; return the condition. `check` runs
        before each wait and raises if the condition never becomes true.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not true():
            check()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            await self.next_change(left)
        return True


__all__ = ["Notifier"]
