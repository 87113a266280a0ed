"""Tiles of a trace: small files for any range of millions of events.

- `DIR/antecede-tiles.json`: description of the trace and of its levels.
- `DIR/members.parquet`: member, rows, first (place); sorted by the place of the first row.
- `DIR/level-K.parquet`: bin, member (number of its row above), rows. Bins of a level have one
  width, half as wide in the next.
- `DIR/events/*.parquet`: rows in the schema, with `at` (place along the axis), optional `marks`
  (`antecede.tables.view.copies`), and `own:NAME` (extra columns of the user's table as texts).

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
from antecede.formatting import counted
from antecede.tables.audit import list_findings
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
from antecede.tables.view.copies import REPEATED_COPY, match_copies
from antecede.tables.view.extra_columns import as_text
from antecede.tables.view.findings import audit_trace
from antecede.tables.view.render_model import EPOCH_NS, RenderModel, picture
from antecede.tables.view.search import list_columns, match_rows, read_terms

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
MAX_CELLS: Final = 1_000_000  # bins of members in a response


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
    trace: Trace, folder: Path, title: str, *, by: str | None = None, force: bool = False
) -> dict[str, Any]:
    """Write the tiles of a trace that was read, and return the content of `ABOUT`.

    Repeated rows of an id are excluded, unless the trace has arrivals. Raise InputError.
    """
    check_new(folder, force)
    events, own = _add_extra_columns(conform(trace.events), trace.own)
    if not len(events):
        raise InputError("the trace has no event")
    if tells_of_arrivals(events):
        found = match_copies(events).marks.astype(np.uint8)
        events = events.append_column("marks", pa.array(found))
    else:
        first: Any = prepare(trace).events["file_order"]
        events = events.filter(pc.is_in(events["file_order"], first.combine_chunks()))
    column, timed, notes = _compute_places(events)
    known = column.is_valid()
    events = events.filter(known).append_column("at", column.filter(known).cast(pa.int64()))
    events = events.sort_by([("at", "ascending"), ("file_order", "ascending")])
    low, high = (int(of(events["at"]).as_py()) for of in (pc.min, pc.max))
    report = audit_trace(trace)
    findings = [
        {"what": found.what, "advice": found.advice, "rows": []} for found in list_findings(report)
    ]
    description = about(
        *(title, len(events), low, high, timed),
        findings=findings,
        notes=notes,
        format=trace.format,
        by=by,
        own=own,
        causality_source=report.causality_source,
    )
    _clear(folder)
    (folder / "events").mkdir(parents=True, exist_ok=True)
    names = events["member"].combine_chunks().dictionary_encode()
    # Sorted by place, so the dictionary has members in order of their first rows.
    member = pc.fill_null(names.indices, len(names.dictionary)).cast(pa.int32())
    _write_members(folder, events["at"], member, names.dictionary)
    bins = pc.divide(pc.subtract(events["at"], low), description["levels"][-1]["width"])
    cells = pa.table({"bin": bins, "member": member, "rows": pa.array(np.ones(len(events), int))})
    for level in reversed(description["levels"]):
        summed = cells.group_by(["bin", "member"]).aggregate([("rows", "sum")])
        cells = summed.rename_columns(["bin", "member", "rows"]).sort_by("bin")
        pq.write_table(cells, folder / f"level-{level['level']}.parquet", row_group_size=65_536)
        cells = cells.set_column(0, "bin", pc.shift_right(cells["bin"], 1))
    pq.write_table(events, folder / "events" / "part-0.parquet", row_group_size=32_768)
    (folder / ABOUT).write_text(json.dumps(description, indent=1), encoding="utf-8")
    return description


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
        notes.append(f"{counted(lost, 'row')} without a time: not in the picture")
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
    listed = [*names.to_pylist(), "(no member)"]
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
            self._finest = self._description["levels"][-1]
            self._own = [str(name) for name in self._description.get("own", [])]
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            what = f"has no readable tiles: {error}"
            raise InputError(what, path=str(folder)) from error
        self._focus_place = None if focus is None else self._find_event(focus)

    def version(self) -> str:
        """Return a constant: tiles do not change."""
        return "1"

    def block(self, query: Mapping[str, str]) -> bytes:
        """Return the block of a request: a range, a match, or the relations of an event.

        A range is `x0` to `x1`, relative to the first place. `find` has the terms of a search for
        the next event after `from` and `place`. `related` is the position of an event in the files.
        """
        low, high = self._description["low"], self._description["high"]
        if "related" in query:
            return self._find_related(_parse_number(query["related"], 0))
        if "find" in query:
            after = _parse_number(query.get("from"), -1)
            return self._find_match(
                query["find"], after, _parse_number(query.get("place"), -MIN_PLACE - 1)
            )
        if "x0" not in query:
            if self._focus_place is not None:
                return self._read_around(self._focus_place)
            return self._read_range(low, high, -1)
        first, last = (
            min(max(low + _parse_number(query.get(name), 0), low), high) for name in ("x0", "x1")
        )
        return self._read_range(min(first, last), last, -1)

    # -- finding ---------------------------------------------------------------------------------

    def _find_event(self, event: EventRef) -> tuple[int, int]:
        for name, member in _parse_id(event):
            mask = ds.field("id") == name
            if member is not None:
                mask &= ds.field("member") == member
            if event.run is not None:
                mask &= ds.field("run") == event.run
            rows = self._events.to_table(columns=["at", "file_order"], filter=mask)
            if len(rows):
                first = rows.sort_by([("file_order", "ascending")]).slice(0, 1).to_pylist()[0]
                return int(first["at"]), int(first["file_order"])
        raise InputError(f"{event} is not in the tiles", path=str(self._folder))

    def _find_match(self, terms_json: str, after: int, place: int) -> bytes:
        """Return the tile around the next match after `after` (axis) and `place` (files)."""
        own = [OWN + name for name in self._own]
        terms = read_terms(terms_json, len(own))
        behind = min(max(self._description["low"] + after, MIN_PLACE), self._description["high"])
        at, order = ds.field("at"), ds.field("file_order")
        later = (at > behind) | ((at == behind) & (order > place))
        for wrapped, part in ((False, later), (True, ~later)):
            columns = [*list_columns(terms, own), "at", "file_order"]
            for batch in self._events.scanner(columns=columns, filter=part).to_batches():
                found = batch.filter(match_rows(batch, terms, own))
                if len(found):
                    first = found.slice(0, 1).to_pylist()[0]
                    where = int(first["at"]), int(first["file_order"])
                    return self._read_around(where, wrapped=wrapped)
        raise InputError("no event matches the search")

    @cached_property
    def _whole_causality(self) -> tuple[Causality, Array]:
        """The causality of the whole trace, and the position in the files of each of its rows."""
        if self._load_causality is None:
            raise InputError("only tiles of the trace are available")
        causality = self._load_causality()
        return causality, causality.events["file_order"].to_numpy()

    def _find_related(self, place: int) -> bytes:
        """Return past and future of an event in the whole trace, as bits by position."""
        with self._lock:  # load once for concurrent requests
            causality, places = self._whole_causality
        found = np.flatnonzero(places == place)
        if not len(found):
            raise InputError(f"no event has position {place} in the files")
        row = int(found[0])
        before, after = causality.around(row)
        counts, bits = {}, {}
        for name, mask in (("past", before), ("future", after)):
            counts[name] = int(np.count_nonzero(mask))
            by_place = np.zeros(int(places.max()) + 1, np.bool_)
            by_place[places[mask]] = True
            bits[name] = np.packbits(by_place, bitorder="little")
        total = int(np.count_nonzero(causality.same_run(row) & causality.alive))
        concurrent = total - counts["past"] - counts["future"] - 1
        depth = int(causality.depths[row])
        return pack_block(
            {"place": place, "concurrent": concurrent, "depth": depth, **counts}, bits
        )

    # -- answers ---------------------------------------------------------------------------------

    def _read_around(self, where: tuple[int, int], **more: Any) -> bytes:
        at, place = where
        half = max(1, (self._description["high"] - self._description["low"]) // 2)
        while half > 1 and self._count_events(at - half, at + half) > MAX_TILE_EVENTS // 4:
            half //= 2
        return self._read_tile(
            at - half, at + half, place, self._count_events(at - half, at + half), **more
        )

    def _read_range(self, first: int, last: int, place: int) -> bytes:
        count = self._count_events(first, last)
        if count <= MAX_TILE_EVENTS:
            return self._read_tile(first, last, place, count)
        return self._read_grid(first, last)

    @cached_property
    def _bin_counts(self) -> tuple[Any, Any]:
        """Bins of the finest level, and the number of rows before each."""
        cells = self._level(self._finest["level"]).to_table(columns=["bin", "rows"])
        sums = cells.group_by("bin").aggregate([("rows", "sum")]).sort_by("bin")
        return sums["bin"].to_numpy(), np.concatenate([[0], np.cumsum(sums["rows_sum"].to_numpy())])

    def _level(self, level: int) -> Any:
        return ds.dataset(self._folder / f"level-{level}.parquet", format="parquet")

    def _count_events(self, first: int, last: int) -> int:
        bins, before = self._bin_counts
        low, width = self._description["low"], self._finest["width"]
        begin = np.searchsorted(bins, (first - low) // width)
        end = np.searchsorted(bins, (last - low) // width, side="right")
        return int(before[end] - before[begin])

    def _read_tile(self, first: int, last: int, place: int, count: int, **more: Any) -> bytes:
        """Return the events of a range, extended on both sides up to the limit of events."""
        while count < MAX_TILE_EVENTS:
            width = max(last - first, 2)
            wider = first - width // 2, last + width // 2
            inside = wider[0] <= self._description["low"] and wider[1] >= self._description["high"]
            if self._count_events(*wider) > MAX_TILE_EVENTS:
                break
            first, last = wider
            if inside:
                break
        mask = (ds.field("at") >= max(first, MIN_PLACE)) & (
            ds.field("at") <= min(last, -MIN_PLACE - 1)
        )
        rows = self._events.to_table(filter=mask).sort_by([("file_order", "ascending")])
        if not 0 < len(rows) <= 4 * MAX_TILE_EVENTS:  # too many events share one place
            return self._read_grid(first, last)
        events = conform(rows.select(SCHEMA.names))
        own: Any = rows.select([OWN + name for name in self._own]).rename_columns(self._own)
        nothing = QUARANTINE_SCHEMA.empty_table()
        trace = Trace(events, nothing, self._description["format"], {}, own)
        causality = Causality(trace, by=self._causality_by, part=True)
        base = self._description["low"]
        shown = picture(
            trace, title=self.title, base_ns=base, with_findings=False, causality=causality
        )
        self._set_marks(shown, rows)
        meta = {
            **shown.meta,
            **self._make_common_meta(),
            "piece": self._format_range(first, last),
            **more,
        }
        meta["notes"] = self._list_notes(len(rows))
        meta["findings"] = self._list_findings(meta["notes"])
        placed = {of: k for k, of in enumerate(shown.arrays["place"].astype(np.int64).tolist())}
        meta["around"] = placed.get(place, -1)
        # The model has rows in the order of the table, and members numbered as in all tiles.
        members = causality.events["member"].combine_chunks()
        number = pc.fill_null(pc.index_in(members, self._members["member"]), -1).to_numpy()
        return pack_block(
            meta, {**shown.arrays, **self._build_member_arrays(number.astype(np.int32))}
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

    def _set_marks(self, shown: RenderModel, rows: pyarrow.Table) -> None:
        """Set the marks of the whole trace, as far as the tiles have them."""
        if "marks" not in shown.arrays:
            return
        if "marks" in rows.column_names:
            marks = rows["marks"].to_numpy()
        else:  # an arrival may be in another tile
            marks = np.bitwise_and(shown.arrays["marks"], REPEATED_COPY)
        shown.arrays["marks"] = marks.astype(np.uint8)

    def _read_grid(self, first: int, last: int) -> bytes:
        """Return the number of events of each member in each bin of a range."""
        low = self._description["low"]
        levels = [
            one for one in self._description["levels"] if (last - first) // one["width"] <= 700
        ]
        levels = levels or self._description["levels"][:1]
        for level in reversed(levels):
            bins = (first - low) // level["width"], (last - low) // level["width"]
            mask = (ds.field("bin") >= bins[0]) & (ds.field("bin") <= bins[1])
            cells = self._level(level["level"]).to_table(filter=mask)
            if len(cells) <= MAX_CELLS:
                break
        nothing = Trace(SCHEMA.empty_table(), QUARANTINE_SCHEMA.empty_table(), "table", {})
        causality = Causality(nothing, by=EVENTS, part=True)
        shown = picture(nothing, title=self.title, with_findings=False, causality=causality)
        meta = {
            **shown.meta,
            **self._make_common_meta(),
            "grid": {**self._format_range(first, last), "width": level["width"]},
            "notes": [],
            "findings": self._list_findings([]),
        }
        arrays = {
            **shown.arrays,
            "time.event_time": np.empty(0, np.float64),
            "grid.bin": cells["bin"].to_numpy().astype(np.float64),
            "grid.member": cells["member"].to_numpy().astype(np.int32),
            "grid.rows": cells["rows"].to_numpy().astype(np.float64),
            **self._build_member_arrays(np.empty(0, np.int32)),
        }
        return pack_block(meta, arrays)

    def _make_common_meta(self) -> dict[str, Any]:
        description = self._description
        timed = description["timed"]
        source = (
            {evidence.SOURCE: description[evidence.SOURCE]}
            if evidence.SOURCE in description
            else {}
        )
        return {
            **source,
            "format": description["format"],
            "of": description["rows"],
            "tiles": True,
            "whole": self._load_causality is not None,
            "own": self._own,
            "extent": {"low": 0, "high": description["high"] - description["low"]},
            "times": [{"name": "event_time", "base": str(description["low"])}] if timed else [],
            "epoch": timed and description["low"] > EPOCH_NS,
        }

    def _format_range(self, first: int, last: int) -> dict[str, int]:
        return {"from": first - self._description["low"], "to": last - self._description["low"]}

    def _list_notes(self, rows: int) -> list[str]:
        if rows >= self._description["rows"] or self._load_causality is not None:
            return []
        return [
            f"this tile has {counted(rows, 'event')} of {self._description['rows']:,}: past and "
            "future are those within it; `antecede ask` answers for the whole trace"
        ]

    def _list_findings(self, notes: Sequence[str]) -> list[dict[str, Any]]:
        all_notes = [*self._description.get("notes", []), *notes]
        return [
            *self._description.get("findings", []),
            *({"what": note, "advice": "", "rows": []} for note in all_notes),
        ]

    def _build_member_arrays(self, codes: Array) -> dict[str, Array]:
        return {
            "member": codes,
            **encode_dictionary("member", self._members["member"].to_pylist()),
            "member.rows": self._members["rows"].to_numpy().astype(np.float64),
            "overview.rows": self._overview,
        }

    @cached_property
    def _overview(self) -> Array:
        """Number of rows in each bin of the first level."""
        cells = self._level(0).to_table(columns=["bin", "rows"])
        return np.bincount(cells["bin"].to_numpy(), cells["rows"].to_numpy(), FIRST_LEVEL_BINS)


def _parse_id(event: EventRef) -> list[tuple[str, str | None]]:
    """Return the readings of an id: itself, or ID@MEMBER."""
    name, at, member = event.id.rpartition("@")
    return [(event.id, event.member), *([(name, member)] if at else [])]


def _parse_number(text: str | None, otherwise: int) -> int:
    try:
        return otherwise if text is None else int(float(text))
    except (ValueError, OverflowError) as error:
        raise InputError(f"invalid place {text!r:.40} along the axis; expected a number") from error
