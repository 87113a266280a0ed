"""Study: runs, a function that carries one out, and the meaning of all.

    STUDY = Study("vector", title, source, runs, execute, findings)

`runs(quick)` lists the runs. `execute(run)` returns the figures of one of them by name, in any
process, from the run's plain values alone. `findings(results, quick)` reads the figures of all.
`docs/design/studies.md` is the guide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from antecede.errors import LocalError
from antecede.lab.report import Findings
from antecede.lab.reproductions.framework.runs import Run, plain_text
from antecede.lab.simulate.config import Scenario

if TYPE_CHECKING:
    from antecede.lab.reproductions.framework.results import Results

Figures: TypeAlias = Mapping[str, float | Sequence[float] | npt.NDArray[Any]]
"""Figures of a run: quantity -> number, or sequence of numbers (a value a sample)."""

COST = "cost."
"""Prefix of quantities about the machine (time, memory), which differ from try to try."""
SECONDS = f"{COST}seconds"
"""Duration of a run, added to every run."""


@dataclass(frozen=True)
class Study:
    """A source's evaluation. All functions are plain and at the top of a module."""

    name: str
    title: str
    source: str
    """Paper and section; says so where the evaluation is ours."""
    runs: Callable[[bool], Sequence[Run]]
    """(quick) -> all runs, with unique keys and tasks. Quick: under a minute on two cores."""
    execute: Callable[[Run], Figures]
    """Figures of a run, which follow from the run alone: no globals, files, clocks, random numbers.
    Errors are reported with the run.
    """
    findings: Callable[[Results, bool], Findings]
    """Page of the figures; those of failed runs are absent."""
    code: Sequence[str] = ()
    """Further modules below `antecede.lab.reproductions` that `execute` calls: an edit of one makes
    stored results stale.
    """
    with_traces: Callable[[Sequence[Path]], Study] | None = None
    """Study over these real traces too; None: it takes none."""


def simulation(
    key: str,
    scenario: Scenario,
    seed: int,
    cost_s: float,
    kind: str = "simulate",
    **parameters: Any,
) -> Run:
    """Return the run of a scenario; findings pick it by `parameters`.

    The parameter `files` has digests of the user's protocol (FILE.py:CLASS) and of a replayed
    trace. Raises InputError for such a file that cannot be read.
    """
    from antecede.lab.check import is_file_target
    from antecede.lab.reproductions.framework.user_files import files_of
    from antecede.lab.simulate.config import scenario_mapping

    values = scenario_mapping(scenario)
    if is_file_target(scenario.protocol):  # workers have another working folder
        file, _, name = scenario.protocol.rpartition(":")
        values["protocol"]["name"] = f"{Path(file).absolute()}:{name}"
    files = files_of(scenario)
    return Run(
        key, seed, cost_s, kind, values, {**parameters, **({"files": files} if files else {})}
    )


def each_seed(
    seeds: Iterable[int],
    key: str,
    scenario: Scenario,
    cost_s: float,
    kind: str = "simulate",
    **parameters: Any,
) -> Iterator[Run]:
    """Yield the run of a scenario (`simulation`) with each seed, which its key ends in."""
    for seed in seeds:
        yield simulation(f"{key}/seed {seed}", scenario, seed, cost_s, kind, **parameters)


def simulated(run: Run) -> Figures:
    """Simulate a run: every figure of its Result, `undelivered` also where it is 0.

    Raises InputError for a file of the user that has changed since the run was listed.
    """
    from antecede.lab.reproductions.framework.user_files import check_files
    from antecede.lab.simulate import simulate

    scenario = run.load_scenario()
    check_files(scenario, run.parameters.get("files", {}))
    return {"undelivered": 0.0, **simulate(scenario, run.seed).figures}


def checked(runs: Iterable[Run]) -> list[Run]:
    """Return the runs as workers read them. Raises LocalError for malformed runs."""
    found: dict[str, Run] = {}
    tasks: dict[str, str] = {}
    for run in runs:
        try:
            read = Run.from_text(run.to_text())
            task = plain_text(run.task)
        except (TypeError, ValueError) as error:
            raise LocalError(f"run {run.key!r} is not made of plain values: {error}") from error
        if run.key in found:
            raise LocalError(f"two runs have the key {run.key!r}")
        if task in tasks:
            raise LocalError(f"the runs {tasks[task]!r} and {run.key!r} do the same")
        if not 0 < run.cost_s < math.inf:
            raise LocalError(f"run {run.key!r}: cost_s is {run.cost_s}; it is above 0 and finite")
        found[run.key], tasks[task] = read, run.key
    return list(found.values())
