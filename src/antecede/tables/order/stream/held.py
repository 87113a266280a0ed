"""Held rows of a shard: immutable segments, indexed by awaited causes.

A micro-batch adds one segment; afterwards only the bits of its released rows are rewritten. A row
whose cause has come moves to a new segment. Segments of about one size are merged; nearly empty
segments are rewritten. The user's rows are in the segment as mapped Arrow IPC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.order.stream.affected_rows import SEGMENT_VIEW, Views
from antecede.tables.order.stream.columns import StreamColumns, concat_rows
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.kernels.rows import ABANDONED_CAUSE, SETTLED, Bits, Ints, Longs
from antecede.tables.order.stream.storage.blobs import (
    Arrays,
    ShardParts,
    dump_segments,
    load_segments,
)
from antecede.tables.order.stream.storage.id_table import (
    concatenate_offsets,
    concatenate_strings,
    find_merge_begin,
    find_tier,
    take_values,
)
from antecede.tables.order.stream.storage.index import build_index, hash_keys, mix_numbers

pa: Any = pyarrow

_FAN = 8
_SMALL = 64
_CAP = 65_536
_BYTES = 128 * 2**20


class HeldRows(NamedTuple):
    """Control columns of n rows; edges of row r: first[r]:first[r + 1]."""

    serial: Longs
    group: Text
    name: Text
    number: Longs
    time: Longs
    arrived: Longs
    digest: Longs
    cause_release: Longs
    mark: Bits
    first: Longs
    cause: Text
    cause_number: Longs
    edge_flag: Bits

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.serial)

    def take(self, pick: Ints) -> HeldRows:
        """Return the picked rows."""
        first, edges = take_values(self.first, np.arange(len(self.edge_flag), dtype=np.int64), pick)
        edges32 = edges.astype(np.int32)
        made: dict[str, Any] = self._asdict()
        for name, column in made.items():
            chosen = edges32 if name in ("cause", "cause_number", "edge_flag") else pick
            made[name] = column.take(chosen) if isinstance(column, Text) else column[chosen]
        return HeldRows(**made | {"first": first})


def concatenate_rows(parts: list[HeldRows]) -> HeldRows:
    """Return the rows of several parts, in their order."""
    join: dict[str, Any] = dict.fromkeys(("group", "name", "cause"), concatenate_strings)
    join["first"] = concatenate_offsets
    columns = zip(HeldRows._fields, zip(*parts, strict=True), strict=True)
    return HeldRows(*(join.get(name, np.concatenate)(values) for name, values in columns))


@dataclass(frozen=True, slots=True)
class HeldSegment:
    """Immutable segment: number, rows, live rows, bytes, digests of both blobs."""

    number: int
    count: int
    live: int
    size: int
    data: bytes
    dead: bytes


class HeldSegments:
    """Held rows of one shard, in segments from old to new."""

    def __init__(self, parts: ShardParts, columns: StreamColumns | None = None) -> None:
        self.blobs = parts
        self.columns = columns
        self.segments: list[HeldSegment] = []
        self.next = 0
        self._dead: dict[int, Bits] = {}

    @property
    def count(self) -> int:
        """Number of rows held."""
        return sum(segment.live for segment in self.segments)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def make_views(self, new: Arrays, without: Longs | None = None) -> tuple[Views, list[Arrays]]:
        """Return the table of segments, `new` the last, and the arrays that it points to.

        Rows of `without` (segment << 32 | row) count as removed. Keep the arrays as long as the
        views.
        """
        opened = [self._open(segment) for segment in self.segments] + [new]
        for number, rows in _split_by_segment(without) if without is not None else ():
            opened[number]["dead"] = opened[number]["dead"].copy()
            opened[number]["dead"][rows] = 1
        return np.array([_make_view(arrays) for arrays in opened], SEGMENT_VIEW), opened

    def read_rows(self, picked: Longs) -> HeldRows:
        """Return rows, given as segment << 32 | row, sorted."""
        parts = [
            _read_rows(self._open(self.segments[number])).take(rows)
            for number, rows in _split_by_segment(picked)
        ]
        return concatenate_rows(parts) if parts else make_empty_rows()

    def read_payload(self, picked: Longs) -> list[pyarrow.Table]:
        """Return the user's columns of those rows, in the same order, as one table a segment."""
        tables = []
        for number, rows in _split_by_segment(picked):
            table: Any = read_payload(self._open(self.segments[number]))
            tables.append(table.take(pa.array(rows)))
        return tables

    def read_schema(self) -> pyarrow.Schema | None:
        """Return the columns of the user's rows in the newest segment; None without rows."""
        if not self.segments:
            return None
        rows = read_payload(self._open(self.segments[-1]))
        return rows.schema if rows.num_columns else None

    def remove(self, picked: Longs) -> None:
        """Mark rows as removed."""
        for number, rows in _split_by_segment(picked):
            segment = self.segments[number]
            dead = self._read_dead(segment)
            dead[rows] = 1
            self.segments[number] = replace(segment, live=segment.live - len(rows))
            self._dead[segment.number] = dead

    def add(self, rows: HeldRows, payload: pyarrow.Table | None) -> None:
        """Add rows, write removals, and merge segments."""
        for at, segment in reversed(list(enumerate(self.segments))):
            if segment.live == 0:
                self._delete(segment)
                del self.segments[at]
            elif segment.live * 4 < segment.count and segment.count > _SMALL:
                self._merge(at, at + 1)
        if rows.size:
            self.segments.append(self._write(rows, payload))
        while (begin := self._find_merge_begin()) is not None:
            self._merge(begin, len(self.segments))
        for at, segment in enumerate(self.segments):
            changed = self._dead.pop(segment.number, None)
            if changed is not None:
                packed = np.packbits(changed)
                digest, _ = self.blobs.save(f"x{segment.number}", {"dead": packed})
                self.segments[at] = replace(segment, dead=digest)

    def list_rows(self) -> Longs:
        """Return all held rows, as segment << 32 | row."""
        return self._list_live(0, len(self.segments))

    def read_all(self) -> tuple[HeldRows, list[pyarrow.Table]]:
        """Return all held rows, and the user's columns as one table a segment."""
        every = self.list_rows()
        return self.read_rows(every), self.read_payload(every)

    def _list_live(self, begin: int, end: int) -> Longs:
        picked = [
            (at << 32) | np.flatnonzero(self._read_dead(self.segments[at]) == 0)
            for at in range(begin, end)
        ]
        return np.concatenate(picked) if picked else np.zeros(0, np.int64)

    # -- segments -----------------------------------------------------------------------------

    def _open(self, segment: HeldSegment) -> Arrays:
        arrays = self.blobs.open(f"p{segment.number}", segment.data)
        return arrays | {"dead": self._read_dead(segment)}

    def _read_dead(self, segment: HeldSegment) -> Bits:
        dead = self._dead.get(segment.number)
        if dead is None:
            if segment.dead == bytes(16):
                return np.zeros(segment.count, np.uint8)
            packed = self.blobs.open(f"x{segment.number}", segment.dead)["dead"]
            dead = np.unpackbits(packed, count=segment.count)
        return dead

    def _write(self, rows: HeldRows, payload: pyarrow.Table | None) -> HeldSegment:
        arrays = make_segment_arrays(rows)
        if payload is not None:
            arrays["payload"] = np.frombuffer(_write_ipc(payload), np.uint8)
        digest, size = self.blobs.save(f"p{self.next}", arrays)
        self.next += 1
        return HeldSegment(self.next - 1, rows.size, rows.size, size, digest, bytes(16))

    def _delete(self, segment: HeldSegment) -> None:
        self.blobs.remove(f"p{segment.number}")
        if segment.dead != bytes(16):
            self.blobs.remove(f"x{segment.number}")
        self._dead.pop(segment.number, None)

    def _find_merge_begin(self) -> int | None:
        tiers = [99 if p.size >= _BYTES else find_tier(p.live, _FAN) for p in self.segments]
        return find_merge_begin(tiers, _FAN, find_tier(_CAP, _FAN))

    def _merge(self, begin: int, end: int) -> None:
        picked = self._list_live(begin, end)
        rows, tables = self.read_rows(picked), self.read_payload(picked)
        payload = concat_rows(tables, self.columns) if tables and tables[0].num_columns else None
        for segment in self.segments[begin:end]:
            self._delete(segment)
        self.segments[begin:end] = [self._write(rows, payload)]

    # -- the head ---------------------------------------------------------------------------

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return the segments for the head of the shard."""
        return dump_segments("held.pieces", "held.digests", self.next, self.segments)

    def load(self, head: Arrays) -> None:
        """Read the segments from the head of the shard."""
        self.next, self.segments = load_segments(
            HeldSegment, head["held.pieces"], head["held.digests"]
        )


def make_empty_rows() -> HeldRows:
    """Return zero rows."""
    none = np.zeros(0, np.int64)
    bits = np.zeros(0, np.uint8)
    text = Text(bits, np.zeros(1, np.int64))
    first = np.zeros(1, np.int64)
    return HeldRows(none, text, text, none, none, none, none, none, bits, first, text, none, bits)


def make_segment_arrays(rows: HeldRows, dead: Bits | None = None) -> Arrays:
    """Return the arrays of a segment: control columns and the three indexes."""
    value = hash_keys(rows.serial, *rows.name)
    own = build_index(mix_numbers(value, rows.number))
    members = build_index(value)
    lrow = np.repeat(np.arange(rows.size, dtype=np.int32), np.diff(rows.first))
    cause = mix_numbers(hash_keys(rows.serial[lrow], *rows.cause), rows.cause_number)
    open_edges = np.flatnonzero((rows.edge_flag & (ABANDONED_CAUSE | SETTLED)) == 0).astype(
        np.int32
    )
    waits = build_index(cause[open_edges])
    arrays: Arrays = {
        "serial": rows.serial,
        "number": rows.number,
        "time": rows.time,
        "arrived": rows.arrived,
        "digest": rows.digest,
        "lift": rows.cause_release,
        "mark": rows.mark,
        "gend": _to_int32_ends(rows.group),
        "gpool": rows.group.data,
        "nend": _to_int32_ends(rows.name),
        "npool": rows.name.data,
        "first": rows.first.astype(np.int32),
        "cend": _to_int32_ends(rows.cause),
        "cpool": rows.cause.data,
        "cnum": rows.cause_number,
        "link": rows.edge_flag,
        "lrow": lrow,
        "w.bucket": waits.bucket,
        "w.finger": waits.finger,
        "w.item": open_edges[waits.item],
    }
    for letter, index in (("o", own), ("m", members)):
        arrays[f"{letter}.bucket"] = index.bucket
        arrays[f"{letter}.finger"] = index.finger
        arrays[f"{letter}.item"] = index.item
    if dead is not None:
        arrays["dead"] = dead
    return arrays


def read_payload(arrays: Arrays) -> pyarrow.Table:
    """Return the user's rows of a segment; a table without columns if it has none."""
    if "payload" not in arrays:
        nothing: pyarrow.Table = pa.table({}).select([])
        return nothing
    rows: pyarrow.Table = pa.ipc.open_stream(pa.py_buffer(arrays["payload"])).read_all()
    return rows


