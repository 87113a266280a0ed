"""Reader of tables with user-defined columns: Parquet (file or folder), CSV, JSON lines.

The first rows determine the mapping of columns. The unit of numeric times is guessed by size unless
the user sets it. Times as text are ISO 8601, without a zone UTC.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from antecede.errors import FormatError
from antecede.formatting import pluralize
from antecede.tables.trace import text
from antecede.tables.trace.causes import (
    CAUSE_COLUMNS,
    ROUNDED_CAUSES,
    ROUNDED_IN,
    TOLD_BY,
    UNREADABLE_IN,
)
from antecede.tables.trace.causes import UNREADABLE_CAUSES as UNREADABLE_CAUSES
from antecede.tables.trace.reader import Detail, Item, ReadOptions, quarantine_break
from antecede.tables.trace.schema import Quarantined
from antecede.tables.trace.time_text import GUESSED_UNIT, TABLE_UNIT, TIMES_LIKE, UNREADABLE_TIMES
from antecede.tables.trace.user_tables import blocks
from antecede.tables.trace.user_tables.blocks import TableBlock
from antecede.tables.trace.user_tables.columns import Columns
from antecede.tables.trace.user_tables.extra_columns import ExtraRows
from antecede.tables.trace.user_tables.usual_names import USUAL, describe_unread
from antecede.tables.trace.user_tables.vectorized import Chunk, Piece, block_to_rows, pieces
from antecede.tables.trace.user_tables.writing import JSON_LINES as JSON_LINES_FORMAT

ABSENT_KEYS = "absent_keys"
"""Name of a detail: number of absent keys in records of JSON lines."""
GUESSED_COLUMNS = "guessed_columns"
"""Name of a detail: columns that were chosen by usual names."""
UNREAD_CAUSES, UNREAD_LATER = "unread_causes", "unread_later_events"
"""Names of details: unread columns that may contain causes, or later events."""
MATCHED_BY = "found_by: "
"""Prefix of names of details: number of files in which an expression selects a value."""
SAMPLE_ROWS = 1000
DELIMITERS = ",\t;|"
JSON_LINES = {".jsonl", ".ndjson"}


def absent_keys(details: Mapping[str, Any], format: str) -> str:
    """Return the text on absent keys in JSON lines, or ""."""
    count = details.get(ABSENT_KEYS, 0) if format == JSON_LINES_FORMAT else 0
    return f"{pluralize(count, 'absent key')} of records written as null" if count else ""


def describe_guessed_columns(details: Mapping[str, Any]) -> str:
    """Return the text on columns chosen by usual names, or ""."""
    found = details.get(GUESSED_COLUMNS)
    texts = [f"{found}: guessed by name; options choose others"] if found else []
    unread = describe_unread(
        str(details.get(UNREAD_CAUSES, "")), str(details.get(UNREAD_LATER, ""))
    )
    texts += [unread] if unread else []
    for name, count in details.items():
        if name.startswith(MATCHED_BY) and not count:
            texts.append(f"expression {name.removeprefix(MATCHED_BY)} selects nothing in any row")
    return "; ".join(texts)


class TableReader:
    """Reader of tables: Parquet, CSV, JSON lines."""

    name = "table"
    uses = ("columns", "time_unit", "separator", "needs_run")

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize Parquet; JSON lines and CSV with less confidence than other formats."""
        if path.is_dir():
            return 0.8 if any(part.suffix == ".parquet" for part in text.files_below(path)) else 0.0
        if head.startswith(b"PAR1"):
            return 1.0
        first = _get_first_line(head)
        if first.startswith("{"):
            return 0.5 if isinstance(text.parse_json_object(first), dict) else 0.0
        if JSON_LINES & set(path.suffixes):
            lines = map(text.parse_json_object, text.decode(head).split("\n"))
            return 0.4 if any(isinstance(one, dict) for one in lines) else 0.0
        if {".csv", ".tsv"} & set(path.suffixes):
            return 0.6
        columns = {name.strip().lower() for name in first.split(_detect_delimiter(first))}
        return 0.3 if len(columns) > 1 and columns & set(USUAL["id"]) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every row."""
        return (item for item, _ in self.read_with_extra(path, options))

    def read_with_extra(
        self, path: Path, options: ReadOptions
    ) -> Iterator[tuple[Item, ExtraRows | None]]:
        """Yield every row with its extra columns; the reference for `read_by_columns`."""
        for item in self._read(path, options, block_to_rows):
            if isinstance(item, Detail):
                yield item, None
            elif not isinstance(item, Chunk):
                yield item

    def read_by_columns(
        self, path: Path, options: ReadOptions, keep_extra: bool
    ) -> Iterator[Piece | Detail]:
        """Yield the items of `read_with_extra`, vectorized where the result is the same."""
        return self._read(path, options, lambda block, columns: pieces(block, columns, keep_extra))

    def _read(
        self,
        path: Path,
        options: ReadOptions,
        make: Callable[[TableBlock, Columns], Iterator[Piece]],
    ) -> Iterator[Piece | Detail]:
        coming = self._read_blocks(path)
        ahead, sample = first_blocks(coming)
        if not sample:
            yield from ((row, None) for block in ahead for _, row in block.bad)
            return
        in_json = _is_json_lines(path)
        is_csv = kind_of(path)[1] is not None
        columns = Columns(sample, options, str(path), can_grow=in_json, is_untyped=is_csv)
        records = keys = 0
        for block in itertools.chain(_pop_blocks(ahead), coming):
            if in_json:
                records += block.rows
                keys += sum(map(len, block.to_records()))
            yield from make(block, columns)
        yield from details_of(columns, records * len(columns.known) - keys if in_json else 0)

    def _read_blocks(self, path: Path) -> Iterator[TableBlock]:
        parquet, delimiter = kind_of(path)
        if parquet is not None:
            for part in parquet:
                yield from blocks.parquet(part)
            return
        found = (
            blocks.read_json_lines(path) if delimiter is None else blocks.read_csv(path, delimiter)
        )
        for block in quarantine_break(found, path):
            yield (
                TableBlock(records=(), bad=[(0, block)])
                if isinstance(block, Quarantined)
                else block
            )


def first_blocks(
    coming: Iterator[TableBlock],
) -> tuple[list[TableBlock], list[Mapping[str, object]]]:
    """Return the first blocks, and the sample of their rows for the choice of columns."""
    ahead: list[TableBlock] = []
    sample: list[Mapping[str, object]] = []
    for block in coming:
        ahead.append(block)
        sample += block.to_records(min(SAMPLE_ROWS - len(sample), block.rows))
        if len(sample) == SAMPLE_ROWS:
            break
    return ahead, sample


def kind_of(path: Path) -> tuple[list[Path] | None, str | None]:
    """Return (Parquet files, None), (None, delimiter of CSV), or (None, None) for JSON lines."""
    if path.is_dir():
        return _find_parquet_files(path), None
    head = text.read_bytes(path, text.HEAD_BYTES)[0]
    if head.startswith(b"PAR1"):
        return [path], None
    return None, None if _is_json_lines(path) else _detect_delimiter(_get_first_line(head))


def _pop_blocks(ahead: list[TableBlock]) -> Iterator[TableBlock]:
    while ahead:
        yield ahead.pop(0)


def details_of(columns: Columns, absent_keys: int) -> Iterator[Detail]:
    """Yield the details of a file. Raise FormatError for a named column that no record has."""
    columns.check_named_columns()
    if found := columns.describe_guesses():
        yield Detail(GUESSED_COLUMNS, found)
    yield Detail(CAUSE_COLUMNS, ", ".join(map(text.shorten, columns.known))[:300])
    yield Detail(TOLD_BY, columns.describe_candidates())
    for name, unread in zip((UNREAD_CAUSES, UNREAD_LATER), columns.list_unread(), strict=True):
        if unread:
            yield Detail(name, unread)
    for expression, count in columns.expressions.items():
        yield Detail(f"{MATCHED_BY}{expression}", count)
    for name, count in columns.cause_counts.items():
        if count:
            yield Detail(name, count)
    if columns.unreadable_times:
        yield Detail(UNREADABLE_TIMES, columns.unreadable_times)
    if absent_keys:
        yield Detail(ABSENT_KEYS, absent_keys)
    for name, where in ((ROUNDED_CAUSES, ROUNDED_IN), (UNREADABLE_CAUSES, UNREADABLE_IN)):
        if columns.cause_counts[name]:
            yield Detail(where, " and ".join(columns.chosen["causes"]))
    if columns.guessed_unit:
        yield Detail(GUESSED_UNIT, columns.guessed_unit)
    if misfits := columns.time_sizes.count_misfits():
        yield Detail(TABLE_UNIT, columns.unit)
        for unit, count in misfits.items():
            yield Detail(f"{TIMES_LIKE}{unit}", count)


def _get_first_line(head: bytes) -> str:
    return text.decode(head).lstrip("\ufeff \t\r\n").partition("\n")[0]


def _is_json_lines(path: Path) -> bool:
    if path.is_dir():
        return False
    if JSON_LINES & set(path.suffixes):
        return True
    return _get_first_line(text.read_bytes(path, text.HEAD_BYTES)[0]).startswith("{")


def _find_parquet_files(folder: Path) -> list[Path]:
    files = text.files_below(folder)
    odd = [
        str(part.relative_to(folder))
        for part in files
        if part.suffix != ".parquet" or part.name.endswith(".quarantine.parquet")
    ]
    if odd:
        more = f" and {len(odd) - 1} more" if odd[1:] else ""
        raise FormatError(
            f"the folder contains other files than parts of one table: {odd[0]}{more}; "
            "give its files one by one",
            path=str(folder),
        )
    return files


def _detect_delimiter(first_line: str) -> str:
    return max(DELIMITERS, key=first_line.count)
