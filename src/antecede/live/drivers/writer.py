"""Store thread, so that the loop never waits for the disk."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

from antecede.errors import StoreError
from antecede.live.store import PeerStore


class Writer:
    """Worker that runs store operations in order and returns results to the loop."""

    def __init__(self, store: PeerStore, failed: Callable[[StoreError], None]) -> None:
        self._store, self._failed = store, failed
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None]
        self._work = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="antecede-store", daemon=True)
        self._thread.start()

    def do(self, what: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run an operation in the thread, and `then` with its result in the loop."""
        self._work.put((what, then))

    async def close(self) -> None:
        """Finish the queued operations and end the thread."""
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            what, then = work
            try:
                result = what()
            except StoreError as error:
                self._tell(self._failed, error)
                return
            except Exception as error:  # for example MemoryError; the waiting code must learn of it
                self._tell(self._failed, StoreError(f"store failed: {error!r}"))
                return
            self._tell(then, result)

    def _tell(self, then: Callable[[Any], None], result: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(then, result)
        except RuntimeError:  # the loop is closed
            return
