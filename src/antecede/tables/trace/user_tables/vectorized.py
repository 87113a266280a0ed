"""Vectorized converter of blocks of a user's table to blocks of events.

Theory of operation
-------------------
`columns.Columns` is the reference. Here Arrow parses whole columns (`cell_parsing`) if the result
is the same. Other cells go to methods of `Columns`. A row with a rejected cell is odd and goes to
`Columns.event`. No cell may be counted twice, so columns with counts are last: odd rows are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

from antecede.tables.trace import expressions
from antecede.tables.trace.identities import name_of
from antecede.tables.trace.schema import COLUMNS, EVENT, KINDS, Event, Quarantined
from antecede.tables.trace.user_tables import blocks, cell_parsing
from antecede.tables.trace.user_tables.blocks import Block
from antecede.tables.trace.user_tables.cell_parsing import NO_ARRAY, TEXTS, Bools, Found, Times
from antecede.tables.trace.user_tables.chosen_columns import TIMES
from antecede.tables.trace.user_tables.columns import Columns
from antecede.tables.trace.user_tables.extra_columns import marked
from antecede.tables.trace.user_tables.list_separators import doubtful

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
ARROW_TYPES = {"string": pa.string(), "int64": pa.int64(), "list<string>": TEXTS}
ARROW_TYPES["list<int64>"] = pa.list_(pa.int64())
Ints = npt.NDArray[np.int64]


class Chunk(NamedTuple):
    """Consecutive events in the schema, before `file_order` is numbered."""

    events: Any
    own: Any
    """Extra columns, as an Arrow batch or as records (None: not requested)."""


Piece = Chunk | tuple[Event | Quarantined, Any]
"""Events, or a single event or bad record with its extra columns."""


def pieces(block: Block, columns: Columns, own: bool) -> Iterator[Piece]:
    """Yield the events and bad records of a block in order."""
    done = 0
    bad = list(block.bad)
    while done < block.rows:
        known = _known(block, columns, done)
        part = block.sliced(done, known)
        before = [(at - done, row) for at, row in bad if at < done + known]
        del bad[: len(before)]
        yield from _pieces(part, columns, own, before)
        done += known
        if done < block.rows:  # a row with a new column
            if bad and bad[0][0] == done:
                yield bad.pop(0)[1], None
                continue
            yield _alone(block.sliced(done, 1), columns, own)
            done += 1
    yield from ((row, None) for _, row in bad)


def each_row(block: Block, columns: Columns) -> Iterator[Piece]:
    """Yield the same items as `pieces`, row by row."""
    bad = list(block.bad)
    of_text = block.batch is None or block.as_text
    for at, record in enumerate(block.as_records()):
        while bad and bad[0][0] == at:
            yield bad.pop(0)[1], None
        line = None if block.lines is None else int(block.lines[at])
        yield columns.event(record, line), record if of_text else block.batch.slice(at, 1)
    yield from ((row, None) for _, row in bad)


def _known(block: Block, columns: Columns, first: int) -> int:
    """Return the number of rows from `first` with only known columns."""
    names = columns.known.keys()
    if block.records is None:
        return block.rows - first if names >= set(block.batch.schema.names) else 0
    for at in range(first, block.rows):
        if not block.records[at].keys() <= names:
            return at - first
    return block.rows - first


def _alone(one: Block, columns: Columns, own: bool) -> Piece:
    (record,) = one.as_records()
    line = None if one.lines is None else int(one.lines[0])
    mine = _own(one) if own else None
    return columns.event(record, line), mine[0] if isinstance(mine, list) else mine


def _own(block: Block) -> Any:
    if block.batch is None:
        return block.records
    return marked(block.batch) if block.as_text else block.batch


def _pieces(
    block: Block, columns: Columns, own: bool, bad: Sequence[tuple[int, Quarantined]]
) -> Iterator[Piece]:
    if not block.rows:
        yield from ((row, None) for _, row in bad)
        return
    events, odd = _Made(block, columns).events()
    stops = [(int(at), None) for at in np.flatnonzero(odd)] + [(at, row) for at, row in bad]
    done = 0
    for at, row in sorted(stops, key=lambda stop: (stop[0], stop[1] is None)):
        if at > done:
            yield _chunk(block, events, own, done, at - done)
        done = at
        if row is not None:
            yield row, None
        else:
            yield _alone(block.sliced(at, 1), columns, own)
            done += 1
    if done < block.rows:
        yield _chunk(block, events, own, done, block.rows - done)


def _chunk(block: Block, events: Any, own: bool, first: int, rows: int) -> Chunk:
    mine = _own(block.sliced(first, rows)) if own else None
    return Chunk(events.slice(first, rows), mine)


class _Made:
    """Converter of one block; odd rows are left to `Columns.event`."""

    def __init__(self, block: Block, columns: Columns) -> None:
        self.block, self.columns, self.n = block, columns, block.rows
        self.odd: Bools = cell_parsing.none(block.rows)
        self._cells: dict[str, Any] = {}
        self._lists: dict[str, list[Any]] = {}

    def events(self) -> tuple[Any, Bools]:
        of: dict[str, Any] = {}
        for name in ("run", "member", "role", "text"):
            of[name] = self._name(name)
        if self.columns.options.needs_run:
            self.odd |= ~cell_parsing.known(of["run"])
        kind = self._name("kind")
        of["kind"] = pc.if_else(
            pc.fill_null(pc.is_in(kind, pa.array(KINDS)), False), kind, pa.scalar(EVENT)
        )
        for name in ("seq", "ingest"):
            of[name] = self._number(name)
        clocks = self._clocks()
        of["clock_members"], of["clock_counts"] = cell_parsing.listed(clocks, self.n)
        of["seq"] = cell_parsing.with_counts(of["seq"], of["member"], clocks)
        of["id"] = self._identity(of["member"], of["seq"])
        of["topics"] = self._names("topics")  # before counted columns, because it may add odd rows
        of["parents"] = self._names("parents")
        for name in TIMES:
            of[name] = self._time(name)
        source = self.columns.source.encode(errors="backslashreplace").decode()
        of["source"] = pa.repeat(pa.scalar(source, pa.string()), self.n)
        of["line"] = pa.nulls(self.n, pa.int64()) if self.block.lines is None else self.block.lines
        of["file_order"] = np.zeros(self.n, np.int64)
        arrays = [
            pa.array(of[column.name]).cast(ARROW_TYPES[column.type])
            if isinstance(of[column.name], np.ndarray)
            else of[column.name]
            for column in COLUMNS
        ]
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in COLUMNS]), self.odd

    def _name(self, name: str) -> Any:
        method = self._plain_name if name in ("kind", "role", "text") else self.columns._name
        return self._column(name, cell_parsing.names, method, pa.string())

    def _plain_name(self, record: dict[str, Any], name: str) -> str | None:
        return name_of(self.columns._first(record, name))

    def _number(self, name: str) -> Any:
        return self._column(name, cell_parsing.numbers, self.columns._number, pa.int64())

    def _column(
        self,
        name: str,
        convert: Callable[[Any], Found | None],
        each: Callable[[dict[str, Any], str], Any],
        kind: Any,
    ) -> Any:
        """Return a column with one cell per row; rows with a rejected cell become odd."""
        columns = self.columns.of[name][:1]
        if not columns:
            return pa.nulls(self.n, kind)
        array = self._array(columns[0])
        found = None if array is None else convert(array)
        found = found or Found(pa.nulls(self.n, kind), ~cell_parsing.none(self.n))
        return self._completed(found, columns, lambda record: each(record, name), kind)

    def _completed(
        self, found: Found, columns: Sequence[str], each: Callable[[dict[str, Any]], Any], kind: Any
    ) -> Any:
        """Return the values, completed by those of the unparsed cells."""
        at = np.flatnonzero(found.left & ~self.odd)
        if not len(at):
            return found.values
        made: list[Any] = []
        for row, record in zip(at.tolist(), self._records(columns, at), strict=True):
            before = dict(self.columns.causes)
            try:
                value = each(record)
                made.append(None if value is None else pa.scalar(value, kind).as_py())
            except NO_ARRAY:
                self.columns.causes.update(before)
                self.odd[row] = True
                made.append([] if pa.types.is_list(kind) else None)
        if len(at) == self.n:
            return pa.array(made, kind)
        index = np.arange(self.n)
        index[at] = self.n + np.arange(len(at))
        both = pa.concat_arrays([found.values, pa.array(made, kind)])
        return both.take(pa.array(index))

    def _identity(self, member: Any, seq: Any) -> Any:
        if self.columns.id_parts > 1:
            nothing = Found(pa.nulls(self.n, pa.string()), ~cell_parsing.none(self.n))
            of_id = self.columns.of["id"]
            found = self._completed(nothing, of_id, self.columns._composite, pa.string())
        elif self.columns.of["id"]:
            found = self._name("id")
        else:
            found = pc.binary_join_element_wise(member, seq.cast(pa.string()), ":")
        self.odd |= ~cell_parsing.known(found)
        return found

    def _names(self, name: str) -> Any:
        columns = self.columns.of[name]
        nothing = cell_parsing.lists(np.zeros(self.n + 1, np.int64), pa.nulls(0, pa.string()))
        if not columns:
            return nothing
        whole = name == "parents" and self.columns.id_parts > 1
        array = self._array(columns[0]) if len(columns) == 1 and not whole else None
        separated = self.columns.separator is not None
        found = None if array is None else cell_parsing.name_lists(array, separated)
        found = found or Found(nothing, ~cell_parsing.none(self.n))
        if name == "parents" and array is not None:
            found = found._replace(left=found.left | self._to_look_at(array))
        return self._completed(
            found, columns, lambda record: self.columns._names(record, name), TEXTS
        )

    def _to_look_at(self, array: Any) -> Bools:
        """Return a mask of causes that may be null, a list or a number (CSV)."""
        text = self.columns.text_causes
        if text is None or not pa.types.is_string(array.type):
            return cell_parsing.none(self.n)
        return cell_parsing.mask(pc.match_substring_regex(array, doubtful(text.whole)))

    def _clocks(self) -> list[dict[str, int] | None] | None:
        of = self.columns.of
        both = bool(of["clock_members"] and of["clock_counts"])
        columns = [*of["clock_members"][:1], *of["clock_counts"][:1]] if both else of["clock"][:1]
        if not columns or all(self._is_null(column) for column in columns):
            return None
        clocks: list[dict[str, int] | None] = []
        at = np.arange(self.n)
        for row, record in enumerate(self._records(columns, at)):
            clock = None
            if not self.odd[row]:
                try:
                    clock = self.columns._clock(record)
                    pa.array(list(clock or ()), pa.string())
                except NO_ARRAY:
                    self.odd[row], clock = True, None
            clocks.append(clock)
        return clocks

    def _time(self, name: str) -> Any:
        columns = self.columns.of[name][:1]
        if not columns:
            return pa.nulls(self.n, pa.int64())
        array = self._array(columns[0])
        unit = self.columns.unit
        # The guessed unit is reported only if a good row has a numeric time.
        found = (
            None
            if array is None
            else cell_parsing.times(cell_parsing.unless(array, self.odd), unit)
        )
        if found is None:
            nothing = pa.nulls(self.n, pa.int64())
            found = Times(nothing, ~cell_parsing.none(self.n), cell_parsing.none(self.n), False)
        self.columns.unreadable_times += int(np.count_nonzero(found.unreadable))
        if found.numbers:
            self.columns.sizes.note(found.values, unit)
            if self.columns._by_size:
                self.columns.guessed_unit = unit
        return self._completed(
            Found(found.values, found.left),
            columns,
            lambda record: self.columns._time(record, name),
            pa.int64(),
        )

    # --- the cells of a column ------------------------------------------------------------

    def _records(self, columns: Sequence[str], at: Ints) -> Iterator[dict[str, Any]]:
        lists = [self._list(column) for column in columns]
        for row in at.tolist():
            yield {column: values[row] for column, values in zip(columns, lists, strict=True)}

    def _list(self, column: str) -> list[Any]:
        if column not in self._lists:
            if column in self.columns.expressions and not self._is_there(column):
                values = self._found(column)
            elif self.block.records is not None:
                values = [record.get(column) for record in self.block.records]
            elif column in self.block.batch.schema.names:
                values = blocks.cells(blocks.as_read(self.block.batch.column(column)))
            else:
                values = [None] * self.n
            self._lists[column] = values
        return self._lists[column]

    def _is_there(self, column: str) -> bool:
        return self.block.records is None and column in self.block.batch.schema.names

    def _found(self, expression: str) -> list[Any]:
        """Return the results of an expression; a key with its text has priority."""
        if self.block.records is not None:
            records = self.block.records
        else:
            names = expressions.columns_in(expression, self.block.batch.schema.names)
            records = blocks.records(self.block.batch.select(names))
        found = [
            record[expression] if expression in record else expressions.evaluate(expression, record)
            for record in records
        ]
        for value in found:
            self.columns.note_found(expression, value)
        return found

    def _array(self, column: str) -> Any:
        """Return the cells of a column as an Arrow array; None without a common type."""
        if column not in self._cells:
            if self.block.records is not None or column in self.columns.expressions:
                self._cells[column] = cell_parsing.array_of(self._list(column))
            elif column in self.block.batch.schema.names:
                self._cells[column] = self.block.batch.column(column)
            else:
                self._cells[column] = pa.nulls(self.n)
        return self._cells[column]

    def _is_null(self, column: str) -> bool:
        array = self._array(column)
        return array is not None and array.null_count == self.n
