"""Tiles of a trace: small files for any range of millions of events.

- `DIR/antecede-tiles.json`: description of the trace and of its levels.
- `DIR/members.parquet`: member, rows, first (place); sorted by the place of the first row.
- `DIR/level-K.parquet`: bin, member (number of its row above), rows, optional `errors`. Bins of a
  level have one width, half as wide in the next.
- `DIR/events/*.parquet`: rows in the schema, with `at` (place along the first axis), `own:NAME`
  (extra columns of the user's table as texts), and optional `at:NAME` (place along a further
  axis), `marks` (`antecede.tables.view.copies`) and `severity` (`antecede.tables.view.severity`).

A place is the time of a row in ns, or its position in the files if no row has a time. In a trace
with times, rows without a time are excluded and counted. Levels and events are single files, or
folders of parts as Spark writes them (`antecede.spark.tiles`).
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet

from antecede import __version__
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables.causality import EVENTS, Causality, EventRef, tells_of_arrivals
from antecede.tables.order import prepare
from antecede.tables.trace import (
    DELIVER,
    QUARANTINE_SCHEMA,
    RECEIVE,
    SCHEMA,
    SEND,
    Trace,
    conform,
    evidence,
)
from antecede.tables.view.binary_block import Array, encode_dictionary, pack_block
from antecede.tables.view.columns import compute_event_time, read_times
from antecede.tables.view.copies import REPEATED_COPY
from antecede.tables.view.extra_columns import as_text
from antecede.tables.view.findings import FindingInputs, rows_to_places
from antecede.tables.view.render_model import EPOCH_NS, RenderModel, collect_whole, picture
from antecede.tables.view.search import list_columns, match_rows, read_terms
from antecede.tables.view.severity import ERROR
from antecede.tables.view.tile_axes import (
    NO_MEMBER,
    PLACE,
    Axis,
    ColumnAxis,
    LevelAxis,
    number_members,
)

pa: Any = pyarrow
pc: Any = pyarrow.compute
ds: Any = pyarrow.dataset
pq: Any = pyarrow.parquet
TILES: Final = "tiles"
OWN: Final = "own:"  # prefix of extra columns in `events`
ABOUT: Final = "antecede-tiles.json"
VERSION: Final = 1
FIRST_LEVEL_BINS: Final = 512  # bins of the first level
MAX_LEVELS: Final = 14
MAX_TILE_EVENTS: Final = 40_000  # events of a response
MIN_PLACE: Final = -(2**63)


def is_tiles(path: Path) -> bool:
    """Return whether a path is a folder of `write_tiles`."""
    return (path / ABOUT).is_file()


def count_levels(rows: int) -> int:
    """Return the number of levels for a number of rows; bins of the last one contain few."""
    return max(1, min(MAX_LEVELS, int(np.ceil(np.log2(max(2, rows / FIRST_LEVEL_BINS)))) + 1))


def about(title: str, rows: int, low: int, high: int, timed: bool, **more: Any) -> dict[str, Any]:
    """Return the content of `ABOUT` for a trace with places from `low` to `high`."""
    deepest = count_levels(rows) - 1
    finest = -(-(high - low + 1) // (FIRST_LEVEL_BINS << deepest))
    return {
        "version": VERSION,
        "made_by": f"antecede {__version__}",
        "title": title,
        "rows": rows,
        "low": low,
        "high": high,
        "timed": timed,
        "levels": [{"level": k, "width": finest << (deepest - k)} for k in range(deepest + 1)],
        **more,
    }


def check_new(folder: Path, force: bool) -> None:
    """Raise InputError unless tiles can be written there; `force`: replace existing tiles."""
    if folder.is_file():
        raise InputError("is a file; name a folder", path=str(folder))
    if folder.is_dir() and any(folder.iterdir()) and not (force and is_tiles(folder)):
        raise InputError(
            "exists and is not empty; name another folder, or --force to replace existing tiles",
            path=str(folder),
        )


def write_tiles(
    trace: Trace,
    folder: Path,
    title: str,
    *,
    by: str | None = None,
    force: bool = False,
    causality: Causality | None = None,
) -> dict[str, Any]:
    """Write the tiles of a trace that was read, and return the content of `ABOUT`.

    `causality`: that of the trace, if it was built before. Repeated rows of an id are excluded,
    unless the trace has arrivals. Raise InputError.
    """
    check_new(folder, force)
    events, own = _add_extra_columns(conform(trace.events), trace.own)
    if not len(events):
        raise InputError("the trace has no event")
    causality = Causality(trace, by=by, unproven=True) if causality is None else causality
    inputs, lists = collect_whole(trace, causality)
    if not tells_of_arrivals(events):
        first: Any = prepare(trace).events["file_order"]
        events = events.filter(pc.is_in(events["file_order"], first.combine_chunks()))
    column, timed, notes = _compute_places(events)
    known = column.is_valid()
    events = events.filter(known).append_column("at", column.filter(known).cast(pa.int64()))
    events = events.sort_by([("at", "ascending"), ("file_order", "ascending")])
    events, axes = _add_model_columns(events, causality, inputs)
    low, high = (int(of(events["at"]).as_py()) for of in (pc.min, pc.max))
    description = about(
        *(title, len(events), low, high, timed),
        notes=notes,
        format=trace.format,
        by=causality.by,
        own=own,
        axes=axes,
        lists=rows_to_places(lists, inputs.events["file_order"].to_numpy()),
        causality_source=causality.source,
    )
    _clear(folder)
    (folder / "events").mkdir(parents=True, exist_ok=True)
    names = events["member"].combine_chunks().dictionary_encode()
    # Sorted by place, so the dictionary has members in order of their first rows.
    member = pc.fill_null(names.indices, len(names.dictionary)).cast(pa.int32())
    _write_members(folder, events["at"], member, names.dictionary)
    bins = pc.divide(pc.subtract(events["at"], low), description["levels"][-1]["width"])
    cells = pa.table({"bin": bins, "member": member, "rows": pa.array(np.ones(len(events), int))})
    if "severity" in events.column_names:
        errors = pc.equal(events["severity"], ERROR).cast(pa.int64())
        cells = cells.append_column("errors", errors)
    counts = cells.column_names[2:]
    for level in reversed(description["levels"]):
        summed = cells.group_by(["bin", "member"]).aggregate([(name, "sum") for name in counts])
        cells = summed.rename_columns(["bin", "member", *counts]).sort_by("bin")
        pq.write_table(cells, folder / f"level-{level['level']}.parquet", row_group_size=65_536)
        cells = cells.set_column(0, "bin", pc.shift_right(cells["bin"], 1))
    pq.write_table(events, folder / "events" / "part-0.parquet", row_group_size=32_768)
    (folder / ABOUT).write_text(json.dumps(description, indent=1), encoding="utf-8")
    return description


def _add_model_columns(
    events: pyarrow.Table, causality: Causality, inputs: FindingInputs
) -> tuple[pyarrow.Table, list[dict[str, Any]]]:
    """Return events with marks, severity and further places; and descriptions of their axes."""
    rows = pc.index_in(events["file_order"], inputs.events["file_order"])

    def add(name: str, values: Array, known: Array | None = None) -> None:
        nonlocal events
        column = pa.array(values, mask=None if known is None else ~known)
        events = events.append_column(name, column.take(rows))

    if inputs.copies is not None:
        add("marks", inputs.copies.marks.astype(np.uint8))
    if inputs.severity.rows.any():
        add("severity", inputs.severity.rows)
    axes = []
    for time in inputs.axes[1:]:
        add(PLACE + time.name, time.offset_ns + time.base, time.known)
    ranks, depths = causality.ranks, causality.depths
    for name, values in (("logical", depths), ("order", ranks)):
        add(PLACE + name, values.astype(np.int64), values >= 0)
    if inputs.axes:
        add(PLACE + "file", inputs.events["file_order"].to_numpy().astype(np.int64))
    timed = [time.name for time in inputs.axes[1:]]
    for name in (name for name in events.column_names if name.startswith(PLACE)):
        low, high = (of(events[name]).as_py() for of in (pc.min, pc.max))
        if low is not None:
            name = name.removeprefix(PLACE)
            axes.append({"name": name, "low": low, "high": high, "timed": name in timed})
    return events, axes


def _add_extra_columns(events: Any, own: pyarrow.Table | None) -> tuple[Any, list[str]]:
    """Return events with the extra columns of the user's table as texts, and their names."""
    names = [] if own is None else own.column_names
    for name in names:
        assert own is not None
        events = events.append_column(OWN + name, as_text(own[name]))
    return events, names


