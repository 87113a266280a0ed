"""Spans in Zipkin's JSON, version 2 and version 1.

A file is an array of spans, of arrays of spans, or one span a line.

Theory of operation
-------------------
In Zipkin a client and a server may share one span id: two rows, or in version 1 one row with
the annotations of both (cs, sr). They are two events, and the server's is caused by the
client's. A child that names the id follows the part in its own process if there is one, else
the client's part. Some processes report a span in pieces, one with the times, one without:
pieces without a time are merged into the one with it.

Which ids are shared is known at the end of the file only, so a file is read twice: first the
parts of each span id are noted (17 bytes a span), then the events are made. Identities: the
client's or the only part is TRACE/SPAN, a server's part beside others TRACE/SPAN/PROCESS.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antecede.trace import text
from antecede.trace.formats.json_stream import Broken, items
from antecede.trace.formats.spans_part import (
    CLIENT,
    CONSUMER,
    PRODUCER,
    RECEIVING,
    ROLES,
    SERVER,
    Part,
    name_of,
    process,
    time_of,
    words,
)
from antecede.trace.reader import NO_ID, Detail, Item
from antecede.trace.schema import Event, Quarantined

Keys = npt.NDArray[np.int64]
_SENT, _RECEIVED, _UNSAID = 0, 1, 2
_OLD = {"cs": CLIENT, "cr": CLIENT, "sr": SERVER, "ss": SERVER, "ms": PRODUCER, "mr": CONSUMER}
_BEGIN = {"cs", "sr", "ms", "mr"}


def read(path: Path) -> Iterator[Item]:
    """Yield an event for each part of each span."""
    whole = Whole(Known(_parts_in(path)))
    source = str(path)
    unreadable = 0
    for found in items(path, nested=True):
        if isinstance(found, Broken):
            yield Quarantined(source, found.line, None, found.reason, found.raw)
            continue
        try:
            parts = parts_of(found.value)
        except ValueError as error:
            yield _refused(found.value, source, found.line, str(error))
            continue
        for part in parts:
            unreadable += part.unreadable
            yield from whole.take(part, source, found.line)
    yield from whole.rest()  # nothing, unless the file changed between the two readings
    for name, count in (
        ("shared_spans", whole.known.shared),
        ("merged_rows", whole.merged),
        ("unreadable_times", unreadable),
    ):
        if count:
            yield Detail(name, count)


def _parts_in(path: Path) -> Iterator[Part]:
    for found in items(path, nested=True):
        if isinstance(found, Broken):
            continue
        try:
            yield from parts_of(found.value)
        except ValueError:
            continue


class Whole:
    """Makes events of parts one after the other; one in pieces comes when all of them are there."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.merged = 0
        self._waiting: dict[tuple[str, str | None], list[Event]] = {}

    def take(self, part: Part, source: str = "", line: int = 0) -> Iterator[Event]:
        """Yield the events that are whole with this part."""
        event = part.event(self.known.identity(part), self.known.causes(part), source, line)
        rows = self.known.rows(part)
        if rows == 1:
            yield event
            return
        pieces = self._waiting.setdefault((event.id, event.member), [])
        pieces.append(event)
        if len(pieces) == rows:
            whole = list(_merged(self._waiting.pop((event.id, event.member))))
            self.merged += rows - len(whole)
            yield from whole

    def rest(self) -> Iterator[Event]:
        """Yield pieces of what never became whole."""
        for pieces in self._waiting.values():
            yield from pieces


def _refused(record: object, source: str, line: int, reason: str) -> Quarantined:
    identity = words(record.get("id")) if isinstance(record, dict) else None
    shown = text.shorten(identity) if identity else None
    return Quarantined(source, line, shown, reason, text.shorten(repr(record)))


def _merged(pieces: list[Event]) -> Iterator[Event]:
    """Merge rows without a time into the first row with one; other rows stay rows."""
    timed = [piece for piece in pieces if piece.start_time is not None] or pieces[:1]
    for piece in pieces:
        first = timed[0]
        filled = {
            name: getattr(piece, name)
            for name in ("role", "text", "end_time")
            if getattr(first, name) is None and piece.start_time in (None, first.start_time)
        }
        causes = first.parents or piece.parents
        timed[0] = first._replace(parents=causes, **filled)
    yield from timed


