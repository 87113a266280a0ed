"""Reader of files with one JSON object per event (`document_formats`).

A file holds one object per line, a list of objects, or an object with such a list. One object is in
memory at a time.

**Ids within a scope** (CloudEvents: unique only with `source`). Events have the id SCOPE:ID, causes
only ID. So files are read twice, with all ids in memory. A cause that exists in several scopes
matches no event and is counted (`ambiguous_causes`). An event with a `sequence` has the next lower
one of its scope as a cause.
"""

from __future__ import annotations

import contextlib
import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from antecede.errors import InputError
from antecede.tables.trace import text
from antecede.tables.trace.causes import AMBIGUOUS_CAUSES, BLANK, CAUSE_COLUMNS, TOLD_BY
from antecede.tables.trace.expressions import Expression, compile_expression, select_values
from antecede.tables.trace.formats.document_formats import DocumentFormat
from antecede.tables.trace.formats.json_stream import Element, MalformedElement, read_elements
from antecede.tables.trace.identities import is_blank, name_of
from antecede.tables.trace.reader import NO_ID, Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import UNREADABLE_TIMES
from antecede.tables.trace.user_tables.reader import GUESSED_COLUMNS
from antecede.tables.trace.user_tables.usual_names import USUAL, simplify_name
from antecede.tables.trace.user_tables.values import join_id

SAMPLE = 20
MAX_CAUSES = 10_000
_USUAL_CAUSES = frozenset(map(simplify_name, USUAL["causes"]))
_DECODER = json.JSONDecoder()
_NEXT = re.compile(r"[\s,]*")


