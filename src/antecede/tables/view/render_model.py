"""Render model of a page: rows, members, times, causes, copies and findings as arrays.

Rows are those of `antecede.tables.causality.Causality`, as for `antecede ask`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede import __version__
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables.causality import CLOCKS, EVENTS, Causality, Named
from antecede.tables.kernels import Ints, edge_table, encode_column
from antecede.tables.trace import KINDS, Trace, evidence
from antecede.tables.view.binary_block import Array, encode_texts, pack_block
from antecede.tables.view.columns import join_lists, list_axes
from antecede.tables.view.copies import match_copies, select_rows
from antecede.tables.view.extra_columns import build_column_arrays
from antecede.tables.view.findings import (
    CrossEdges,
    FindingInputs,
    collect_findings,
    collect_from_rows,
)
from antecede.tables.view.severity import Severity, find_severity

pa: Any = pyarrow
pc: Any = pyarrow.compute
LARGEST: Final = 400_000  # events of a page; larger pages open slowly
MAX_CLOCK_ENTRIES: Final = 4_000_000  # clock entries of a page
EPOCH_NS: Final = 10**9 * 86_400 * 3650  # larger times are dates; simulations start at 1970
TEXT_COLUMNS: Final = ("id", "text", "role", "source")
COUNT_COLUMNS: Final = ("seq", "line", "ingest")


class RenderModel(NamedTuple):
    """Data of a page; see `antecede.tables.view.binary_block`."""

    meta: dict[str, Any]
    arrays: dict[str, Array]

    def pack(self) -> bytes:
        """Return the model as one binary block."""
        return pack_block(self.meta, self.arrays)


def picture(
    trace: Trace,
    *,
    title: str,
    by: str | None = None,
    around: Named | None = None,
    most: int = LARGEST,
    latest: bool = False,
    base_ns: int | None = None,
    with_findings: bool = True,
    also: Sequence[Mapping[str, Any]] = (),
    broken: Sequence[int] = (),
    in_transit: Sequence[Mapping[str, Any]] = (),
    causality: Causality | None = None,
) -> RenderModel:
    """Return the render model of a trace that was read.

    `by`: source of causality, as for `Causality`. `around`: first event to show. `most`:
    maximum of events. A larger trace is cut to the events nearest to `around`, or (`latest`) to the
    last ones, with a note. `base_ns`: zero of the event time (None: the earliest). `with_findings`:
    False for tiles. `also`: findings to list first (what, advice, rows). `broken`: rows that
    violate a promise; `in_transit`: copies without an arrival (row, member); for a whole trace.
    The columns of `trace.own` are shown with each event.

    Raise InputError for an unknown event, and for a larger trace without `around`.
    """
    causality = Causality(trace, by=by, unproven=True) if causality is None else causality
    start = None if around is None else causality.row(around)
    rows = _choose_rows(causality, start, most, latest)
    own, extra_arrays, severity, notes = _collect_extra_columns(trace, causality, rows)
    inputs, offsets, causes = _build_inputs(causality, rows, severity, base_ns)
    events, axes = inputs.events, inputs.axes
    notes = [*causality.notes, *(note for axis in axes[:1] for note in axis.describe_far()), *notes]
    if len(rows) < len(causality.events):
        held = f"{len(rows):,} of {pluralize(len(causality.events), 'event')}"
        through = "past and future are those within these"
        notes.insert(len(causality.notes), f"this page has {held}: {through}")
    # The arrays that can add a note come before the findings, which list the notes.
    relations = (
        _build_clock_arrays(events, notes)
        if causality.by == CLOCKS
        else _build_missing_arrays(events, causality.by)
    )
    if with_findings:
        inputs, lists = collect_findings(trace, inputs, notes)
    else:
        lists = collect_from_rows(inputs)
    lists["findings"] = [*map(dict, also), *lists["findings"]]
    arrays = {**_build_arrays(inputs, offsets, causes), **relations}
    meta = {
        "title": title,
        "version": __version__,
        "format": trace.format,
        "by": causality.by,
        evidence.SOURCE: causality.source,
        "events": len(events),
        "of": len(causality.events),
        "kinds": list(KINDS),
        "around": -1 if start is None else int(np.flatnonzero(rows == start)[0]),
        "times": [{"name": one.name, "base": str(one.base)} for one in inputs.axes],
        "epoch": any(one.base > EPOCH_NS for one in inputs.axes),
        "own": own,
        "broken": list(broken),
        "in_transit": [dict(copy) for copy in in_transit],
        **lists,
    }
    return RenderModel(meta, {**arrays, **extra_arrays})


def collect_whole(trace: Trace, causality: Causality) -> tuple[FindingInputs, dict[str, Any]]:
    """Return the rows of a whole trace with their axes, and the lists next to a diagram."""
    rows = np.arange(len(causality.events))
    extra = _select_extra_columns(trace, causality.events)
    severity = Severity.none(len(rows)) if extra is None else find_severity(extra)
    inputs, _, _ = _build_inputs(causality, rows, severity)
    return collect_findings(trace, inputs, causality.notes)


def _build_inputs(
    causality: Causality, rows: Ints, severity: Severity, base_ns: int | None = None
) -> tuple[FindingInputs, Ints, Ints]:
    events = causality.events.take(pa.array(rows))
    offsets, causes = _list_edges(causality, rows)
    moved = select_rows(match_copies(causality.events), rows) if causality.by == EVENTS else None
    across = _select_cross_edges(events, offsets, causes)
    axes, alive = list_axes(events, base_ns), causality.alive[rows]
    inputs = FindingInputs(events, causality.by, across, axes, moved, alive, severity)
    return inputs, offsets, causes


def _select_extra_columns(trace: Trace, events: pyarrow.Table) -> pyarrow.Table | None:
    """Return the extra columns of the user's table for rows of a trace; None without any."""
    if trace.own is None or not trace.own.num_columns:
        return None
    return trace.own.take(pc.index_in(events["file_order"], trace.events["file_order"]))


