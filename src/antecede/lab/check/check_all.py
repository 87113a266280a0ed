"""Check of all built-in protocols and variants against their expected verdicts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from antecede.core.protocols import ENTRIES
from antecede.errors import LocalError
from antecede.lab.check.check import run_check
from antecede.lab.check.results import (
    CONTRACT_BROKEN,
    ENCODING_CHANGED,
    RAISED,
    SHARED_STATE,
    SNAPSHOT_CHANGED,
    TIMED_OUT,
)

PASSES, REFUTED, FAILS = "passes", "refuted", "FAILS"
"""FAILS: the protocol raises, times out or breaks the contract of `core.protocols.base`."""
_FAILING_KINDS = (
    RAISED,
    TIMED_OUT,
    CONTRACT_BROKEN,
    SHARED_STATE,
    SNAPSHOT_CHANGED,
    ENCODING_CHANGED,
)


class Case(NamedTuple):
    """Protocol in one variant, and its expected verdict."""

    protocol: str
    variant: str
    expected: str

    @property
    def name(self) -> str:
        """Arguments of `antecede check`."""
        return f"{self.protocol} --variant {self.variant}" if self.variant else self.protocol


class CaseResult(NamedTuple):
    """Verdict on one case."""

    case: Case
    found: str
    states: int
    runs: int
    complete: bool
    said: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Return True if the verdict is the expected one."""
        return self.found == self.case.expected

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain values for JSON."""
        row = {**self.case._asdict(), **self._asdict(), "ok": self.ok}
        del row["case"]
        return row


def cases(names: Iterable[str] = (), *, quick: bool = False) -> tuple[Case, ...]:
    """Return all or the named cases in registry order; `quick`: only the defective variants."""
    wanted = set(names)
    if unknown := sorted(wanted - ENTRIES.keys()):
        raise LocalError(f"unknown protocol {unknown[0]!r}; choose from {', '.join(ENTRIES)}")
    return tuple(
        Case(entry.name, variant, REFUTED if variant in entry.defective else PASSES)
        for entry in ENTRIES.values()
        if not wanted or entry.name in wanted
        for variant in ("", *(entry.defective if quick else entry.variants))
    )


def check_case(case: Case, quick: bool = False) -> CaseResult:
    """Check one case until its first failure; `quick`: smaller bounds where it should pass."""
    started = time.process_time()
    verdict = run_check(
        case.protocol,
        variant=case.variant,
        quick=quick and case.expected == PASSES,
        first_failure=True,
    )
    description = verdict.failures[-1].sentence() if verdict.failures else ""
    complete = all(part.complete or part.failure is not None for part in verdict.explorations)
    kinds = {failure.what for failure in verdict.failures}
    # A published rule must violate an order; a failure that only raises refutes nothing.
    found = PASSES if verdict.ok else FAILS if kinds <= {*_FAILING_KINDS} else REFUTED
    seconds = time.process_time() - started
    return CaseResult(case, found, verdict.states, verdict.runs, complete, description, seconds)


def judge_all(
    cases: Sequence[Case], jobs: int | None = None, *, quick: bool = False
) -> Iterator[CaseResult]:
    """Yield the results in the order of the cases; `jobs` processes (default: all cores)."""
    workers = min(jobs or os.cpu_count() or 1, len(cases))
    if workers < 2:
        yield from (check_case(case, quick) for case in cases)
        return
    with ProcessPoolExecutor(workers) as pool:
        # The longest searches (several roles, not refuted) start first.
        longest_first = sorted(
            cases, key=lambda case: (ENTRIES[case.protocol].flat, case.expected == REFUTED)
        )
        begun = {case: pool.submit(check_case, case, quick) for case in longest_first}
        try:
            yield from (begun[case].result() for case in cases)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
