"""From a user's own columns to events: which column is which, and cells to values.

A column the user names wins; else columns are known by the schema's own names and by usual ones
(`usual_names`). In place of a name an expression may stand (`expressions`). What cannot be told is
left null; only the identity must be there: an `id`, also of several parts (`composites`), or
`member` with `seq` or `clock` (the event is then named MEMBER:NUMBER).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from antecede.errors import FormatError, InputError
from antecede.formatting import shown
from antecede.trace import text
from antecede.trace.causes import BLANK, PARTIAL, REPEATED, ROUNDED, UNREADABLE
from antecede.trace.formats.shiviz_dialects import parse_clock
from antecede.trace.identities import IDS_ARE, is_blank, is_rounded, name_of, unreadable_name
from antecede.trace.reader import NO_GROUP, NO_ID, ReadOptions
from antecede.trace.schema import EVENT, KINDS, NAMES, Event, Quarantined
from antecede.trace.tables import composites, expressions, usual_names
from antecede.trace.tables.expressions import Failed

TIMES = ("arrival", "send_time", "author_time", "commit_time", "start_time", "end_time")
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
        self.guessed_unit = ""
        """The unit of times so far that are numbers, where their size told it."""
        self.causes = {REPEATED: 0, BLANK: 0, ROUNDED: 0, UNREADABLE: 0, PARTIAL: 0}
        """Causes so far, by what is wrong with them (`trace.causes`)."""
        self.separator = options.separator
        if options.separator == "":
            raise InputError("--separator is empty; name the text between two causes")
        known = list(dict.fromkeys(key for record in sample for key in record))
        self.known = dict.fromkeys(known)
        self.options = options
        self.growing = growing
        self.of = {name: _found(name, known, options, source, growing) for name in CHOICES}
        named = [column for name in options.columns for column in options.columns[name]]
        self.expressions = dict.fromkeys(
            (one for one in named if one not in self.known and expressions.is_expression(one)), 0
        )
        """Expressions in place of columns; 1 where it has found something so far."""
        if not self.of["id"] and not (
            self.of["member"] and (self.of["seq"] or self.of["clock"] or self.of["clock_members"])
        ):
            message = (
                f"no column is known to identify an event; columns are {', '.join(known)[:300]}; "
                "say --id COLUMN (or --member and --seq)"
            )
            raise FormatError(message, path=source)
        self.id_parts = self._parts_of_id()
        """Parts of which an id is made (`composites`)."""
        self.likely: list[str] = []
        """Columns that may hold causes and are not read."""
        if "parents" not in options.columns:
            self._take_likely(sample)
        if not growing:
            self._refuse_idle(sample)
        own_schema = set(NAMES) <= set(known)
        self._by_size = not (options.time_unit or own_schema)
        self.unit = options.time_unit or ("ns" if own_schema else self._unit(sample))

    def cell(self, record: Mapping[str, object], column: str) -> object:
        """Return what a row holds in a column, or what an expression finds in it.

        Raises ValueError where an expression cannot be evaluated.
        """
        value = record.get(column)
        if column in self.expressions:
            if column not in record:
                value = expressions.evaluate(column, record)
            if isinstance(value, Failed):
                raise ValueError(value.reason)
            self.note_found(column, value)
        return value

    def note_found(self, expression: str, value: object) -> None:
        """Note whether an expression has found something."""
        if value is not None and value != [] and not isinstance(value, Failed):
            self.expressions[expression] = 1

    def _sampled(self, record: Mapping[str, object], column: str) -> object:
        """Return a cell of the first rows, which have their turn later."""
        if column in self.expressions and column not in record:
            value = expressions.evaluate(column, record)
            return None if isinstance(value, Failed) else value
        return record.get(column)

    def _parts_of_id(self) -> int:
        """Return of how many parts an id is made. Raises InputError where causes have others."""
        of_id = self.of["id"]
        parts = sum(expressions.parts_of(one) if one in self.expressions else 1 for one in of_id)
        causes = self.options.columns.get("parents", ())
        if parts > 1 and len(causes) > 1 and len(causes) % parts:
            raise InputError(
                f"--id has {parts} parts, so --after takes {parts} columns for a cause, or 1 that "
                f"holds whole ids; {len(causes)} are given",
                path=self.source,
            )
        return max(parts, 1)

    def _take_likely(self, sample: Sequence[Mapping[str, object]]) -> None:
        """Take a column whose name and values look like causes, where no usual name does."""
        likely = usual_names.likely_causes(self.known)
        if _OTHER_WAY["parents"] in self.options.columns:
            self.likely = []
            return  # the user named another column to go by
        if likely and self.of["id"] and self.id_parts == 1:
            cells = (self._sampled(record, self.of["id"][0]) for record in sample)
            ids = frozenset(name for cell in cells if (name := name_of(_plain(cell))) is not None)
            meant = usual_names.names_ids(likely, sample, ids, self._names_in)
            if not self.of["parents"] and meant:
                self.of["parents"] = (meant[0],)
            likely = [one for one in likely if one not in self.of["parents"]]
            if self.of["parents"]:
                likely = [one for one in likely if one in meant]
        elif self.of["parents"]:
            likely = []
        self.likely = likely

    def _names_in(self, cell: object) -> list[str]:
        values = map(_plain, _cells(cell, self.separator))
        return [name for value in values if (name := name_of(value)) is not None]

    def unread(self) -> tuple[str, str]:
        """Return the columns that may hold causes, and those that name later events, if unread."""
        if "parents" in self.options.columns:
            return "", ""
        if self.of["parents"]:
            return ", ".join(self.likely), ""
        known = list(self.known)
        likely, later = usual_names.likely_causes(known), usual_names.later_events(known)
        return ", ".join(likely)[:300], ", ".join(later)[:300]

    def _refuse_idle(self, sample: Iterable[Mapping[str, object]]) -> None:
        """Raise InputError for an option that no column of this table has a use for."""

        def held(names: Iterable[str]) -> list[object]:
            columns = [column for name in names for column in self.of[name]]
            cells = (self._sampled(record, column) for record in sample for column in columns)
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
        cells = (self._sampled(record, column) for record in sample for column in columns)
        numbers = map(_finite, cells)
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
            safe = self._safe_identity(record)
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

    def _safe_identity(self, record: Mapping[str, object]) -> str | None:
        """Return the id of a bad record, as far as it can be told."""
        try:
            identity = name_of(self._first(record, "id"))
        except ValueError:
            return None
        return None if identity is None else text.shorten(identity)

    def _composite(self, record: Mapping[str, object]) -> str:
        """Return the id that several columns, or the values of an expression, make."""
        parts: list[object] = []
        for column in self.of["id"]:
            value = self.cell(record, column)
            size = expressions.parts_of(column) if column in self.expressions else 1
            if size > 1:
                parts += value if isinstance(value, list) else [None] * size
            else:
                parts.append(self._single(value, column, "id"))
        names = [self._part(value) for value in parts]
        if None in names:
            blank = len([name for name in names if name is None])
            where = ", ".join(self.of["id"])
            raise ValueError(f"{NO_ID}: {blank} of its {len(names)} parts are blank ({where})")
        return composites.joined([name for name in names if name is not None])

    def _part(self, value: object) -> str | None:
        """Return a part of an id, None for a blank. Raises ValueError for what is no name."""
        value = _plain(value)
        if is_rounded(value):
            raise ValueError(f"id is rounded: {_rounded(value, self.of['id'])}")
        name = name_of(value)
        if name is None and not is_blank(value):
            raise ValueError(f"id holds what is no name: it is {shown(value)}, and {IDS_ARE}")
        return name

    def _single(self, value: object, column: str, name: str) -> object:
        """Return the one value that an expression found. Raises ValueError for several."""
        if column in self.expressions and isinstance(value, list):
            if len(value) > 1:
                raise ValueError(f"{name}: {column} finds several values: {shown(value)}")
            value = value[0] if value else None
        return value

    def _identity(self, record: Mapping[str, object], member: str | None, seq: int | None) -> str:
        if self.id_parts > 1:
            return self._composite(record)
        if self.of["id"]:
            identity = self._name(record, "id")
            held = self._first(record, "id")
            # What is not a number is null in a column of numbers.
            if identity is None and not is_blank(held):
                raise ValueError(f"id holds what is no name: it is {shown(held)}, and {IDS_ARE}")
        else:
            identity = None if member is None or seq is None else f"{member}:{seq}"
        if identity is None:
            raise ValueError(NO_ID)
        return identity

    def _first(self, record: Mapping[str, object], name: str) -> object:
        column = next(iter(self.of[name]), None)
        if column is None:
            return None
        value = self._single(self.cell(record, column), column, name)
        return _plain(value) if isinstance(value, Decimal) else value

    def _name(self, record: Mapping[str, object], name: str) -> str | None:
        """Return a name in a record; ValueError for one that rounding may have made of others."""
        value = self._first(record, name)
        if is_rounded(value):
            raise ValueError(f"{name} is rounded: {_rounded(value, self.of[name])}")
        return name_of(value)

    def _number(self, record: Mapping[str, object], name: str) -> int | None:
        value = self._first(record, name)
        if is_blank(value):
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
        if number is None and not is_blank(value):
            self.unreadable_times += 1
        return number

    def _names(self, record: Mapping[str, object], name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        repeated = blank = 0
        if name == "parents" and self.id_parts > 1:
            return self._composite_causes(record)
        for column in self.of[name]:
            cell = self.cell(record, column)
            for value in map(_plain, _cells(cell, self.separator)):
                if is_blank(value):
                    blank += not is_blank(cell)
                    continue
                single = name_of(value)
                if single is None:
                    single = self._unreadable(value, name)
                repeated += single in found
                found[single] = None
        if name == "parents":
            self.causes[REPEATED] += repeated
            self.causes[BLANK] += blank
        return tuple(found)

    def _composite_causes(self, record: Mapping[str, object]) -> tuple[str, ...]:
        """Return the causes of a row whose ids have several parts."""
        found: dict[str, None] = {}
        counts = dict.fromkeys(self.causes, 0)
        for value in self._composite_cells(record):
            if isinstance(value, list | tuple) and len(value) == self.id_parts:
                names = [name_of(_plain(part)) for part in value]
                if is_blank(value[-1]):  # the others may be the same for all causes of a row
                    continue
                good = [name for name in names if name is not None]
                whole = len(good) == len(names)
                name = composites.joined(good) if whole else unreadable_name(value)
                counts[UNREADABLE] += not whole
            elif is_blank(value):
                counts[BLANK] += 1
                continue
            elif (single := name_of(_plain(value))) is not None:
                name = single
                counts[PARTIAL] += not composites.could_be_joined(single, self.id_parts)
            else:
                name = unreadable_name(value)
                counts[UNREADABLE] += 1
            counts[REPEATED] += name in found
            found[name] = None
        for what, count in counts.items():
            self.causes[what] += count
        return tuple(found)

    def _composite_cells(self, record: Mapping[str, object]) -> Iterator[object]:
        """Yield causes: lists of parts, or whole ids as text."""
        columns, parts = self.of["parents"], self.id_parts
        if len(columns) % parts == 0:
            for first in range(0, len(columns), parts):
                cells = [self.cell(record, one) for one in columns[first : first + parts]]
                yield from _filled([_cells(cell, self.separator) for cell in cells])
            return
        for column in columns:
            cell = self.cell(record, column)
            listed = column in self.expressions and expressions.parts_of(column) == parts
            if listed and isinstance(cell, list):
                yield from _filled([_cells(part, self.separator) for part in cell])
            elif not is_blank(cell):
                yield from _cells(cell, self.separator)

    def _unreadable(self, value: object, name: str) -> str:
        """Return a name that no event has, for a cause that is a number but no id, and count it.

        Raise ValueError for all else that is no name.
        """
        rounded = is_rounded(value)
        if name != "parents" and rounded:
            raise ValueError(f"{name} is rounded: {_rounded(value, self.of[name])}")
        if name != "parents" or not isinstance(value, float):
            raise ValueError(f"{name} holds what is no name: it is {shown(value)}, and {IDS_ARE}")
        self.causes[ROUNDED if rounded else UNREADABLE] += 1
        return unreadable_name(value)

    def _clock(self, record: Mapping[str, object]) -> dict[str, int] | None:
        if self.of["clock_members"] and self.of["clock_counts"]:
            members = self._first(record, "clock_members")
            counts = self._first(record, "clock_counts")
            if is_blank(members) or is_blank(counts):  # an empty cell of a text file
                return None
            members, counts = _as_list(members), _as_list(counts)
            if not (isinstance(members, list) and isinstance(counts, list)):
                raise ValueError("clock_members and clock_counts are no lists")
            if len(members) != len(counts):
                raise ValueError("clock_members and clock_counts differ in length")
            return _checked(dict(zip(map(str, members), counts, strict=True)))
        value = self._first(record, "clock")
        if is_blank(value):
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


def _rounded(value: object, columns: Sequence[str]) -> str:
    where = f" of column {columns[0]}" if columns else ""
    return (
        f"{value!r}{where} is a floating-point number from 2**53 on, which several whole numbers "
        "become; save ids as text or int64"
    )


def _filled(cells: Sequence[Sequence[object]]) -> Iterator[object]:
    """Yield causes that the cells of their parts make; none where all cells are blank."""
    if all(is_blank(value) for cell in cells for value in cell):
        return
    yield from composites.zipped(cells)


def _plain(value: object) -> object:
    """Return a decimal number as a whole one, or as the nearest broken one; others as they are."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def _found(
    name: str, known: Sequence[str], options: ReadOptions, source: str, growing: bool = False
) -> tuple[str, ...]:
    """Columns that give one column of the schema; the user's if named, else a usual one."""
    if name in options.columns:
        for column in options.columns[name]:
            if column in known or expressions.is_expression(column):
                continue
            why = expressions.defect(column)
            if not growing or why:
                why = f" and no expression of JMESPath ({why})" if why else ""
                message = f"no column {column!r}{why}; columns are {', '.join(known)[:300]}"
                raise FormatError(message, path=source)
        return tuple(options.columns[name])
    if _OTHER_WAY.get(name, name) in options.columns:
        return ()  # the user named another column to go by
    return usual_names.find_usual(name, known)


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
        if is_blank(member):
            raise ValueError(f"the clock has a counter of a member without a name: {member!r}")
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
