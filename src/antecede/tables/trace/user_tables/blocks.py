"""Block readers of Parquet, CSV and JSON lines.

`read_csv_rows` and `read_json_rows` define the rows of a file; blocks contain the same rows. Arrow
parses CSV blocks like Python's csv module if they have no quotes, stray carriage returns or invalid
bytes, after lines with another number of cells are removed. From the first other block on, the file
is read row by row. Python parses JSON lines: Arrow's reader loses absent keys, numbers beyond 64
bits, and values of several types.
"""

from __future__ import annotations

import csv
import io
import itertools
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.csv
import pyarrow.parquet as pq

from antecede.errors import FormatError, InputError
from antecede.formatting import pluralize
from antecede.tables.trace import text
from antecede.tables.trace.schema import Quarantined

pa: Any = pyarrow  # its stubs know too few of the types that meet here
BLOCK_BYTES = 1 << 22
BLOCK_ROWS = 16_384
PARQUET_ROWS = 16_384
MAX_CLEAN_LINE = 100_000
"""Limit of a line for Arrow; Python's csv module rejects longer cells."""

Ints = npt.NDArray[np.int64]


class TableBlock(NamedTuple):
    """Consecutive rows, as an Arrow batch or as records, and bad records."""

    batch: Any = None
    records: Sequence[dict[str, Any]] | None = None
    lines: Ints | None = None
    """Line of each row (None: Parquet)."""
    bad: Sequence[tuple[int, Quarantined]] = ()
    """Bad records, each with the number of good rows before it."""
    is_text: bool = False
    """True if the batch comes from a text file."""

    @property
    def rows(self) -> int:
        """Number of good rows."""
        return len(self.records) if self.records is not None else int(self.batch.num_rows)

    def slice(self, first: int, rows: int) -> TableBlock:
        """Return a range of the good rows."""
        end = first + rows
        return TableBlock(
            None if self.batch is None else self.batch.slice(first, rows),
            None if self.records is None else self.records[first:end],
            None if self.lines is None else self.lines[first:end],
            (),
            self.is_text,
        )

    def to_records(self, rows: int | None = None) -> Sequence[dict[str, Any]]:
        """Return the first rows (None: all) as records."""
        if self.records is not None:
            return self.records if rows is None else self.records[:rows]
        return batch_to_records(self.batch if rows is None else self.batch.slice(0, rows))


def parquet(path: Path, groups: Sequence[int] | None = None) -> Iterator[TableBlock]:
    """Yield the rows of a Parquet file, or of some row groups."""
    for batch in parquet_batches(path, groups):
        names = batch.schema.names
        if len(set(names)) < len(names):  # records have unique names
            yield TableBlock(records=batch_to_records(batch), batch=batch)
        else:
            yield TableBlock(batch)


def read_json_lines(path: Path) -> Iterator[TableBlock]:
    """Yield the objects of a JSON lines file."""
    return gather_rows(read_json_rows(path))


def gather_rows(rows: Iterator[TextRow | Quarantined]) -> Iterator[TableBlock]:
    """Yield rows of text as blocks of records."""
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    bad: list[tuple[int, Quarantined]] = []
    broken: InputError | None = None
    while broken is None:
        try:
            row = next(rows, None)
        except InputError as error:  # raised after the rows before it
            broken, row = error, None
        if isinstance(row, Quarantined):
            bad.append((len(records), row))
        elif row is not None:
            records.append(row.record)
            lines.append(row.line)
        if row is None or len(records) >= BLOCK_ROWS or len(bad) >= BLOCK_ROWS:
            if records or bad:
                yield TableBlock(None, records, np.array(lines, np.int64), bad)
            records, lines, bad = [], [], []
        if row is None:
            break
    if broken is not None:
        raise broken


def read_csv(path: Path, delimiter: str) -> Iterator[TableBlock]:
    """Yield the rows of a CSV file."""
    names: list[str] | None = None
    done = 0
    for data in _read_pieces(path):
        lines = _CsvLines.from_bytes(data, delimiter, done)
        if lines is None:
            break
        header = names or lines.take_header(path)
        if header is not None:
            block = lines.to_block(header, path) if len(set(header)) == len(header) else None
            if block is None:
                break
            yield block
        names = header
        done += lines.count
    else:
        return
    yield from gather_rows(read_csv_rows(path, delimiter, names, done))


