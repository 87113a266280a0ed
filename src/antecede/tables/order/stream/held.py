"""Held rows of a shard: immutable pieces, indexed by awaited causes.

A micro-batch adds one piece; afterwards only the bits of its departed rows are written again. A row
whose cause has come moves to a new piece, with the kept facts of that cause. Pieces of about one
size are merged, pieces nearly empty are written anew. The user's rows lie in the piece as mapped
Arrow IPC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.order.stream.affected_rows import VIEW, Views
from antecede.tables.order.stream.columns import StreamColumns, joined
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.kernels.rows import GIVEN, SETTLED, Bits, Ints, Longs
from antecede.tables.order.stream.storage.blobs import Arrays, ShardParts, dump_parts, load_parts
from antecede.tables.order.stream.storage.id_table import (
    joined_ends,
    joined_text,
    merge_begin,
    take_values,
    tier_of,
)
from antecede.tables.order.stream.storage.index import hashes_of, index_of, mix_numbers

pa: Any = pyarrow

_FAN = 8
_SMALL = 64
_CAP = 65_536
_BYTES = 128 * 2**20


class HeldRows(NamedTuple):
    """n rows by their control columns; links of row r: first[r]:first[r + 1].

    `serial` is the number of the group, `lift` the latest release of a cause that is out already,
    `mark` a flag of the row's outcome, `link` the bits of `kernels.rows`.
    """

    serial: Longs
    group: Text
    name: Text
    number: Longs
    time: Longs
    arrived: Longs
    digest: Longs
    lift: Longs
    mark: Bits
    first: Longs
    cause: Text
    cause_number: Longs
    link: Bits

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.serial)

    def taken(self, pick: Ints) -> HeldRows:
        """Return the picked rows."""
        first, links = take_values(self.first, np.arange(len(self.link), dtype=np.int64), pick)
        links32 = links.astype(np.int32)
        made: dict[str, Any] = self._asdict()
        for name, column in made.items():
            chosen = links32 if name in ("cause", "cause_number", "link") else pick
            made[name] = column.taken(chosen) if isinstance(column, Text) else column[chosen]
        return HeldRows(**made | {"first": first})


def joined_rows(parts: list[HeldRows]) -> HeldRows:
    """Return the rows of several parts, one behind the other."""
    join: dict[str, Any] = dict.fromkeys(("group", "name", "cause"), joined_text)
    join["first"] = joined_ends
    columns = zip(HeldRows._fields, zip(*parts, strict=True), strict=True)
    return HeldRows(*(join.get(name, np.concatenate)(values) for name, values in columns))


@dataclass(frozen=True, slots=True)
class Piece:
    """A sealed piece: number, rows, live rows, bytes, digests of both parts."""

    number: int
    count: int
    live: int
    size: int
    data: bytes
    dead: bytes


class HeldPieces:
    """The held rows of one shard, in pieces from old to new."""

    def __init__(self, parts: ShardParts, columns: StreamColumns | None = None) -> None:
        self.parts = parts
        self.columns = columns
        self.pieces: list[Piece] = []
        self.next = 0
        self._dead: dict[int, Bits] = {}

    @property
    def count(self) -> int:
        """Number of rows held."""
        return sum(piece.live for piece in self.pieces)

    @property
    def size(self) -> int:
        """Bytes of all pieces."""
        return sum(piece.size for piece in self.pieces)

    def views(self, new: Arrays, without: Longs | None = None) -> tuple[Views, list[Arrays]]:
        """Return the table of pieces, `new` the last, and the arrays that it points to.

        Rows of `without` (piece << 32 | row) count as gone. The views are addresses in the arrays:
        keep the arrays as long as the views.
        """
        opened = [self._open(piece) for piece in self.pieces] + [new]
        for number, rows in _by_piece(without) if without is not None else ():
            opened[number]["dead"] = opened[number]["dead"].copy()
            opened[number]["dead"][rows] = 1
        return np.array([_view(arrays) for arrays in opened], VIEW), opened

    def rows(self, picked: Longs) -> HeldRows:
        """Return rows by piece and row (piece << 32 | row), sorted."""
        parts = [
            _rows_of(self._open(self.pieces[number])).taken(rows)
            for number, rows in _by_piece(picked)
        ]
        return joined_rows(parts) if parts else no_rows()

    def payload(self, picked: Longs) -> list[pyarrow.Table]:
        """Return the user's rows of those, in the same order, as one table a piece."""
        tables = []
        for number, rows in _by_piece(picked):
            table: Any = payload_of(self._open(self.pieces[number]))
            tables.append(table.take(pa.array(rows)))
        return tables

    def schema(self) -> pyarrow.Schema | None:
        """Return the columns of the user's rows in the newest piece; None where there are none."""
        if not self.pieces:
            return None
        rows = payload_of(self._open(self.pieces[-1]))
        return rows.schema if rows.num_columns else None

    def remove(self, picked: Longs) -> None:
        """Mark rows as gone."""
        for number, rows in _by_piece(picked):
            piece = self.pieces[number]
            dead = self._gone(piece)
            dead[rows] = 1
            self.pieces[number] = replace(piece, live=piece.live - len(rows))
            self._dead[piece.number] = dead

    def add(self, rows: HeldRows, payload: pyarrow.Table | None) -> None:
        """Hold rows, write what `remove` changed, and merge where there are many pieces."""
        for at, piece in reversed(list(enumerate(self.pieces))):
            if piece.live == 0:
                self._delete(piece)
                del self.pieces[at]
            elif piece.live * 4 < piece.count and piece.count > _SMALL:
                self._merge(at, at + 1)
        if rows.size:
            self.pieces.append(self._write(rows, payload))
        while (begin := self._crowded()) is not None:
            self._merge(begin, len(self.pieces))
        for at, piece in enumerate(self.pieces):
            changed = self._dead.pop(piece.number, None)
            if changed is not None:
                packed = np.packbits(changed)
                digest, _ = self.parts.save(f"x{piece.number}", {"dead": packed})
                self.pieces[at] = replace(piece, dead=digest)

    def all_rows(self) -> Longs:
        """Return all held rows, by piece and row."""
        return self._live(0, len(self.pieces))

    def everything(self) -> tuple[HeldRows, list[pyarrow.Table]]:
        """Return all held rows, and the user's rows as one table a piece."""
        every = self.all_rows()
        return self.rows(every), self.payload(every)

    def _live(self, begin: int, end: int) -> Longs:
        picked = [
            (at << 32) | np.flatnonzero(self._gone(self.pieces[at]) == 0)
            for at in range(begin, end)
        ]
        return np.concatenate(picked) if picked else np.zeros(0, np.int64)

    # -- pieces -----------------------------------------------------------------------------

    def _open(self, piece: Piece) -> Arrays:
        arrays = self.parts.open(f"p{piece.number}", piece.data)
        return arrays | {"dead": self._gone(piece)}

    def _gone(self, piece: Piece) -> Bits:
        dead = self._dead.get(piece.number)
        if dead is None:
            if piece.dead == bytes(16):
                return np.zeros(piece.count, np.uint8)
            packed = self.parts.open(f"x{piece.number}", piece.dead)["dead"]
            dead = np.unpackbits(packed, count=piece.count)
        return dead

    def _write(self, rows: HeldRows, payload: pyarrow.Table | None) -> Piece:
        arrays = piece_arrays(rows)
        if payload is not None:
            arrays["payload"] = np.frombuffer(_ipc(payload), np.uint8)
        digest, size = self.parts.save(f"p{self.next}", arrays)
        self.next += 1
        return Piece(self.next - 1, rows.size, rows.size, size, digest, bytes(16))

    def _delete(self, piece: Piece) -> None:
        self.parts.remove(f"p{piece.number}")
        if piece.dead != bytes(16):
            self.parts.remove(f"x{piece.number}")
        self._dead.pop(piece.number, None)

    def _crowded(self) -> int | None:
        tiers = [99 if p.size >= _BYTES else tier_of(p.live, _FAN) for p in self.pieces]
        return merge_begin(tiers, _FAN, tier_of(_CAP, _FAN))

    def _merge(self, begin: int, end: int) -> None:
        picked = self._live(begin, end)
        rows, tables = self.rows(picked), self.payload(picked)
        payload = joined(tables, self.columns) if tables and tables[0].num_columns else None
        for piece in self.pieces[begin:end]:
            self._delete(piece)
        self.pieces[begin:end] = [self._write(rows, payload)]

    # -- the head ---------------------------------------------------------------------------

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return the pieces for the head of the shard."""
        return dump_parts("held.pieces", "held.digests", self.next, self.pieces)

    def load(self, head: Arrays) -> None:
        """Take the pieces from the head of the shard."""
        self.next, self.pieces = load_parts(Piece, head["held.pieces"], head["held.digests"])


def no_rows() -> HeldRows:
    """Return no rows at all."""
    none = np.zeros(0, np.int64)
    bits = np.zeros(0, np.uint8)
    text = Text(bits, np.zeros(1, np.int64))
    first = np.zeros(1, np.int64)
    return HeldRows(none, text, text, none, none, none, none, none, bits, first, text, none, bits)


def piece_arrays(rows: HeldRows, dead: Bits | None = None) -> Arrays:
    """Return the arrays of a piece: control columns and the three indexes."""
    value = hashes_of(rows.serial, *rows.name)
    own = index_of(mix_numbers(value, rows.number))
    members = index_of(value)
    lrow = np.repeat(np.arange(rows.size, dtype=np.int32), np.diff(rows.first))
    cause = mix_numbers(hashes_of(rows.serial[lrow], *rows.cause), rows.cause_number)
    open_links = np.flatnonzero((rows.link & (GIVEN | SETTLED)) == 0).astype(np.int32)
    waits = index_of(cause[open_links])
    arrays: Arrays = {
        "serial": rows.serial,
        "number": rows.number,
        "time": rows.time,
        "arrived": rows.arrived,
        "digest": rows.digest,
        "lift": rows.lift,
        "mark": rows.mark,
        "gend": _ends32(rows.group),
        "gpool": rows.group.data,
        "nend": _ends32(rows.name),
        "npool": rows.name.data,
        "first": rows.first.astype(np.int32),
        "cend": _ends32(rows.cause),
        "cpool": rows.cause.data,
        "cnum": rows.cause_number,
        "link": rows.link,
        "lrow": lrow,
        "w.bucket": waits.bucket,
        "w.finger": waits.finger,
        "w.item": open_links[waits.item],
    }
    for letter, index in (("o", own), ("m", members)):
        arrays[f"{letter}.bucket"] = index.bucket
        arrays[f"{letter}.finger"] = index.finger
        arrays[f"{letter}.item"] = index.item
    if dead is not None:
        arrays["dead"] = dead
    return arrays


def payload_of(arrays: Arrays) -> pyarrow.Table:
    """Return the user's rows of a piece; a table of no columns where none were given."""
    if "payload" not in arrays:
        nothing: pyarrow.Table = pa.table({}).select([])
        return nothing
    rows: pyarrow.Table = pa.ipc.open_stream(pa.py_buffer(arrays["payload"])).read_all()
    return rows


def _view(arrays: Arrays) -> tuple[int, ...]:
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
        for name in VIEW.fields or ()
    )


def _rows_of(arrays: Arrays) -> HeldRows:
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


def _by_piece(picked: Longs) -> list[tuple[int, Ints]]:
    """Return (piece, rows) for sorted rows given as piece << 32 | row."""
    if not len(picked):
        return []
    pieces = picked >> 32
    found, begin = np.unique(pieces, return_index=True)
    ends = [*begin[1:], len(picked)]
    rows = (picked & 0xFFFFFFFF).astype(np.int32)
    return [(int(n), rows[a:b]) for n, a, b in zip(found, begin, ends, strict=True)]


def _ends32(text: Text) -> Ints:
    if text.ends[-1] >= 2**31:
        raise InputError(
            "the ids of the rows that one shard holds in one micro-batch come to 2 GiB of text: "
            "take smaller micro-batches (maxOffsetsPerTrigger, maxFilesPerTrigger) or more shards"
        )
    return text.ends.astype(np.int32)


def _ipc(table: pyarrow.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
