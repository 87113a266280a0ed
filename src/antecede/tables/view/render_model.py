"""A trace as arrays for a page: rows, members, times, the graph of causes, copies, findings.

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
from antecede.formatting import counted
from antecede.tables.causality import CLOCKS, EVENTS, Causality, Named
from antecede.tables.kernels import Ints, edge_table, encode_column
from antecede.tables.trace import KINDS, Trace, evidence
from antecede.tables.view.binary_block import Array, packed, texts
from antecede.tables.view.columns import axes, joined
from antecede.tables.view.copies import among, copies
from antecede.tables.view.extra_columns import column_arrays
from antecede.tables.view.findings import Edges, Scene, find_in_rows, findings

pa: Any = pyarrow
pc: Any = pyarrow.compute
LARGEST: Final = 400_000  # events of a page: beyond, opening it takes long
CLOCKS_AT_MOST: Final = 4_000_000  # entries of clocks of a page
EPOCH: Final = 10**9 * 86_400 * 3650  # ns: times beyond are dates; simulations begin at 1970
TEXTS: Final = ("id", "text", "role", "source")
COUNTS: Final = ("seq", "line", "ingest")


class Picture(NamedTuple):
    """Data of a page; see `antecede.tables.view.binary_block`."""

    meta: dict[str, Any]
    arrays: dict[str, Array]

    def packed(self) -> bytes:
        """Return one block of bytes."""
        return packed(self.meta, self.arrays)


def picture(
    trace: Trace,
    *,
    title: str,
    by: str | None = None,
    around: Named | None = None,
    most: int = LARGEST,
    latest: bool = False,
    base: int | None = None,
    told: bool = True,
    also: Sequence[Mapping[str, Any]] = (),
    broken: Sequence[int] = (),
    asked: Causality | None = None,
) -> Picture:
    """Return the picture of a trace that was read.

    `by`: as for `Causality`; `around`: the event to begin with; `most`: events at most. A larger
    trace is cut to those nearest to `around`, or (`latest`) to the last ones, with a note. `base`:
    zero of the events' time, ns (None: the earliest). `told`: with findings. `also`: findings to
    begin with (what, advice, rows). `broken`: rows that break a promise, for a whole trace. The
    columns of `trace.own` are shown with each event. Raises InputError for an event that is not
    there, and for a larger trace without `around`.
    """
    asked = Causality(trace, by=by, unproven=True) if asked is None else asked
    start = None if around is None else asked.row(around)
    rows = _chosen(asked, start, most, latest)
    events = asked.events.take(pa.array(rows))
    offsets, causes = _edges(asked, rows)
    moved = among(copies(asked.events), rows) if asked.by == EVENTS else None
    across = _across(events, offsets, causes)
    scene = Scene(events, asked.by, across, axes(events, base), moved, asked.alive[rows])
    notes = [*asked.notes, *(note for axis in scene.axes[:1] for note in axis.notes())]
    if len(rows) < len(asked.events):
        held = f"{len(rows):,} of {counted(len(asked.events), 'event')}"
        through = "past and future are shown as far as they go through these"
        notes.insert(len(asked.notes), f"this page holds {held}: {through}")
    arrays = _arrays(scene, offsets, causes, notes)
    own, further = _further(trace, events, notes)
    said = findings(trace, scene, notes) if told else find_in_rows(scene)
    said["findings"] = [*map(dict, also), *said["findings"]]
    meta = {
        "title": title,
        "version": __version__,
        "format": trace.format,
        "by": asked.by,
        evidence.SOURCE: asked.source,
        "events": len(events),
        "of": len(asked.events),
        "kinds": list(KINDS),
        "around": -1 if start is None else int(np.flatnonzero(rows == start)[0]),
        "times": [{"name": one.name, "base": str(one.base)} for one in scene.axes],
        "epoch": any(one.base > EPOCH for one in scene.axes),
        "own": own,
        "broken": list(broken),
        **said,
    }
    return Picture(meta, {**arrays, **further})


def _further(
    trace: Trace, events: pyarrow.Table, notes: list[str]
) -> tuple[list[str], dict[str, Array]]:
    """Return the further columns of the user's table, of the rows of the picture."""
    if trace.own is None or not trace.own.num_columns:
        return [], {}
    rows = pc.index_in(events["file_order"], trace.events["file_order"]).to_numpy()
    return column_arrays(trace.own, rows, notes)


