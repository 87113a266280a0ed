"""Vectorized converter of blocks of a user's table to blocks of events.

`columns.Columns` is the reference. Here Arrow parses whole columns (`cell_parsing`) if the result
is the same. Other cells go to methods of `Columns`. A row with a rejected cell is odd and goes to
`Columns.convert`. Columns with counts come last, when the odd rows are known, so that no cell is
counted twice.
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
from antecede.tables.trace.user_tables.blocks import TableBlock
from antecede.tables.trace.user_tables.cell_parsing import (
    ARROW_ERRORS,
    TEXTS,
    Bools,
    ParsedCells,
    ParsedTimes,
)
from antecede.tables.trace.user_tables.chosen_columns import TIMES
from antecede.tables.trace.user_tables.columns import Columns
from antecede.tables.trace.user_tables.extra_columns import mark_csv_columns
from antecede.tables.trace.user_tables.list_separators import make_doubtful_pattern

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
ARROW_TYPES = {"string": pa.string(), "int64": pa.int64(), "list<string>": TEXTS}
ARROW_TYPES["list<int64>"] = pa.list_(pa.int64())
Ints = npt.NDArray[np.int64]


class Chunk(NamedTuple):
    """Consecutive events in the schema, before `file_order` is numbered."""

    events: Any
    extra: Any
    """Extra columns, as an Arrow batch or as records (None: not requested)."""


Piece = Chunk | tuple[Event | Quarantined, Any]
"""Events, or a single event or bad record with its extra columns."""


def pieces(block: TableBlock, columns: Columns, keep_extra: bool) -> Iterator[Piece]:
    """Yield the events and bad records of a block in order."""
    done = 0
    bad = list(block.bad)
    while done < block.rows:
        known = _count_known_rows(block, columns, done)
        part = block.slice(done, known)
        before = [(at - done, row) for at, row in bad if at < done + known]
        del bad[: len(before)]
        yield from _make_pieces(part, columns, keep_extra, before)
        done += known
        if done < block.rows:  # a row with a new column
            if bad and bad[0][0] == done:
                yield bad.pop(0)[1], None
                continue
            yield _convert_row(block.slice(done, 1), columns, keep_extra)
            done += 1
    yield from ((row, None) for _, row in bad)


def block_to_rows(block: TableBlock, columns: Columns) -> Iterator[Piece]:
    """Yield the same items as `pieces`, row by row."""
    bad = list(block.bad)
    of_text = block.batch is None or block.is_text
    for at, record in enumerate(block.to_records()):
        while bad and bad[0][0] == at:
            yield bad.pop(0)[1], None
        line = None if block.lines is None else int(block.lines[at])
        yield columns.convert(record, line), record if of_text else block.batch.slice(at, 1)
    yield from ((row, None) for _, row in bad)


def _count_known_rows(block: TableBlock, columns: Columns, first: int) -> int:
    """Return the number of rows from `first` with only known columns."""
    names = columns.known.keys()
    if block.records is None:
        return block.rows - first if names >= set(block.batch.schema.names) else 0
    for at in range(first, block.rows):
        if not block.records[at].keys() <= names:
            return at - first
    return block.rows - first


def _convert_row(block: TableBlock, columns: Columns, keep_extra: bool) -> Piece:
    (record,) = block.to_records()
    line = None if block.lines is None else int(block.lines[0])
    mine = _get_extra(block) if keep_extra else None
    return columns.convert(record, line), mine[0] if isinstance(mine, list) else mine


def _get_extra(block: TableBlock) -> Any:
    if block.batch is None:
        return block.records
    return mark_csv_columns(block.batch) if block.is_text else block.batch


def _make_pieces(
    block: TableBlock, columns: Columns, keep_extra: bool, bad: Sequence[tuple[int, Quarantined]]
) -> Iterator[Piece]:
    if not block.rows:
        yield from ((row, None) for _, row in bad)
        return
    events, odd = _BlockConverter(block, columns).convert()
    stops = [(int(at), None) for at in np.flatnonzero(odd)] + [(at, row) for at, row in bad]
    done = 0
    for at, row in sorted(stops, key=lambda stop: (stop[0], stop[1] is None)):
        if at > done:
            yield _make_chunk(block, events, keep_extra, done, at - done)
        done = at
        if row is not None:
            yield row, None
        else:
            yield _convert_row(block.slice(at, 1), columns, keep_extra)
            done += 1
    if done < block.rows:
        yield _make_chunk(block, events, keep_extra, done, block.rows - done)


def _make_chunk(block: TableBlock, events: Any, keep_extra: bool, first: int, rows: int) -> Chunk:
    mine = _get_extra(block.slice(first, rows)) if keep_extra else None
    return Chunk(events.slice(first, rows), mine)


class _BlockConverter:
    """Converter of one block; odd rows are left to `Columns.convert`."""

    def __init__(self, block: TableBlock, columns: Columns) -> None:
        self.block, self.columns, self.n = block, columns, block.rows
        self.odd: Bools = cell_parsing.make_false_mask(block.rows)
        self._cells: dict[str, Any] = {}
        self._lists: dict[str, list[Any]] = {}

    def convert(self) -> tuple[Any, Bools]:
        of: dict[str, Any] = {}
        for name in ("run", "member", "role", "text"):
            of[name] = self._make_name_column(name)
        if self.columns.options.needs_run:
            self.odd |= ~cell_parsing.find_valid(of["run"])
        kind = self._make_name_column("kind")
        of["kind"] = pc.if_else(
            pc.fill_null(pc.is_in(kind, pa.array(KINDS)), False), kind, pa.scalar(EVENT)
        )
        for name in ("seq", "ingest"):
            of[name] = self._make_number_column(name)
        clocks = self._read_clocks()
        of["clock_members"], of["clock_counts"] = cell_parsing.clocks_to_lists(clocks, self.n)
        of["seq"] = cell_parsing.fill_seq_from_clocks(of["seq"], of["member"], clocks)
        of["id"] = self._make_id_column(of["member"], of["seq"])
        of["topics"] = self._make_names_column(
            "topics"
        )  # before counted columns, because it may add odd rows
        of["causes"] = self._make_names_column("causes")
        for name in TIMES:
            of[name] = self._make_time_column(name)
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

    def _make_name_column(self, name: str) -> Any:
        method = (
            self._read_plain_name if name in ("kind", "role", "text") else self.columns._read_name
        )
        return self._make_column(name, cell_parsing.parse_names, method, pa.string())

    def _read_plain_name(self, record: dict[str, Any], name: str) -> str | None:
        return name_of(self.columns._read_first(record, name))

    def _make_number_column(self, name: str) -> Any:
        return self._make_column(
            name, cell_parsing.parse_numbers, self.columns._read_number, pa.int64()
        )

    def _make_column(
        self,
        name: str,
        convert: Callable[[Any], ParsedCells | None],
        each: Callable[[dict[str, Any], str], Any],
        kind: Any,
    ) -> Any:
        """Return a column with one cell per row; rows with a rejected cell become odd."""
        columns = self.columns.chosen[name][:1]
        if not columns:
            return pa.nulls(self.n, kind)
        array = self._get_array(columns[0])
        found = None if array is None else convert(array)
        found = found or ParsedCells(pa.nulls(self.n, kind), ~cell_parsing.make_false_mask(self.n))
        return self._fill_unparsed(found, columns, lambda record: each(record, name), kind)

    def _fill_unparsed(
        self,
        found: ParsedCells,
        columns: Sequence[str],
        each: Callable[[dict[str, Any]], Any],
        kind: Any,
    ) -> Any:
        """Return the values, completed by those of the unparsed cells."""
        at = np.flatnonzero(found.unparsed & ~self.odd)
        if not len(at):
            return found.values
        made: list[Any] = []
        for row, record in zip(at.tolist(), self._read_records(columns, at), strict=True):
            before = dict(self.columns.cause_counts)
            try:
                value = each(record)
                made.append(None if value is None else pa.scalar(value, kind).as_py())
            except ARROW_ERRORS:
                self.columns.cause_counts.update(before)
                self.odd[row] = True
                made.append([] if pa.types.is_list(kind) else None)
        if len(at) == self.n:
            return pa.array(made, kind)
        index = np.arange(self.n)
        index[at] = self.n + np.arange(len(at))
        both = pa.concat_arrays([found.values, pa.array(made, kind)])
        return both.take(pa.array(index))

    def _make_id_column(self, member: Any, seq: Any) -> Any:
        if self.columns.id_parts > 1:
            nothing = ParsedCells(
                pa.nulls(self.n, pa.string()), ~cell_parsing.make_false_mask(self.n)
            )
            of_id = self.columns.chosen["id"]
            found = self._fill_unparsed(
                nothing, of_id, self.columns._make_composite_id, pa.string()
            )
        elif self.columns.chosen["id"]:
            found = self._make_name_column("id")
        else:
            found = pc.binary_join_element_wise(member, seq.cast(pa.string()), ":")
        self.odd |= ~cell_parsing.find_valid(found)
        return found

    def _make_names_column(self, name: str) -> Any:
        columns = self.columns.chosen[name]
        nothing = cell_parsing.make_lists(np.zeros(self.n + 1, np.int64), pa.nulls(0, pa.string()))
        if not columns:
            return nothing
        whole = name == "causes" and self.columns.id_parts > 1
        array = self._get_array(columns[0]) if len(columns) == 1 and not whole else None
        separated = self.columns.list_separator is not None
        found = None if array is None else cell_parsing.parse_name_lists(array, separated)
        found = found or ParsedCells(nothing, ~cell_parsing.make_false_mask(self.n))
        if name == "causes" and array is not None:
            found = found._replace(unparsed=found.unparsed | self._find_doubtful(array))
        return self._fill_unparsed(
            found, columns, lambda record: self.columns._read_names(record, name), TEXTS
        )

    def _find_doubtful(self, array: Any) -> Bools:
        """Return a mask of causes that may be null, a list or a number (CSV)."""
        text = self.columns.text_causes
        if text is None or not pa.types.is_string(array.type):
            return cell_parsing.make_false_mask(self.n)
        return cell_parsing.to_mask(
            pc.match_substring_regex(array, make_doubtful_pattern(text.has_whole_ids))
        )

    def _read_clocks(self) -> list[dict[str, int] | None] | None:
        of = self.columns.chosen
        both = bool(of["clock_members"] and of["clock_counts"])
        columns = [*of["clock_members"][:1], *of["clock_counts"][:1]] if both else of["clock"][:1]
        if not columns or all(self._is_null(column) for column in columns):
            return None
        clocks: list[dict[str, int] | None] = []
        at = np.arange(self.n)
        for row, record in enumerate(self._read_records(columns, at)):
            clock = None
            if not self.odd[row]:
                try:
                    clock = self.columns._read_clock(record)
                    pa.array(list(clock or ()), pa.string())
                except ARROW_ERRORS:
                    self.odd[row], clock = True, None
            clocks.append(clock)
        return clocks

    def _make_time_column(self, name: str) -> Any:
        columns = self.columns.chosen[name][:1]
        if not columns:
            return pa.nulls(self.n, pa.int64())
        array = self._get_array(columns[0])
        unit = self.columns.unit
        # The guessed unit is reported only if a good row has a numeric time.
        found = (
            None
            if array is None
            else cell_parsing.parse_times(cell_parsing.mask_array(array, self.odd), unit)
        )
        if found is None:
            nothing = pa.nulls(self.n, pa.int64())
            found = ParsedTimes(
                nothing,
                ~cell_parsing.make_false_mask(self.n),
                cell_parsing.make_false_mask(self.n),
                False,
            )
        self.columns.unreadable_times += int(np.count_nonzero(found.unreadable))
        if found.has_numbers:
            self.columns.time_sizes.add(found.values, unit)
            if self.columns._is_unit_guessed:
                self.columns.guessed_unit = unit
        return self._fill_unparsed(
            ParsedCells(found.values, found.unparsed),
            columns,
            lambda record: self.columns._read_time(record, name),
            pa.int64(),
        )

    # --- the cells of a column ------------------------------------------------------------

    def _read_records(self, columns: Sequence[str], at: Ints) -> Iterator[dict[str, Any]]:
        lists = [self._get_list(column) for column in columns]
        for row in at.tolist():
            yield {column: values[row] for column, values in zip(columns, lists, strict=True)}

    def _get_list(self, column: str) -> list[Any]:
        if column not in self._lists:
            if column in self.columns.expressions and not self._is_batch_column(column):
                values = self._evaluate(column)
            elif self.block.records is not None:
                values = [record.get(column) for record in self.block.records]
            elif column in self.block.batch.schema.names:
                values = blocks.column_to_list(
                    blocks.normalize_column(self.block.batch.column(column))
                )
            else:
                values = [None] * self.n
            self._lists[column] = values
        return self._lists[column]

    def _is_batch_column(self, column: str) -> bool:
        return self.block.records is None and column in self.block.batch.schema.names

    def _evaluate(self, expression: str) -> list[Any]:
        """Return the results of an expression; a key with its text has priority."""
        if self.block.records is not None:
            records = self.block.records
        else:
            names = expressions.find_reachable_columns(expression, self.block.batch.schema.names)
            records = blocks.batch_to_records(self.block.batch.select(names))
        found = [
            record[expression] if expression in record else expressions.evaluate(expression, record)
            for record in records
        ]
        for value in found:
            self.columns.mark_found(expression, value)
        return found

    def _get_array(self, column: str) -> Any:
        """Return the cells of a column as an Arrow array; None without a common type."""
        if column not in self._cells:
            if self.block.records is not None or column in self.columns.expressions:
                self._cells[column] = cell_parsing.list_to_array(self._get_list(column))
            elif column in self.block.batch.schema.names:
                self._cells[column] = self.block.batch.column(column)
            else:
                self._cells[column] = pa.nulls(self.n)
        return self._cells[column]

    def _is_null(self, column: str) -> bool:
        array = self._get_array(column)
        return array is not None and array.null_count == self.n
