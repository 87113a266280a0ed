"""Page of a sweep: a table over its grid with intervals over seeds, and a plot per quantity."""

from __future__ import annotations

import csv
import io
import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from antecede.formatting import pluralize
from antecede.lab.report import Findings, Plot, Section, Series, drop_empty_sections
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runs import canonical_json
from antecede.lab.reproductions.framework.study import COST
from antecede.quantiles import student_t


class SweepColumn(NamedTuple):
    """A column of the table, and a plot."""

    title: str
    metrics: tuple[str, ...]  # Names in `Result.metrics`. The first one that a run has is shown.
    unit: str
    key: str


SWEEP_COLUMNS = (
    SweepColumn("overhead", ("peer.control_bytes", "internal.control_bytes"), "bytes a message",
          "overhead"),
    SweepColumn("storage", ("peer.storage_bytes", "internal.storage_bytes"), "bytes a member",
          "storage"),
    SweepColumn("wait, mean", ("wait_ms.mean",), "ms", "wait"),
    SweepColumn("wait, p99", ("wait_ms.p99",), "ms", "wait-p99"),
    SweepColumn("violations (by delivery)", ("violations.by_delivery",), "deliveries",
          "violations-by-delivery"),
    SweepColumn("violations (by receipt)", ("violations.by_receipt",), "deliveries",
          "violations-by-receipt"),
    SweepColumn("promise violations", ("promise_violations",), "deliveries",
          "promise-violations"),
    SweepColumn("checked", ("violations.checked",), "deliveries", "checked"),
    SweepColumn("never delivered", ("undelivered",), "deliveries", "undelivered"),
    SweepColumn("snapshots complete", ("snapshots.completed",), "snapshots", "snapshots-complete"),
    SweepColumn("inconsistent snapshots", ("snapshots.inconsistent",), "snapshots",
          "snapshots-inconsistent"),
    SweepColumn("snapshot duration", ("snapshots.duration_s",), "s", "snapshots-after"),
)  # fmt: skip
"""Columns of the table. Waits and violations are side by side."""
PLOTTED = (
    "overhead",
    "storage",
    "wait",
    "violations-by-delivery",
    "promise-violations",
    "undelivered",
)
SUMMARIZED = ("overhead", "wait", "violations-by-delivery", "promise-violations")
MAX_LINES = 8


class Interval(NamedTuple):
    """Mean over seeds, and half the width of its 95 % interval (None: one seed)."""

    mean: float
    half_width: float | None


def compute_interval(values: Sequence[float]) -> Interval | None:
    """Return mean and 95 % interval (Student's t) of values (None: no values)."""
    if not values:
        return None
    runs, mean = len(values), statistics.fmean(values)
    if runs < 2:
        return Interval(mean, None)
    return Interval(mean, student_t(runs - 1) * statistics.stdev(values) / math.sqrt(runs))


def describe_source(name: str) -> str:
    """Return the source of a sweep of the configuration file with this name."""
    return f"configuration file {name}; the grid is yours"


def build_findings(
    over: Mapping[str, Sequence[Any]],
    results: Results,
    quick: bool,
    unused_keys: Sequence[str] = (),
) -> Findings:
    """Return the page of a sweep. `unused_keys`: keys of the file that some settings do not use."""
    del quick
    rows = list(_build_rows(over, results))
    there = [column for column in SWEEP_COLUMNS if any(row.cells[column.key] for row in rows)]
    grid = [f"{key}: {', '.join(map(str, values))}" for key, values in over.items()]
    conditions = [*grid, results.describe_seeds(), *unused_keys]
    if any(len(row.metrics) < 2 for row in rows):
        conditions.append("a setting with one seed has no interval; use --seeds 5")
    return Findings(
        finding=_summarize(rows, there) or "No run has results.",
        reads=[
            figure
            for column in there
            if column.key in SUMMARIZED
            for figure in column.metrics
            if results.values(figure)
        ],
        reading=[
            "intervals are 95 % intervals of the mean over the seeds (Student's t)",
            "violations count deliveries before a cause, whatever the protocol promises; by "
            "delivery: before messages delivered to or sent by the sender; by receipt: before "
            "messages that had arrived there; promise violations break the protocol's own order",
        ],
        conditions=conditions,
        sections=drop_empty_sections(
            [_build_table(over, rows, there), *_build_plots(over, rows, there)]
        )
        if rows
        else [],
    )


class _Row(NamedTuple):
    setting: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    cells: Mapping[str, Interval | None]

    def compute_interval(self, *names: str) -> Interval | None:
        """Return mean and interval of the first of these metrics that a run has."""
        each = ([metrics[name] for metrics in self.metrics if name in metrics] for name in names)
        return next((compute_interval(values) for values in each if values), None)


