"""Every built-in protocol and every variant against what is expected of it.

What the registry lists as defective must be refuted; all else must keep what it promises.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from antecede.core.protocols import ENTRIES
from antecede.errors import LocalError
from antecede.lab.check.check import run_check
from antecede.lab.check.results import HUNG, MISUSED, RAISED, SHARED, SNAPSHOT, WIRE

PASSES, REFUTED, FAILS = "passes", "refuted", "FAILS"
"""All is kept; a promise is broken; it raises, hangs or gives back what it may not."""
_BROKEN = (RAISED, HUNG, MISUSED, SHARED, SNAPSHOT, WIRE)


class Case(NamedTuple):
    """One protocol in one variant, and the verdict expected."""

    protocol: str
    variant: str
    """Empty: the protocol as it is by default."""
    expected: str

    @property
    def name(self) -> str:
        """Return how `antecede check` is asked for it."""
        return f"{self.protocol} --variant {self.variant}" if self.variant else self.protocol


class CaseResult(NamedTuple):
    """What became of one case."""

    case: Case
    found: str
    states: int
    runs: int
    complete: bool
    """Whether every search visited all that it set out to visit, or found a failure."""
    said: str
    """The failure, in a sentence; empty when there is none."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the verdict is the one that is expected."""
        return self.found == self.case.expected

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain values for JSON."""
        row = {**self.case._asdict(), **self._asdict(), "ok": self.ok}
        del row["case"]
        return row


def cases(only: Iterable[str] = (), *, quick: bool = False) -> tuple[Case, ...]:
    """Return every protocol (of those named) with its variants, in the order of the registry.

    `quick`: without the variants that keep their promises. Raises LocalError for an unknown name.
    """
    wanted = set(only)
    if unknown := sorted(wanted - ENTRIES.keys()):
        raise LocalError(f"no protocol is called {unknown[0]!r}; there are {', '.join(ENTRIES)}")
    return tuple(
        Case(entry.name, variant, REFUTED if variant in entry.defective else PASSES)
        for entry in ENTRIES.values()
        if not wanted or entry.name in wanted
        for variant in ("", *(entry.defective if quick else entry.variants))
    )


def judge(case: Case, quick: bool = False) -> CaseResult:
    """Check one case until its first broken promise.

    Within the default bounds; with `quick` within smaller ones, unless it is to be refuted.
    """
    began = time.process_time()
    verdict = run_check(
        case.protocol,
        variant=case.variant,
        quick=quick and case.expected == PASSES,
        first_failure=True,
    )
    said = verdict.failures[-1].sentence() if verdict.failures else ""
    complete = all(part.complete or part.failure is not None for part in verdict.explorations)
    whats = {failure.what for failure in verdict.failures}
    # A printed rule breaks an order; one that only raises shows nothing of it.
    found = PASSES if verdict.ok else FAILS if whats <= {*_BROKEN} else REFUTED
    seconds = time.process_time() - began
    return CaseResult(case, found, verdict.states, verdict.runs, complete, said, seconds)


def judge_all(
    asked: Sequence[Case], jobs: int | None = None, *, quick: bool = False
) -> Iterator[CaseResult]:
    """Yield what became of each case, in their order, several at a time."""
    workers = min(jobs or os.cpu_count() or 1, len(asked))
    if workers < 2:
        yield from (judge(case, quick) for case in asked)
        return
    with ProcessPoolExecutor(workers) as pool:
        # What takes longest begins first, so that no worker is left with it alone at the end.
        begun = {case: pool.submit(judge, case, quick) for case in sorted(asked, key=_weight)}
        try:
            yield from (begun[case].result() for case in asked)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _weight(case: Case) -> tuple[bool, bool]:
    """Sort what is searched longest to the front: several roles, and what is not refuted."""
    return ENTRIES[case.protocol].flat, case.expected == REFUTED
