"""Execution of a study: an engine executes missing runs, a store keeps them, a page shows them.

An engine takes a study and runs, and yields tables of outcomes (`execute.SCHEMA`) in any order. An
empty table only triggers an update of the progress line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

import pyarrow
import pyarrow.compute

from antecede.errors import InputError, LocalError
from antecede.formatting import duration, pluralize, were
from antecede.interrupts import Terminated
from antecede.lab.report import Findings, check_findings
from antecede.lab.reproductions.framework.code_digest import code_digest, collect_modules
from antecede.lab.reproductions.framework.execute import FailedRun
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runs import Run, canonical_json
from antecede.lab.reproductions.framework.store import Store, open_store, read_texts
from antecede.lab.reproductions.framework.study import Study, check_runs
from antecede.progress import Progress

pc: Any = pyarrow.compute  # its stubs know too few of the types that meet here

Engine: TypeAlias = Callable[[Study, Sequence[Run]], Iterator[pyarrow.Table]]

LINE_EVERY_S = 60.0  # Interval of progress lines if stderr is not a terminal, s


class Conducted(NamedTuple):
    """Outcome of a study."""

    findings: Findings
    results: Results
    failures: list[FailedRun]
    carried_out: int  # Successful runs of this call
    stored: int
    left: int  # Runs without results that were not selected
    stale: int  # Runs whose stored results are of other code
    unreadable: list[Path]


class Interrupted(KeyboardInterrupt):
    """The user stopped a study. The message has the number of stored runs."""

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        super().__init__(f"{done:,} of {pluralize(total, 'run')}")


def conduct(
    study: Study,
    engine: Engine,
    folder: Path,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    fresh: bool = False,
    redraw: bool = False,
    stream: TextIO | None = None,
) -> Conducted:
    """Execute the runs without results in `folder`. Return the study's outcome.

    `only`: patterns (`*`, `?`) of run keys to execute. `fresh`: delete stored results first.
    `redraw`: execute nothing and accept results of other code. `stream`: output of the progress
    line (default: stderr). Raises InputError for an unusable folder, unmatched patterns and a
    missing result; SetupError; Interrupted.
    """
    runs = check_runs(study.runs(quick))
    chosen = _select_runs(runs, only)
    code = code_digest(collect_modules(study))
    if redraw and not (folder / "results").is_dir():
        raise InputError("no results to draw; omit --report-only first", path=str(folder))
    with open_store(folder, code, fresh=fresh, any_code=redraw) as store:
        done = {run.key for run in store.find_done(runs)}
        if redraw and not done:
            raise InputError(
                "no results of these runs to draw; omit --report-only first", path=str(folder)
            )
        todo = [] if redraw else [run for run in chosen if run.key not in done]
        failures: list[FailedRun] = []
        progress = StudyProgress(study.name, chosen, todo, stream)
        try:
            with progress:
                _execute_runs(study, engine, todo, store, progress, failures)
        except Terminated:
            raise
        except KeyboardInterrupt as stopped:
            raise Interrupted(len(store.find_done(runs)), len(runs)) from stopped
        if not redraw:
            store.finish(runs)
        table = store.collect_rows(runs)
        stale = len({run.digest() for run in runs} & store.stale)
    results = Results(table, runs)
    left = len(runs) - len(results.runs) - len(failures)
    notes = [f"{pluralize(left, 'run')} {were(left)} not selected."] if left else []
    if redraw and stale:
        notes.append(
            f"{pluralize(stale, 'run')} {were(stale)} executed by another version of the code."
        )
    findings = _build_findings(study, results, quick, failures, notes)
    carried = len(todo) - len(failures)
    return Conducted(findings, results, failures, carried, len(done), left, stale, store.unreadable)


def _select_runs(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    if not only:
        return list(runs)
    chosen = [run for run in runs if any(fnmatchcase(run.key, pattern) for pattern in only)]
    if not chosen:
        some = ", ".join(repr(run.key) for run in runs[:3])
        there = f"there are {pluralize(len(runs), 'run')}: {some}, ..."
        raise InputError(f"no run key matches {' or '.join(map(repr, only))}; {there}")
    return chosen


def _execute_runs(
    study: Study,
    engine: Engine,
    todo: Sequence[Run],
    store: Store,
    progress: StudyProgress,
    failures: list[FailedRun],
) -> None:
    by_key = {run.key: run for run in todo}
    outcomes = engine(study, todo) if todo else iter(())
    try:
        for table in outcomes:
            good = table.filter(pc.is_null(table["reason"]))
            bad = table.filter(pc.is_valid(table["reason"]))
            if good.num_rows:
                store.append(good, by_key)
            over = dict.fromkeys(read_texts(table, "run"))
            failed = zip(read_texts(bad, "run"), read_texts(bad, "reason"), strict=True)
            failures += [FailedRun(by_key[key], reason) for key, reason in failed]
            progress.advance([by_key[key] for key in over])
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
    order = {run.key: number for number, run in enumerate(todo)}
    failures.sort(key=lambda failure: order[failure.run.key])


def _build_findings(
    study: Study,
    results: Results,
    quick: bool,
    failures: Sequence[FailedRun],
    remarks: Sequence[str],
) -> Findings:
    """Build the findings and add the missing runs. Raises LocalError for malformed findings."""
    try:
        findings = study.findings(results, quick)
    except Exception as error:
        if not failures and not remarks:
            raise
        what = f"Too few runs have results ({type(error).__name__}: {error})."
        findings = Findings(finding=what)
    findings, blank = check_findings(findings)
    if blank and not failures and not remarks:
        raise LocalError(f"study {study.name}: {blank[0]}, although no run failed")
    return findings._replace(
        study=findings.study or study.name,
        title=findings.title or study.title,
        source=findings.source or study.source,
        conditions=[*findings.conditions, *remarks],
        failed=[*map(describe_failure, failures), *blank],
    )


def describe_failure(failure: FailedRun) -> str:
    """Return a failure as one line: key, seed, reason, configuration and parameters."""
    run = failure.run
    values = " ".join(canonical_json(part) for part in (run.config, run.parameters) if part)
    return f"{run.key} (seed {run.seed}): {failure.reason}; {run.kind} {values}"


class StudyProgress:
    """Progress line: runs, share of the estimated cost, remaining time."""

    def __init__(
        self, name: str, runs: Sequence[Run], todo: Sequence[Run], stream: TextIO | None = None
    ) -> None:
        self.name, self.total_cost_s, self.run_count = (
            name,
            sum(run.cost_s for run in runs),
            len(runs),
        )
        self.remaining_cost_s, self.remaining_runs = sum(run.cost_s for run in todo), len(todo)
        self.finished_cost_s = 0.0
        self.started_s = self.last_line_s = time.monotonic()
        self.stream = sys.stderr if stream is None else stream
        self.progress = Progress(name, self.stream)

    def __enter__(self) -> StudyProgress:
        self.progress.__enter__()
        self.advance([])
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.__exit__(*error)

    def advance(self, runs: Sequence[Run]) -> None:
        """Count finished runs (an empty list: none) and show the progress."""
        cost = sum(run.cost_s for run in runs)
        self.remaining_cost_s, self.remaining_runs = (
            self.remaining_cost_s - cost,
            self.remaining_runs - len(runs),
        )
        self.finished_cost_s += cost
        now = time.monotonic()
        text = f"{self.run_count - self.remaining_runs:,} of {pluralize(self.run_count, 'run')}"
        if self.finished_cost_s and self.remaining_runs:
            left_s = self.remaining_cost_s / self.finished_cost_s * (now - self.started_s)
            text += f", about {duration(1000 * left_s)} left"
        share = 1 - self.remaining_cost_s / self.total_cost_s if self.total_cost_s else 1.0
        self.progress.label = f"{self.name}  {text}"
        self.progress(share)
        if not self.progress.shown and now - self.last_line_s >= LINE_EVERY_S:
            self.last_line_s = now
            print(f"{self.name}: {text}, {share:.0%} of the estimated work", file=self.stream)
