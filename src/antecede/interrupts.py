"""Interruption of long work by Ctrl-C and SIGTERM.

Python delivers signals to the main thread between two bytecode instructions. So a compiled loop
runs in another thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")
POLL_S = 0.1


def interruptible(work: Callable[[], Result]) -> Result:
    """Run `work` in a thread, and return its result or raise its error.

    Ctrl-C raises KeyboardInterrupt at once. The thread continues, so `work` must tolerate an abort.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL_S)  # without a timeout some platforms delay signals
    if errors:
        raise errors[0]
    return results[0]


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived during work that needs cleanup."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise Terminated on SIGTERM in the block, so that temporary files are removed.

    Does nothing in other threads, or if the program has a handler. A second SIGTERM is ignored.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
