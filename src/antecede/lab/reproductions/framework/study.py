"""What a study is: runs, a plain function that carries one out, and what they show together.

A study's module `antecede/studies/NAME.py` ends in one constant:

    STUDY = Study("vector", title, source, runs, execute, findings)

`runs(quick)` lists what there is to do. `execute(run)` does one of them, in any process of any
machine, from the run's plain values alone, and returns its figures by name. `findings(results,
quick)` reads the figures of all and says what they mean. Everything between, Spark, files, going on
after an interruption, failures, is the frame's (`orchestrate`, `store`, `runner`).

`docs/design/studies.md` is the guide to writing one.
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
"""What a run found: quantity -> a number, or a sequence of numbers (a value a sample)."""

COST = "cost."
"""Quantities of this prefix are about the machine (time, memory) and differ from try to try."""
SECONDS = f"{COST}seconds"
"""How long a run took; the frame adds it to every run."""


@dataclass(frozen=True)
class Study:
    """A source's evaluation. All functions are plain and at the top of a module."""

    name: str
    title: str
    source: str
    """Paper and section; says so where the evaluation is ours."""
    runs: Callable[[bool], Sequence[Run]]
    """(quick) -> all runs. Keys and tasks are unique. Quick: under a minute on two cores."""
    execute: Callable[[Run], Figures]
    """Carries one run out. No globals, files, clocks or random numbers of its own: the figures
    follow from the run. What it raises is reported with the run, and the others go on."""
    findings: Callable[[Results, bool], Findings]
    """Says what the figures mean. Runs may have failed: their figures are absent."""
    code: Sequence[str] = ()
    """Modules below `antecede.lab.reproductions` that `execute` calls, its own module aside: an
    edit in one of them makes stored results stale. The layers below studies always count."""
    with_traces: Callable[[Sequence[Path]], Study] | None = None
    """Returns the study over these real traces too; None: it takes none. Their content decides
    the runs' digests."""


def simulation(
    key: str,
    scenario: Scenario,
    seed: int,
    cost_s: float,
    kind: str = "simulate",
    **parameters: Any,
) -> Run:
    """Return the run of a scenario; `parameters` are what findings will pick it by.

    A protocol of one's own (FILE.py:CLASS) and the trace of a replay stand in the parameter
    `files` with their digests: results go stale when one of them changes. Raises InputError for
    such a file that cannot be read.
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
    """Carry out a simulation: every figure of its Result. What most studies call in `execute`.

    `undelivered` is left out by the engines where everything came: here it is 0 then. Raises
    InputError where a file of the user's has changed since the run was listed.
    """
    from antecede.lab.reproductions.framework.user_files import check_files
    from antecede.lab.simulate import simulate

    scenario = run.load_scenario()
    check_files(scenario, run.parameters.get("files", {}))
    return {"undelivered": 0.0, **simulate(scenario, run.seed).figures}


def checked(runs: Iterable[Run]) -> list[Run]:
    """Return the runs as a worker will read them. Raises LocalError for what a study got wrong."""
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
