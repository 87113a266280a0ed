"""Rows of tables one at a time: Parquet, CSV, JSON lines, as the user has them.

`antecede.tables.trace.user_tables.blocks` reads the same files in blocks of columns; what it cannot
take so is read here, and tests hold both to the same rows.
"""

from __future__ import annotations

import csv
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from antecede.errors import FormatError
from antecede.tables.trace import text
from antecede.tables.trace.schema import Quarantined

PARQUET_ROWS = 16_384


class Row(NamedTuple):
    """A row of text: its line, and its cells by name."""

    line: int
    record: dict[str, Any]


def parquet_batches(path: Path, groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one file, or of some of its row groups.

    Raises FormatError where it is not readable.
    """
    chosen = None if groups is None else list(groups)
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=PARQUET_ROWS, row_groups=chosen)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"not readable as Parquet: {error}", path=str(path)) from error


def records(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch as they are read: time stamps as ISO text, text as UTF-8."""
    columns = {
        name: cells(as_read(column))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ] or [{}] * batch.num_rows


def cells(column: Any) -> list[Any]:
    """Return the values of a column; the text of all where Python cannot hold one (a far date)."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = column.cast(pa.string()).to_pylist()
    return found


def as_read(column: Any) -> Any:
    """Return a column with time stamps as ISO text, which keeps nanoseconds and the zone.

    Text that is no UTF-8, which Parquet does not forbid, becomes backslash escapes.
    """
    if pa.types.is_timestamp(column.type):
        # Arrow keeps times with a zone as UTC, which is what text without a zone means here.
        return column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raw = column.cast(pa.large_binary()).to_pylist()
            made = [None if one is None else text.decode(one) for one in raw]
            return pa.array(made, column.type)
    return column


def json_lines(path: Path) -> Iterator[Row | Quarantined]:
    """Yield the objects of a file, or what is wrong with a line."""
    for number, line in text.lines(path):
        if not line.strip():
            continue
        record = text.json_object(line)
        if isinstance(record, str):
            yield Quarantined(str(path), number, None, record, text.shorten(line))
        else:
            yield Row(number, record)


def delimited(
    path: Path, delimiter: str, names: list[str] | None = None, skip: int = 0
) -> Iterator[Row | Quarantined]:
    """Yield the records of a CSV file, or what is wrong with a line; the first one is the header.

    Where a part was read already: `names` of its header, and how many lines to `skip`.
    """
    for line, cells in _records(path, delimiter, skip):
        if isinstance(cells, Quarantined):
            if names is None:
                raise FormatError(cells.reason, path=str(path), line=line)
            yield cells
        elif not any(cells):
            continue
        elif names is None:
            names = header(cells, path, line)
        elif len(cells) != len(names):
            yield of_other_length(cells, len(names), path, line, delimiter)
        else:
            yield Row(line, dict(zip(names, cells, strict=True)))


def of_other_length(
    cells: list[str], columns: int, path: Path, line: int, delimiter: str
) -> Quarantined:
    """Return a record with another number of cells than the header has columns."""
    reason = f"{len(cells)} cells, but the first line names {columns} columns"
    return Quarantined(str(path), line, None, reason, text.shorten(delimiter.join(cells)))


def header(cells: list[str], path: Path, line: int) -> list[str]:
    """Return the names of the columns; FormatError where two are the same."""
    names = [name.strip() for name in cells]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        message = f"two columns are called {twice!r}; rename one of them"
        raise FormatError(message, path=str(path), line=line)
    return names


def _records(
    path: Path, delimiter: str, skip: int
) -> Iterator[tuple[int, list[str] | Quarantined]]:
    """Yield (first line, cells) of each record, or what is wrong with that line.

    A quote that opens and never closes would swallow all rows after it: then only its own
    line is bad, and reading goes on with the next one.
    """
    source = _Again(itertools.islice(text.lines(path), skip, None))
    while True:
        # The csv module asks for the next line within quotes; the line ends belong to the value.
        table = csv.reader((line + "\n" for _, line in source), delimiter=delimiter)
        problem = ""
        while not problem:
            source.taken.clear()
            try:
                cells = next(table)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"not CSV: {error}"
            else:
                if source.ended:
                    problem = "not CSV: a quote opens here and never closes"
                else:
                    yield source.taken[0][0], cells
        number, line = source.taken[0]
        source.go_back()
        yield number, Quarantined(str(path), number, None, problem, text.shorten(line))


class _Again:
    """Numbered lines, of which those of one record can be had again but for its first."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._waiting: deque[tuple[int, str]] = deque()
        self.taken: list[tuple[int, str]] = []
        """Lines since the caller last emptied this."""
        self.ended = False
        """Whether a line was asked for when there was none."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        try:
            found = self._waiting.popleft() if self._waiting else next(self._lines)
        except StopIteration:
            self.ended = True
            raise
        self.taken.append(found)
        return found

    def go_back(self) -> None:
        """Offer the taken lines again, without the first."""
        self._waiting.extendleft(reversed(self.taken[1:]))
        self.ended = False
