"""Converter of tables of Zipkin's spans to events.

The rules are those of `spans_zipkin`, which need all rows of a trace. Rows are sorted by time, then
by content, so that every order of rows and every engine gives the same events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow

from antecede.errors import InputError
from antecede.tables.trace.formats.partial_span import PartialSpan
from antecede.tables.trace.formats.spans_times import FACTORS
from antecede.tables.trace.formats.spans_zipkin import EventMerger, index_parts, parts_of
from antecede.tables.trace.schema import EVENT, Event

pa: Any = pyarrow  # its stubs know too few of the types that meet here

FIELDS = (
    *("traceId", "id", "parentId", "kind", "name", "timestamp", "duration", "shared"),
    *("localEndpoint", "annotations", "binaryAnnotations"),
)
"""Fields of Zipkin's JSON; columns are recognized by `plain_name`."""
FLAT = {
    "localendpointservicename": "serviceName",
    "localservicename": "serviceName",
    "localendpointipv4": "ipv4",
    "localendpointipv6": "ipv6",
}
"""Columns with one field of `localEndpoint`."""
_IDS = ("traceId", "id", "parentId")
_INNER = ("serviceName", "ipv4", "ipv6", "timestamp", "value", "endpoint", "key")
_CANONICAL = {name.lower(): name for name in (*FIELDS, *_INNER)}

EventRow = tuple[Any, ...]


def plain_name(name: str) -> str:
    """Return a name without dots, underscores and case."""
    return name.replace(".", "").replace("_", "").lower()


def is_zipkin(columns: Sequence[str]) -> bool:
    """Return whether these are columns of Zipkin, with the span id in `id`."""
    known = {plain_name(name) for name in columns}
    return {"traceid", "id"} <= known and "spanid" not in known


def check_zipkin(columns: Sequence[str]) -> None:
    """Raise InputError without a column of causes."""
    known = {plain_name(name) for name in columns}
    if known.isdisjoint(("parentid", "shared", "kind", "annotations")):
        raise InputError(
            "no column of a span's parent (parentId) or of the side of a shared span (kind, "
            f"shared, annotations), so no span would have a cause; columns are "
            f"{', '.join(columns)[:300]}; rename the column of parents, or add one of nulls if no "
            "span has a parent"
        )


def used(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns by field of `FIELDS` or key of `FLAT`."""
    fields = {name.lower(): name for name in FIELDS}
    known = {plain_name(name): name for name in reversed(columns)}
    return {
        fields.get(plain, plain): name
        for plain, name in known.items()
        if plain in fields or plain in FLAT
    }


def rows_of(table: pyarrow.Table) -> Iterator[EventRow]:
    """Yield a row with `spans_table.COLUMNS` for each event and bad row of whole traces."""
    parts: list[PartialSpan] = []
    for record in _read_records(table):
        try:
            parts += parts_of(record)
        except ValueError as error:
            yield (EVENT, None, None, [], [], None, None, None, None, str(error), 0, None, 0)
    yield from _make_event_rows(parts)


def _make_event_rows(parts: Iterable[PartialSpan]) -> Iterator[EventRow]:
    ordered = sorted(parts, key=lambda part: (part.start is None, part.start or 0, repr(part)))
    known = index_parts(lambda: ordered)
    whole = EventMerger(known)
    unreadable: Counter[tuple[str, str | None]] = Counter()
    causes: Counter[tuple[str, str | None]] = Counter()
    taken: dict[tuple[str, str | None], str] = {}
    events: list[Event] = []
    for part in ordered:
        name = (known.make_identity(known.rename_trace(part)), part.member)
        unreadable[name] += part.unreadable_times
        causes[name] += part.unreadable_causes
        if part.actual_unit is not None:
            taken[name] = part.actual_unit
        events += (event for event, _ in whole.add_part(part))
    for event in [*events, *(event for event, _ in whole.take_rest())]:
        fields = (event.start_time, event.end_time, event.role, event.text, None)
        # The first of several rows with one id has the counts of all.
        name = (event.id, event.member)
        bad, unread = unreadable.pop(name, 0), causes.pop(name, 0)
        declared, topics = list(event.causes), list(event.topics)
        yield (EVENT, *name, declared, topics, *fields, bad, taken.get(name), unread)


def _read_records(table: pyarrow.Table) -> Iterator[dict[str, Any]]:
    of = used(table.column_names)
    columns = {what: _read_values(what, table[name]) for what, name in of.items()}
    for values in zip(*columns.values(), strict=True):
        record = dict(zip(columns, values, strict=True))
        flat = {FLAT[what]: record.pop(what) for what in of if what in FLAT}
        own = record.pop("localEndpoint", None) or {}
        endpoint = {key: value for key, value in {**flat, **own}.items() if value is not None}
        if endpoint:  # without it, the annotations of version 1 count
            record["localEndpoint"] = endpoint
        yield record


def _read_values(what: str, column: Any) -> list[Any]:
    times = None if what in _IDS else times_to_numbers(column, "us")
    if times is not None:  # Python's types have a smaller range and time zones
        return times
    values: list[Any] = column.to_pylist()
    return values if what in _IDS else [*map(_canonicalize, values)]


def times_to_numbers(column: Any, unit: str) -> list[int | None] | None:
    """Return timestamps and durations as numbers of a unit, None for other types."""
    if not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)):
        return None
    # Times beyond 64 bits in ns are counted as unreadable later.
    counts = column.cast(pa.int64()).to_pylist()
    factor = FACTORS[column.type.unit]
    return [None if count is None else count * factor // FACTORS[unit] for count in counts]


def _canonicalize(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_canonicalize(one) for one in value]
    if isinstance(value, Mapping):
        named = {_CANONICAL.get(plain_name(key), key): _canonicalize(v) for key, v in value.items()}
        return {key: found for key, found in named.items() if found is not None}
    return value
