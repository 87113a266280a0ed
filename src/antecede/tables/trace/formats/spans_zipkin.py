"""Parser of spans in Zipkin's JSON, versions 2 and 1 of the API.

A file is an array of spans, an array of arrays of spans, or one span per line.

Theory of operation
-------------------
A client and a server may share a span id: two rows, or in version 1 one row with annotations of
both (cs, sr). They become two events, the server's caused by the client's. The cause of a child is
the part in its own process, else the client's. A process may report a span in several rows: rows
without a time are merged into the row with it.

Shared ids are known only at the end of the file, so a file is read twice. The first reading indexes
the parts of each span id (17 bytes per span), the second makes the events. The client's or only
part has the id TRACE/SPAN; a server's part of a shared span has TRACE/SPAN/PROCESS.

Programs with 64-bit ids keep the right half of a 128-bit id. Such a trace is joined with the longer
one if exactly one ends with it; then the file is read three times.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antecede.tables.trace import text
from antecede.tables.trace.formats.json_stream import Broken, items
from antecede.tables.trace.formats.partial_span import (
    CLIENT,
    CONSUMER,
    PRODUCER,
    RECEIVING,
    ROLES,
    SERVER,
    Part,
    bad_span,
    columns_of,
    make_part,
    name_of,
    process,
    status_in,
    words,
)
from antecede.tables.trace.formats.spans_ids import TraceIds
from antecede.tables.trace.formats.spans_times import TimeCounts, Unit, read_times, unit_for
from antecede.tables.trace.reader import Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined

Keys = npt.NDArray[np.int64]
Piece = tuple[Event, Mapping[str, Any] | None]
"""Event with its extra columns."""
_MICROS = Unit("us")
_SENT, _RECEIVED, _UNSAID = 0, 1, 2
_OLD = {"cs": CLIENT, "cr": CLIENT, "sr": SERVER, "ss": SERVER, "ms": PRODUCER, "mr": CONSUMER}
_BEGIN = {"cs", "sr", "ms", "mr"}


def read(
    path: Path, options: ReadOptions, own: bool
) -> Iterator[tuple[Item, Mapping[str, Any] | None]]:
    """Yield an event for each part of each span."""
    unit = unit_for("us", options.time_unit)
    known = known_of(lambda: _parts_in(path, unit))
    whole = Whole(known)
    source = str(path)
    counts = TimeCounts(unit)
    for found in items(path, nested=True):
        if isinstance(found, Broken):
            yield Quarantined(source, found.line, None, found.reason, found.raw), None
            continue
        try:
            parts = parts_of(found.value, unit, own)
        except ValueError as error:
            identity, reason, raw = bad_span(found.value, "id", error)
            identity = text.shorten(identity) if identity else None
            yield Quarantined(source, found.line, identity, reason, raw), None
            continue
        for part in parts:
            counts.add(part.unreadable, part.taken, part.unreadable_causes)
            yield from whole.take(part, source, found.line)
    yield from whole.rest()  # empty unless the file changed between the readings
    for name, count in (
        ("shared_spans", known.shared),
        ("merged_rows", whole.merged),
        ("joined_traces", len(known.joined)),
        *counts.details().items(),
    ):
        if count:
            yield Detail(name, count), None


def _parts_in(path: Path, unit: Unit) -> Iterator[Part]:
    for found in items(path, nested=True):
        if isinstance(found, Broken):
            continue
        try:
            yield from parts_of(found.value, unit)
        except ValueError:
            continue


class Whole:
    """Builder of events from parts; rows of one part are merged when all are read."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.merged = 0
        self._waiting: dict[tuple[str, str | None], list[Piece]] = {}

    def take(self, part: Part, source: str = "", line: int = 0) -> Iterator[Piece]:
        """Yield the events that are complete with this part."""
        part = self.known.renamed(part)
        event = part.event(self.known.identity(part), self.known.causes(part), source, line)
        rows = self.known.rows(part)
        if rows == 1:
            yield event, part.own
            return
        pieces = self._waiting.setdefault((event.id, event.member), [])
        pieces.append((event, part.own))
        if len(pieces) == rows:
            whole = list(_merged(self._waiting.pop((event.id, event.member))))
            self.merged += rows - len(whole)
            yield from whole

    def rest(self) -> Iterator[Piece]:
        """Yield the events of incomplete parts."""
        for pieces in self._waiting.values():
            yield from pieces