def _make_view(arrays: Arrays) -> tuple[int, ...]:
    sizes = {
        "rows": len(arrays["serial"]),
        "links": len(arrays["link"]),
        "names": len(arrays["npool"]),
        "causes": len(arrays["cpool"]),
        "waits": len(arrays["w.bucket"]) - 1,
        "owns": len(arrays["o.bucket"]) - 1,
        "members": len(arrays["m.bucket"]) - 1,
    }
    return tuple(
        sizes[name] if name in sizes else arrays[name].__array_interface__["data"][0]
        for name in SEGMENT_VIEW.fields or ()
    )


def _read_rows(arrays: Arrays) -> HeldRows:
    def text(letter: str) -> Text:
        return Text(arrays[f"{letter}pool"], arrays[f"{letter}end"].astype(np.int64))

    return HeldRows(
        arrays["serial"],
        text("g"),
        text("n"),
        arrays["number"],
        arrays["time"],
        arrays["arrived"],
        arrays["digest"],
        arrays["lift"],
        arrays["mark"],
        arrays["first"].astype(np.int64),
        text("c"),
        arrays["cnum"],
        arrays["link"],
    )


def _split_by_segment(picked: Longs) -> list[tuple[int, Ints]]:
    if not len(picked):
        return []
    segments = picked >> 32
    found, begin = np.unique(segments, return_index=True)
    ends = [*begin[1:], len(picked)]
    rows = (picked & 0xFFFFFFFF).astype(np.int32)
    return [(int(n), rows[a:b]) for n, a, b in zip(found, begin, ends, strict=True)]


def _to_int32_ends(text: Text) -> Ints:
    if text.ends[-1] >= 2**31:
        raise InputError(
            "the ids of the rows that one shard holds of a micro-batch exceed 2 GiB: use smaller "
            "micro-batches (maxOffsetsPerTrigger, maxFilesPerTrigger) or more shards"
        )
    return text.ends.astype(np.int32)


def _write_ipc(table: pyarrow.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
