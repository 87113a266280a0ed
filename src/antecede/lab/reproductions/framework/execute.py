"""Runs carried out one after the other, in the calling process, as rows of SCHEMA.

An outcome is a row for each figure, or one row with the reason of the failure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import SECONDS, Figures, Study

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
"""`run` its key; `value` of a number, `series` of a sequence; `reason` of a run that failed."""
LONGEST = 500
"""Largest length of a reason, characters."""


class Failure(NamedTuple):
    """A run without figures, and why."""

    run: Run
    reason: str


def run_locally(study: Study, runs: Iterable[Run]) -> Iterator[pyarrow.Table]:
    """Carry the runs out here, dearest first; yield the outcome of each as a table of SCHEMA."""
    for run in largest_first(runs):
        yield pa.Table.from_batches([outcome(run, study.execute)])


def largest_first(runs: Iterable[Run]) -> list[Run]:
    """Return the runs by falling cost, then by key."""
    return sorted(runs, key=lambda run: (-run.cost_s, run.key))


def outcome(run: Run, execute: Callable[[Run], Figures]) -> pyarrow.RecordBatch:
    """Carry one run out; return its figures, or the reason why there are none."""
    begin = time.perf_counter()
    try:
        figures = {**_numbers(execute(run)), SECONDS: time.perf_counter() - begin}
    except Exception as error:  # whatever a study raises is its run's failure, not the others'
        words = " ".join(str(error).split())  # a compiler's message can have hundreds of lines
        words = words if len(words) <= LONGEST else f"{words[:LONGEST]} ..."
        return failed(run.key, f"{type(error).__name__}: {words}")
    return _batch(
        {"run": run.key, "quantity": name, "series" if isinstance(found, list) else "value": found}
        for name, found in sorted(figures.items())
    )


def _batch(rows: Iterable[Mapping[str, Any]]) -> pyarrow.RecordBatch:
    batch: pyarrow.RecordBatch = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
    return batch


def failed(key: str, reason: str) -> pyarrow.RecordBatch:
    """Return the outcome of a run that gave nothing."""
    return _batch([{"run": key, "reason": reason}])


def _numbers(figures: Figures) -> Mapping[str, float | list[float]]:
    """Return the figures as floats and lists of floats. Raises ValueError for what is none."""
    found: dict[str, float | list[float]] = {}
    for name, value in figures.items():
        many = np.ndim(value) > 0
        numbers = np.asarray(value, np.float64).reshape(-1).tolist()
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"{name} is no number; a figure that does not apply is left out")
        found[name] = numbers if many else numbers[0]
    return found
