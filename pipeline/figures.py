"""Metrics of a finished run for the page: held rows, delays, watermarks, counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from antecede.formatting import duration
from antecede.tables.order import (
    NS_PER_MS,
    Arrival,
    BaselineOutcome,
    as_they_come,
    by_timestamp,
    by_watermark,
    streams,
)
from pipeline.processes import KILL_LOG
from pipeline.spark_job import PROGRESS_FILE, TABLE_FILE

WIDTHS_MS = (200, 500, 1_000, 2_000, 5_000, 10_000)
"""Watermark delays to compare with."""

StepCurve = tuple[list[float], list[float]]
"""Step curve: seconds since the first arrival, count from then on."""


class RunMetrics(NamedTuple):
    """All values of the page."""

    rows: int
    repeats: int
    waited: int
    """Rows that arrived before a cause."""
    held: StepCurve
    """Rows held for a cause that had not arrived."""
    unwritten: StepCurve
    """Rows that had arrived and were not in the table."""
    kills: list[tuple[float, dict[str, Any]]]
    outcomes: list[BaselineOutcome]
    batches: int
    commit_p50_ms: float
    commit_p99_ms: float
    seconds: float


def read_table(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the table as read by the last driver."""
    rows: list[dict[str, Any]] = pq.read_table(folder / TABLE_FILE).to_pylist()
    return rows


def compute_metrics(folder: Path, rows: Sequence[Mapping[str, Any]], sink: str) -> RunMetrics:
    """Compute the metrics of a run."""
    placed = [row for row in rows if row["position"] is not None]
    written = read_commit_times(folder / "table", sink)
    come = {id(row): row["arrived"].timestamp() * 1000 for row in rows}
    begin = min(come.values())
    held = [(come[id(row)], come[id(row)] + row["waited_ms"]) for row in placed]
    unwritten = [(come[id(row)], written[row["file"]]) for row in rows]
    delays = sorted(end - start for start, end in unwritten)
    progress = (folder / PROGRESS_FILE).read_text().splitlines()
    return RunMetrics(
        rows=len(placed),
        repeats=len(rows) - len(placed),
        waited=sum(row["waited_ms"] > 0 for row in placed),
        held=count_open_spans(held, begin),
        unwritten=count_open_spans(unwritten, begin),
        kills=[
            ((line["at_ms"] - begin) / 1000, line)
            for line in map(json.loads, _read_text(folder / KILL_LOG).splitlines())
        ],
        outcomes=simulate_baselines(placed),
        batches=len({json.loads(line)["batch"] for line in progress}),
        commit_p50_ms=delays[len(delays) // 2],
        commit_p99_ms=delays[int(len(delays) * 0.99)],
        seconds=(max(end for _, end in unwritten) - begin) / 1000,
    )


def _read_text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def count_open_spans(spans: Sequence[tuple[float, float]], begin: float) -> StepCurve:
    """Return the number of open spans (from, to, in ms) over time; empty spans do not count."""
    changes: dict[float, int] = {}
    for start, end in spans:
        if end > start:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    times = sorted(changes)
    counts = accumulate(changes[time] for time in times)
    return [(time - begin) / 1000 for time in times], [float(count) for count in counts]


def simulate_baselines(positioned: Sequence[Mapping[str, Any]]) -> list[BaselineOutcome]:
    """Return the outcomes of other orders for the same arrivals, causal release last."""
    arrivals = [
        Arrival(
            "all",
            row["message_id"],
            tuple(row["causes"]),
            round(row["arrived"].timestamp() * 1e3 * NS_PER_MS),
            row["sent_ns"],
        )
        for row in positioned
    ]
    split = streams(arrivals)
    found = [as_they_come(split), by_timestamp(split)]
    found += [by_watermark(split, round(ms * NS_PER_MS), duration(ms)) for ms in WIDTHS_MS]
    position = {row["message_id"]: (row["customer"], row["position"]) for row in positioned}
    inverted = sum(
        position[cause] > position[row["message_id"]]
        for row in positioned
        for cause in row["causes"]
        if cause in position
    )
    waits = tuple(sorted(row["waited_ms"] for row in positioned))
    return [*found, BaselineOutcome("causal release", len(positioned), 0, inverted, 0, waits)]


def read_commit_times(table: Path, sink: str) -> dict[str, float]:
    """Return file of the table -> time of its commit, ms since 1970."""
    return _read_delta_times(table) if sink == "delta" else _read_sink_log_times(table)


def _read_delta_times(table: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for path in sorted((table / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        made = next(line["commitInfo"]["timestamp"] for line in lines if "commitInfo" in line)
        found |= {Path(line["add"]["path"]).name: float(made) for line in lines if "add" in line}
    return found


def _read_sink_log_times(table: Path) -> dict[str, float]:
    """Read the log of Spark's file sink, one file per batch; some files are listed again."""
    found: dict[str, float] = {}
    logs = [path for path in (table / "_spark_metadata").iterdir() if path.name[0].isdigit()]
    for path in sorted(logs, key=lambda path: path.stat().st_mtime):
        made = path.stat().st_mtime * 1000
        for line in path.read_text().splitlines()[1:]:
            found.setdefault(Path(json.loads(line)["path"]).name, made)
    return found
