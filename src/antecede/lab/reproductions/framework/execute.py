"""Sequential execution of runs in the calling process, as rows of SCHEMA.

An outcome is a row per metric, or one row with the reason of the failure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import SECONDS, Metrics, Study

pa: Any = pyarrow  # its stubs know too few of the types that meet here

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("quantity", pa.string()),
        ("value", pa.float64()),
        ("series", pa.list_(pa.float64())),
        ("reason", pa.string()),
    ]
)
"""`run`: key. `value`: a number. `series`: a sequence. `reason`: why the run failed."""
MAX_REASON_LENGTH = 500  # Largest length of a failure reason, characters


class FailedRun(NamedTuple):
    """A failed run and the reason."""

    run: Run
    reason: str


def run_locally(study: Study, runs: Iterable[Run]) -> Iterator[pyarrow.Table]:
    """Execute the runs in this process, dearest first. Yield each outcome as a table of SCHEMA."""
    for run in sort_by_cost(runs):
        yield pa.Table.from_batches([execute_run(run, study.execute)])


def sort_by_cost(runs: Iterable[Run]) -> list[Run]:
    """Return the runs by falling cost, then by key."""
    return sorted(runs, key=lambda run: (-run.cost_s, run.key))


def execute_run(run: Run, execute: Callable[[Run], Metrics]) -> pyarrow.RecordBatch:
    """Execute a run. Return its metrics, or the reason of its failure."""
    begin = time.perf_counter()
    try:
        figures = {**_metrics_to_floats(execute(run)), SECONDS: time.perf_counter() - begin}
    except Exception as error:  # an error of a study fails this run only
        words = " ".join(str(error).split())  # a compiler's message can have hundreds of lines
        words = words if len(words) <= MAX_REASON_LENGTH else f"{words[:MAX_REASON_LENGTH]} ..."
        return make_failure(run.key, f"{type(error).__name__}: {words}")
    return _make_batch(
        {"run": run.key, "quantity": name, "series" if isinstance(found, list) else "value": found}
        for name, found in sorted(figures.items())
    )


def _make_batch(rows: Iterable[Mapping[str, Any]]) -> pyarrow.RecordBatch:
    batch: pyarrow.RecordBatch = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
    return batch


def make_failure(key: str, reason: str) -> pyarrow.RecordBatch:
    """Return the outcome of a failed run."""
    return _make_batch([{"run": key, "reason": reason}])


def _metrics_to_floats(metrics: Metrics) -> Mapping[str, float | list[float]]:
    found: dict[str, float | list[float]] = {}
    for name, value in metrics.items():
        many = np.ndim(value) > 0
        numbers = np.asarray(value, np.float64).reshape(-1).tolist()
        if not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"metric {name} is not a finite number; omit metrics that do not apply"
            )
        found[name] = numbers if many else numbers[0]
    return found
