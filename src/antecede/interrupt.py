"""Work that can be interrupted: Ctrl-C is heard while compiled code runs.

Python hands a signal to the main thread between two of its own instructions, so a compiled loop
of minutes would be deaf. In a thread of its own it leaves the main thread free to hear.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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
