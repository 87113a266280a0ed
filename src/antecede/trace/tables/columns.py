"""From a user's own columns to events: which column is which, and cells to values.

A column the user names wins; else columns are known by the schema's own names and by the
usual ones below. What cannot be told is left null; only the identity must be there: an `id`,
or `member` with `seq` or `clock` (the event is then named MEMBER:NUMBER).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from antecede.errors import FormatError, InputError
from antecede.formatting import shown
from antecede.trace import text
from antecede.trace.causes import BLANK, REPEATED
from antecede.trace.formats.shiviz_dialects import parse_clock
from antecede.trace.reader import NO_GROUP, NO_ID, ReadOptions
from antecede.trace.schema import EVENT, KINDS, NAMES, Event, Quarantined

TIMES = ("arrival", "send_time", "author_time", "commit_time", "start_time", "end_time")
USUAL = {
    "id": ("event_id", "message_id", "msg_id", "id", "uuid"),
    "parents": (
        *("parents", "parent", "parent_id", "causes", "cause", "after"),
        *("caused_by", "in_reply_to", "reply_to"),
    ),
    "member": ("member", "sender", "host", "node", "process", "agent", "author"),
    "send_time": ("send_time", "sent_at", "timestamp", "time", "ts"),
    "topics": ("topics", "topic", "channel"),
    "clock": ("clock", "vector_clock", "vc"),
    "text": ("text", "message", "msg", "event", "description"),
}
CHOICES = (*(name for name in NAMES if name not in ("file_order", "source", "line")), "clock")
"""Names under which a user may give a column."""


_OTHER_WAY = {"parents": "clock", **dict.fromkeys(("clock", "clock_members"), "parents")}
"""A named column of clocks excludes guessed causes, and the reverse: else one hides the other."""

MAX_COLUMNS = 4096
"""Different columns in a table of JSON lines."""


class Columns:
    """The user's columns by column of the schema, and the unit of their times."""

    def __init__(
        self,
        sample: Sequence[Mapping[str, object]],
        options: ReadOptions,
        source: str,
        *,
        growing: bool = False,
    ) -> None:
        """Look at the first records; FormatError if a named or needed column is not there.

        `growing`: later records may have further columns (JSON), so named ones may still come.
        """
        self.source = source
        self.unreadable_times = 0
        """Times so far that are no number and not ISO 8601, or out of range: null, but counted."""
        self.rounded_causes = 0
        """Causes so far that are floating-point numbers from 2**53 on: several ids, or one."""
        self.guessed_unit = ""
        """The unit of times so far that are numbers, where their size told it."""
        self.causes = {REPEATED: 0, BLANK: 0}
        """Causes so far that an event names again, and blanks in lists of causes: left out."""
        self.separator = options.separator
        if options.separator == "":
            raise InputError("--separator is empty; name the text between two causes")
        known = list(dict.fromkeys(key for record in sample for key in record))
        self.known = dict.fromkeys(known)
        self.options = options
        self.growing = growing
        self.of = {name: _found(name, known, options, source, growing) for name in CHOICES}
        if not self.of["id"] and not (
            self.of["member"] and (self.of["seq"] or self.of["clock"] or self.of["clock_members"])
        ):
            message = (
                f"no column is known to identify an event; columns are {', '.join(known)[:300]}; "
                "say --id COLUMN (or --member and --seq)"
            )
            raise FormatError(message, path=source)
        if not growing:
            self._refuse_idle(sample)
        own_schema = set(NAMES) <= set(known)
        self._by_size = not (options.time_unit or own_schema)
        self.unit = options.time_unit or ("ns" if own_schema else self._unit(sample))

    def _refuse_idle(self, sample: Iterable[Mapping[str, object]]) -> None:
        """Raise InputError for an option that no column of this table has a use for."""

        def held(names: Iterable[str]) -> list[object]:
            columns = [column for name in names for column in self.of[name]]
            cells = (record.get(column) for record in sample for column in columns)
            return [cell for cell in cells if cell is not None]

        if self.separator is not None:
            if not (self.of["parents"] or self.of["topics"]):
                raise InputError(
                    "--separator takes causes or topics apart, and no column is known to hold any",
                    path=self.source,
                )
            cells = held(("parents", "topics"))
            if cells and all(isinstance(cell, list) for cell in cells):
                message = "--separator takes text apart, and the causes here are lists already"
                raise InputError(f"{message}: leave it out", path=self.source)
        if self.options.time_unit is not None:
            if not any(self.of[name] for name in TIMES):
                message = "--time-unit is of times, and no column is known to hold any"
                raise InputError(message, path=self.source)
            times = held(TIMES)
            if times and not any(map(_is_number, times)):
                message = "--time-unit is of plain numbers, and the times here are dates"
                raise InputError(f"{message}: leave it out", path=self.source)

    def _unit(self, sample: Iterable[Mapping[str, object]]) -> str:
        """Return the unit that the size of the largest number tells.

        Of those that are a time in some unit: what is refused says nothing of the others.
        """
        columns = [column for name in TIMES for column in self.of[name]]
        numbers = (_finite(record.get(column)) for record in sample for column in columns)
        sizes = (abs(n) for n in numbers if n is not None)
        return text.unit_by_size(max((n for n in sizes if n < text.MAX_TIME), default=0))

    def telling(self) -> str:
        """Return which columns could tell what came before what, as "parents in caused_by; ..."."""
        could = ("parents", "clock", "clock_members", "kind")
        return "; ".join(
            f"{name} in {text.shorten(self.of[name][0])}" for name in could if self.of[name]
        )

    def guessed(self) -> str:
        """Return which columns were taken by a usual name that is not the schema's own."""
        taken = ((name, self.of[name]) for name in CHOICES if name not in self.options.columns)
        usual = [(name, of[0]) for name, of in taken if of and of[0].lower() != name]
        return ", ".join(f"{name} is {text.shorten(column)}" for name, column in usual)

    def check_all_came(self) -> None:
        """Raise FormatError for a column that the user named and that no record had."""
        for name in self.options.columns:
            _found(name, list(self.known), self.options, self.source)

    def _widen(self, record: Mapping[str, object], line: int | None) -> None:
        """Take in columns that this record is the first to have, as JSON leaves out what is null.

        What was found before stays as it is: no record until here had the new ones. Raise
        FormatError for more columns than any table has: the work would grow with their square.
        """
        new = [column for column in record if column not in self.known]
        if len(self.known) + len(new) > MAX_COLUMNS:
            raise FormatError(
                f"more than {MAX_COLUMNS:,} different columns up to here; the last is "
                f"{text.shorten(new[-1])[:60]!r}: do names hold what values should?",
                path=self.source,
                line=line,
            )
        timed = any(column in self.known for name in TIMES for column in self.of[name])
        self.known.update(dict.fromkeys(new))
        for name in CHOICES:
            if not self.of[name] and name not in self.options.columns:
                self.of[name] = _found(name, new, self.options, self.source)
        if not timed and not self.options.time_unit:
            self.unit = self._unit([record])

    def event(self, record: Mapping[str, object], line: int | None) -> Event | Quarantined:
        """Return the record as an event, or what is wrong with it."""
        if not record.keys() <= self.known.keys():
            self._widen(record, line)
        try:
            return self._event(record, line)
        except ValueError as error:
            raw = text.shorten(json.dumps(record, default=str, ensure_ascii=False))
            identity = name_of(self._first(record, "id"))
            safe = None if identity is None else text.shorten(identity)
            return Quarantined(self.source, line, safe, text.shorten(str(error)), raw)

    def _event(self, record: Mapping[str, object], line: int | None) -> Event:
        member = self._name(record, "member")
        run = self._name(record, "run")
        if run is None and self.options.needs_run:
            raise ValueError(NO_GROUP)
        clock = self._clock(record)
        seq = self._number(record, "seq")
        if seq is None and clock is not None and member is not None:
            seq = clock.get(member)
        kind = name_of(self._first(record, "kind"))
        event = Event(
            run=run,
            kind=kind if kind in KINDS else EVENT,
            id=self._identity(record, member, seq),
            member=member,
            seq=seq,
            parents=self._names(record, "parents"),
            clock_members=None if clock is None else tuple(clock),
            clock_counts=None if clock is None else tuple(clock.values()),
            topics=self._names(record, "topics"),
            ingest=self._number(record, "ingest"),
            role=name_of(self._first(record, "role")),
            text=name_of(self._first(record, "text")),
            source=self.source,
            line=line,
        )
        times: dict[str, Any] = {t: self._time(record, t) for t in TIMES if self.of[t]}
        return event._replace(**times) if times else event

    def _identity(self, record: Mapping[str, object], member: str | None, seq: int | None) -> str:
        if self.of["id"]:
            identity = self._name(record, "id")
            held = self._first(record, "id")
            # What is not a number is null in a column of numbers.
            if identity is None and not _is_blank(held) and _finite(held) is not None:
                raise ValueError(f"id holds what is no name: it is {shown(held)}, {_NAMES_ARE}")
        else:
            identity = None if member is None or seq is None else f"{member}:{seq}"
        if identity is None:
            raise ValueError(NO_ID)
        return identity

    def _first(self, record: Mapping[str, object], name: str) -> object:
        value = next((record.get(column) for column in self.of[name]), None)
        return _plain(value) if isinstance(value, Decimal) else value

    def _name(self, record: Mapping[str, object], name: str) -> str | None:
        """Return a name in a record; ValueError for one that rounding may have made of others."""
        value = self._first(record, name)
        if is_rounded(value):
            raise ValueError(f"{name} is rounded: {_rounded(value, self.of[name])}")
        return name_of(value)

    def _number(self, record: Mapping[str, object], name: str) -> int | None:
        value = self._first(record, name)
        if value is None or value == "":
            return None
        if is_rounded(value):
            raise ValueError(f"{name} is rounded: {_rounded(value, self.of[name])}")
        number = text.int64(value)
        if number is None:
            raise ValueError(f"{name} is no whole number of 64 bits: {str(value)[:60]}")
        return number

    def _time(self, record: Mapping[str, object], name: str) -> int | None:
        value = self._first(record, name)
        if isinstance(value, datetime.datetime | datetime.date):
            value = value.isoformat()
        number = text.nanoseconds(value, self.unit)
        if number is not None and self._by_size:
            self.guessed_unit = self.unit
        if number is None and isinstance(value, str):
            number = text.iso_time(value)
        if number is None and value is not None and value != "":
            self.unreadable_times += 1
        return number

    def _names(self, record: Mapping[str, object], name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        repeated = blank = 0
        for column in self.of[name]:
            cell = record.get(column)
            for value in map(_plain, _cells(cell, self.separator)):
                single = name_of(value)
                if is_rounded(value):
                    single = self._doubtful(value, name)
                if single is not None:
                    repeated += single in found
                    found[single] = None
                elif _is_blank(value):
                    blank += not _is_blank(cell)
                elif _finite(value) is not None:
                    raise ValueError(
                        f"{name} holds what is no name: it is {shown(value)}, {_NAMES_ARE}"
                    )
        if name == "parents":
            self.causes[REPEATED] += repeated
            self.causes[BLANK] += blank
        return tuple(found)

    def _doubtful(self, value: object, name: str) -> str:
        """Return a name that no event has, for a cause that may be one of several, and count it."""
        if name != "parents":
            raise ValueError(f"{name} is rounded: {_rounded(value, self.of[name])}")
        self.rounded_causes += 1
        return f"{value!r} (rounded)"

    def _clock(self, record: Mapping[str, object]) -> dict[str, int] | None:
        if self.of["clock_members"] and self.of["clock_counts"]:
            members = self._first(record, "clock_members")
            counts = self._first(record, "clock_counts")
            if members in (None, "") or counts in (None, ""):  # an empty cell of a text file
                return None
            members, counts = _as_list(members), _as_list(counts)
            if not (isinstance(members, list) and isinstance(counts, list)):
                raise ValueError("clock_members and clock_counts are no lists")
            if len(members) != len(counts):
                raise ValueError("clock_members and clock_counts differ in length")
            return _checked(dict(zip(map(str, members), counts, strict=True)))
        value = self._first(record, "clock")
        if value is None or value == "":
            return None
        if isinstance(value, str):
            clock = parse_clock(value)
            if isinstance(clock, str):
                raise ValueError(clock)
            return clock
        try:
            return _checked(dict(value))  # type: ignore[call-overload]
        except TypeError as error:
            raise ValueError(f"the clock is no mapping of members: {str(value)[:60]}") from error


def _as_list(value: object) -> object:
    """Return the list that a cell of a text file writes as JSON; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


MAX_EXACT = 2**53
"""Floating-point numbers from here on stand for several whole numbers each."""
_NAMES_ARE = "and ids are text, bytes or whole numbers"


def is_rounded(value: object) -> bool:
    """Tell whether a value is a number that may stand for other whole numbers than its own."""
    return isinstance(value, float) and math.isfinite(value) and abs(value) >= MAX_EXACT


def _rounded(value: object, columns: Sequence[str]) -> str:
    where = f" of column {columns[0]}" if columns else ""
    return (
        f"{value!r}{where} is a floating-point number from 2**53 on, which several whole numbers "
        "become; save ids as text or int64"
    )


def _plain(value: object) -> object:
    """Return a decimal number as a whole one, or as the nearest broken one; others as they are."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def name_of(value: object) -> str | None:
    """Return an identity as text: text, bytes or a whole number; None for null and blank."""
    if isinstance(value, bytes):
        value = text.decode(value)
    if isinstance(value, float) and value.is_integer():  # a column of numbers with nulls
        value = int(value)
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _found(
    name: str, known: Sequence[str], options: ReadOptions, source: str, growing: bool = False
) -> tuple[str, ...]:
    """Columns that give one column of the schema; the user's if named, else a usual one."""
    if name in options.columns:
        absent = [column for column in options.columns[name] if column not in known]
        if absent and not growing:
            message = f"no column {absent[0]!r}; columns are {', '.join(known)[:300]}"
            raise FormatError(message, path=source)
        return tuple(options.columns[name])
    if _OTHER_WAY.get(name, name) in options.columns:
        return ()  # the user named another column to go by
    lower = {column.lower(): column for column in reversed(known)}
    for usual in (name, *USUAL.get(name, ())):
        if usual in lower:
            return (lower[usual],)
    return ()


def further_columns(known: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the columns of a table that are read as none of the schema's."""
    taken = {one for name in CHOICES for one in _found(name, known, options, "", growing=True)}
    return [name for name in known if name not in taken and name not in NAMES]


def _cells(value: object, separator: str | None) -> Sequence[object]:
    """Return the values in one cell: a list, a JSON list as text, or text to be separated."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str):
        if value.startswith("["):
            try:
                listed: Any = json.loads(value)
            except (ValueError, RecursionError):
                listed = None
            if isinstance(listed, list):
                return listed
        if separator is not None:
            return [part.strip() for part in value.split(separator)]
    return (value,)


def _is_blank(value: object) -> bool:
    """Tell whether a value names nothing: null, or text of blanks alone."""
    return value is None or (isinstance(value, str | bytes) and not value.strip())


def _checked(clock: Mapping[object, object]) -> dict[str, int]:
    """Return a clock's entries above zero; ValueError if a counter cannot be one."""
    checked: dict[str, int] = {}
    for member, written in clock.items():
        count = None if isinstance(written, str) else text.int64(written)
        if written is None or count == 0:
            continue
        if is_rounded(written):
            raise ValueError(f"the counter of {member!r} is rounded: {_rounded(written, ())}")
        if count is None or count < 0:
            raise ValueError(f"the counter of {member!r} is no whole number from 0: {written!r}")
        checked[str(member)] = count
    return checked


def _is_number(value: object) -> bool:
    try:
        return not isinstance(value, bool) and float(str(_plain(value))) is not None
    except ValueError:
        return False


def _finite(value: object) -> float | None:
    """Return a number worth looking at; 0.0 for what is no number at all; None for null or nan."""
    value = _plain(value)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(value) if abs(value) < 1e300 else None