def _merged(pieces: list[Piece]) -> Iterator[Piece]:
    """Merge rows without a time into the first row with one; other rows are unchanged."""
    timed = [piece for piece in pieces if piece[0].start_time is not None] or pieces[:1]
    for piece, own in pieces:
        first, columns = timed[0]
        is_same = piece.start_time in (None, first.start_time)
        filled = {
            name: getattr(piece, name)
            for name in ("role", "text", "end_time")
            if getattr(first, name) is None and is_same
        }
        if own is not None and is_same:
            known = {name: value for name, value in (columns or {}).items() if value is not None}
            columns = {**own, **known}
        causes = first.parents or piece.parents
        timed[0] = first._replace(parents=causes, **filled), columns
    yield from timed


# --- which ids are shared -----------------------------------------------------------------


def known_of(parts: Callable[[], Iterable[Part]]) -> Known:
    """Return the index of all parts; `parts` restarts the iteration at each call."""
    known = Known(parts())
    if joined := known.halves.joined():
        known = Known(_renamed(parts(), joined))
        known.joined = joined
    return known


def _renamed(parts: Iterable[Part], joined: Mapping[str, str]) -> Iterator[Part]:
    return (part._replace(trace=joined.get(part.trace, part.trace)) for part in parts)


class Known:
    """Index of the parts of each span id, and of the number of rows per part."""

    def __init__(self, parts: Iterable[Part]) -> None:
        spans, places, codes = array("q"), array("q"), bytearray()
        self.halves = TraceIds()
        self.joined: Mapping[str, str] = {}
        """128-bit trace ids by their right halves."""
        for part in parts:
            self.halves.add(part.trace)
            spans.append(_span_key(part.trace, part.span))
            places.append(_place_key(part.trace, part.span, part.member))
            codes.append(_code(part))
        span = np.frombuffer(spans, np.int64) if spans else np.empty(0, np.int64)
        place = np.frombuffer(places, np.int64) if places else np.empty(0, np.int64)
        code = np.frombuffer(codes, np.uint8) if codes else np.empty(0, np.uint8)
        received_at = np.unique(place[code == _RECEIVED])
        # A row without a side belongs to the receiver in the same process.
        received = (code == _RECEIVED) | ((code == _UNSAID) & np.isin(place, received_at))
        _, first = np.unique(place[received], return_index=True)
        receivers, count = np.unique(span[received][first], return_counts=True)
        self._sent = np.unique(span[~received])
        both = np.isin(receivers, self._sent)
        self._several = receivers[both | (count > 1)]
        self._received_at = received_at
        self._repeated: tuple[tuple[Keys, Keys], ...] = (
            _repeated(place[~received]),
            _repeated(place[received]),
        )
        self.shared = int(np.count_nonzero(both))

    def renamed(self, part: Part) -> Part:
        """Return the part with the longer id of its trace, if any."""
        trace = self.joined.get(part.trace)
        return part if trace is None else part._replace(trace=trace)

    def identity(self, part: Part) -> str:
        """Return the event id of the part."""
        plain = name_of(part.trace, part.span)
        if not self._is_received(part) or not _has(self._several, _span_key(part.trace, part.span)):
            return plain
        return f"{plain}/{part.member or ''}"

    def causes(self, part: Part) -> tuple[str, ...]:
        """Return the event id of the part that caused this part."""
        if self._is_received(part) and _has(self._sent, _span_key(part.trace, part.span)):
            return (name_of(part.trace, part.span),)
        if part.parent is None:
            return ()
        plain = name_of(part.trace, part.parent)
        several = _has(self._several, _span_key(part.trace, part.parent))
        if several and _has(self._received_at, _place_key(part.trace, part.parent, part.member)):
            return (f"{plain}/{part.member or ''}",)
        return (plain,)

    def rows(self, part: Part) -> int:
        """Return the number of rows of the part."""
        keys, counts = self._repeated[self._is_received(part)]
        key = _place_key(part.trace, part.span, part.member)
        at = bisect_left(keys, key)
        return int(counts[at]) if at < len(keys) and keys[at] == key else 1

    def _is_received(self, part: Part) -> bool:
        code = _code(part)
        if code == _UNSAID:
            key = _place_key(part.trace, part.span, part.member)
            return _has(self._received_at, key)
        return code == _RECEIVED


