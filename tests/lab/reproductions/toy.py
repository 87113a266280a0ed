"""A study whose runs are cheap sums, and can fail in every way that a run can fail in."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from antecede.errors import ConfigError
from antecede.lab.report.model import Findings, Plot, Row, Section
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Metrics, Study
from antecede.lab.simulate.random_streams import Stream, draw_unit_array, make_key

STEPS = (10, 1_000, 100_000)
SEEDS = (1, 2, 3)


def sums(steps: Sequence[int] = STEPS, seeds: Sequence[int] = SEEDS) -> list[Run]:
    return [
        Run(f"sum/{n} steps/seed {seed}", seed, n * 1e-5, "sum", parameters={"steps": n})
        for n in steps
        for seed in seeds
    ]


def runs(quick: bool) -> list[Run]:
    return sums(seeds=SEEDS[:1] if quick else SEEDS)


def execute(run: Run) -> Metrics:
    if run.kind != "sum":
        return _special(run)
    drawn = draw_unit_array(make_key(run.seed, Stream.SAMPLE), range(run.parameters["steps"]))  # type: ignore[arg-type]
    return {"sum": float(drawn.sum()), "third": 1 / 3 + run.seed, "first": drawn[:3]}


def _special(run: Run) -> Metrics:
    if run.kind == "gate":  # leaves a mark, then waits until the test opens
        folder = Path(run.parameters["folder"])
        with (folder / "executed").open("a") as log:
            log.write(f"{run.seed}\n")
        while run.parameters.get("closed") and not (folder / "open").exists():
            time.sleep(0.01)
        return {"pid": 1.0, "seed": run.seed}
    if run.kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if run.kind == "memory":
        raise MemoryError("12 GiB are needed")
    if run.kind == "refuse":
        raise ConfigError("peers: 0; it is 1 or more")
    if run.kind == "nan":
        return {"ratio": float("nan")}
    raise ValueError(f"no kind {run.kind!r}")


def findings(results: Results, quick: bool) -> Findings:
    lines = [results.line("ours", "sum", "steps", kind="sum")]
    rows = [
        Row("Figure 1", "sum", f"{n} steps", n / 2, mean, "units")
        for n in STEPS
        if (mean := results.mean("sum", steps=n)) is not None
    ]
    plot = Plot("sums", "Sums", "steps", "sum", lines)
    return Findings(
        STUDY.name, STUDY.title, STUDY.source, "Sums grow.", ["As printed."], ["Three sizes."],
        [Section("Sums", "They grow.", rows, [plot])],
    )  # fmt: skip


STUDY = Study("toy", "Sums of draws", "nowhere", runs, execute, findings)


def with_runs(*chosen: Run) -> Study:
    return replace(STUDY, runs=lambda quick: list(chosen))


def _gated(quick: bool) -> list[Run]:
    """A run that ends, and two that wait for a test to open them."""
    folder = {"folder": os.environ["TOY_FOLDER"], "steps": 0}
    first = Run("gate 0", 0, 9.0, "gate", parameters={**folder, "closed": False})
    closed = {**folder, "closed": True}
    return [first, *(Run(f"gate {k}", k, 1.0, "gate", parameters=closed) for k in (1, 2))]


BROKEN = with_runs(*sums(seeds=[1]), Run("bad", 5, 1e-3, "other", {"peers": 0}))
GATED = replace(STUDY, runs=_gated)
