"""Parser of spans as CSV of the Nezha data sets (2023); times in ns, parent `root` for none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from antecede.tables.trace import text
from antecede.tables.trace.causes import CAUSE_COLUMNS as TABLE_COLUMNS
from antecede.tables.trace.causes import TOLD_BY
from antecede.tables.trace.formats.partial_span import make_span_id
from antecede.tables.trace.formats.spans_ids import SPAN_BYTES, TRACE_BYTES, normalize_id
from antecede.tables.trace.formats.spans_times import TimeCounts, choose_unit, read_times
from antecede.tables.trace.reader import NO_ID, Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import TABLE_UNIT, TIMES_LIKE
from antecede.tables.trace.user_tables.extra_columns import ExtraRows
from antecede.tables.trace.user_tables.reader import TableReader

COLUMNS = ("TraceID", "SpanID", "ParentID", "PodName", "StartTimeUnixNano", "EndTimeUnixNano")
_COLUMNS_OF = {
    "topics": ("TraceID",),
    "id": ("SpanID",),
    "causes": ("ParentID",),
    "member": ("PodName",),
    "start_time": ("StartTimeUnixNano",),
    "end_time": ("EndTimeUnixNano",),
}
_NAME = "OperationName"
_NO_PARENT = "root"
_TABLE_DETAILS = (TABLE_COLUMNS, TOLD_BY, TIMES_LIKE, TABLE_UNIT)
"""Prefixes of details of tables that do not apply to spans."""


def recognize(sample: str) -> bool:
    """Return whether a text begins with the header of a Nezha file."""
    header = {name.strip().strip('"') for name in sample.partition("\n")[0].split(",")}
    return header.issuperset(COLUMNS)


def read(
    path: Path, options: ReadOptions, keep_extra: bool
) -> Iterator[tuple[Item, Mapping[str, Any] | None]]:
    """Yield the spans of a file; the column of operation names is optional."""
    header = next((line for _, line in text.read_lines(path)), "")
    columns = {**_COLUMNS_OF, "text": (_NAME,)} if _NAME in header else _COLUMNS_OF
    unit = choose_unit("ns", options.time_unit)
    counts = TimeCounts(unit)
    # With ns the numbers are unchanged; `read_times` applies their unit.
    plain = ReadOptions(columns=columns, time_unit="ns")
    for item, row in TableReader().read_with_extra(path, plain):
        if isinstance(item, Detail) and item.name.startswith(_TABLE_DETAILS):
            continue
        if not isinstance(item, Event):
            yield item, None
            continue
        event = _make_event(item)
        if isinstance(event, Quarantined):
            yield event, None
            continue
        times = read_times(unit, item.start_time, item.end_time)
        counts.add(times.unreadable_times, times.actual_unit)
        yield (
            event._replace(start_time=times.start, end_time=times.end),
            _select_extra(row, keep_extra),
        )
    for name, value in counts.collect_details().items():
        yield Detail(name, value), None


def _make_event(event: Event) -> Event | Quarantined:
    trace = normalize_id(event.topics[0] if event.topics else "", TRACE_BYTES)
    span = normalize_id(event.id, SPAN_BYTES)
    if span is None or trace is None:
        return Quarantined(event.source, event.line, event.id, NO_ID, text.shorten(str(event)))
    names = (normalize_id(name, SPAN_BYTES) for name in event.causes if name != _NO_PARENT)
    causes = tuple(make_span_id(trace, name) for name in names if name is not None)
    return event._replace(id=make_span_id(trace, span), causes=causes, topics=(trace,))


def _select_extra(row: ExtraRows | None, keep_extra: bool) -> Mapping[str, Any] | None:
    if not keep_extra or not isinstance(row, Mapping):
        return None
    used = {*COLUMNS, _NAME}
    return {name: value for name, value in row.items() if name not in used}