def _chosen(asked: Causality, start: int | None, most: int, latest: bool) -> Ints:
    """Return the rows of the picture, in the order of the table."""
    size = len(asked.events)
    if size <= most:
        return np.arange(size)
    if start is None and not latest:
        raise InputError(
            f"{size:,} events are more than one page holds ({most:,}): --around ID makes a page of "
            "what is near an event; without -o the whole is served piece by piece"
        )
    times = axes(asked.events)
    place: Any = asked.events["file_order"].to_numpy()
    if times:  # rows without a time are last
        place = np.where(times[0].known, times[0].after, np.iinfo(np.int64).max)
    order = np.argsort(place, kind="stable")
    at = size if start is None else int(np.flatnonzero(order == start)[0])
    first = min(max(at - most // 2, 0), size - most)
    return np.sort(order[first : first + most])


def _edges(asked: Causality, rows: Ints) -> tuple[Ints, Ints]:
    """Return offsets and causes without those that are nowhere; by clocks immediate ones alone."""
    offsets, causes = asked.edges_among(rows)
    kept = causes >= 0
    if asked.by == CLOCKS:
        kept &= asked.immediate_among(rows)
    effect = np.repeat(np.arange(len(rows)), np.diff(offsets))[kept]
    size = np.bincount(effect, minlength=len(rows))
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64), causes[kept]


def _across(events: pyarrow.Table, offsets: Ints, causes: Ints) -> Edges:
    effect = np.repeat(np.arange(len(events)), np.diff(offsets))
    member = encode_column(events["member"])[1]
    apart = (member[causes] != member[effect]) & (member[causes] >= 0) & (member[effect] >= 0)
    return Edges(causes[apart], effect[apart])


def _arrays(scene: Scene, offsets: Ints, causes: Ints, notes: list[str]) -> dict[str, Array]:
    events, by = scene.events, scene.by
    kind = pc.index_in(events["kind"], pa.array(KINDS)).to_numpy()
    arrays: dict[str, Array] = {
        "kind": kind.astype(np.uint8),
        "alive": np.asarray(scene.alive, np.uint8),
        "offsets": offsets.astype(np.int32),
        "causes": causes.astype(np.int32),
        "place": events["file_order"].to_numpy().astype(np.float64),
        **texts("member", events["member"]),
        **texts("run", events["run"]),
        **texts("topics", joined(events["topics"])),
    }
    for name in TEXTS:
        if name == "id" or events[name].null_count < len(events):
            arrays |= texts(name, events[name])
    for name in COUNTS:
        if events[name].null_count < len(events):
            values = pc.cast(events[name], pa.float64(), safe=False)
            arrays[name] = pc.fill_null(values, np.nan).to_numpy()
    for axis in scene.axes:
        arrays[f"time.{axis.name}"] = axis.to_floats()
    if scene.axes and events["end_time"].null_count < len(events):
        base, known = scene.axes[0].base, events["end_time"].is_valid().to_numpy()
        after = pc.fill_null(events["end_time"], base).to_numpy() - base
        arrays["end"] = np.where(known, after.astype(np.float64), np.nan)
    if scene.copies is not None:
        arrays["sent"] = scene.copies.sent.astype(np.int32)
        arrays["received"] = scene.copies.received.astype(np.int32)
        arrays["marks"] = scene.copies.marks.astype(np.uint8)
    arrays |= _clock_arrays(events, notes) if by == CLOCKS else _missing_arrays(events, by)
    return arrays


def _clock_arrays(events: pyarrow.Table, notes: list[str]) -> dict[str, Array]:
    """Return the clocks as logged, entries row by row."""
    lists = events["clock_members"].combine_chunks(), events["clock_counts"].combine_chunks()
    entries = int(pc.sum(pc.list_value_length(lists[0])).as_py() or 0)
    if entries > CLOCKS_AT_MOST:
        notes.append(f"the page leaves {counted(entries, 'clock entry', 'clock entries')} out")
        return {}
    sizes = pc.fill_null(pc.list_value_length(lists[0]), 0).to_numpy()
    counts = pc.list_flatten(lists[1]).cast(pa.float64(), safe=False)
    return {
        "clock.offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        "clock.counts": counts.to_numpy(),
        **texts("clock.members", pc.list_flatten(lists[0])),
    }


def _missing_arrays(events: pyarrow.Table, by: str) -> dict[str, Array]:
    """Return causes that rows name and that no row has, by row."""
    if by == EVENTS or not len(events):
        return {}
    edges: Any = edge_table(events)
    lost = edges.filter(edges["parent"].is_null())
    rows = lost["child"].to_numpy().astype(np.int32)
    return {"missing.rows": rows, **texts("missing", lost["parent_id"])}
