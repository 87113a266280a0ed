"""Search for a counterexample as a background job.

A process runs `antecede check` and reports its progress and result; stopping ends the process. One
job runs at a time. The answer is the output of the command, with the counterexample as a scenario.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from antecede.errors import AntecedeError, InputError
from antecede.lab.check import Verdict, find_target, is_file_target, run_check
from antecede.lab.check.scenario import format_failure, report
from antecede.lab.play.sandbox_process import STOP_TIMEOUT_S, Worker

MEMBERS: Final = range(2, 11)
MESSAGES: Final = range(1, 13)
PROGRESS_INTERVAL_S: Final = 0.1


class SearchRequest(NamedTuple):
    """Request of a search."""

    target: str
    variant: str = ""
    options: tuple[tuple[str, str], ...] = ()
    members: int | None = None
    messages: int | None = None
    thorough: bool = False
    folder: str = "."


class SearchManager:
    """Manager of at most one search; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._job = ""
        self._worker: Worker | None = None
        self._progress: dict[str, Any] = {}

    def start(self, search: SearchRequest) -> str:
        """Start a search and return its id; raises InputError if another is running."""
        for what, value, allowed in (
            ("members", search.members, MEMBERS),
            ("messages", search.messages, MESSAGES),
        ):
            if value is not None and value not in allowed:
                raise InputError(f"{what}={value}: choose {allowed[0]} to {allowed[-1]}")
        with self._lock:
            self._poll()
            if self._worker is not None:
                raise InputError("another search is running; stop it or wait")
            if not is_file_target(search.target):  # files are loaded in the process of the search
                find_target(search.target, search.variant, search.options)
            self._job = secrets.token_hex(8)
            self._progress = {"done": False, "setting": "", "states": 0}
            self._worker = Worker(_run_search, search)
            return self._job

    def get_progress(self, job: str) -> Mapping[str, Any]:
        """Return the progress or result of a search; raises InputError for another id."""
        with self._lock:
            self._check(job)
            self._poll()
            return self._progress

    def stop(self, job: str) -> Mapping[str, Any]:
        """End a search, and return its last progress; raises InputError for another id."""
        with self._lock:
            self._check(job)
            self._poll()
            self._stop()
            return self._progress

    def close(self) -> None:
        """End the running search."""
        with self._lock:
            self._stop()

    def _check(self, job: str) -> None:
        if not self._job or job != self._job:
            raise InputError("unknown search job")

    def _poll(self) -> None:
        if self._worker is None:
            return
        line, process = self._worker.pipe, self._worker.process
        try:
            while line.poll():
                self._progress = line.recv()
        except (EOFError, OSError):
            if not self._progress["done"]:
                process.join(STOP_TIMEOUT_S)
                why = f"the search ended without an answer (exit code {process.exitcode})"
                self._progress = {"done": True, "error": why}
        if self._progress["done"]:
            self._worker.stop()
            self._worker = None

    def _stop(self) -> None:
        if self._worker is not None:
            self._progress = {**self._progress, "done": True, "stopped": True}
            self._worker.stop()
            self._worker = None


def _run_search(search: SearchRequest, pipe: Connection) -> None:
    reported = monotonic()

    def progress(setting: str, states: int) -> None:
        nonlocal reported
        if monotonic() - reported >= PROGRESS_INTERVAL_S:
            reported = monotonic()
            pipe.send({"done": False, "setting": setting, "states": states})

    try:
        verdict = run_check(
            search.target,
            variant=search.variant,
            options=search.options,
            members=search.members,
            messages=search.messages,
            thorough=search.thorough,
            progress=progress,
        )
        result = verdict_to_dict(verdict, search)
    except AntecedeError as error:
        result = {"done": True, "error": str(error)}
    except BrokenPipeError:  # the search was stopped
        return
    with suppress(BrokenPipeError):
        pipe.send(result)


def verdict_to_dict(verdict: Verdict, search: SearchRequest) -> dict[str, Any]:
    """Convert a verdict to plain values, with the worst counterexample as a scenario."""
    shown = [failure for failure in verdict.failures if failure.actions]
    text = format_failure(shown[-1], Path(search.folder) / "found.scenario") if shown else None
    return {
        "done": True,
        "ok": verdict.ok,
        "lines": report(verdict, search.variant),
        "sentences": [failure.sentence() for failure in verdict.failures],
        "states": verdict.states,
        "runs": verdict.runs,
        "complete": all(one.complete or one.failure for one in verdict.explorations),
        "text": text,
    }