class DocumentReader:
    """Reader of one format of `document_formats`."""

    uses: tuple[str, ...] = ()
    gives_way_to_columns = True

    def __init__(self, format: DocumentFormat, scopes: Scopes | None = None) -> None:
        self.name = format.name
        self.format = format
        self.scopes = scopes
        self._event_expression = compile_expression(format.recognize, format.name)
        self._columns = {
            column: compile_expression(expression, f"{format.name}: {column}")
            for column, expression in format.columns.items()
        }
        self._scope = _compile_optional(format.scope, f"{format.name}: scope")
        self._sequence = _compile_optional(format.sequence, f"{format.name}: sequence")

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize an event among the first objects."""
        return 0.0 if self._find_list(head) is None else 0.92

    def create_for_files(self, paths: Sequence[Path]) -> DocumentReader:
        """Return a reader for the files of one trace; causes may be in other files."""
        return DocumentReader(self.format, self._survey(paths))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every event."""
        return (item for item, _ in self.read_with_extra(path, options))

    def read_with_extra(
        self, path: Path, options: ReadOptions
    ) -> Iterator[tuple[Item, Mapping[str, Any] | None]]:
        """Yield every event with its object."""
        known = self.scopes or self._survey([path])
        counts: Counter[str] = Counter()
        keys: dict[str, None] = {}
        for found in self._read_objects(path):
            if isinstance(found, Quarantined):
                yield found, None
                continue
            keys.update(dict.fromkeys(found.value))
            event = self._make_event(found, str(path), known, counts)
            yield event, None if isinstance(event, Quarantined) else found.value
        if keys and not known.has_causes:
            yield Detail(CAUSE_COLUMNS, ", ".join(keys)[:300]), None
            yield Detail(TOLD_BY, ""), None
        if used := self._find_usual_causes(keys):
            yield Detail(GUESSED_COLUMNS, f"causes is {', '.join(used)}"), None
        yield from ((Detail(name, count), None) for name, count in counts.items() if count)

    def _find_list(self, head: bytes) -> tuple[str, ...] | None:
        """Return the path of keys to the list of events; None for another format."""
        sample = text.decode(head).lstrip("\ufeff \t\r\n")
        if sample[:1] not in ("{", "["):
            return None
        if any(map(self._is_event_record, _parse_first_objects(sample))):
            return ()
        for key in self.format.lists:
            for match in re.finditer(rf'"{key}"\s*:\s*(?=\[)', sample):
                if any(map(self._is_event_record, _parse_first_objects(sample[match.end() :]))):
                    return (key,)
        return None

    def _is_event_record(self, record: object) -> bool:
        with contextlib.suppress(InputError):
            return any(select_values(self._event_expression, record))
        return False

    def _read_objects(self, path: Path) -> Iterator[Element | Quarantined]:
        head, _ = text.read_bytes(path, text.HEAD_BYTES)
        for element in read_elements(path, self._find_list(head) or ()):
            if isinstance(element, MalformedElement):
                yield Quarantined(str(path), element.line, None, element.reason, element.raw)
            elif isinstance(element.value, dict):
                yield element
            else:
                raw = text.shorten(json.dumps(element.value, ensure_ascii=False))
                yield Quarantined(str(path), element.line, None, "not a JSON object", raw)

    def _survey(self, paths: Sequence[Path]) -> Scopes:
        """Return the ids and sequences of files; without a scope only whether there are causes."""
        known = Scopes()
        for path in paths:
            with contextlib.suppress(InputError):  # reading the file reports the error
                for found in self._read_objects(path):
                    if isinstance(found, Quarantined):
                        continue
                    with contextlib.suppress(ValueError, InputError):
                        self._add_to_scopes(found.value, known)
                    if self._scope is None and known.has_causes:
                        return known
        return known

    def _add_to_scopes(self, record: Mapping[str, Any], scopes: Scopes) -> None:
        scopes.has_causes |= bool(self._read_causes(record, Counter()))
        if self._scope is not None:
            scope, identity = _select_single(self._scope, record), self._select_name(record, "id")
            if identity is not None and scope is not None:
                scopes.add(identity, scope, self._read_position(record))

    def _make_event(
        self, found: Element, source: str, scopes: Scopes, counts: Counter[str]
    ) -> Event | Quarantined:
        record = found.value
        mine: Counter[str] = Counter()
        try:
            identity = self._select_name(record, "id")
            if identity is None:
                raise ValueError(
                    f"{NO_ID}: {self.format.no_id_advice}" if self.format.no_id_advice else NO_ID
                )
            member, seq = self._select_name(record, "member"), self._read_seq(record)
            causes = self._read_causes(record, mine)
            if self._scope is not None:
                scope = _select_single(self._scope, record)
                if scope is None:
                    raise ValueError(f"no {self.format.scope}: ids are unique only within it")
                causes = scopes.resolve(causes, mine)
                before = scopes.find_previous(scope, self._read_position(record))
                causes += [before] if before is not None else []
                identity = make_scoped_name(scope, identity)
            if self.format.has_counted_ids and seq and identity == f"{member}:{seq}":
                causes += [f"{member}:{seq - 1}"] if seq > 1 else []
            event = Event(
                id=identity,
                member=member,
                seq=seq,
                causes=tuple(dict.fromkeys(causes)),
                topics=tuple(filter(None, map(name_of, self._select(record, "topics")))),
                send_time=self._read_time(record, mine),
                text=self._select_name(record, "text"),
                source=source,
                line=found.line,
            )
        except (ValueError, InputError) as error:
            raw = text.shorten(json.dumps(record, ensure_ascii=False))
            return Quarantined(source, found.line, None, text.shorten(str(error)), raw)
        counts.update(mine)
        return event

    def _select(self, record: Mapping[str, Any], column: str) -> list[Any]:
        expression = self._columns.get(column)
        return [] if expression is None else select_values(expression, record)

    def _select_name(self, record: Mapping[str, Any], column: str) -> str | None:
        expression = self._columns.get(column)
        return None if expression is None else _select_single(expression, record)

    def _read_seq(self, record: Mapping[str, Any]) -> int | None:
        if self._sequence is not None:
            return self._read_position(record).number
        found = self._select(record, "seq")
        number = text.parse_int64(found[0]) if found else None
        if found and number is None:
            raise ValueError(f"invalid seq: {str(found[0])[:60]}; expected a 64-bit integer")
        return number

    def _read_position(self, record: Mapping[str, Any]) -> SequencePosition:
        found = [] if self._sequence is None else select_values(self._sequence, record)
        return SequencePosition.from_text(name_of(found[0]) if found else None)

    def _read_causes(self, record: Mapping[str, Any], counts: Counter[str]) -> list[str]:
        """Return the causes of an object. Raise ValueError for a value that is not an id."""
        names: list[str] = []
        declared = list(self._select(record, "causes"))
        for key in self._find_usual_causes(record):
            cell = record[key]
            declared += cell if isinstance(cell, list) else [] if cell is None else [cell]
        for value in declared:
            if self.format.has_counted_ids and isinstance(value, Mapping):
                for member, number in value.items():
                    if text.parse_int64(number) is None:
                        raise ValueError(
                            f"invalid cause of member {member}: {str(number)[:60]}; "
                            "expected a whole number"
                        )
                    names += [f"{member}:{number}"] if number else []
                continue
            one = value[0] if isinstance(value, list) and value else value
            name = name_of(one)
            if name is not None:
                names.append(name)
            elif is_blank(one):
                counts[BLANK] += 1
            else:
                raise ValueError(f"invalid cause: {str(one)[:60]}; expected an id")
        if len(names) > MAX_CAUSES:
            raise ValueError(f"too many causes; at most {MAX_CAUSES:,} are read")
        return names

    def _find_usual_causes(self, keys: Iterable[str]) -> list[str]:
        if not self.format.has_usual_causes:
            return []
        named = self.format.columns["causes"]
        return [key for key in keys if simplify_name(key) in _USUAL_CAUSES and key not in named]

    def _read_time(self, record: Mapping[str, Any], counts: Counter[str]) -> int | None:
        found = self._select(record, "send_time")
        if not found or found[0] == "":
            return None
        when = text.parse_nanoseconds(found[0], self.format.time_unit)
        if when is None and isinstance(found[0], str):
            when = text.parse_iso_time(found[0])
        counts[UNREADABLE_TIMES] += when is None
        return when