def _repeated(keys: Keys) -> tuple[Keys, Keys]:
    found, counts = np.unique(keys, return_counts=True)
    return found[counts > 1], counts[counts > 1].astype(np.int64)


def _has(keys: Keys, key: int) -> bool:
    at = bisect_left(keys, key)
    return at < len(keys) and bool(keys[at] == key)


def _span_key(trace: str, span: str) -> int:
    return hash((trace, span))  # 64 bits: collisions within a file are negligible


def _place_key(trace: str, span: str, member: str | None) -> int:
    return hash((trace, span, member))


def _code(part: Part) -> int:
    if part.shared or part.role in RECEIVING:
        return _RECEIVED
    return _UNSAID if part.role is None else _SENT


# --- one record ---------------------------------------------------------------------------


def parts_of(record: object, unit: Unit = _MICROS, own: bool = False) -> list[Part]:
    """Return the parts in a row: one, or two in version 1; `own`: with status, kind and tags.

    Raise ValueError with the reason if the row is not a span.
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    kind = (words(record.get("kind")) or "").lower() or None
    times = read_times(unit, record.get("timestamp"), None, record.get("duration") or None)
    tags = _tags(record) if own else {}
    plain = make_part(
        [record.get(key) for key in ("traceId", "id", "parentId")],
        _endpoint(record.get("localEndpoint")),
        kind,
        times,
        record.get("name"),
        own=columns_of(status_in(tags), kind, tags) if own else None,
    )._replace(shared=record.get("shared") is True)
    return _old_parts(record, plain, unit) if "localEndpoint" not in record else [plain]


def _tags(record: dict[str, Any]) -> dict[str, Any]:
    found = record.get("tags")
    if isinstance(found, dict):
        return found
    return {
        str(note.get("key")): note.get("value")
        for note in _list(record.get("binaryAnnotations"))
        if isinstance(note, dict) and note.get("key") not in ("sa", "ca", "ma")
    }


def _old_parts(record: dict[str, Any], plain: Part, unit: Unit) -> list[Part]:
    times: dict[str, dict[str, int | None]] = {}
    where: dict[str, str | None] = {}
    other = None
    for note in _list(record.get("annotations")) + _list(record.get("binaryAnnotations")):
        if not isinstance(note, dict):
            continue
        member = _endpoint(note.get("endpoint"))
        code = note.get("value") if "timestamp" in note else None
        role = _OLD.get(code) if isinstance(code, str) else None
        if role is None or not isinstance(code, str):
            other = other or (None if note.get("key") in ("sa", "ca", "ma") else member)
            continue
        at = read_times(unit, note.get("timestamp")).start
        times.setdefault(role, {}).setdefault("start" if code in _BEGIN else "end", at)
        where[role] = where.get(role) or member
    if not times:
        return [plain._replace(member=other)]
    parts = []
    for role in sorted(times, key=ROLES.index):
        start = times[role].get("start") if plain.start is None else plain.start
        end = times[role].get("end") if plain.end is None else plain.end
        member = where[role] or other
        parts.append(plain._replace(role=role, member=member, start=start, end=end))
        # The times of the whole span belong to the side that began it.
        plain = plain._replace(start=None, end=None, unreadable=0, taken=None, unreadable_causes=0)
    return parts


def _endpoint(endpoint: object) -> str | None:
    if not isinstance(endpoint, dict):
        return None
    address = words(endpoint.get("ipv4")) or words(endpoint.get("ipv6"))
    return process(words(endpoint.get("serviceName")), address)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
