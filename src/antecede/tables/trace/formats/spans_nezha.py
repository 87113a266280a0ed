"""Parser of spans as CSV of the Nezha data sets (2023); times in ns, parent `root` for none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from antecede.tables.trace import text
from antecede.tables.trace.causes import CAUSE_COLUMNS as TABLE_COLUMNS
from antecede.tables.trace.causes import TOLD_BY
from antecede.tables.trace.formats.partial_span import name_of
from antecede.tables.trace.formats.spans_ids import SPAN_BYTES, TRACE_BYTES, normalize_id
from antecede.tables.trace.formats.spans_times import TimeCounts, read_times, unit_for
from antecede.tables.trace.reader import NO_ID, Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import LOOKS_LIKE, READ_AS
from antecede.tables.trace.user_tables.extra_columns import Own
from antecede.tables.trace.user_tables.reader import TableReader

COLUMNS = ("TraceID", "SpanID", "ParentID", "PodName", "StartTimeUnixNano", "EndTimeUnixNano")
_OF = {
    "topics": ("TraceID",),
    "id": ("SpanID",),
    "parents": ("ParentID",),
    "member": ("PodName",),
    "start_time": ("StartTimeUnixNano",),
    "end_time": ("EndTimeUnixNano",),
}
_NAME = "OperationName"
_NO_PARENT = "root"
_OF_TABLES = (TABLE_COLUMNS, TOLD_BY, LOOKS_LIKE, READ_AS)
"""Prefixes of details of tables that do not apply to spans."""


def recognize(sample: str) -> bool:
    """Return whether a text begins with the header of a Nezha file."""
    header = {name.strip().strip('"') for name in sample.partition("\n")[0].split(",")}
    return header.issuperset(COLUMNS)


def read(
    path: Path, options: ReadOptions, own: bool
) -> Iterator[tuple[Item, Mapping[str, Any] | None]]:
    """Yield the spans of a file; the column of operation names is optional."""
    header = next((line for _, line in text.lines(path)), "")
    columns = {**_OF, "text": (_NAME,)} if _NAME in header else _OF
    unit = unit_for("ns", options.time_unit)
    counts = TimeCounts(unit)
    # With ns the numbers are unchanged; `read_times` applies their unit.
    plain = ReadOptions(columns=columns, time_unit="ns")
    for item, row in TableReader().read_with_own(path, plain):
        if isinstance(item, Detail) and item.name.startswith(_OF_TABLES):
            continue
        if not isinstance(item, Event):
            yield item, None
            continue
        event = _span(item)
        if isinstance(event, Quarantined):
            yield event, None
            continue
        times = read_times(unit, item.start_time, item.end_time)
        counts.add(times.unreadable, times.taken)
        yield event._replace(start_time=times.start, end_time=times.end), _further(row, own)
    for name, value in counts.details().items():
        yield Detail(name, value), None


def _span(event: Event) -> Event | Quarantined:
    trace = normalize_id(event.topics[0] if event.topics else "", TRACE_BYTES)
    span = normalize_id(event.id, SPAN_BYTES)
    if span is None or trace is None:
        return Quarantined(event.source, event.line, event.id, NO_ID, text.shorten(str(event)))
    names = (normalize_id(name, SPAN_BYTES) for name in event.parents if name != _NO_PARENT)
    parents = tuple(name_of(trace, name) for name in names if name is not None)
    return event._replace(id=name_of(trace, span), parents=parents, topics=(trace,))


def _further(row: Own | None, own: bool) -> Mapping[str, Any] | None:
    if not own or not isinstance(row, Mapping):
        return None
    used = {*COLUMNS, _NAME}
    return {name: value for name, value in row.items() if name not in used}