# --- which ids are shared -----------------------------------------------------------------


class Known:
    """What all rows together say of each span id: which parts it has, and in how many rows."""

    def __init__(self, parts: Iterable[Part]) -> None:
        spans, places, codes = array("q"), array("q"), bytearray()
        for part in parts:
            spans.append(_span_key(part.trace, part.span))
            places.append(_place_key(part.trace, part.span, part.member))
            codes.append(_code(part))
        span = np.frombuffer(spans, np.int64) if spans else np.empty(0, np.int64)
        place = np.frombuffer(places, np.int64) if places else np.empty(0, np.int64)
        code = np.frombuffer(codes, np.uint8) if codes else np.empty(0, np.uint8)
        received_at = np.unique(place[code == _RECEIVED])
        # A row that does not say its side belongs to the receiver that it stands beside.
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

    def identity(self, part: Part) -> str:
        """Return the identity of the part's event."""
        plain = name_of(part.trace, part.span)
        if not self._is_received(part) or not _has(self._several, _span_key(part.trace, part.span)):
            return plain
        return f"{plain}/{part.member or ''}"

    def causes(self, part: Part) -> tuple[str, ...]:
        """Return the identity of the part that caused this one."""
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
        """Return in how many rows the part is reported."""
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
    return hash((trace, span))  # 64 bits; two spans of a file with one hash are not to be feared


def _place_key(trace: str, span: str, member: str | None) -> int:
    return hash((trace, span, member))


def _code(part: Part) -> int:
    if part.shared or part.role in RECEIVING:
        return _RECEIVED
    return _UNSAID if part.role is None else _SENT


# --- one record ---------------------------------------------------------------------------


def parts_of(record: object) -> list[Part]:
    """Return the parts that one row tells of: one, or two in version 1.

    Raise ValueError saying what is wrong if the row is no span.
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    trace, span = words(record.get("traceId")), words(record.get("id"))
    if trace is None or span is None:
        raise ValueError(NO_ID)
    parent = words(record.get("parentId"))
    kind = words(record.get("kind"))
    role = kind.lower() if kind and kind.lower() in ROLES else None
    start, bad_start = time_of(record.get("timestamp"), "us")
    length, bad_length = time_of(record.get("duration"), "us")
    end = None if start is None or length is None else text.int64(start + length)
    plain = Part(
        trace=trace.lower(),
        span=span.lower(),
        parent=parent.lower() if parent else None,
        member=_endpoint(record.get("localEndpoint")),
        role=role,
        shared=record.get("shared") is True,
        start=start,
        end=end,
        name=words(record.get("name")),
        unreadable=bad_start + bad_length,
    )
    return _old_parts(record, plain) if "localEndpoint" not in record else [plain]


def _old_parts(record: dict[str, Any], plain: Part) -> list[Part]:
    """Return the parts of a span of version 1, told by its annotations."""
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
        at, _ = time_of(note.get("timestamp"), "us")
        times.setdefault(role, {}).setdefault("start" if code in _BEGIN else "end", at)
        where[role] = where.get(role) or member
    if not times:
        return [plain._replace(member=other)]
    parts = []
    for number, role in enumerate(sorted(times, key=ROLES.index)):
        of_span = number == 0  # times of the span as a whole are those of who began it
        start = times[role].get("start")
        end = times[role].get("end")
        parts.append(
            plain._replace(
                role=role,
                member=where[role] or other,
                start=plain.start if of_span and plain.start is not None else start,
                end=plain.end if of_span and plain.end is not None else end,
                unreadable=plain.unreadable if of_span else 0,
            )
        )
    return parts


def _endpoint(endpoint: object) -> str | None:
    if not isinstance(endpoint, dict):
        return None
    address = words(endpoint.get("ipv4")) or words(endpoint.get("ipv6"))
    return process(words(endpoint.get("serviceName")), address)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
