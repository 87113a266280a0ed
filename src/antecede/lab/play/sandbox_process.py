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
from antecede.lab.check.scenario import update_output
from antecede.lab.play.cuts import compute_cut
from antecede.lab.play.edits import apply_edit
from antecede.lab.play.side_by_side import compare_protocols, parse_limited

ANSWER_TIMEOUT_S: Final = 40.0
"""Seconds until the process is ended; calls have shorter timeouts of their own."""
STOP_TIMEOUT_S: Final = 2.0


def update_text(text: str, path: str) -> str:
    """Return a text with updated expected output."""
    parse_limited(text, path)
    return update_output(text, path)


HANDLERS: Final[Mapping[str, Callable[..., Any]]] = {
    "compare": compare_protocols,
    "edit": apply_edit,
    "cut": compute_cut,
    "text": update_text,
}


class SandboxError(InputError):
    """End of the process without an answer."""


class Sandbox:
    """One process that runs scenarios, for one caller at a time."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def call(self, name: str, *asked: Any) -> Any:
        """Return the answer of one of `HANDLERS`; raises InputError and SandboxError."""
        if self._worker is None:
            self._worker = Worker(_serve)
        line = self._worker.pipe
        try:
            line.send((name, asked))
            if not line.poll(ANSWER_TIMEOUT_S):
                self.close()
                raise SandboxError(
                    f"no answer within {ANSWER_TIMEOUT_S:g} s: the process was ended"
                )
            done, value, where = line.recv()
        except (EOFError, OSError) as error:
            code = self.close()
            raise SandboxError(
                f"the class ended its process (exit code {code}): it exited, or did not return and "
                "caught the timeout; see the terminal"
            ) from error
        if not done:
            raise InputError(value, line=where)
        return value

    def close(self) -> int | None:
        """End the process; return its exit code, or None without a process."""
        worker, self._worker = self._worker, None
        return worker.stop() if worker is not None else None


class Worker:
    """Process that runs `work(*given, pipe)`, and the other end of the pipe."""

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(*given, theirs), daemon=True)
        with _block_interrupts():
            self.process.start()
        theirs.close()

    def stop(self) -> int | None:
        """End the process, even a busy one; return its exit code."""
        self.pipe.close()
        self.process.join(0.1)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(STOP_TIMEOUT_S)
        if self.process.is_alive():  # it ignores SIGTERM
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        self.process.close()
        return code


@contextmanager
def _block_interrupts() -> Iterator[None]:
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


def _serve(pipe: Connection) -> None:
    with suppress(EOFError, OSError):
        while True:
            name, arguments = pipe.recv()
            try:
                answer = (True, HANDLERS[name](*arguments), None)
            except AntecedeError as error:
                message = error.message if isinstance(error, InputError) else str(error)
                answer = (False, message, getattr(error, "line", None))
            pipe.send(answer)
