"""A thread that writes to the store, so that the loop never waits for the disk."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

from antecede.errors import StoreError
from antecede.live.store import Store


class Writer:
    """Does one thing after the other with a store, and tells the loop what came of it."""

    def __init__(self, store: Store, failed: Callable[[StoreError], None]) -> None:
        self._store, self._failed = store, failed
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None]
        self._work = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="antecede-store", daemon=True)
        self._thread.start()

    def do(self, what: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do it in the thread, and give `then` its result in the loop."""
        self._work.put((what, then))

    async def close(self) -> None:
        """Finish what is to be done, and end the thread."""
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
            except Exception as error:  # no memory, perhaps: who waits for the store must hear it
                self._tell(self._failed, StoreError(f"the store fails: {error!r}"))
                return
            self._tell(then, result)

    def _tell(self, then: Callable[[Any], None], result: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(then, result)
        except RuntimeError:  # the loop is closed: nobody wants to know any more
            return
