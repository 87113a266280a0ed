"""Output of `antecede compare`: table, explanations, remarks, files, plain values."""

from __future__ import annotations

import argparse
import csv
import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from antecede.cli.experiments.compare.measures import (
    BYTES,
    MEANING,
    MEASURES,
    REST,
    Measure,
    ProtocolRuns,
    Value,
)
from antecede.cli.text_table import Column, columns, explain_terms, short
from antecede.formatting import pluralize
from antecede.lab.simulate import Hierarchy, PubSub, delay_in_full
from antecede.lab.simulate.config import config_mapping
from antecede.lab.simulate.outputs import BATCHES, short_batches

COLUMNS = (
    Column(("", "", "protocol"), words=True),
    Column(("", "", "peers")),
    Column(("", "", "order"), words=True),
    Column(("control", "counted", "B")),
    Column(("", "wire", "B")),
    Column(("", "stored", "B")),
    Column(("wait", "mean", "ms")),
    Column(("", "p99", "ms")),
    Column(("", "held", "%")),
    Column(("", "viol.", "%")),
    Column(("by", "rcpt.", "%")),
    Column(("need-", "less", "%")),
    Column(("ctrl", "msgs", "")),
)
SIZE = 1
"""Index of the column that is shown only for several sizes."""
SHOWN = REST[:-1]
"""Columns; a broken promise is a remark."""
LEGEND = (
    (
        "control",
        "control information per message, bytes: as the source counts them, and on the wire",
    ),
    ("stored", "bytes that a member stores for ordering, mean over members and time"),
    (
        "wait",
        "time from arrival to delivery, mean and p99, of messages sent after the warm-up; held: "
        "fraction of deliveries that waited",
    ),
    (
        "viol.",
        "violations: deliveries before, or without, a cause; by receipt (rcpt.): a cause that "
        "had arrived at the sender",
    ),
    (
        "needless",
        "deliveries held although all causes had been delivered",
    ),
    ("ctrl msgs", "copies of control messages, per message of the application"),
)
DOUBT = ("±", "half of the 95 % interval of the figure above")


def report(done: Sequence[ProtocolRuns], args: argparse.Namespace, width: int) -> Iterator[str]:
    """Yield the setup, the table, the meaning of its columns, and remarks."""
    for line in _describe_setup(done, args):
        yield from textwrap.wrap(line, width, break_on_hyphens=False)
    yield ""
    sweep = len(_sizes(done)) > 1
    rows = [cells for one in done for cells in _list_rows(one)]
    heads = [head for at, head in enumerate(COLUMNS) if sweep or at != SIZE]
    kept = [[cell for at, cell in enumerate(row) if sweep or at != SIZE] for row in rows]
    yield from columns(heads, kept, width)
    yield ""
    orders = {one.order: MEANING[one.order] for one in done}
    words = [("order", "; ".join(f"{word}: {what}" for word, what in orders.items())), *LEGEND]
    if any(one.is_doubtful() for one in done):
        words.append(DOUBT)
    yield from explain_terms(words, width)
    remarks = [
        (one.name + (f", {one.members:,}" if sweep else ""), "; ".join(one.remarks))
        for one in done
        if one.remarks
    ]
    if remarks:
        yield ""
        yield from explain_terms(remarks, width)


def _sizes(done: Sequence[ProtocolRuns]) -> list[int]:
    return list(dict.fromkeys(one.members for one in done))


def _describe_setup(done: Sequence[ProtocolRuns], args: argparse.Namespace) -> Iterator[str]:
    sizes = _sizes(done)
    first = [next(one for one in done if one.members == size) for size in sizes]
    config = done[0].config
    channels = "FIFO channels" if args.fifo else "channels reorder"
    where = {"mesh": "a mesh", "hierarchy": "a hierarchy, half inside"}
    lost = f", {args.loss:.2%} lost" if args.loss else ""
    place = where.get(args.topology, "")
    if isinstance(config.topology, PubSub):
        place = pluralize(len(config.topology.subgroups), "subgroup")
        place += f", {pluralize(config.topology.topics, 'topic')}"
    who = ", ".join(f"{size:,}" for size in sizes[:-1])
    who += (" and " if who else "") + pluralize(sizes[-1], "peer")
    yield f"{who} in {place}, delay {delay_in_full(config.links.delay)}, {channels}{lost}"
    every = delay_in_full(config.workload.interval)
    replies = config.workload.reply_fraction
    told = (f", {replies:.0%} of them replies" if replies else "") if len(sizes) == 1 else ""
    sent = [pluralize(round(one.total("sent") / len(one.runs)), "message") for one in first]
    runs = [f"{n} within {one.config.duration_s:g} s" for n, one in zip(sent, first, strict=True)]
    rate = f"{args.rate:g} message{'s' * (args.rate != 1)}/s"
    sends = f"each sends {rate}, one every {every}: "
    yield sends + ", ".join(runs) + told
    measured = [f"{one.config.duration_s - one.config.warm_s:.3g}" for one in first]
    spans = ", ".join(dict.fromkeys(measured))
    yield (
        f"bytes and waits of messages sent from {config.warm_s:.3g} s on, for {spans} s; "
        + (f"seed {args.seed}" if args.seeds == 1 else f"means of {args.seeds} seeds")
    )
    if args.seeds == 1 and any(short_batches(one.config) for one in first):
        yield (
            f"intervals are too narrow: {BATCHES} parts of the time are compared, each shorter "
            "than a delay; give --seeds 5 or --seconds"
        )