def _build_rows(over: Mapping[str, Sequence[Any]], results: Results) -> Iterator[_Row]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in results.runs:
        own = canonical_json([run.parameters[f"over.{key}"] for key in over])
        found.setdefault(own, []).append(results.get_metrics(run))
    for values in itertools.product(*over.values()):
        figures = found.get(canonical_json(values))
        if figures:
            row = _Row(dict(zip(over, values, strict=True)), figures, {})
            yield row._replace(
                cells={
                    column.key: row.compute_interval(*column.metrics) for column in SWEEP_COLUMNS
                }
            )


def _summarize(rows: Sequence[_Row], columns: Sequence[SweepColumn]) -> str:
    words = []
    for column in (column for column in columns if column.key in SUMMARIZED):
        found = [(cell.mean, row.setting) for row in rows if (cell := row.cells[column.key])]
        low, high = min(found, key=itemgetter(0)), max(found, key=itemgetter(0))
        if low[0] == high[0]:
            words.append(f"{column.title} {_format_number(low[0])} {column.unit} throughout")
        else:
            words.append(
                f"{column.title} {_format_number(low[0])} ({_format_setting(low[1])}) to "
                f"{_format_number(high[0])} {column.unit} ({_format_setting(high[1])})"
            )
    return f"{'; '.join(words)}.".capitalize() if words else ""


def _format_setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in setting.items())


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _format_cell(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    if interval.half_width is None or not interval.half_width:
        return _format_number(interval.mean)
    half = (
        f"{interval.half_width:,.0f}" if interval.half_width >= 10 else f"{interval.half_width:.2g}"
    )
    return f"{_format_number(interval.mean)} ± {half}"


def _build_table(
    over: Mapping[str, Sequence[Any]], rows: Sequence[_Row], columns: Sequence[SweepColumn]
) -> Section:
    return Section(
        "Every setting",
        "",
        columns=(*over, "seeds", *(f"{column.title}, {column.unit}" for column in columns)),
        table=[
            (
                *(str(row.setting[key]) for key in over),
                str(len(row.metrics)),
                *(_format_cell(row.cells[column.key]) for column in columns),
            )
            for row in rows
        ],
        about="Mean over the seeds, ± half the width of its 95 % interval.",
    )


def _build_plots(
    over: Mapping[str, Sequence[Any]], rows: Sequence[_Row], columns: Sequence[SweepColumn]
) -> Iterator[Section]:
    numeric = [
        key
        for key, values in over.items()
        if len(values) > 1 and all(type(value) in (int, float) for value in values)
    ]
    if not numeric:
        return
    x = max(numeric, key=lambda key: len(over[key]))
    lines: dict[str, list[_Row]] = {}
    for row in rows:
        rest = {key: value for key, value in row.setting.items() if key != x}
        lines.setdefault(_format_setting(rest), []).append(row)
    left = len(lines) - MAX_LINES
    others = pluralize(left, "other is", "others are")
    shown = dict(itertools.islice(lines.items(), MAX_LINES))
    plots = [
        Plot(
            f"sweep-{column.key}",
            column.title.capitalize(),
            x,
            column.unit,
            [_build_line(label or column.title, column, x, own) for label, own in shown.items()],
        )
        for column in columns
        if column.key in PLOTTED
    ]
    yield Section(
        f"Over {x}",
        "",
        plots=[plot for plot in plots if any(line.x for line in plot.series)],
        about="Error bars: 95 % interval of the mean over the seeds."
        + (f" The first {MAX_LINES} lines; {others} in the table." if left > 0 else ""),
    )


def _build_line(label: str, column: SweepColumn, x: str, rows: Sequence[_Row]) -> Series:
    points = sorted(
        (float(row.setting[x]), cell.mean, cell.half_width or 0.0)
        for row in rows
        if (cell := row.cells[column.key]) is not None
    )
    several = any(half for _, _, half in points)
    return Series(
        label,
        [at for at, _, _ in points],
        [mean for _, mean, _ in points],
        [half for _, _, half in points] if several else (),
    )


def table_csv(over: Mapping[str, Sequence[Any]], results: Results) -> str:
    """Return a row per setting: values, seeds, mean and 95 % interval (from 0) of every metric."""
    names = sorted(
        {
            name
            for run in results.runs
            for name, value in results.get_metrics(run).items()
            if not name.startswith(COST) and isinstance(value, float)
        }
    )
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow([*over, "seeds", *(f"{n}{end}" for n in names for end in ("", ".low", ".high"))])
    for row in _build_rows(over, results):
        cells: list[object] = []
        for found in map(row.compute_interval, names):
            if found is None or found.half_width is None:
                cells += ["" if found is None else found.mean, "", ""]
            else:
                low = max(min(0.0, found.mean), found.mean - found.half_width)
                cells += [found.mean, low, found.mean + found.half_width]
        write.writerow([*(row.setting[key] for key in over), len(row.metrics), *cells])
    return out.getvalue()
