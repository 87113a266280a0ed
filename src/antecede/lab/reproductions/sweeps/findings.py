"""What a sweep found: a table over its grid with intervals over seeds, and a plot a quantity."""

from __future__ import annotations

import csv
import io
import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from antecede.formatting import counted
from antecede.lab.report import Findings, Plot, Section, Series, filled
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runs import plain_text
from antecede.lab.reproductions.framework.study import COST
from antecede.quantiles import student_t


class Shown(NamedTuple):
    """A quantity of the table and the plots."""

    title: str
    figures: tuple[str, ...]
    """Names in `Result.figures`; the first that a run has is shown."""
    unit: str
    key: str


SHOWN = (
    Shown("overhead", ("peer.overhead_bytes", "internal.overhead_bytes"), "bytes a message",
          "overhead"),
    Shown("storage", ("peer.storage_bytes", "internal.storage_bytes"), "bytes a member", "storage"),
    Shown("wait, mean", ("wait_ms.mean",), "ms", "wait"),
    Shown("wait, p99", ("wait_ms.p99",), "ms", "wait-p99"),
    Shown("before a cause (delivery)", ("early.by_delivery",), "deliveries", "early-delivery"),
    Shown("before a cause (receipt)", ("early.by_receipt",), "deliveries", "early-receipt"),
    Shown("against its own promise", ("violations",), "deliveries", "violations"),
    Shown("looked at", ("violations.checked",), "deliveries", "checked"),
    Shown("never delivered", ("undelivered",), "deliveries", "undelivered"),
    Shown("snapshots complete", ("snapshots.complete",), "snapshots", "snapshots-complete"),
    Shown("not consistent", ("snapshots.inconsistent",), "snapshots", "snapshots-inconsistent"),
    Shown("complete after", ("snapshots.s",), "s", "snapshots-after"),
)  # fmt: skip
"""What is held back (waits) and what comes too early stand side by side."""
PLOTTED = ("overhead", "storage", "wait", "early-delivery", "violations", "undelivered")
MOST_LINES = 8


class Interval(NamedTuple):
    """A mean over seeds, and half the width of its 95 % interval; None: one seed, no interval."""

    mean: float
    half: float | None
    runs: int


def interval(values: Sequence[float]) -> Interval | None:
    """Return mean and 95 % interval (Student's t) of a figure's values; None: there are none."""
    runs = len(values)
    if not runs:
        return None
    mean = math.fsum(values) / runs
    if runs < 2:
        return Interval(mean, None, runs)
    half = student_t(runs - 1) * statistics.stdev(values) / math.sqrt(runs)
    return Interval(mean, half, runs)


def source(name: str) -> str:
    """Return where a sweep comes from, given the name of its scenario file."""
    return f"scenario file {name}; the grid is yours"


def findings(
    over: Mapping[str, Sequence[Any]], results: Results, quick: bool, left_out: Sequence[str] = ()
) -> Findings:
    """Return the page of a sweep; `left_out` tells what of the file some settings do not use."""
    del quick
    rows = list(_rows(over, results))
    there = [one for one in SHOWN if any(row.cells[one.key] for row in rows)]
    conditions = [f"{key}: {', '.join(map(str, values))}" for key, values in over.items()] + [
        results.seeds(),
        *left_out,
    ]
    if rows and any(row.runs < 2 for row in rows):
        conditions.append("a setting with one seed has no interval: --seeds 5 gives one")
    return Findings(
        finding=_finding(rows, there) or "No run gave figures.",
        reads=_read(results, there) if rows else (),
        reading=[
            "intervals are 95 % of the mean over the seeds, by Student's t",
            "before a cause: by causality, whatever the protocol promises; by delivery: before "
            "what its sender had been handed; by receipt: before what had arrived there; beside it "
            "what breaks the protocol's own promise",
        ],
        conditions=conditions,
        sections=filled([_table(over, rows, there), *_plots(over, rows, there)]) if rows else [],
    )


class _Row(NamedTuple):
    """One setting."""

    setting: Mapping[str, Any]
    figures: Sequence[Mapping[str, Any]]
    """Of each of its runs."""
    cells: Mapping[str, Interval | None]

    @property
    def runs(self) -> int:
        return len(self.figures)

    def of(self, figure: str) -> Interval | None:
        """Return mean and interval of a figure."""
        return interval([one[figure] for one in self.figures if figure in one])


