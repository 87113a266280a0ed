"""Mapping of the user's columns, or expressions, to the columns of the schema.

A column that the user names has priority over names of the schema and usual names. A table needs an
`id`, possibly of several parts, or `member` with `seq` or `clock`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from antecede.errors import FormatError, InputError
from antecede.tables.trace import expressions, text
from antecede.tables.trace.causes import (
    BLANK,
    READER_FOOTNOTES,
    REPEATED,
    ROUNDED_CAUSES,
    UNREADABLE_CAUSES,
)
from antecede.tables.trace.expressions import EvaluationFailure
from antecede.tables.trace.formats.nested import describe_records
from antecede.tables.trace.identities import is_blank, name_of
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.schema import NAMES
from antecede.tables.trace.schema import TIMES as TIMES
from antecede.tables.trace.text import parse_nanoseconds
from antecede.tables.trace.user_tables import usual_names
from antecede.tables.trace.user_tables.list_separators import TextCauses
from antecede.tables.trace.user_tables.values import (
    decimal_to_number,
    is_number,
    parse_finite,
    split_cell,
)

_FIRST, _LAST = 946_684_800 * 10**9, 4_102_444_800 * 10**9
"""2000 and 2100, ns since 1970."""
_UNITS = {unit: parse_nanoseconds(1, unit) or 1 for unit in ("s", "ms", "us", "ns")}


class TimeSizes:
    """Counts of times whose size fits a coarser unit.

    Such a time is in 1970 as read, and from 2000 to 2100 in a coarser unit. It counts only if other
    times of the table are from 2000 to 2100: small numbers alone may be simulated times.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._has_dates = False

    def add(self, times: Any, unit: str) -> None:
        """Count times in ns (list or Arrow array) that were read in a unit."""
        if not isinstance(times, list):
            times = times.drop_null()
        values = np.asarray(times, np.int64)
        self._has_dates |= bool(((values >= _FIRST) & (values < _LAST)).any())
        for coarser, size in _UNITS.items():
            ratio = size // _UNITS[unit]
            if ratio > 1:
                found = (values >= -(-_FIRST // ratio)) & (values < _LAST // ratio)
                self._counts[coarser] = self._counts.get(coarser, 0) + int(found.sum())

    def count_misfits(self) -> dict[str, int]:
        """Return the number of times by likely unit; empty if all fit."""
        if not self._has_dates:
            return {}
        return {unit: count for unit, count in self._counts.items() if count}


CHOOSABLE = (*(name for name in NAMES if name not in ("file_order", "source", "line")), "clock")

_OPTIONS = {"causes": "after", "send_time": "time", "topics": "topic"}
"""Column of the schema -> option of the command line, if their names differ."""
_EXCLUDED_BY = {"causes": "clock", **dict.fromkeys(("clock", "clock_members"), "causes")}
"""A named column of clocks excludes guessed causes, and the reverse."""

MAX_COLUMNS = 4096


class ChosenColumns:
    """Chosen columns by column of the schema, unit of times, and counts."""

    def __init__(
        self,
        sample: Sequence[Mapping[str, object]],
        options: ReadOptions,
        source: str,
        *,
        can_grow: bool = False,
        is_untyped: bool = False,
    ) -> None:
        """Choose by the first records. Raise FormatError if a named or needed column is absent.

        `can_grow`: later records may have more columns (JSON). `is_untyped`: cells are text (CSV).
        """
        self.source = source
        self.unreadable_times = 0
        self.guessed_unit = ""
        """Unit of numeric times, if guessed by size."""
        self.time_sizes = TimeSizes()
        self.cause_counts = {
            REPEATED: 0,
            BLANK: 0,
            ROUNDED_CAUSES: 0,
            UNREADABLE_CAUSES: 0,
            **dict.fromkeys(READER_FOOTNOTES, 0),
        }
        """Counts of causes by defect."""
        self.list_separator = options.separator
        if options.separator == "":
            raise InputError("--list-separator is empty; give the text between two causes")
        known = list(dict.fromkeys(key for record in sample for key in record))
        self.known = dict.fromkeys(known)
        self.options = options
        self.can_grow = can_grow
        self.chosen = {
            name: find_columns(name, known, options, source, can_grow) for name in CHOOSABLE
        }
        own_schema = set(NAMES) <= {*known, "causes"}
        if own_schema and "causes" not in options.columns:
            self._check_schema_columns()
        named = [column for name in options.columns for column in options.columns[name]]
        self.expressions = dict.fromkeys(
            (one for one in named if one not in self.known and expressions.is_expression(one)), 0
        )
        """Expressions in place of columns, with 1 if they found a value."""
        if not self.chosen["id"] and not (
            self.chosen["member"]
            and (self.chosen["seq"] or self.chosen["clock"] or self.chosen["clock_members"])
        ):
            message = (
                f"no column identifies an event; columns are {', '.join(known)[:300]}; "
                "give --id COLUMN (or --member and --seq)"
            )
            if can_grow and (nested := describe_records(sample, source)):
                message = f"no column identifies an event; {nested}"
            raise FormatError(message, path=source)
        self.id_parts = self._count_id_parts()
        """Number of parts of an id (`values.join_id`)."""
        for name in ("run", "member"):
            self._choose_name_column(name, sample)
        self.likely_causes: list[str] = []
        """Unread columns that may contain causes."""
        if "causes" not in options.columns:
            self._choose_cause_column(sample, own_schema)
        self.text_causes = self._make_text_causes(sample) if is_untyped else None
        if not can_grow:
            self._check_unused_options(sample)
        self._is_unit_guessed = not (options.time_unit or own_schema)
        self.unit = options.time_unit or ("ns" if own_schema else self._guess_unit(sample))

    def get_cell(self, record: Mapping[str, object], column: str) -> object:
        """Return a cell, or the result of an expression. Raise ValueError if it fails."""
        value = record.get(column)
        if column in self.expressions:
            if column not in record:
                value = expressions.evaluate(column, record)
            if isinstance(value, EvaluationFailure):
                raise ValueError(value.reason)
            self.mark_found(column, value)
        return value

    def mark_found(self, expression: str, value: object) -> None:
        """Record that an expression found a value, if it is one."""
        if value is not None and value != [] and not isinstance(value, EvaluationFailure):
            self.expressions[expression] = 1

    def _get_sample_cell(self, record: Mapping[str, object], column: str) -> object:
        if column in self.expressions and column not in record:
            value = expressions.evaluate(column, record)
            return None if isinstance(value, EvaluationFailure) else value
        return record.get(column)

    def _count_id_parts(self) -> int:
        """Return the number of parts of an id. Raise InputError if causes do not fit it."""
        of_id = self.chosen["id"]
        parts = sum(expressions.count_parts(one) if one in self.expressions else 1 for one in of_id)
        causes = self.options.columns.get("causes", ())
        if parts > 1 and len(causes) > 1 and len(causes) % parts:
            raise InputError(
                f"--id has {parts} parts, so --after needs {parts} columns for a cause, or 1 with "
                f"whole ids; got {len(causes)}",
                path=self.source,
            )
        return max(parts, 1)

    def _check_schema_columns(self) -> None:
        """Raise FormatError for a table in the schema with `parents` instead of `causes`."""
        if "parents" in self.known and "causes" not in self.known:
            raise FormatError(
                "column parents: the event schema names it causes; rename it to causes, or give "
                "--after parents",
                path=self.source,
            )

    def _choose_name_column(self, name: str, sample: Sequence[Mapping[str, object]]) -> None:
        """Choose the first usual column with a name, or with blanks only."""
        if name in self.options.columns:
            return
        for column in usual_names.find_usual(name, list(self.known)):
            cells = [decimal_to_number(record.get(column)) for record in sample]
            if any(name_of(cell) is not None for cell in cells) or all(map(is_blank, cells)):
                self.chosen[name] = (column,)
                return
        self.chosen[name] = ()

    def _choose_cause_column(
        self, sample: Sequence[Mapping[str, object]], own_schema: bool
    ) -> None:
        """Choose the first likely column with an id of the sample.

        `parents` has priority, as has `causes` if it is empty or the table is in the schema.
        """
        if _EXCLUDED_BY["causes"] in self.options.columns:
            return
        usual = usual_names.find_usual("causes", list(self.known))
        likely = usual_names.find_likely_causes(self.known)
        ids = self._collect_sample_ids(sample)
        meant = usual_names.find_id_columns([*usual, *likely], sample, ids, self._split_names)
        filled = [one for one in usual if any(self._split_names(row.get(one)) for row in sample)]
        kept = [("parents",)]
        if own_schema or "causes" not in filled:
            kept.append(("causes",))
        if meant and self.chosen["causes"] not in kept:
            self.chosen["causes"] = (meant[0],)
        if self.chosen["causes"]:
            likely = list(dict.fromkeys([*filled, *meant]))
        self.likely_causes = [one for one in likely if one not in self.chosen["causes"]]

    def _collect_sample_ids(self, sample: Sequence[Mapping[str, object]]) -> frozenset[str]:
        if not self.chosen["id"] or self.id_parts > 1:
            return frozenset()
        cells = (self._get_sample_cell(record, self.chosen["id"][0]) for record in sample)
        return frozenset(
            name for cell in cells if (name := name_of(decimal_to_number(cell))) is not None
        )

    def _make_text_causes(self, sample: Sequence[Mapping[str, object]]) -> TextCauses:
        cells = [
            part
            for record in sample
            for column in self.chosen["causes"]
            for part in split_cell(self._get_sample_cell(record, column), self.list_separator)
        ]
        texts = [part for part in cells if isinstance(part, str)]
        return TextCauses(self._collect_sample_ids(sample), texts, self.cause_counts)

    def _split_causes(self, cell: object) -> Sequence[object]:
        parts = split_cell(cell, self.list_separator)
        if self.text_causes is None:
            return parts
        found: list[object] = []
        for part in parts:
            values = self.text_causes.parse(part) if isinstance(part, str) else None
            found += [part] if values is None else values
        return found

    def _split_names(self, cell: object) -> list[str]:
        values = map(decimal_to_number, split_cell(cell, self.list_separator))
        return [name for value in values if (name := name_of(value)) is not None]

    def list_unread(self) -> tuple[str, str]:
        """Return unread columns that may contain causes, and those of later events."""
        if "causes" in self.options.columns:
            return "", ""
        if self.chosen["causes"]:
            return ", ".join(self.likely_causes), ""
        known = list(self.known)
        likely, later = usual_names.find_likely_causes(known), usual_names.find_later_events(known)
        return ", ".join(likely)[:300], ", ".join(later)[:300]

    def _check_unused_options(self, sample: Iterable[Mapping[str, object]]) -> None:
        def collect_cells(names: Iterable[str]) -> list[object]:
            columns = [column for name in names for column in self.chosen[name]]
            cells = (
                self._get_sample_cell(record, column) for record in sample for column in columns
            )
            return [cell for cell in cells if cell is not None]

        if self.list_separator is not None:
            if not (self.chosen["causes"] or self.chosen["topics"]):
                raise InputError(
                    "--list-separator has no effect: no column of causes or topics; omit it",
                    path=self.source,
                )
            cells = collect_cells(("causes", "topics"))
            if cells and all(isinstance(cell, list) for cell in cells):
                message = "--list-separator has no effect: the causes are lists"
                raise InputError(f"{message}; omit it", path=self.source)
        if self.options.time_unit is not None:
            if not any(self.chosen[name] for name in TIMES):
                message = "--time-unit has no effect: no column of times; omit it"
                raise InputError(message, path=self.source)
            times = collect_cells(TIMES)
            if times and not any(map(is_number, times)):
                message = "--time-unit has no effect: the times are dates"
                raise InputError(f"{message}; omit it", path=self.source)

    def _guess_unit(self, sample: Iterable[Mapping[str, object]]) -> str:
        columns = [column for name in TIMES for column in self.chosen[name]]
        cells = (self._get_sample_cell(record, column) for record in sample for column in columns)
        numbers = map(parse_finite, cells)
        sizes = (abs(n) for n in numbers if n is not None)
        return text.guess_unit(max((n for n in sizes if n < text.MAX_TIME), default=0))

    def describe_candidates(self) -> str:
        """Return the candidates for the source of causality: "causes in caused_by; ..."."""
        could = ((name, self.chosen[name]) for name in ("causes", "clock", "clock_members", "kind"))
        return "; ".join(f"{name} in {text.shorten(of[0])}" for name, of in could if of)

    def describe_guesses(self) -> str:
        """Return the columns that were chosen by a usual name: "causes is caused_by, ..."."""
        taken = (
            (name, self.chosen[name]) for name in CHOOSABLE if name not in self.options.columns
        )
        usual = [(name, of[0]) for name, of in taken if of and of[0].lower() != name]
        return ", ".join(f"{name} is {text.shorten(column)}" for name, column in usual)

    def check_named_columns(self) -> None:
        """Raise FormatError for a named column that no record has."""
        for name in self.options.columns:
            find_columns(name, list(self.known), self.options, self.source)

    def _add_columns(self, record: Mapping[str, object], line: int | None) -> None:
        """Add the new columns of a record. Raise FormatError if there are too many."""
        new = [column for column in record if column not in self.known]
        if len(self.known) + len(new) > MAX_COLUMNS:
            raise FormatError(
                f"more than {MAX_COLUMNS:,} different columns; the last is "
                f"{text.shorten(new[-1])[:60]!r}; keys must be column names, not values",
                path=self.source,
                line=line,
            )
        timed = any(column in self.known for name in TIMES for column in self.chosen[name])
        self.known.update(dict.fromkeys(new))
        for name in CHOOSABLE:
            if not self.chosen[name] and name not in self.options.columns:
                self.chosen[name] = find_columns(name, new, self.options, self.source)
        if not timed and not self.options.time_unit:
            self.unit = self._guess_unit([record])


def name_option(name: str, options: ReadOptions) -> str:
    """Return the option of the command line for a column of the schema."""
    return "--group" if name == "run" and options.needs_run else f"--{_OPTIONS.get(name, name)}"


def find_columns(
    name: str, known: Sequence[str], options: ReadOptions, source: str, can_grow: bool = False
) -> tuple[str, ...]:
    """Return the user's columns, else a usual one. Raise FormatError for an unknown name."""
    if name in options.columns:
        for column in options.columns[name]:
            if column in known or expressions.is_expression(column):
                continue
            why = expressions.find_defect(column)
            if not can_grow or why:
                why = f", and not a JMESPath expression ({why})" if why else ""
                message = f"{name_option(name, options)}: no column {column!r}{why}; columns are "
                message += ", ".join(known)[:300]
                raise FormatError(message, path=source)
        return tuple(options.columns[name])
    if _EXCLUDED_BY.get(name, name) in options.columns:
        return ()
    return usual_names.find_usual(name, known)[:1]


def further_columns(known: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the columns that are not read as columns of the schema."""
    taken = {
        one for name in CHOOSABLE for one in find_columns(name, known, options, "", can_grow=True)
    }
    return [name for name in known if name not in taken and name not in NAMES]
