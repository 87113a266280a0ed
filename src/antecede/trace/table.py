"""Tables with the user's own column names: Parquet (a file or a folder), CSV, JSON lines.

Rows are read in pieces, so a table may be larger than memory. Which column is which is told
from the first rows (`antecede.trace.columns`). Times given as numbers are taken in the unit
that their size tells, unless the user says it; times as text are ISO 8601, with or without a
zone (then UTC).
"""

from __future__ import annotations

import csv
import itertools
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from antecede.errors import FormatError, InputError
from antecede.trace import text
from antecede.trace.columns import USUAL, Columns
from antecede.trace.own_columns import Own, Place
from antecede.trace.reader import Detail, Item, ReadOptions
from antecede.trace.schema import Quarantined

SAMPLE_ROWS = 1000
PARQUET_ROWS = 16_384
DELIMITERS = ",\t;|"
JSON_LINES = {".jsonl", ".ndjson"}


class Row(NamedTuple):
    """One row: its line, its cells by name, and the row as the user has it."""

    line: int | None
    record: dict[str, Any]
    own: Own


class TableReader:
    """Reader of Parquet, CSV and JSON lines; see the module."""

    name = "table"
    uses = ("columns", "time_unit", "separator")

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize Parquet for certain; JSON lines and CSV less surely than other formats."""
        if path.is_dir():
            return 0.8 if any(part.suffix == ".parquet" for part in _files(path)) else 0.0
        if head.startswith(b"PAR1"):
            return 1.0
        first = _first_line(head)
        if first.startswith("{"):
            return 0.5 if _json_object(first) else 0.0
        if JSON_LINES & set(path.suffixes):
            return 0.4 if any(_json_object(line) for line in text.decode(head).split("\n")) else 0.0
        if {".csv", ".tsv"} & set(path.suffixes):
            return 0.6
        columns = {name.strip().lower() for name in first.split(_delimiter(first))}
        return 0.3 if len(columns) > 1 and columns & set(USUAL["id"]) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every row."""
        return (item for item, _ in self.read_with_own(path, options))

    def read_with_own(self, path: Path, options: ReadOptions) -> Iterator[tuple[Item, Own | None]]:
        """Yield every row, and what the user's own columns hold in it."""
        rows = self._rows(path)
        sample = list(_until(rows, SAMPLE_ROWS))
        found = [row.record for row in sample if not isinstance(row, Quarantined)]
        if not found:
            yield from ((row, None) for row in sample if isinstance(row, Quarantined))
            return
        columns = Columns(found, options, str(path), growing=_in_json(path))
        for row in itertools.chain(sample, rows):
            if isinstance(row, Quarantined):
                yield row, None
            else:
                yield columns.event(row.record, row.line), row.own
        columns.check_all_came()
        if names := columns.without_causes():
            yield Detail("without_causes", names), None
        for name, count in columns.causes.items():
            if count:
                yield Detail(name, count), None
        if columns.unreadable_times:
            yield Detail("unreadable_times", columns.unreadable_times), None

    def _rows(self, path: Path) -> Iterator[Row | Quarantined]:
        if path.is_dir():
            for part in _parts(path):
                yield from _parquet(part)
            return
        head = text.read_up_to(path, text.HEAD_BYTES)[0]
        if head.startswith(b"PAR1"):
            yield from _parquet(path)
            return
        try:
            if _in_json(path):
                yield from _json_lines(path)
            else:
                yield from _csv(path, _delimiter(_first_line(head)))
        except FormatError:
            raise
        except InputError as error:  # the file breaks off on that line
            if error.line is None:
                raise
            yield Quarantined(str(path), error.line, None, error.message, "")


def _first_line(head: bytes) -> str:
    return text.decode(head).lstrip("\ufeff \t\r\n").partition("\n")[0]


def _in_json(path: Path) -> bool:
    """Tell whether a table is JSON lines, which name their columns in each row."""
    if path.is_dir():
        return False
    if JSON_LINES & set(path.suffixes):
        return True
    return _first_line(text.read_up_to(path, text.HEAD_BYTES)[0]).startswith("{")


def _until(rows: Iterator[Row | Quarantined], count: int) -> Iterator[Row | Quarantined]:
    """Yield rows until `count` good ones have come."""
    for row in rows:
        yield row
        count -= not isinstance(row, Quarantined)
        if not count:
            return


def _files(folder: Path) -> list[Path]:
    """Return the files below a folder as Spark writes it.

    What begins with "_" or "." is no data there (`_temporary`, `_SUCCESS`).
    """
    return [
        part
        for part in sorted(folder.rglob("*"))
        if part.is_file()
        and not any(piece.startswith(("_", ".")) for piece in part.relative_to(folder).parts)
    ]


def _parts(folder: Path) -> list[Path]:
    """Return the Parquet files of one table.

    Raises FormatError for a folder that holds other files, too, or rows that were set aside:
    nothing is left out, or read as data, without a word.
    """
    files = _files(folder)
    odd = [
        str(part.relative_to(folder))
        for part in files
        if part.suffix != ".parquet" or part.name.endswith(".quarantine.parquet")
    ]
    if odd:
        more = f" and {len(odd) - 1} more" if odd[1:] else ""
        raise FormatError(
            f"a folder that holds other files than the parts of one table: {odd[0]}{more}; "
            "name its files one by one",
            path=str(folder),
        )
    return files


def _parquet(path: Path) -> Iterator[Row]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=PARQUET_ROWS):
                for number, record in enumerate(_plain(batch).to_pylist()):
                    yield Row(None, record, Place(batch, number))
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"not readable as Parquet: {error}", path=str(path)) from error


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with time stamps as ISO text, which keeps nanoseconds and the zone."""
    columns = [
        # Arrow keeps times with a zone as UTC, which is what text without a zone means here.
        column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
        if pa.types.is_timestamp(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _json_lines(path: Path) -> Iterator[Row | Quarantined]:
    for number, line in text.lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Quarantined(str(path), number, None, f"not JSON: {error}", text.shorten(line))
            continue
        if isinstance(record, dict):
            yield Row(number, record, record)
        else:
            raw = text.shorten(line)
            yield Quarantined(str(path), number, None, "not a JSON object", raw)


def _csv(path: Path, delimiter: str) -> Iterator[Row | Quarantined]:
    names: list[str] | None = None
    for line, cells in _records(path, delimiter):
        if isinstance(cells, Quarantined):
            if names is None:
                raise FormatError(cells.reason, path=str(path), line=line)
            yield cells
        elif not any(cells):
            continue
        elif names is None:
            names = _header(cells, path, line)
        elif len(cells) != len(names):
            reason = f"{len(cells)} cells, but the first line names {len(names)} columns"
            raw = text.shorten(delimiter.join(cells))
            yield Quarantined(str(path), line, None, reason, raw)
        else:
            record = dict(zip(names, cells, strict=True))
            yield Row(line, record, record)


def _header(cells: list[str], path: Path, line: int) -> list[str]:
    names = [name.strip() for name in cells]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        message = f"two columns are called {twice!r}; rename one of them"
        raise FormatError(message, path=str(path), line=line)
    return names


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str] | Quarantined]]:
    """Yield (first line, cells) of each record, or what is wrong with that line.

    A quote that opens and never closes would swallow all rows after it: then only its own
    line is bad, and reading goes on with the next one.
    """
    source = _Again(text.lines(path))
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


def _delimiter(first_line: str) -> str:
    return max(DELIMITERS, key=first_line.count)


def _json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