def _read_pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, cut at line ends; b"" if the rest must be read row by row."""
    rest = b""
    with text.open_bytes(path) as file:
        while True:
            try:
                part = cast("io.BufferedReader", file).read(BLOCK_BYTES)
            except (EOFError, OSError, zlib.error):
                yield b""
                return
            if not part:
                if rest:
                    yield rest + b"\n"
                return
            rest += part
            cut = rest.rfind(b"\n") + 1
            if cut:
                yield rest[:cut]
                rest = rest[cut:]
            elif len(rest) > MAX_CLEAN_LINE:
                yield b""
                return


class _CsvLines:
    """Lines of a CSV file without quoting."""

    @classmethod
    def from_bytes(cls, data: bytes, delimiter: str, done: int) -> _CsvLines | None:
        """Return the lines of bytes after `done` lines; None if they need the csv module."""
        if not done:
            data = data.removeprefix(b"\xef\xbb\xbf")
        data = data.replace(b"\r\n", b"\n")
        if not data or any(mark in data for mark in (b'"', b"\r", b"\0")):
            return None
        if not data.isascii():
            try:
                data.decode()
            except UnicodeDecodeError:
                return None
        lines = cls(data, delimiter, done)
        return lines if lines.length.max() <= MAX_CLEAN_LINE else None

    def __init__(self, data: bytes, delimiter: str, done: int) -> None:
        self.data, self.delimiter, self.done = data, delimiter, done
        raw = np.frombuffer(data, np.uint8)
        self.end = np.flatnonzero(raw == ord("\n"))
        self.start = np.concatenate([[0], self.end[:-1] + 1])
        self.length = self.end - self.start
        marks = np.flatnonzero(raw == ord(delimiter))
        self.marks = np.searchsorted(marks, self.end) - np.searchsorted(marks, self.start)
        self.count = len(self.end)
        self.blank = self.length == self.marks
        """Mask of lines with only empty cells [lines]."""

    def get_text(self, line: int) -> str:
        return self.data[self.start[line] : self.end[line]].decode()

    def take_header(self, path: Path) -> list[str] | None:
        """Return the names in the first filled line, and mark it as blank."""
        filled = np.flatnonzero(~self.blank)
        if not len(filled):
            return None
        line = int(filled[0])
        self.blank[: line + 1] = True
        cells = self.get_text(line).split(self.delimiter)
        return parse_header(cells, path, self.done + line + 1)

    def to_block(self, names: list[str], path: Path) -> TableBlock | None:
        """Return the rows; None if Arrow rejects them."""
        wrong = ~self.blank & (self.marks != len(names) - 1)
        good = ~self.blank & ~wrong
        at = np.flatnonzero(good)
        before = np.cumsum(good)
        bad = [
            (int(before[line]), self._quarantine_line(int(line), len(names), path))
            for line in np.flatnonzero(wrong)
        ]
        data = self.data
        if len(at) < self.count:
            data = b"".join(self.data[self.start[k] : self.end[k] + 1] for k in at)
        try:
            table = _parse_with_arrow(data, names, self.delimiter)
        except pa.ArrowInvalid:
            return None
        return (
            TableBlock(table, None, at + (self.done + 1), bad, True)
            if len(table) == len(at)
            else None
        )

    def _quarantine_line(self, line: int, columns: int, path: Path) -> Quarantined:
        number = self.done + line + 1
        return quarantine_length(
            self.get_text(line).split(self.delimiter), columns, path, number, self.delimiter
        )


def _parse_with_arrow(data: bytes, names: list[str], delimiter: str) -> Any:
    csv: Any = pyarrow.csv
    if not data:
        return pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(names), names=names)
    table = csv.read_csv(
        pa.py_buffer(data),
        read_options=csv.ReadOptions(
            column_names=names, block_size=len(data) + 1, use_threads=False
        ),
        parse_options=csv.ParseOptions(
            delimiter=delimiter, quote_char=False, double_quote=False, ignore_empty_lines=False
        ),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    (batch,) = table.combine_chunks().to_batches() or [None]
    return _parse_with_arrow(b"", names, delimiter) if batch is None else batch


# --- rows, one at a time --------------------------------------------------------------------------


class TextRow(NamedTuple):
    """Row of a text file: its line, and its cells by name."""

    line: int
    record: dict[str, Any]


def parquet_batches(
    path: Path, groups: Sequence[int] | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the batches of a file, or of some row groups. Raise FormatError if unreadable."""
    chosen = None if groups is None else list(groups)
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=PARQUET_ROWS, row_groups=chosen)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"invalid Parquet file: {error}", path=str(path)) from error


