"""Tables in blocks of columns: Parquet, CSV, JSON lines, read by Arrow where it reads the same.

Theory of operation
-------------------
`tables.rows` defines what the rows of a file are; here the same rows come in blocks. Parquet is
columns already. CSV is cut into blocks at line ends; a block without quotes, carriage returns and
odd bytes is what Arrow and Python's csv module read alike, line by line, so Arrow reads it, and
lines of another number of cells are taken out first. From the first block with anything else the
rest of the file is read as rows. JSON lines are parsed a line at a time: which keys a record
lacks, numbers beyond 64 bits and values of several types in one column are lost by Arrow's reader.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.csv

from antecede.errors import InputError
from antecede.tables.trace import text
from antecede.tables.trace.schema import Quarantined
from antecede.tables.trace.user_tables import rows as table_rows

pa: Any = pyarrow  # its stubs know too few of the types that meet here
BLOCK_BYTES = 1 << 22
BLOCK_ROWS = 16_384
MAX_CLEAN_LINE = 100_000
"""Longer cells are refused by Python's csv module."""

Ints = npt.NDArray[np.int64]


class Block(NamedTuple):
    """Rows that stand behind each other, as an Arrow batch or as records; and bad ones."""

    batch: Any = None
    records: Sequence[dict[str, Any]] | None = None
    lines: Ints | None = None
    """Line of each row, where the file has lines."""
    bad: Sequence[tuple[int, Quarantined]] = ()
    """What could not be read, and how many rows of the block stand before it."""
    as_text: bool = False
    """Whether the batch comes from text, which the user's own columns note."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.records) if self.records is not None else int(self.batch.num_rows)

    def sliced(self, first: int, rows: int) -> Block:
        """Return some of the rows, without the bad ones."""
        end = first + rows
        return Block(
            None if self.batch is None else self.batch.slice(first, rows),
            None if self.records is None else self.records[first:end],
            None if self.lines is None else self.lines[first:end],
            (),
            self.as_text,
        )

    def as_records(self, rows: int | None = None) -> Sequence[dict[str, Any]]:
        """Return the first rows (all) as the row path reads them."""
        if self.records is not None:
            return self.records if rows is None else self.records[:rows]
        return table_rows.records(self.batch if rows is None else self.batch.slice(0, rows))


def parquet(path: Path, groups: Sequence[int] | None = None) -> Iterator[Block]:
    """Yield the rows of a Parquet file, or of some of its row groups."""
    for batch in table_rows.parquet_batches(path, groups):
        names = batch.schema.names
        if len(set(names)) < len(names):  # a record has each name once
            yield Block(records=table_rows.records(batch), batch=batch)
        else:
            yield Block(batch)


def json_lines(path: Path) -> Iterator[Block]:
    """Yield the objects of a file of JSON lines."""
    return gathered(table_rows.json_lines(path))


def gathered(rows: Iterator[table_rows.Row | Quarantined]) -> Iterator[Block]:
    """Yield rows of text as blocks of records."""
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    bad: list[tuple[int, Quarantined]] = []
    broken: InputError | None = None
    while broken is None:
        try:
            row = next(rows, None)
        except InputError as error:  # what was read before it counts
            broken, row = error, None
        if isinstance(row, Quarantined):
            bad.append((len(records), row))
        elif row is not None:
            records.append(row.record)
            lines.append(row.line)
        if row is None or len(records) >= BLOCK_ROWS or len(bad) >= BLOCK_ROWS:
            if records or bad:
                yield Block(None, records, np.array(lines, np.int64), bad)
            records, lines, bad = [], [], []
        if row is None:
            break
    if broken is not None:
        raise broken


def delimited(path: Path, delimiter: str) -> Iterator[Block]:
    """Yield the rows of a CSV file."""
    names: list[str] | None = None
    done = 0
    for data in _pieces(path):
        lines = _Lines.of(data, delimiter, done)
        if lines is None:
            break
        header = names or lines.header(path)
        if header is not None:
            block = lines.block(header, path) if len(set(header)) == len(header) else None
            if block is None:
                break
            yield block
        names = header
        done += lines.count
    else:
        return
    yield from gathered(table_rows.delimited(path, delimiter, names, done))


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, cut at line ends; b"" where it cannot be read on so."""
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


class _Lines:
    """Whole lines of a CSV file that hold nothing but cells and delimiters."""

    @classmethod
    def of(cls, data: bytes, delimiter: str, done: int) -> _Lines | None:
        """Return the lines of bytes that follow `done` lines; None where they hold more."""
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
        """[lines] those in which all cells are empty."""

    def text(self, line: int) -> str:
        """Return a line."""
        return self.data[self.start[line] : self.end[line]].decode()

    def header(self, path: Path) -> list[str] | None:
        """Return the names in the first line that has any, which is blank from now on."""
        filled = np.flatnonzero(~self.blank)
        if not len(filled):
            return None
        line = int(filled[0])
        self.blank[: line + 1] = True
        cells = self.text(line).split(self.delimiter)
        return table_rows.header(cells, path, self.done + line + 1)

    def block(self, names: list[str], path: Path) -> Block | None:
        """Return the rows; None where Arrow refuses them."""
        wrong = ~self.blank & (self.marks != len(names) - 1)
        good = ~self.blank & ~wrong
        at = np.flatnonzero(good)
        before = np.cumsum(good)
        bad = [
            (int(before[line]), self._of_other_length(int(line), len(names), path))
            for line in np.flatnonzero(wrong)
        ]
        data = self.data
        if len(at) < self.count:
            data = b"".join(self.data[self.start[k] : self.end[k] + 1] for k in at)
        try:
            table = _by_arrow(data, names, self.delimiter)
        except pa.ArrowInvalid:
            return None
        return (
            Block(table, None, at + (self.done + 1), bad, True) if len(table) == len(at) else None
        )

    def _of_other_length(self, line: int, columns: int, path: Path) -> Quarantined:
        number = self.done + line + 1
        return table_rows.of_other_length(
            self.text(line).split(self.delimiter), columns, path, number, self.delimiter
        )


def _by_arrow(data: bytes, names: list[str], delimiter: str) -> Any:
    """Return lines as a batch of texts."""
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
    return _by_arrow(b"", names, delimiter) if batch is None else batch