def _collect_extra_columns(
    trace: Trace, causality: Causality, rows: Ints
) -> tuple[list[str], dict[str, Array], Severity, list[str]]:
    extra = _select_extra_columns(trace, causality.events.take(pa.array(rows)))
    if extra is None:
        return [], {}, Severity.none(len(rows)), []
    notes = list[str]()
    return *build_column_arrays(extra, notes), find_severity(extra), notes


def _choose_rows(causality: Causality, start: int | None, max_events: int, latest: bool) -> Ints:
    size = len(causality.events)
    if size <= max_events:
        return np.arange(size)
    if start is None and not latest:
        raise InputError(
            f"{size:,} events are more than a page can have ({max_events:,}); use --focus ID "
            "for a page around an event, or omit -o to serve all of them in tiles"
        )
    times = list_axes(causality.events)
    place: Any = causality.events["file_order"].to_numpy()
    if times:  # rows without a time are last
        place = np.where(times[0].known, times[0].offset_ns, np.iinfo(np.int64).max)
    order = np.argsort(place, kind="stable")
    at = size if start is None else int(np.flatnonzero(order == start)[0])
    first = min(max(at - max_events // 2, 0), size - max_events)
    return np.sort(order[first : first + max_events])


def _list_edges(causality: Causality, rows: Ints) -> tuple[Ints, Ints]:
    """Return offsets and causes without missing ones; by clocks only immediate causes."""
    offsets, causes = causality.edges_among(rows)
    is_kept = causes >= 0
    if causality.by == CLOCKS:
        is_kept &= causality.immediate_among(rows)
    effect = np.repeat(np.arange(len(rows)), np.diff(offsets))[is_kept]
    size = np.bincount(effect, minlength=len(rows))
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64), causes[is_kept]


def _select_cross_edges(events: pyarrow.Table, offsets: Ints, causes: Ints) -> CrossEdges:
    effect = np.repeat(np.arange(len(events)), np.diff(offsets))
    member = encode_column(events["member"])[1]
    apart = (member[causes] != member[effect]) & (member[causes] >= 0) & (member[effect] >= 0)
    return CrossEdges(causes[apart], effect[apart])


def _build_arrays(inputs: FindingInputs, offsets: Ints, causes: Ints) -> dict[str, Array]:
    events = inputs.events
    kind = pc.index_in(events["kind"], pa.array(KINDS)).to_numpy()
    arrays: dict[str, Array] = {
        "kind": kind.astype(np.uint8),
        "alive": np.asarray(inputs.alive, np.uint8),
        "offsets": offsets.astype(np.int32),
        "causes": causes.astype(np.int32),
        "place": events["file_order"].to_numpy().astype(np.float64),
        **encode_texts("member", events["member"]),
        **encode_texts("run", events["run"]),
        **encode_texts("topics", join_lists(events["topics"])),
    }
    for name in TEXT_COLUMNS:
        if name == "id" or events[name].null_count < len(events):
            arrays |= encode_texts(name, events[name])
    for name in COUNT_COLUMNS:
        if events[name].null_count < len(events):
            values = pc.cast(events[name], pa.float64(), safe=False)
            arrays[name] = pc.fill_null(values, np.nan).to_numpy()
    for axis in inputs.axes:
        arrays[f"time.{axis.name}"] = axis.to_floats()
    if inputs.axes and events["end_time"].null_count < len(events):
        base, known = inputs.axes[0].base, events["end_time"].is_valid().to_numpy()
        after = pc.fill_null(events["end_time"], base).to_numpy() - base
        arrays["end"] = np.where(known, after.astype(np.float64), np.nan)
    if inputs.severity.rows.any():
        arrays["severity"] = inputs.severity.rows
    if inputs.copies is not None:
        arrays["sent"] = inputs.copies.send_row.astype(np.int32)
        arrays["received"] = inputs.copies.receipt_row.astype(np.int32)
        arrays["marks"] = inputs.copies.marks.astype(np.uint8)
    return arrays


def _build_clock_arrays(events: pyarrow.Table, notes: list[str]) -> dict[str, Array]:
    lists = events["clock_members"].combine_chunks(), events["clock_counts"].combine_chunks()
    entries = int(pc.sum(pc.list_value_length(lists[0])).as_py() or 0)
    if entries > MAX_CLOCK_ENTRIES:
        notes.append(f"the page omits {pluralize(entries, 'clock entry', 'clock entries')}")
        return {}
    sizes = pc.fill_null(pc.list_value_length(lists[0]), 0).to_numpy()
    counts = pc.list_flatten(lists[1]).cast(pa.float64(), safe=False)
    return {
        "clock.offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        "clock.counts": counts.to_numpy(),
        **encode_texts("clock.members", pc.list_flatten(lists[0])),
    }


def _build_missing_arrays(events: pyarrow.Table, by: str) -> dict[str, Array]:
    if by == EVENTS or not len(events):
        return {}
    edges: Any = edge_table(events)
    lost = edges.filter(edges["cause"].is_null())
    rows = lost["effect"].to_numpy().astype(np.int32)
    return {"missing.rows": rows, **encode_texts("missing", lost["cause_id"])}
