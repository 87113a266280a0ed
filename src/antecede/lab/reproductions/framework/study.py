"""Definition of a study: list of runs, function that executes one, function that builds the page.

    STUDY = Study("vector", title, source, list_runs, execute, findings)

`runs(quick)` lists the runs. `execute(run)` returns the metrics of a run by name, in any process,
from the run's plain values alone. `findings(results, quick)` builds the page. Guide:
`docs/design/studies.md`.
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
from antecede.lab.reproductions.framework.runs import Run, canonical_json
from antecede.lab.simulate.config import SimulationConfig

if TYPE_CHECKING:
    from antecede.lab.reproductions.framework.results import Results

Metrics: TypeAlias = Mapping[str, float | Sequence[float] | npt.NDArray[Any]]
"""Metrics of a run: quantity -> number, or sequence of numbers (one per sample)."""

COST = "cost."
"""Prefix of quantities about the machine (time, memory), which vary between executions."""
SECONDS = f"{COST}seconds"
"""Duration of a run, added to every run."""


@dataclass(frozen=True)
class Study:
    """Evaluation of a source. All functions are top-level functions of a module."""

    name: str
    title: str
    source: str
    """Paper and section, or a note that the evaluation is ours."""
    runs: Callable[[bool], Sequence[Run]]
    """(quick) -> all runs, with unique keys and tasks. Quick: under a minute on two cores."""
    execute: Callable[[Run], Metrics]
    """Run -> metrics, from the run alone: no globals, files, clocks, random numbers. Errors are
    reported with the run."""
    findings: Callable[[Results, bool], Findings]
    """(results, quick) -> page. Failed runs are absent from the results."""
    code: Sequence[str] = ()
    """Further modules below `antecede.lab.reproductions` that `execute` uses. Editing one makes
    stored results stale."""
    with_traces: Callable[[Sequence[Path]], Study] | None = None
    """Paths of real traces -> study that includes them (None: unsupported)."""


def make_simulation_run(
    key: str,
    config: SimulationConfig,
    seed: int,
    cost_s: float,
    kind: str = "simulate",
    **parameters: Any,
) -> Run:
    """Return the run of a configuration. `parameters` select it in findings.

    The parameter `files` has digests of the user's protocol (FILE.py:CLASS) and of a replayed
    trace. Raises InputError for an unreadable file.
    """
    from antecede.lab.check import is_file_target
    from antecede.lab.reproductions.framework.user_files import digest_user_files
    from antecede.lab.simulate.config import config_mapping

    values = config_mapping(config)
    if is_file_target(config.protocol):  # workers may have another working folder
        file, _, name = config.protocol.rpartition(":")
        values["protocol"]["name"] = f"{Path(file).absolute()}:{name}"
    files = digest_user_files(config)
    return Run(
        key, seed, cost_s, kind, values, {**parameters, **({"files": files} if files else {})}
    )


def make_seed_runs(
    seeds: Iterable[int],
    key: str,
    config: SimulationConfig,
    cost_s: float,
    kind: str = "simulate",
    **parameters: Any,
) -> Iterator[Run]:
    """Yield the run of a configuration for each seed. The key ends in the seed."""
    for seed in seeds:
        yield make_simulation_run(f"{key}/seed {seed}", config, seed, cost_s, kind, **parameters)


def simulate_run(run: Run) -> Metrics:
    """Simulate a run. Return its metrics. Raises InputError if a user's file has changed."""
    from antecede.lab.reproductions.framework.user_files import check_files
    from antecede.lab.simulate import simulate

    config = run.load_config()
    check_files(config, run.parameters.get("files", {}))
    return {"undelivered": 0.0, **simulate(config, run.seed).figures}


def check_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs as workers read them. Raises LocalError for malformed runs."""
    found: dict[str, Run] = {}
    tasks: dict[str, str] = {}
    for run in runs:
        try:
            read = Run.from_text(run.to_text())
            task = canonical_json(run.task)
        except (TypeError, ValueError) as error:
            raise LocalError(f"run {run.key!r}: a value is not plain JSON: {error}") from error
        if run.key in found:
            raise LocalError(f"two runs with the key {run.key!r}")
        if task in tasks:
            raise LocalError(f"the runs {tasks[task]!r} and {run.key!r} have the same task")
        if not 0 < run.cost_s < math.inf:
            raise LocalError(
                f"run {run.key!r}: invalid cost_s = {run.cost_s}; expected a finite number above 0"
            )
        found[run.key], tasks[task] = read, run.key
    return list(found.values())