def _compute_places(events: pyarrow.Table) -> tuple[Any, bool, list[str]]:
    """Return places, whether they are times, and notes on excluded rows."""
    column = compute_event_time(events)
    found = read_times("", column)
    if found is None:
        return events["file_order"], False, []
    notes = found.describe_far()
    if found.far_count:
        column = pc.if_else(pa.array(found.known), column, pa.scalar(None, pa.int64()))
    if lost := int(np.count_nonzero(~found.known)):
        notes.append(f"{pluralize(lost, 'row')} without a time: not in the picture")
    return column, True, notes


def _clear(folder: Path) -> None:
    names = ("events", "members.parquet", *(f"level-{k}.parquet" for k in range(MAX_LEVELS)))
    for path in (folder / ABOUT, *(folder / name for name in names)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _write_members(folder: Path, at: Any, member: Any, names: Any) -> None:
    grouped = pa.table({"member": member, "at": at}).group_by("member")
    table = grouped.aggregate([([], "count_all"), ("at", "min")]).sort_by("member")
    listed = [*names.to_pylist(), NO_MEMBER]
    member = [listed[k] for k in table["member"].to_pylist()]
    table_of_members = pa.table(
        {"member": member, "rows": table["count_all"], "first": table["at_min"]}
    )
    pq.write_table(table_of_members, folder / "members.parquet")


class Tiles:
    """Source of a served page from a folder of tiles; raise InputError.

    `focus`: first event to show. `load_causality` returns the causality of the whole trace.
    """

    grows = False

    def __init__(
        self,
        folder: Path,
        focus: EventRef | None = None,
        load_causality: Callable[[], Causality] | None = None,
    ) -> None:
        self._folder, self._load_causality = folder, load_causality
        self._lock = threading.Lock()
        self._overviews: dict[str, dict[str, Array]] = {}
        try:
            self._description = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            self.title = str(self._description["title"])
            if self._description["version"] != VERSION:
                raise InputError(
                    f"the tiles have version {self._description['version']}; expected {VERSION}",
                    path=str(folder),
                )
            self._members: Any = pq.read_table(folder / "members.parquet")
            self._events: Any = ds.dataset(folder / "events", format="parquet")
            if lacking := {*SCHEMA.names} - {*self._events.schema.names}:
                raise InputError(
                    f"the tiles lack {', '.join(sorted(lacking))}; write them again with --tiles",
                    path=str(folder),
                )
            self._first_axis = LevelAxis(folder, self._description)
            names = self._members["member"].combine_chunks()
            self._axes: dict[str, Axis] = {self._first_axis.name: self._first_axis}
            for one in self._description.get("axes", []):
                self._axes[one["name"]] = ColumnAxis(self._events, names, one)
            self._own = [str(name) for name in self._description.get("own", [])]
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            what = f"has no readable tiles: {error}"
            raise InputError(what, path=str(folder)) from error
        self._focus = None if focus is None else self._find_event(focus)
        first_error = self._description.get("lists", {}).get("first_error", -1)
        start = first_error if self._focus is None else self._focus
        self._start = start if self._has_event(start) else None

    def version(self) -> str:
        """Return a constant: tiles do not change."""
        return "1"

    def block(self, query: Mapping[str, str]) -> bytes:
        """Return the block of a request: a range, a match, or the relations of an event.

        A range is `x0` to `x1` on `axis`; times are relative to its first one. `find` has the terms
        of a search for the next event after `from` and `place`. `related` is the position of an
        event in the files, `places` are those of events to load, and `chain` those of two events.
        """
        axis = self._axes.get(query.get("axis", ""), self._first_axis)
        if "related" in query:
            return self._find_related(axis, _parse_number(query["related"], 0))
        if "find" in query:
            after = _parse_number(query.get("from"), -1)
            place = _parse_number(query.get("place"), -MIN_PLACE - 1)
            return self._find_match(axis, query["find"], after, place)
        if "places" in query:
            return self._read_places(axis, _parse_places(query["places"]))
        if "chain" in query:
            return self._read_chain(axis, _parse_places(query["chain"]))
        if "x0" not in query:
            if self._start is not None:
                return self._read_around(axis, self._start, focus=self._focus is not None)
            return self._read_range(axis, axis.low, axis.high)
        first, last = (
            min(max(_origin(axis) + _parse_number(query.get(name), 0), axis.low), axis.high)
            for name in ("x0", "x1")
        )
        return self._read_range(axis, min(first, last), last)

    # -- finding ---------------------------------------------------------------------------------

    def _find_event(self, event: EventRef) -> int:
        """Return the position of an event in the files."""
        for name, member in _parse_id(event):
            mask = ds.field("id") == name
            if member is not None:
                mask &= ds.field("member") == member
            if event.run is not None:
                mask &= ds.field("run") == event.run
            rows = self._events.to_table(columns=["file_order"], filter=mask)
            if len(rows):
                return int(pc.min(rows["file_order"]).as_py())
        raise InputError(f"{event} is not in the tiles", path=str(self._folder))

    def _has_event(self, place: int) -> bool:
        """Return whether the event at a position is in the tiles; they lack rows without a time."""
        return bool(self._events.count_rows(filter=ds.field("file_order") == place))

    def _find_match(self, axis: Axis, terms_json: str, after: int, place: int) -> bytes:
        """Return the tile around the next match after `after` (first axis) and `place` (files)."""
        own = [OWN + name for name in self._own]
        terms = read_terms(terms_json, len(own))
        first = self._first_axis
        behind = min(max(_origin(first) + after, MIN_PLACE), first.high)
        at, order = ds.field("at"), ds.field("file_order")
        later = (at > behind) | ((at == behind) & (order > place))
        for wrapped, part in ((False, later), (True, ~later)):
            columns = [*list_columns(terms, own), "at", "file_order"]
            for batch in self._events.scanner(columns=columns, filter=part).to_batches():
                found = batch.filter(match_rows(batch, terms, own))
                if len(found):
                    return self._read_around(axis, found["file_order"][0].as_py(), wrapped=wrapped)
        raise InputError("no event matches the search")

    @cached_property
    def _whole_causality(self) -> tuple[Causality, Array]:
        """The causality of the whole trace, and the position in the files of each of its rows."""
        if self._load_causality is None:
            raise InputError("only tiles of the trace are available")
        causality = self._load_causality()
        return causality, causality.events["file_order"].to_numpy()

    def _find_related(self, axis: Axis, place: int) -> bytes:
        """Return past and future of an event in the whole trace: bits by position, and counts."""
        with self._lock:  # load once for concurrent requests
            causality, places = self._whole_causality
        found = np.flatnonzero(places == place)
        if not len(found):
            raise InputError(f"no event has position {place} in the files")
        row = int(found[0])
        before, after = causality.around(row)
        counts, arrays = dict[str, int](), dict[str, Array]()
        known = ds.field(axis.column).is_valid()
        listed = self._events.to_table(columns=[axis.column, "file_order"], filter=known)
        part = _divide(listed[axis.column].to_numpy() - axis.low, axis)
        listed_places = listed["file_order"].to_numpy()
        size = int(max(places.max(), listed_places.max(initial=0))) + 1
        for name, mask in (("past", before), ("future", after)):
            counts[name] = int(np.count_nonzero(mask))
            by_place = np.zeros(size, np.bool_)
            by_place[places[mask]] = True
            arrays[name] = np.packbits(by_place, bitorder="little")
            weights = by_place[listed_places].astype(np.float64)
            arrays[f"overview.{name}"] = np.bincount(part, weights, FIRST_LEVEL_BINS)
        total = int(np.count_nonzero(causality.same_run(row) & causality.alive))
        concurrent = total - counts["past"] - counts["future"] - 1
        depth = int(causality.depths[row])
        return pack_block(
            {"place": place, "concurrent": concurrent, "depth": depth, **counts}, arrays
        )

    def _read_chain(self, axis: Axis, places: Sequence[int]) -> bytes:
        """Return the rows of the shortest chain between two events; both, if they have none."""
        with self._lock:
            causality, known = self._whole_causality
        rows = [int(np.flatnonzero(known == place)[0]) for place in places if place in known]
        if len(rows) != 2:
            raise InputError(f"chain= has {len(rows)} known events; expected 2")
        chain = causality.chain(*rows)
        if not len(chain):
            chain = causality.chain(*rows[::-1])
        found = known[chain if len(chain) else rows].tolist()
        return self._read_exact(axis, found, chain=found if len(chain) else [])

    # -- answers ---------------------------------------------------------------------------------

    def _read_places(self, axis: Axis, places: Sequence[int]) -> bytes:
        """Return a tile that contains some events, otherwise these events alone."""
        mask = ds.field("file_order").isin(list(places))
        found = self._events.to_table(columns=[axis.column], filter=mask)[axis.column]
        low, high = pc.min(found).as_py(), pc.max(found).as_py()
        if low is None:
            raise InputError("places= has no event of the tiles on this axis")
        if low == high:
            return self._read_around(axis, places[0], focus=False)
        pad = high - low
        for first, last in ((low - pad, high + pad), (low, high)):
            count = axis.count(first, last)
            if count <= MAX_TILE_EVENTS:
                return self._read_tile(axis, first, last, count)
        return self._read_exact(axis, places)

    def _read_around(self, axis: Axis, place: int, *, focus: bool = True, **more: Any) -> bytes:
        """Return a tile around an event; `focus`: the page selects it."""
        found = self._events.to_table(columns=[axis.column], filter=ds.field("file_order") == place)
        at = found[axis.column][0].as_py() if len(found) else None
        if at is None:
            raise InputError(f"the event at position {place} has no place on this axis")
        half = max(1, (axis.high - axis.low) // 2)
        while half > 1 and axis.count(at - half, at + half) > MAX_TILE_EVENTS // 4:
            half //= 2
        count = axis.count(at - half, at + half)
        return self._read_tile(axis, at - half, at + half, count, place if focus else -1, **more)

    def _read_range(self, axis: Axis, first: int, last: int) -> bytes:
        count = axis.count(first, last)
        if count <= MAX_TILE_EVENTS:
            return self._read_tile(axis, first, last, count)
        return self._read_grid(axis, first, last)

    def _read_tile(
        self, axis: Axis, first: int, last: int, count: int, place: int = -1, **more: Any
    ) -> bytes:
        """Return the events of a range, extended on both sides up to the limit of events."""
        while count < MAX_TILE_EVENTS:
            width = max(last - first, 2)
            wider = first - width // 2, last + width // 2
            inside = wider[0] <= axis.low and wider[1] >= axis.high
            if axis.count(*wider) > MAX_TILE_EVENTS:
                break
            first, last = wider
            if inside:
                break
        at = ds.field(axis.column)
        mask = (at >= max(first, MIN_PLACE)) & (at <= min(last, -MIN_PLACE - 1))
        rows = self._events.to_table(filter=mask)
        if not 0 < len(rows) <= 4 * MAX_TILE_EVENTS:  # too many events share one place
            return self._read_grid(axis, first, last)
        piece = {**_format_range(axis, first, last), "axis": axis.name}
        return self._pack_rows(rows, piece, place, **more)

    def _read_exact(self, axis: Axis, places: Sequence[int], **more: Any) -> bytes:
        """Return some events alone."""
        rows = self._events.to_table(filter=ds.field("file_order").isin(list(places)))
        piece = {**_format_range(axis, axis.low, axis.high), "axis": axis.name, "exact": True}
        return self._pack_rows(rows, piece, -1, **more)

    def _pack_rows(
        self, rows: pyarrow.Table, piece: Mapping[str, Any], place: int, **more: Any
    ) -> bytes:
        rows = rows.sort_by([("file_order", "ascending")])
        events = conform(rows.select(SCHEMA.names))
        own: Any = rows.select([OWN + name for name in self._own]).rename_columns(self._own)
        nothing = QUARANTINE_SCHEMA.empty_table()
        trace = Trace(events, nothing, self._description["format"], {}, own)
        causality = Causality(trace, by=self._causality_by, part=True)
        base = self._first_axis.low
        shown = picture(
            trace, title=self.title, base_ns=base, with_findings=False, causality=causality
        )
        self._set_columns(shown, rows)
        places = shown.arrays["place"].astype(np.int64)
        meta = {
            **rows_to_places(shown.meta, places),
            **self._make_common_meta(),
            "piece": dict(piece),
            **more,
        }
        meta["notes"] = self._list_notes(len(rows))
        meta["findings"] = self._list_findings(meta["notes"])
        meta["around"] = next(iter(np.flatnonzero(places == place).tolist()), -1)
        # The model has rows in the order of the table, and members numbered as in all tiles.
        members = causality.events["member"].combine_chunks()
        number = number_members(members, self._members["member"])
        return pack_block(
            meta,
            {
                **shown.arrays,
                **self._build_member_arrays(number.astype(np.int32)),
                **self._build_overview(self._axes[piece["axis"]]),
            },
        )

    @cached_property
    def _causality_by(self) -> str | None:
        """Source of causality of the whole trace; one tile may lack a kind of rows."""
        if self._description.get("by") is not None:
            return str(self._description["by"])
        kinds: set[str] = set()
        for batch in self._events.scanner(columns=["kind"]).to_batches():
            kinds.update(batch["kind"].unique().to_pylist())
        return EVENTS if SEND in kinds and kinds & {RECEIVE, DELIVER} else None

    def _set_columns(self, shown: RenderModel, rows: pyarrow.Table) -> None:
        """Set times, marks and severity of the whole trace, as far as the tiles have them."""
        arrays = shown.arrays
        if "marks" in rows.column_names and "marks" in arrays:
            arrays["marks"] = rows["marks"].to_numpy()
        elif "marks" in arrays:  # an arrival may be in another tile
            arrays["marks"] = np.bitwise_and(arrays["marks"], REPEATED_COPY)
        if "severity" in rows.column_names:
            arrays["severity"] = rows["severity"].to_numpy()
        for axis in self._axes.values():
            if axis.column != self._first_axis.column:
                places = pc.subtract(rows[axis.column], _origin(axis))
                times = pc.fill_null(places.cast(pa.float64(), safe=False), np.nan)
                arrays[f"time.{axis.name}"] = times.to_numpy()

    def _read_grid(self, axis: Axis, first: int, last: int) -> bytes:
        """Return the number of events of each member in each bin of a range."""
        cells = axis.read_cells(first, last)
        nothing = Trace(SCHEMA.empty_table(), QUARANTINE_SCHEMA.empty_table(), "table", {})
        causality = Causality(nothing, by=EVENTS, part=True)
        shown = picture(nothing, title=self.title, with_findings=False, causality=causality)
        meta = {
            **shown.meta,
            **self._make_common_meta(),
            "grid": {
                **_format_range(axis, first, last),
                "axis": axis.name,
                "width": cells.width,
                "begin": axis.low - _origin(axis),
            },
            "notes": [],
            "findings": self._list_findings([]),
        }
        arrays = {
            **shown.arrays,
            **{f"time.{name}": np.empty(0, np.float64) for name in self._axes},
            "grid.bin": cells.bin.astype(np.float64),
            "grid.member": cells.member.astype(np.int32),
            "grid.rows": cells.rows.astype(np.float64),
            "grid.errors": cells.errors.astype(np.float64),
            **self._build_overview(axis),
            **self._build_member_arrays(np.empty(0, np.int32)),
        }
        return pack_block(meta, arrays)

    def _make_common_meta(self) -> dict[str, Any]:
        description = self._description
        timed = description["timed"]
        known = (evidence.SOURCE, "by")
        return {
            **{name: description[name] for name in known if description.get(name) is not None},
            "format": description["format"],
            "of": description["rows"],
            "tiles": True,
            "whole": self._load_causality is not None,
            "own": self._own,
            "extents": {name: _format_extent(axis) for name, axis in self._axes.items()},
            "times": [
                {"name": axis.name, "base": str(axis.low) if axis.is_timed else None}
                for axis in self._axes.values()
                if axis.is_timed or axis is not self._first_axis
            ],
            "epoch": timed and description["low"] > EPOCH_NS,
            **description.get("lists", {}),
        }

    def _list_notes(self, rows: int) -> list[str]:
        if rows >= self._description["rows"] or self._load_causality is not None:
            return []
        return [
            f"this tile has {pluralize(rows, 'event')} of {self._description['rows']:,}: past and "
            "future are those within it; `antecede ask` answers for the whole trace"
        ]

    def _list_findings(self, notes: Sequence[str]) -> list[dict[str, Any]]:
        all_notes = [*self._description.get("notes", []), *notes]
        return [
            *self._description.get("lists", {}).get("findings", []),
            *({"what": note, "advice": "", "rows": []} for note in all_notes),
        ]

    def _build_member_arrays(self, codes: Array) -> dict[str, Array]:
        return {
            "member": codes,
            **encode_dictionary("member", self._members["member"].to_pylist()),
            "member.rows": self._members["rows"].to_numpy().astype(np.float64),
        }

    def _build_overview(self, axis: Axis) -> dict[str, Array]:
        """Return the numbers of events and errors in equal parts of the axis."""
        if axis.name not in self._overviews:
            cells = axis.read_cells(axis.low, axis.high)
            part = _divide(cells.bin.astype(np.float64) * cells.width, axis)
            self._overviews[axis.name] = {
                f"overview.{name}": np.bincount(part, counts, FIRST_LEVEL_BINS)
                for name, counts in (("rows", cells.rows), ("errors", cells.errors))
            }
        return self._overviews[axis.name]


def _origin(axis: Axis) -> int:
    """Return the zero of the places on a page: the first time, or 0 on an axis of numbers."""
    return axis.low if axis.is_timed else 0


def _divide(places: Array, axis: Axis) -> Array:
    """Return the part of the overview for each place after the first one of the axis."""
    part = places.astype(np.float64) * FIRST_LEVEL_BINS / (axis.high - axis.low + 1)
    return np.minimum(part.astype(np.int64), FIRST_LEVEL_BINS - 1)


def _format_extent(axis: Axis) -> dict[str, int]:
    return {"low": axis.low - _origin(axis), "high": axis.high - _origin(axis)}


def _format_range(axis: Axis, first: int, last: int) -> dict[str, int]:
    return {"from": first - _origin(axis), "to": last - _origin(axis)}


def _parse_places(text: str) -> list[int]:
    return [_parse_number(one, 0) for one in text.split(".")[:100]]


def _parse_id(event: EventRef) -> list[tuple[str, str | None]]:
    """Return the readings of an id: itself, or ID@MEMBER."""
    name, at, member = event.id.rpartition("@")
    return [(event.id, event.member), *([(name, member)] if at else [])]


def _parse_number(text: str | None, otherwise: int) -> int:
    try:
        return otherwise if text is None else int(float(text))
    except (ValueError, OverflowError) as error:
        raise InputError(f"invalid place {text!r:.40} along the axis; expected a number") from error