def batch_to_records(batch: pyarrow.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch: timestamps as ISO text, text as UTF-8."""
    columns = {
        name: column_to_list(normalize_column(column))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ] or [{}] * batch.num_rows


def column_to_list(column: Any) -> list[Any]:
    """Return the values of a column, as text if one exceeds Python's range (dates)."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = column.cast(pa.string()).to_pylist()
    return found


def normalize_column(column: Any) -> Any:
    """Return a column with timestamps as ISO text and invalid UTF-8 as backslash escapes."""
    if pa.types.is_timestamp(column.type):
        # Arrow stores times with a zone as UTC, and text without a zone is read as UTC.
        return column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raw = column.cast(pa.large_binary()).to_pylist()
            made = [None if one is None else text.decode(one) for one in raw]
            return pa.array(made, column.type)
    return column


def read_json_rows(path: Path) -> Iterator[TextRow | Quarantined]:
    """Yield the objects and bad lines of a file."""
    for number, line in text.read_lines(path):
        if not line.strip():
            continue
        record = text.parse_json_object(line)
        if isinstance(record, str):
            yield Quarantined(str(path), number, None, record, text.shorten(line))
        else:
            yield TextRow(number, record)


def read_csv_rows(
    path: Path, delimiter: str, names: list[str] | None = None, skip: int = 0
) -> Iterator[TextRow | Quarantined]:
    """Yield the records and bad lines of a CSV file.

    `names`: header of an already read part of `skip` lines (None: the first record).
    """
    for line, cells in _read_csv_records(path, delimiter, skip):
        if isinstance(cells, Quarantined):
            if names is None:
                raise FormatError(cells.reason, path=str(path), line=line)
            yield cells
        elif not any(cells):
            continue
        elif names is None:
            names = parse_header(cells, path, line)
        elif len(cells) != len(names):
            yield quarantine_length(cells, len(names), path, line, delimiter)
        else:
            yield TextRow(line, dict(zip(names, cells, strict=True)))


def quarantine_length(
    cells: list[str], columns: int, path: Path, line: int, delimiter: str
) -> Quarantined:
    """Return a quarantined record with another number of cells than the header."""
    reason = (
        f"{pluralize(len(cells), 'cell')}, but the first line has {pluralize(columns, 'column')}"
    )
    return Quarantined(str(path), line, None, reason, text.shorten(delimiter.join(cells)))


def parse_header(cells: list[str], path: Path, line: int) -> list[str]:
    """Return the names of the columns. Raise FormatError if two are equal."""
    names = [name.strip() for name in cells]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        message = f"two columns are named {twice!r}; rename one of them"
        raise FormatError(message, path=str(path), line=line)
    return names


def _read_csv_records(
    path: Path, delimiter: str, skip: int
) -> Iterator[tuple[int, list[str] | Quarantined]]:
    """Yield (first line, cells) of each record, or the bad line.

    If a quote is never closed, only its own line is bad; the next lines are read again.
    """
    source = _RewindableLines(itertools.islice(text.read_lines(path), skip, None))
    while True:
        # Within quotes the csv module reads further lines, whose ends belong to the value.
        table = csv.reader((line + "\n" for _, line in source), delimiter=delimiter)
        problem = ""
        while not problem:
            source.record_lines.clear()
            try:
                cells = next(table)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"invalid CSV: {error}"
            else:
                if source.is_at_end:
                    problem = "invalid CSV: a quote opens here and never closes"
                else:
                    yield source.record_lines[0][0], cells
        number, line = source.record_lines[0]
        source.rewind()
        yield number, Quarantined(str(path), number, None, problem, text.shorten(line))


class _RewindableLines:
    """Iterator over numbered lines that can rewind to the second line of a record."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._waiting: deque[tuple[int, str]] = deque()
        self.record_lines: list[tuple[int, str]] = []
        """Lines of the current record; the caller clears the list."""
        self.is_at_end = False
        """True if a line was requested after the last one."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        try:
            found = self._waiting.popleft() if self._waiting else next(self._lines)
        except StopIteration:
            self.is_at_end = True
            raise
        self.record_lines.append(found)
        return found

    def rewind(self) -> None:
        self._waiting.extendleft(reversed(self.record_lines[1:]))
        self.is_at_end = False
