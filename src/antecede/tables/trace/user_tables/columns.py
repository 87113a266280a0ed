"""Converter of rows of a user's table to events.

Unknown values are null. Without a column for `id`, the id is MEMBER:NUMBER.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from antecede.formatting import quote
from antecede.tables.trace import expressions, text
from antecede.tables.trace.causes import (
    BLANK,
    PARTIAL_CAUSES,
    REPEATED,
    ROUNDED_CAUSES,
    UNREADABLE_CAUSES,
)
from antecede.tables.trace.formats.shiviz_dialects import parse_clock
from antecede.tables.trace.identities import ID_RULE, is_blank, is_rounded, name_of, unreadable_name
from antecede.tables.trace.reader import NO_GROUP, NO_ID
from antecede.tables.trace.schema import EVENT, KINDS, Event, Quarantined
from antecede.tables.trace.user_tables.chosen_columns import TIMES, ChosenColumns
from antecede.tables.trace.user_tables.values import (
    can_be_joined_id,
    check_clock,
    combine_parts,
    decimal_to_number,
    describe_rounded,
    join_id,
    parse_json_list,
    split_cell,
)


class Columns(ChosenColumns):
    """Converter of rows by chosen columns."""

    def convert(self, record: Mapping[str, object], line: int | None) -> Event | Quarantined:
        """Return a row as an event or a quarantined record."""
        if not record.keys() <= self.known.keys():
            self._add_columns(record, line)
        try:
            return self._convert(record, line)
        except ValueError as error:
            raw = text.shorten(json.dumps(record, default=str, ensure_ascii=False))
            safe = self._find_identity(record)
            return Quarantined(self.source, line, safe, text.shorten(str(error)), raw)

    def _convert(self, record: Mapping[str, object], line: int | None) -> Event:
        member = self._read_name(record, "member")
        run = self._read_name(record, "run")
        if run is None and self.options.needs_run:
            raise ValueError(NO_GROUP)
        clock = self._read_clock(record)
        seq = self._read_number(record, "seq")
        if seq is None and clock is not None and member is not None:
            seq = clock.get(member)
        kind = name_of(self._read_first(record, "kind"))
        event = Event(
            run=run,
            kind=kind if kind in KINDS else EVENT,
            id=self._read_identity(record, member, seq),
            member=member,
            seq=seq,
            causes=self._read_names(record, "causes"),
            clock_members=None if clock is None else tuple(clock),
            clock_counts=None if clock is None else tuple(clock.values()),
            topics=self._read_names(record, "topics"),
            ingest=self._read_number(record, "ingest"),
            role=name_of(self._read_first(record, "role")),
            text=name_of(self._read_first(record, "text")),
            source=self.source,
            line=line,
        )
        times: dict[str, Any] = {t: self._read_time(record, t) for t in TIMES if self.chosen[t]}
        return event._replace(**times) if times else event

    def _find_identity(self, record: Mapping[str, object]) -> str | None:
        try:
            identity = name_of(self._read_first(record, "id"))
        except ValueError:
            return None
        return None if identity is None else text.shorten(identity)

    def _make_composite_id(self, record: Mapping[str, object]) -> str:
        parts: list[object] = []
        for column in self.chosen["id"]:
            value = self.get_cell(record, column)
            size = expressions.count_parts(column) if column in self.expressions else 1
            if size > 1:
                parts += value if isinstance(value, list) else [None] * size
            else:
                parts.append(self._unwrap_single(value, column, "id"))
        names = [self._read_part(value) for value in parts]
        if None in names:
            blank = len([name for name in names if name is None])
            where = ", ".join(self.chosen["id"])
            raise ValueError(f"{NO_ID}: {blank} of {len(names)} parts are blank ({where})")
        return join_id([name for name in names if name is not None])

    def _read_part(self, value: object) -> str | None:
        value = decimal_to_number(value)
        if is_rounded(value):
            raise ValueError(f"id is rounded: {describe_rounded(value, self.chosen['id'])}")
        name = name_of(value)
        if name is None and not is_blank(value):
            raise ValueError(f"invalid id: {quote(value)}; {ID_RULE}")
        return name

    def _unwrap_single(self, value: object, column: str, name: str) -> object:
        """Return the only value of an expression. Raise ValueError for several."""
        if column in self.expressions and isinstance(value, list):
            if len(value) > 1:
                raise ValueError(f"{name}: {column} selects several values: {quote(value)}")
            value = value[0] if value else None
        return value

    def _read_identity(
        self, record: Mapping[str, object], member: str | None, seq: int | None
    ) -> str:
        if self.id_parts > 1:
            return self._make_composite_id(record)
        if self.chosen["id"]:
            identity = self._read_name(record, "id")
        else:
            identity = None if member is None or seq is None else f"{member}:{seq}"
        if identity is None:
            found = [one for one in self.chosen["id"] if one in self.expressions]
            raise ValueError(f"{NO_ID}: {found[0]} selects nothing" if found else NO_ID)
        return identity

    def _read_first(self, record: Mapping[str, object], name: str) -> object:
        column = next(iter(self.chosen[name]), None)
        if column is None:
            return None
        value = self._unwrap_single(self.get_cell(record, column), column, name)
        return decimal_to_number(value) if isinstance(value, Decimal) else value

    def _read_name(self, record: Mapping[str, object], name: str) -> str | None:
        """Return a name, None for a blank. Raise ValueError for other values."""
        value = self._read_first(record, name)
        if is_rounded(value):
            raise ValueError(f"{name} is rounded: {describe_rounded(value, self.chosen[name])}")
        found = name_of(value)
        if found is None and not is_blank(value):
            raise ValueError(self._describe_no_name(value, name))
        return found

    def _describe_no_name(self, value: object, name: str, column: str = "") -> str:
        """Return the message for a value that is not a name, with a hint on its parts."""
        message = f"invalid {name}: {quote(value)}; {ID_RULE}"
        column = column or self.chosen[name][0]
        if isinstance(value, list) and value:
            value, column = value[0], f"{column}[]"
        if isinstance(value, dict) and value:
            message += f"; an expression can select a part: {column}.{next(iter(value))}"
        return message

    def _read_number(self, record: Mapping[str, object], name: str) -> int | None:
        value = self._read_first(record, name)
        if is_blank(value):
            return None
        if is_rounded(value):
            raise ValueError(f"{name} is rounded: {describe_rounded(value, self.chosen[name])}")
        number = text.parse_int64(value)
        if number is None:
            raise ValueError(f"invalid {name}: {str(value)[:60]}; expected a 64-bit integer")
        return number

    def _read_time(self, record: Mapping[str, object], name: str) -> int | None:
        value = self._read_first(record, name)
        if isinstance(value, datetime.datetime | datetime.date):
            value = value.isoformat()
        number = text.parse_nanoseconds(value, self.unit)
        if number is not None:
            self.time_sizes.add([number], self.unit)
            if self._is_unit_guessed:
                self.guessed_unit = self.unit
        if number is None and isinstance(value, str):
            number = text.parse_iso_time(value)
        if number is None and not is_blank(value):
            self.unreadable_times += 1
        return number

    def _read_names(self, record: Mapping[str, object], name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        repeated = blank = 0
        if name == "causes" and self.id_parts > 1:
            return self._read_composite_causes(record)
        for column in self.chosen[name]:
            cell = self.get_cell(record, column)
            values = (
                self._split_causes(cell)
                if name == "causes"
                else split_cell(cell, self.list_separator)
            )
            for value in map(decimal_to_number, values):
                if is_blank(value):
                    blank += not is_blank(cell)
                    continue
                single = name_of(value)
                if single is None:
                    place = column if cell is value else f"{column}[]"
                    single = self._make_unreadable(value, name, place)
                repeated += single in found
                found[single] = None
        if name == "causes":
            self.cause_counts[REPEATED] += repeated
            self.cause_counts[BLANK] += blank
        return tuple(found)

    def _read_composite_causes(self, record: Mapping[str, object]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        counts = dict.fromkeys(self.cause_counts, 0)
        for value in self._split_composite_causes(record):
            if isinstance(value, list | tuple) and len(value) == self.id_parts:
                names = [name_of(decimal_to_number(part)) for part in value]
                if is_blank(value[-1]):  # the other parts may be shared by all causes of a row
                    counts[BLANK] += not self._uses_id_columns(value)
                    continue
                good = [name for name in names if name is not None]
                whole = len(good) == len(names)
                name = join_id(good) if whole else unreadable_name(value)
                counts[UNREADABLE_CAUSES] += not whole
            elif is_blank(value):
                counts[BLANK] += 1
                continue
            elif (single := name_of(decimal_to_number(value))) is not None:
                name = single
                counts[PARTIAL_CAUSES] += not can_be_joined_id(single, self.id_parts)
            else:
                name = unreadable_name(value)
                counts[UNREADABLE_CAUSES] += 1
            counts[REPEATED] += name in found
            found[name] = None
        for what, count in counts.items():
            self.cause_counts[what] += count
        return tuple(found)

    def _uses_id_columns(self, parts: Sequence[object]) -> bool:
        """Return whether the present parts of a cause are columns of the row's id."""
        columns = self.chosen["causes"]
        if len(columns) != len(parts):
            return False
        there = [one for one, part in zip(columns, parts, strict=True) if not is_blank(part)]
        return all(one in self.chosen["id"] for one in there)

    def _split_composite_causes(self, record: Mapping[str, object]) -> Iterator[object]:
        """Yield causes as lists of parts or as whole ids."""
        columns, parts = self.chosen["causes"], self.id_parts
        if len(columns) % parts == 0:
            for first in range(0, len(columns), parts):
                cells = [self.get_cell(record, one) for one in columns[first : first + parts]]
                yield from combine_parts([split_cell(cell, self.list_separator) for cell in cells])
            return
        for column in columns:
            cell = self.get_cell(record, column)
            listed = column in self.expressions and expressions.count_parts(column) == parts
            if listed and isinstance(cell, list):
                yield from combine_parts([split_cell(part, self.list_separator) for part in cell])
            elif not is_blank(cell):
                yield from split_cell(cell, self.list_separator)

    def _make_unreadable(self, value: object, name: str, column: str) -> str:
        """Count a number that is not an id; return an id of no event. Else raise ValueError."""
        rounded = is_rounded(value)
        if name != "causes" and rounded:
            raise ValueError(f"{name} is rounded: {describe_rounded(value, self.chosen[name])}")
        if name != "causes" or not isinstance(value, float):
            raise ValueError(self._describe_no_name(value, name, column))
        self.cause_counts[ROUNDED_CAUSES if rounded else UNREADABLE_CAUSES] += 1
        return unreadable_name(value)

    def _read_clock(self, record: Mapping[str, object]) -> dict[str, int] | None:
        if self.chosen["clock_members"] and self.chosen["clock_counts"]:
            members = self._read_first(record, "clock_members")
            counts = self._read_first(record, "clock_counts")
            if is_blank(members) or is_blank(counts):
                return None
            members, counts = parse_json_list(members), parse_json_list(counts)
            if not (isinstance(members, list) and isinstance(counts, list)):
                raise ValueError("clock_members and clock_counts are not lists")
            if len(members) != len(counts):
                raise ValueError("clock_members and clock_counts differ in length")
            return check_clock(dict(zip(map(str, members), counts, strict=True)))
        value = self._read_first(record, "clock")
        if is_blank(value):
            return None
        if isinstance(value, str):
            clock = parse_clock(value)
            if isinstance(clock, str):
                raise ValueError(clock)
            return clock
        try:
            return check_clock(dict(value))  # type: ignore[call-overload]
        except TypeError as error:
            raise ValueError(f"invalid clock: {str(value)[:60]}; expected a mapping") from error
