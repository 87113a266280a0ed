"""Spans as CSV with the columns of the Nezha data sets: a parent `root` is none; times are ns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from antecede.trace import text
from antecede.trace.formats.spans_part import name_of
from antecede.trace.reader import Item, ReadOptions
from antecede.trace.schema import Event
from antecede.trace.tables.reader import TableReader

COLUMNS = ("TraceID", "SpanID", "ParentID", "PodName", "StartTimeUnixNano", "EndTimeUnixNano")
_OF = {
    "topics": ("TraceID",),
    "id": ("SpanID",),
    "parents": ("ParentID",),
    "member": ("PodName",),
    "start_time": ("StartTimeUnixNano",),
    "end_time": ("EndTimeUnixNano",),
}
_NO_PARENT = "root"


def recognize(sample: str) -> bool:
    """Say whether text begins with the header of such a file."""
    header = {name.strip().strip('"') for name in sample.partition("\n")[0].split(",")}
    return header.issuperset(COLUMNS)


def read(path: Path) -> Iterator[Item]:
    """Yield the spans; the name of the operation may be absent."""
    with_name = {**_OF, "text": ("OperationName",)}
    header = next((line for _, line in text.lines(path)), "")
    columns = with_name if "OperationName" in header else _OF
    for item in TableReader().read(path, ReadOptions(columns=columns, time_unit="ns")):
        yield _span(item) if isinstance(item, Event) else item


def _span(event: Event) -> Event:
    trace = event.topics[0] if event.topics else ""
    parents = tuple(name_of(trace, name) for name in event.parents if name != _NO_PARENT)
    return event._replace(id=name_of(trace, event.id), parents=parents)
