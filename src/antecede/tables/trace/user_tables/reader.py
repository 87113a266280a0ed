"""Tables with the user's own column names: Parquet (a file or a folder), CSV, JSON lines.

Rows are read in pieces, so a table may be larger than memory. Which column is which is told
from the first rows (`antecede.tables.trace.user_tables.columns`). Times given as numbers are taken
in the unit that their size tells, unless the user says it; times as text are ISO 8601, with or
without a zone (then UTC).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from antecede.errors import FormatError, InputError
from antecede.formatting import counted
from antecede.tables.trace import text
from antecede.tables.trace.causes import (
    CAUSE_COLUMNS,
    ROUNDED_CAUSES,
    ROUNDED_IN,
    TOLD_BY,
    UNREADABLE_IN,
)
from antecede.tables.trace.causes import UNREADABLE_CAUSES as UNREADABLE_CAUSES
from antecede.tables.trace.reader import Detail, Item, ReadOptions
from antecede.tables.trace.schema import Quarantined
from antecede.tables.trace.time_text import GUESSED, LOOKS_LIKE, READ_AS, UNREADABLE
from antecede.tables.trace.user_tables import blocks
from antecede.tables.trace.user_tables import rows as table_rows
from antecede.tables.trace.user_tables.blocks import Block
from antecede.tables.trace.user_tables.columns import Columns
from antecede.tables.trace.user_tables.extra_columns import Own
from antecede.tables.trace.user_tables.usual_names import USUAL
from antecede.tables.trace.user_tables.usual_names import words as unread_words
from antecede.tables.trace.user_tables.vectorized import Piece, pieces
from antecede.tables.trace.user_tables.writing import JSON_LINES as JSON_LINES_FORMAT

ABSENT_KEYS = "absent_keys"
"""Name of a detail: keys of a file of JSON lines that records of it lack."""
GUESSED_COLUMNS = "guessed_columns"
"""Name of a detail: which columns were taken by their usual names, in words."""
LIKELY, LATER = "unread_causes", "unread_later_events"
"""Names of details: columns that may hold causes, or name later events, and are not read."""
FOUND_BY = "found_by: "
"""Beginning of the name of a detail: in how many files an expression found something."""
SAMPLE_ROWS = 1000
DELIMITERS = ",\t;|"
JSON_LINES = {".jsonl", ".ndjson"}
_T = TypeVar("_T")


def absent_keys(details: Mapping[str, Any], format: str) -> str:
    """Say what becomes of keys that records lack, where JSON lines are written; "" of none."""
    count = details.get(ABSENT_KEYS, 0) if format == JSON_LINES_FORMAT else 0
    return f"{counted(count, 'key')} that records lack came out as null" if count else ""


def guessed_columns(details: Mapping[str, Any]) -> str:
    """Say which columns were taken by their usual names, where nobody named them; "" of none."""
    found = details.get(GUESSED_COLUMNS)
    said = [f"{found}: told by their names; options name others"] if found else []
    unread = unread_words(str(details.get(LIKELY, "")), str(details.get(LATER, "")))
    said += [unread] if unread else []
    for name, count in details.items():
        if name.startswith(FOUND_BY) and not count:
            said.append(f"the expression {name.removeprefix(FOUND_BY)} finds nothing in any row")
    return "; ".join(said)


class TableReader:
    """Reader of Parquet, CSV and JSON lines; see the module."""

    name = "table"
    uses = ("columns", "time_unit", "separator", "needs_run")

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize Parquet for certain; JSON lines and CSV less surely than other formats."""
        if path.is_dir():
            return 0.8 if any(part.suffix == ".parquet" for part in files_of(path)) else 0.0
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
        in_json = _in_json(path)
        columns = Columns(found, options, str(path), growing=in_json, untyped=_is_untyped(path))
        records = keys = 0
        for row in itertools.chain(sample, rows):
            if isinstance(row, Quarantined):
                yield row, None
            else:
                records, keys = records + 1, keys + len(row.record)
                yield columns.event(row.record, row.line), row.own
        absent = records * len(columns.known) - keys if in_json else 0
        yield from ((detail, None) for detail in details_of(columns, absent))

    def read_by_columns(
        self, path: Path, options: ReadOptions, own: bool
    ) -> Iterator[Piece | Detail]:
        """Yield what `read_with_own` does, events by whole columns wherever that is the same."""
        coming = self._blocks(path)
        ahead, sample = first_blocks(coming)
        if not sample:
            yield from ((row, None) for block in ahead for _, row in block.bad)
            return
        in_json = _in_json(path)
        columns = Columns(sample, options, str(path), growing=in_json, untyped=_is_untyped(path))
        records = keys = 0
        for block in itertools.chain(_emptied(ahead), coming):
            if in_json:
                records += block.rows
                keys += sum(map(len, block.as_records()))
            yield from pieces(block, columns, own)
        yield from details_of(columns, records * len(columns.known) - keys if in_json else 0)

    def _rows(self, path: Path) -> Iterator[table_rows.Row | Quarantined]:
        parquet, delimiter = kind_of(path)
        if parquet is not None:
            for part in parquet:
                yield from table_rows.parquet(part)
        elif delimiter is None:
            yield from _to_the_break(path, lambda: table_rows.json_lines(path), _bad_row)
        else:
            yield from _to_the_break(path, lambda: table_rows.delimited(path, delimiter), _bad_row)

    def _blocks(self, path: Path) -> Iterator[Block]:
        parquet, delimiter = kind_of(path)
        if parquet is not None:
            for part in parquet:
                yield from blocks.parquet(part)
        elif delimiter is None:
            yield from _to_the_break(path, lambda: blocks.json_lines(path), _bad_block)
        else:
            yield from _to_the_break(path, lambda: blocks.delimited(path, delimiter), _bad_block)


