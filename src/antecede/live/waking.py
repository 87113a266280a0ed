"""Waiting in a loop until something may have changed, and waking all who wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Notifier:
    """Who waits for the next change."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Something may have changed."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def next_change(self, timeout_s: float | None) -> None:
        """Wait until something may have changed, or the time is over; None: for ever."""
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
        """Wait until something is so, or the time is over; returns whether it is.

        `check` is called before each wait, and raises where it never will be.
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