def _rows(over: Mapping[str, Sequence[Any]], results: Results) -> Iterator[_Row]:
    """Yield the settings that have figures, in the order of the grid."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in results.runs:
        own = plain_text([run.parameters[f"over.{key}"] for key in over])
        found.setdefault(own, []).append(results.figures(run))
    for values in itertools.product(*over.values()):
        figures = found.get(plain_text(values))
        if figures:
            row = _Row(dict(zip(over, values, strict=True)), figures, {})
            yield row._replace(cells={one.key: _first(row, one) for one in SHOWN})


def _first(row: _Row, one: Shown) -> Interval | None:
    return next((found for figure in one.figures if (found := row.of(figure)) is not None), None)


def _read(results: Results, there: Sequence[Shown]) -> tuple[str, ...]:
    return tuple(
        figure
        for one in there
        if one.key in ("overhead", "wait", "early-delivery", "violations")
        for figure in one.figures
        if results.values(figure)
    )


def _finding(rows: Sequence[_Row], there: Sequence[Shown]) -> str:
    """Tell between what the main figures lie, and where."""
    words = []
    for one in there:
        if one.key not in ("overhead", "wait", "early-delivery", "violations"):
            continue
        found = [(cell.mean, row.setting) for row in rows if (cell := row.cells[one.key])]
        low, high = min(found, key=itemgetter(0)), max(found, key=itemgetter(0))
        if low[0] == high[0]:
            words.append(f"{one.title} {_number(low[0])} {one.unit} throughout")
        else:
            words.append(
                f"{one.title} {_number(low[0])} ({_setting(low[1])}) to {_number(high[0])} "
                f"{one.unit} ({_setting(high[1])})"
            )
    return f"{'; '.join(words)}.".capitalize() if words else ""


def _setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in setting.items())


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _cell(found: Interval | None) -> str:
    if found is None:
        return "-"
    if found.half is None or not found.half:
        return _number(found.mean)
    half = f"{found.half:,.0f}" if found.half >= 10 else f"{found.half:.2g}"
    return f"{_number(found.mean)} ± {half}"


def _table(
    over: Mapping[str, Sequence[Any]], rows: Sequence[_Row], there: Sequence[Shown]
) -> Section:
    return Section(
        "Every setting",
        "",
        columns=(*over, "seeds", *(f"{one.title}, {one.unit}" for one in there)),
        table=[
            (
                *(str(row.setting[key]) for key in over),
                str(row.runs),
                *(_cell(row.cells[one.key]) for one in there),
            )
            for row in rows
        ],
        about="Mean over the seeds, ± half the width of its 95 % interval.",
    )


def _plots(
    over: Mapping[str, Sequence[Any]], rows: Sequence[_Row], there: Sequence[Shown]
) -> Iterator[Section]:
    """Yield the plots over the key with most numbers; the other keys make the lines."""
    numeric = [key for key, values in over.items() if len(values) > 1 and all(map(_real, values))]
    if not numeric:
        return
    x = max(numeric, key=lambda key: len(over[key]))
    lines: dict[str, list[_Row]] = {}
    for row in rows:
        rest = {key: value for key, value in row.setting.items() if key != x}
        lines.setdefault(_setting(rest), []).append(row)
    left = len(lines) - MOST_LINES
    others = counted(left, "other is", "others are")
    shown = dict(itertools.islice(lines.items(), MOST_LINES))
    plots = [_plot(one, x, shown) for one in there if one.key in PLOTTED]
    yield Section(
        f"Over {x}",
        "",
        plots=[plot for plot in plots if any(line.x for line in plot.series)],
        about="Error bars: 95 % interval of the mean over the seeds."
        + (f" The first {MOST_LINES} lines; {others} in the table." if left > 0 else ""),
    )


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plot(one: Shown, x: str, lines: Mapping[str, Sequence[_Row]]) -> Plot:
    return Plot(
        f"sweep-{one.key}",
        one.title.capitalize(),
        x,
        one.unit,
        [_line(label or one.title, one, x, rows) for label, rows in lines.items()],
    )


def _line(label: str, one: Shown, x: str, rows: Sequence[_Row]) -> Series:
    points = sorted(
        (float(row.setting[x]), cell.mean, cell.half or 0.0)
        for row in rows
        if (cell := row.cells[one.key]) is not None
    )
    several = any(half for _, _, half in points)
    return Series(
        label,
        [at for at, _, _ in points],
        [mean for _, mean, _ in points],
        [half for _, _, half in points] if several else (),
    )


def table_csv(over: Mapping[str, Sequence[Any]], results: Results) -> str:
    """Return a row a setting: its values, seeds, and of every figure mean and 95 % interval.

    Figures are counts, bytes, times and shares: an interval ends at 0, unless the mean, of a
    figure that is none of these, lies below.
    """
    names = sorted(
        {
            name
            for run in results.runs
            for name, value in results.figures(run).items()
            if not name.startswith(COST) and isinstance(value, float)
        }
    )
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow([*over, "seeds", *(f"{n}{end}" for n in names for end in ("", ".low", ".high"))])
    for row in _rows(over, results):
        cells: list[object] = []
        for name in names:
            found = row.of(name)
            half = None if found is None else found.half
            cells.append("" if found is None else found.mean)
            cells += (
                ["", ""]
                if found is None or half is None
                else [max(min(0.0, found.mean), found.mean - half), found.mean + half]
            )
        write.writerow([*(row.setting[key] for key in over), row.runs, *cells])
    return out.getvalue()