class SequencePosition(NamedTuple):
    """Position of an event in its scope; numbers sort before other text."""

    is_text: bool = True
    number: int | None = None
    text: str = ""

    @classmethod
    def from_text(cls, written: str | None) -> SequencePosition:
        """Return the position of a text (None: unknown)."""
        number = text.parse_int64(written)
        if written is None or number is None:
            return cls(True, None, written or "")
        return cls(False, number, "")

    @property
    def is_known(self) -> bool:
        """True if the event has a position."""
        return self.number is not None or bool(self.text)


class Scopes:
    """Ids and sequences of all scopes of a trace."""

    def __init__(self) -> None:
        self.has_causes = False
        """True if an event has a cause or a position in a sequence."""
        self._scopes: dict[str, set[str | None]] = {}
        self._names: dict[str, str] = {}
        """Full ids by unescaped SCOPE:ID."""
        self._sequences: defaultdict[str | None, list[tuple[SequencePosition, str]]] = defaultdict(
            list
        )
        self._is_sorted = True

    def add(self, identity: str, scope: str | None, position: SequencePosition) -> None:
        """Add an event."""
        name = make_scoped_name(scope, identity)
        self._scopes.setdefault(identity, set()).add(scope)
        self._names[f"{scope}:{identity}"] = name
        if position.is_known:
            self._sequences[scope].append((position, name))
            self._is_sorted, self.has_causes = False, True

    def resolve(self, causes: Sequence[str], counts: Counter[str]) -> list[str]:
        """Return the full ids of causes; an id of several scopes becomes one of no event."""
        found = []
        for cause in causes:
            scopes = self._scopes.get(cause, ())
            if len(scopes) > 1:
                counts[AMBIGUOUS_CAUSES] += 1
                found.append(f"{cause} (of {len(scopes)} sources)")
            elif scopes:
                found += [make_scoped_name(scope, cause) for scope in scopes]
            else:
                found.append(self._names.get(cause, cause))
        return found

    def find_previous(self, scope: str | None, position: SequencePosition) -> str | None:
        """Return the event of a scope with the next lower position, if any."""
        if not position.is_known:
            return None
        if not self._is_sorted:
            for events in self._sequences.values():
                events.sort()
            self._is_sorted = True
        events = self._sequences.get(scope, [])
        place = bisect_left(events, (position, ""))
        return events[place - 1][1] if place else None


def make_scoped_name(scope: str | None, identity: str) -> str:
    """Return the full id of an event."""
    return identity if scope is None else join_id((scope, identity))


def _compile_optional(expression: str, where: str) -> Expression | None:
    return compile_expression(expression, where) if expression else None


def _select_single(expression: Expression, record: Mapping[str, Any]) -> str | None:
    """Return the name that an expression selects. Raise ValueError for another type."""
    found = select_values(expression, record)
    value = found[0] if found else None
    name = name_of(value)
    if name is None and value is not None and not isinstance(value, str):
        raise ValueError(f"invalid {expression.text}: {str(value)[:60]}; expected a text or number")
    return name


def _parse_first_objects(sample: str) -> list[Any]:
    at = 1 if sample.startswith("[") else 0
    found: list[Any] = []
    while len(found) < SAMPLE:
        at = _NEXT.match(sample, at).end()  # type: ignore[union-attr]
        try:
            value, at = _DECODER.raw_decode(sample, at)
        except (ValueError, RecursionError):
            end = sample.find("\n", at)  # skip only the bad line
            if end < 0 or len(found) == SAMPLE - 1:
                break
            found.append(None)
            at = end + 1
        else:
            found.append(value)
    return found