def first_blocks(coming: Iterator[Block]) -> tuple[list[Block], list[Mapping[str, object]]]:
    """Return blocks up to the one that ends the sample by which columns are told, and it."""
    ahead: list[Block] = []
    sample: list[Mapping[str, object]] = []
    for block in coming:
        ahead.append(block)
        sample += block.as_records(min(SAMPLE_ROWS - len(sample), block.rows))
        if len(sample) == SAMPLE_ROWS:
            break
    return ahead, sample


def kind_of(path: Path) -> tuple[list[Path] | None, str | None]:
    """Return the files of a table in Parquet, else the delimiter of CSV; neither: JSON."""
    if path.is_dir():
        return _parts(path), None
    head = text.read_up_to(path, text.HEAD_BYTES)[0]
    if head.startswith(b"PAR1"):
        return [path], None
    return None, None if _in_json(path) else _delimiter(_first_line(head))


def _is_untyped(path: Path) -> bool:
    """Return whether a table is CSV, all cells of which are text."""
    return kind_of(path)[1] is not None


def _to_the_break(
    path: Path, read: Callable[[], Iterator[_T]], bad: Callable[[Quarantined], _T]
) -> Iterator[_T]:
    """Yield what is read; where the file breaks off on a line, that is a bad record."""
    try:
        yield from read()
    except FormatError:
        raise
    except InputError as error:
        if error.line is None:
            raise
        yield bad(Quarantined(str(path), error.line, None, error.message, ""))


def _bad_row(row: Quarantined) -> table_rows.Row | Quarantined:
    return row


def _bad_block(row: Quarantined) -> Block:
    return Block(records=(), bad=[(0, row)])


def _emptied(ahead: list[Block]) -> Iterator[Block]:
    """Yield blocks and keep none of them."""
    while ahead:
        yield ahead.pop(0)


def details_of(columns: Columns, absent_keys: int) -> Iterator[Detail]:
    """Yield what reading found out about a file as a whole.

    Raises FormatError for a column that the user named and that no record had.
    """
    columns.check_all_came()
    if found := columns.guessed():
        yield Detail(GUESSED_COLUMNS, found)
    yield Detail(CAUSE_COLUMNS, ", ".join(map(text.shorten, columns.known))[:300])
    yield Detail(TOLD_BY, columns.telling())
    for name, unread in zip((LIKELY, LATER), columns.unread(), strict=True):
        if unread:
            yield Detail(name, unread)
    for expression, count in columns.expressions.items():
        yield Detail(f"{FOUND_BY}{expression}", count)
    for name, count in columns.causes.items():
        if count:
            yield Detail(name, count)
    if columns.unreadable_times:
        yield Detail(UNREADABLE, columns.unreadable_times)
    if absent_keys:
        yield Detail(ABSENT_KEYS, absent_keys)
    for name, where in ((ROUNDED_CAUSES, ROUNDED_IN), (UNREADABLE_CAUSES, UNREADABLE_IN)):
        if columns.causes[name]:
            yield Detail(where, " and ".join(columns.of["parents"]))
    if columns.guessed_unit:
        yield Detail(GUESSED, columns.guessed_unit)
    if misfits := columns.sizes.misfits():
        yield Detail(READ_AS, columns.unit)
        for unit, count in misfits.items():
            yield Detail(f"{LOOKS_LIKE}{unit}", count)


def _first_line(head: bytes) -> str:
    return text.decode(head).lstrip("\ufeff \t\r\n").partition("\n")[0]


def _in_json(path: Path) -> bool:
    """Tell whether a table is JSON lines, which name their columns in each row."""
    if path.is_dir():
        return False
    if JSON_LINES & set(path.suffixes):
        return True
    return _first_line(text.read_up_to(path, text.HEAD_BYTES)[0]).startswith("{")


def _until(
    rows: Iterator[table_rows.Row | Quarantined], count: int
) -> Iterator[table_rows.Row | Quarantined]:
    """Yield rows until `count` good ones have come."""
    for row in rows:
        yield row
        count -= not isinstance(row, Quarantined)
        if not count:
            return


def files_of(folder: Path) -> list[Path]:
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
    files = files_of(folder)
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


def _delimiter(first_line: str) -> str:
    return max(DELIMITERS, key=first_line.count)


def _json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
