"""Separate process for scenarios with a user's class.

Such a class may catch errors, exit, or exhaust the memory. The process starts with the first
request and is kept. If it does not answer in time it is ended, and the next request starts another.
Calls run in its main thread, so each has a timeout (`antecede.lab.check.harness.guarded_calls`).
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Final

from antecede.errors import AntecedeError, InputError
from antecede.lab.check.scenario import with_output
from antecede.lab.play.cuts import cut_at
from antecede.lab.play.edits import edited
from antecede.lab.play.side_by_side import bench, parsed

ANSWER_S: Final = 40.0
"""Seconds until the process is ended; calls have shorter timeouts of their own."""
ENDING_S: Final = 2.0


def written(text: str, path: str) -> str:
    """Return a text with updated expected output."""
    parsed(text, path)
    return with_output(text, path)


ACTS: Final[Mapping[str, Callable[..., Any]]] = {
    "bench": bench,
    "edited": edited,
    "cut": cut_at,
    "text": written,
}
"""Request handlers by name."""


class GivenUpError(InputError):
    """End of the process without an answer."""


class Apart:
    """One process that runs scenarios, for one caller at a time."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def ask(self, act: str, *asked: Any) -> Any:
        """Return the answer of one of `HANDLERS`; raises InputError, SandboxError without an
        answer.
        """
        if self._worker is None:
            self._worker = Worker(_playing)
        line = self._worker.line
        try:
            line.send((act, asked))
            if not line.poll(ANSWER_S):
                self.close()
                raise GivenUpError(f"no answer within {ANSWER_S:g} s: the process was ended")
            done, value, where = line.recv()
        except (EOFError, OSError) as error:
            code = self.close()
            raise GivenUpError(
                f"the class ended its process (exit code {code}): it exited, or did not return and "
                "caught the timeout; see the terminal"
            ) from error
        if not done:
            raise InputError(value, line=where)
        return value

    def close(self) -> int | None:
        """End the process; return its exit code, or None without a process."""
        worker, self._worker = self._worker, None
        return worker.end() if worker is not None else None


class Worker:
    """Process that runs `work(*given, pipe)`, and the other end of the pipe."""

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(*given, theirs), daemon=True)
        with _interrupts_kept_away():
            self.process.start()
        theirs.close()

    def end(self) -> int | None:
        """End the process, even a busy one; return its exit code."""
        self.line.close()
        self.process.join(0.1)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(ENDING_S)
        if self.process.is_alive():  # it ignores SIGTERM
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        self.process.close()
        return code


@contextmanager
def _interrupts_kept_away() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started later, with the first process, the tracker would unblock interrupts too early.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _playing(line: Connection) -> None:
    with suppress(EOFError, OSError):
        while True:
            act, asked = line.recv()
            try:
                told = (True, ACTS[act](*asked), None)
            except AntecedeError as error:
                words = error.message if isinstance(error, InputError) else str(error)
                told = (False, words, getattr(error, "line", None))
            line.send(told)