def _list_rows(one: ProtocolRuns) -> Iterator[tuple[str, ...]]:
    """Yield a line, or three for a hierarchy, each followed by its intervals if one is wide."""
    size, is_doubtful = f"{one.members:,}", one.is_doubtful()
    if not isinstance(one.config.topology, Hierarchy):
        values = [*_values(one, BYTES, one.roles[0]), *_values(one, SHOWN)]
        yield (one.name, size, one.order, *_cells(values))
        if is_doubtful:
            yield ("  ±", "", "", *_halves(values))
        return
    values = _values(one, SHOWN)
    yield (one.name, size, one.order, "", "", "", *_cells(values))
    if is_doubtful:
        yield ("  ±", "", "", "", "", "", *_halves(values))
    for role in one.roles:
        values = _values(one, BYTES, role)
        yield (f"  {role}", "", "", *_cells(values), *[""] * len(SHOWN))


def _values(
    one: ProtocolRuns, measures: Sequence[Measure], role: str = ""
) -> list[tuple[Measure, Value]]:
    return [(measure, one.value(measure, role)) for measure in measures]


def _cells(values: Sequence[tuple[Measure, Value]]) -> Iterator[str]:
    for measure, value in values:
        # Without a count there were no control messages.
        empty = measure.name == "control_messages_per_message" and value.value is None
        yield short(0 if empty else value.value, measure.digits)


def _halves(values: Sequence[tuple[Measure, Value]]) -> Iterator[str]:
    for measure, value in values:
        yield "" if not value.half else short(value.half, measure.digits)


# -- files and plain values ------------------------------------------------------------------

KEYS = ("protocol", "order", "role", "members", "seeds", "first_seed", "warm_s", "seconds")


def csv_lines(done: Sequence[ProtocolRuns], seeds: range) -> Iterator[str]:
    """Yield a heading and a line per protocol, size and role; unmeasured cells are empty.

    `NAME_ci95` is half of the 95 % interval of NAME. The role "all" of a hierarchy has the figures
    that are not counted by role.
    """
    yield _csv_line([*KEYS, *(f"{one.name}{end}" for one in MEASURES for end in ("", "_ci95"))])
    for one in done:
        for role, measures in _by_role(one):
            values: list[object] = []
            for measure in MEASURES:
                found = one.value(measure, role) if measure in measures else Value(None)
                values += ["" if part is None else part for part in found]
            config = one.config
            span = config.duration_s - config.warm_s
            key = (one.name, one.order, role, one.members, len(seeds), seeds[0], config.warm_s)
            yield _csv_line([*key, span, *values])


def _by_role(one: ProtocolRuns) -> list[tuple[str, Sequence[Measure]]]:
    if len(one.roles) == 1:
        return [(one.roles[0], MEASURES)]
    return [("all", REST), *((role, BYTES) for role in one.roles)]


def _csv_line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def markdown(done: Sequence[ProtocolRuns], args: argparse.Namespace) -> Iterator[str]:
    """Yield the setup and the table as Markdown, each figure with its interval."""
    for line in _describe_setup(done, args):
        yield line + "  "
    yield ""
    heads = [" ".join(word for word in head.heading if word) for head in COLUMNS]
    heads = [head.replace("by rcpt. %", "violations by receipt %") for head in heads]
    yield f"| {' | '.join(heads)} |"
    marks = ("---" if head.words else "---:" for head in COLUMNS)
    yield f"| {' | '.join(marks)} |"
    for one in done:
        for role, measures in _by_role(one):
            name = one.name if role in ("all", *one.roles[:1]) or len(one.roles) == 1 else ""
            name = role if len(one.roles) > 1 and role != "all" else name
            cells = [
                _format_value(measure, one.value(measure, role)) if measure in measures else ""
                for measure in (*BYTES, *SHOWN)
            ]
            escaped = name.replace("|", "\\|")
            yield f"| {escaped} | {one.members:,} | {one.order} | {' | '.join(cells)} |"
    yield ""
    yield "± is half of the 95 % interval."


def _format_value(measure: Measure, value: Value) -> str:
    (shown,) = _cells([(measure, value)])
    return shown if not value.half else f"{shown} ± {short(value.half, measure.digits)}"


def plain_values(done: Sequence[ProtocolRuns], seeds: range) -> dict[str, Any]:
    """Return all metrics of all runs."""
    return {"seeds": list(seeds), "protocols": [_to_values(one) for one in done]}


def _to_values(one: ProtocolRuns) -> dict[str, Any]:
    return {
        "name": one.name,
        "members": one.members,
        "order": one.order,
        "remarks": list(one.remarks),
        "mean": {
            figure: one.mean(figure)
            for figure in dict.fromkeys(name for run in one.runs for name in run.figures)
        },
        "measures": {
            role: {
                measure.name: dict(zip(("value", "ci95"), one.value(measure, role), strict=True))
                for measure in measures
            }
            for role, measures in _by_role(one)
        },
        "runs": [
            {"seed": run.seed, "metrics": dict(run.figures), "caveats": dict(run.caveats)}
            for run in one.runs
        ],
        "config": config_mapping(one.config),
    }
