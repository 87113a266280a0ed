"""Work that can be interrupted: Ctrl-C is heard while compiled code runs, and what is half done
is cleaned up, too, where the process is asked to end.

Python hands a signal to the main thread between two of its own instructions, so a compiled loop
of minutes would be deaf. In a thread of its own it leaves the main thread free to hear.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Made = TypeVar("Made")
LOOK_S = 0.1


def interruptible(work: Callable[[], Made]) -> Made:
    """Return what `work` gives, or raise what it raises.

    KeyboardInterrupt is raised at once; the work then goes on only until the process ends, so it
    must be of a kind that leaves nothing half done.
    """
    made: list[Made] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)  # with a time limit, so that signals are heard everywhere
    if failed:
        raise failed[0]
    return made[0]


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM) while something half done had to be cleaned up."""


@contextmanager
def terminable() -> Iterator[None]:
    """Within it, SIGTERM raises Terminated, so that drafts and the like are removed on the way out.

    Elsewhere it ends the process at once, as it is: compiled code could not hear it. A handler of
    the program around stays; so does the signal in other threads, which can set none. A second
    SIGTERM does not disturb the cleaning up.
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
