"""Parser of spans in Zipkin's JSON, versions 2 and 1 of the API.

A file is an array of spans, an array of arrays of spans, or one span per line.

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
from antecede.tables.trace.formats.json_stream import MalformedElement, read_elements
from antecede.tables.trace.formats.partial_span import (
    CLIENT,
    CONSUMER,
    PRODUCER,
    RECEIVER_ROLES,
    ROLES,
    SERVER,
    PartialSpan,
    collect_columns,
    find_status,
    make_malformed_span,
    make_partial_span,
    make_process_name,
    make_span_id,
    strip_text,
)
from antecede.tables.trace.formats.spans_ids import TraceIds
from antecede.tables.trace.formats.spans_times import TimeCounts, Unit, choose_unit, read_times
from antecede.tables.trace.reader import Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined

Keys = npt.NDArray[np.int64]
Piece = tuple[Event, Mapping[str, Any] | None]
_MICROS = Unit("us")
_SENT, _RECEIVED, _UNKNOWN_SIDE = 0, 1, 2
_V1_ROLES = {"cs": CLIENT, "cr": CLIENT, "sr": SERVER, "ss": SERVER, "ms": PRODUCER, "mr": CONSUMER}
_BEGIN = {"cs", "sr", "ms", "mr"}


def read(
    path: Path, options: ReadOptions, keep_extra: bool
) -> Iterator[tuple[Item, Mapping[str, Any] | None]]:
    """Yield an event for each part of each span."""
    unit = choose_unit("us", options.time_unit)
    known = index_parts(lambda: _read_all_parts(path, unit))
    whole = EventMerger(known)
    source = str(path)
    counts = TimeCounts(unit)
    for found in read_elements(path, nested=True):
        if isinstance(found, MalformedElement):
            yield Quarantined(source, found.line, None, found.reason, found.raw), None
            continue
        try:
            parts = parts_of(found.value, unit, keep_extra)
        except ValueError as error:
            identity, reason, raw = make_malformed_span(found.value, "id", error)
            identity = text.shorten(identity) if identity else None
            yield Quarantined(source, found.line, identity, reason, raw), None
            continue
        for part in parts:
            counts.add(part.unreadable_times, part.actual_unit, part.unreadable_causes)
            yield from whole.add_part(part, source, found.line)
    yield from whole.take_rest()  # empty unless the file changed between the readings
    for name, count in (
        ("shared_spans", known.shared_spans),
        ("merged_rows", whole.merged_rows),
        ("joined_traces", len(known.longer_traces)),
        *counts.collect_details().items(),
    ):
        if count:
            yield Detail(name, count), None


def _read_all_parts(path: Path, unit: Unit) -> Iterator[PartialSpan]:
    for found in read_elements(path, nested=True):
        if isinstance(found, MalformedElement):
            continue
        try:
            yield from parts_of(found.value, unit)
        except ValueError:
            continue


class EventMerger:
    """Builder of events from parts; rows of one part are merged when all are read."""

    def __init__(self, index: SpanIndex) -> None:
        self.index = index
        self.merged_rows = 0
        self._waiting: dict[tuple[str, str | None], list[Piece]] = {}

    def add_part(self, part: PartialSpan, source: str = "", line: int = 0) -> Iterator[Piece]:
        """Yield the events that are complete with this part."""
        part = self.index.rename_trace(part)
        event = part.to_event(
            self.index.make_identity(part), self.index.find_causes(part), source, line
        )
        rows = self.index.count_rows(part)
        if rows == 1:
            yield event, part.extra
            return
        pieces = self._waiting.setdefault((event.id, event.member), [])
        pieces.append((event, part.extra))
        if len(pieces) == rows:
            whole = list(_merge_pieces(self._waiting.pop((event.id, event.member))))
            self.merged_rows += rows - len(whole)
            yield from whole

    def take_rest(self) -> Iterator[Piece]:
        """Yield the events of incomplete parts."""
        for pieces in self._waiting.values():
            yield from pieces


def _merge_pieces(pieces: list[Piece]) -> Iterator[Piece]:
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
        causes = first.causes or piece.causes
        timed[0] = first._replace(causes=causes, **filled), columns
    yield from timed


# --- which ids are shared -----------------------------------------------------------------


def index_parts(parts: Callable[[], Iterable[PartialSpan]]) -> SpanIndex:
    """Return the index of all parts; `parts` restarts the iteration at each call."""
    known = SpanIndex(parts())
    if joined := known.trace_ids.find_longer_ids():
        known = SpanIndex(_rename_traces(parts(), joined))
        known.longer_traces = joined
    return known


def _rename_traces(
    parts: Iterable[PartialSpan], joined: Mapping[str, str]
) -> Iterator[PartialSpan]:
    return (part._replace(trace=joined.get(part.trace, part.trace)) for part in parts)


class SpanIndex:
    """Index of the parts of each span id, and of the number of rows per part."""

    def __init__(self, parts: Iterable[PartialSpan]) -> None:
        spans, places, codes = array("q"), array("q"), bytearray()
        self.trace_ids = TraceIds()
        self.longer_traces: Mapping[str, str] = {}
        """128-bit trace ids by their right halves."""
        for part in parts:
            self.trace_ids.add(part.trace)
            spans.append(_make_span_key(part.trace, part.span))
            places.append(_make_process_key(part.trace, part.span, part.member))
            codes.append(_get_side(part))
        span = np.frombuffer(spans, np.int64) if spans else np.empty(0, np.int64)
        place = np.frombuffer(places, np.int64) if places else np.empty(0, np.int64)
        code = np.frombuffer(codes, np.uint8) if codes else np.empty(0, np.uint8)
        received_at = np.unique(place[code == _RECEIVED])
        # A row without a side belongs to the receiver in the same process.
        received = (code == _RECEIVED) | ((code == _UNKNOWN_SIDE) & np.isin(place, received_at))
        _, first = np.unique(place[received], return_index=True)
        receivers, count = np.unique(span[received][first], return_counts=True)
        self._sent = np.unique(span[~received])
        both = np.isin(receivers, self._sent)
        self._several_receivers = receivers[both | (count > 1)]
        self._received_at = received_at
        self._repeated: tuple[tuple[Keys, Keys], ...] = (
            _count_repeated(place[~received]),
            _count_repeated(place[received]),
        )
        self.shared_spans = int(np.count_nonzero(both))

    def rename_trace(self, part: PartialSpan) -> PartialSpan:
        """Return the part with the longer id of its trace, if any."""
        trace = self.longer_traces.get(part.trace)
        return part if trace is None else part._replace(trace=trace)

    def make_identity(self, part: PartialSpan) -> str:
        """Return the event id of the part."""
        plain = make_span_id(part.trace, part.span)
        if not self._is_received(part) or not _contains(
            self._several_receivers, _make_span_key(part.trace, part.span)
        ):
            return plain
        return f"{plain}/{part.member or ''}"

    def find_causes(self, part: PartialSpan) -> tuple[str, ...]:
        """Return the event id of the part that caused this part."""
        if self._is_received(part) and _contains(self._sent, _make_span_key(part.trace, part.span)):
            return (make_span_id(part.trace, part.span),)
        if part.parent is None:
            return ()
        plain = make_span_id(part.trace, part.parent)
        several = _contains(self._several_receivers, _make_span_key(part.trace, part.parent))
        if several and _contains(
            self._received_at, _make_process_key(part.trace, part.parent, part.member)
        ):
            return (f"{plain}/{part.member or ''}",)
        return (plain,)

    def count_rows(self, part: PartialSpan) -> int:
        """Return the number of rows of the part."""
        keys, counts = self._repeated[self._is_received(part)]
        key = _make_process_key(part.trace, part.span, part.member)
        at = bisect_left(keys, key)
        return int(counts[at]) if at < len(keys) and keys[at] == key else 1

    def _is_received(self, part: PartialSpan) -> bool:
        code = _get_side(part)
        if code == _UNKNOWN_SIDE:
            key = _make_process_key(part.trace, part.span, part.member)
            return _contains(self._received_at, key)
        return code == _RECEIVED


def _count_repeated(keys: Keys) -> tuple[Keys, Keys]:
    found, counts = np.unique(keys, return_counts=True)
    return found[counts > 1], counts[counts > 1].astype(np.int64)


def _contains(keys: Keys, key: int) -> bool:
    at = bisect_left(keys, key)
    return at < len(keys) and bool(keys[at] == key)


def _make_span_key(trace: str, span: str) -> int:
    return hash((trace, span))  # 64 bits: collisions within a file are negligible


def _make_process_key(trace: str, span: str, member: str | None) -> int:
    return hash((trace, span, member))


def _get_side(part: PartialSpan) -> int:
    if part.is_shared or part.role in RECEIVER_ROLES:
        return _RECEIVED
    return _UNKNOWN_SIDE if part.role is None else _SENT


# --- one record ---------------------------------------------------------------------------


def parts_of(record: object, unit: Unit = _MICROS, keep_extra: bool = False) -> list[PartialSpan]:
    """Return the parts in a row: one, or two in version 1. Raise ValueError if there is none."""
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    kind = (strip_text(record.get("kind")) or "").lower() or None
    times = read_times(unit, record.get("timestamp"), None, record.get("duration") or None)
    tags = _read_tags(record) if keep_extra else {}
    plain = make_partial_span(
        [record.get(key) for key in ("traceId", "id", "parentId")],
        _read_endpoint(record.get("localEndpoint")),
        kind,
        times,
        record.get("name"),
        extra=collect_columns(find_status(tags), kind, tags) if keep_extra else None,
    )._replace(is_shared=record.get("shared") is True)
    return _read_old_parts(record, plain, unit) if "localEndpoint" not in record else [plain]


def _read_tags(record: dict[str, Any]) -> dict[str, Any]:
    found = record.get("tags")
    if isinstance(found, dict):
        return found
    return {
        str(note.get("key")): note.get("value")
        for note in _get_list(record.get("binaryAnnotations"))
        if isinstance(note, dict) and note.get("key") not in ("sa", "ca", "ma")
    }


def _read_old_parts(record: dict[str, Any], plain: PartialSpan, unit: Unit) -> list[PartialSpan]:
    times: dict[str, dict[str, int | None]] = {}
    where: dict[str, str | None] = {}
    other = None
    for note in _get_list(record.get("annotations")) + _get_list(record.get("binaryAnnotations")):
        if not isinstance(note, dict):
            continue
        member = _read_endpoint(note.get("endpoint"))
        code = note.get("value") if "timestamp" in note else None
        role = _V1_ROLES.get(code) if isinstance(code, str) else None
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
        plain = plain._replace(
            start=None, end=None, unreadable_times=0, actual_unit=None, unreadable_causes=0
        )
    return parts


def _read_endpoint(endpoint: object) -> str | None:
    if not isinstance(endpoint, dict):
        return None
    address = strip_text(endpoint.get("ipv4")) or strip_text(endpoint.get("ipv6"))
    return make_process_name(strip_text(endpoint.get("serviceName")), address)


def _get_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
