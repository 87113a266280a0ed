"""Converter of Arrow tables of spans to events.

Columns are recognized by their names without dots, underscores and case (`traceId`, `trace_id`,
`Links.TraceId`). Known are tables of OpenTelemetry (flat OTLP, ClickHouse), Jaeger (`references`,
`process`), Elastic APM (`timestamp.us`), Datadog (integer ids), and Zipkin (`zipkin_table`). Rules
are those of the readers of files; `antecede.spark.sources.span_tables` has them as column
expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.trace.formats.partial_span import find_process
from antecede.tables.trace.formats.spans_jaeger import find_member, read_tags
from antecede.tables.trace.formats.spans_otlp import read_span
from antecede.tables.trace.formats.spans_times import Unit
from antecede.tables.trace.formats.zipkin_table import (
    check_zipkin,
    is_zipkin,
    plain_name,
    rows_of,
    times_to_numbers,
)
from antecede.tables.trace.identities import is_text, without_blanks
from antecede.tables.trace.reader import NO_ID
from antecede.tables.trace.schema import EVENT

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
SERVICE = "service.name"
NAMES = {
    "trace": ("traceid",),
    "span": ("spanid", "transactionid"),
    "parent": ("parentspanid", "parentid"),
    "name": ("spanname", "operationname", "transactionname", "name", "resource"),
    "kind": ("spankind", "kind"),
    "start": (
        *("starttimeunixnano", "timestampus", "starttimeunixms", "startns", "startus", "startms"),
        *("timestamp", "@timestamp", "starttime", "start"),
    ),
    "end": ("endtimeunixnano", "endtimeunixms", "endns", "endus", "endms", "endtime", "end"),
    "duration": ("duration", "durationnano", "spandurationus", "transactiondurationus"),
    "links": ("links", "references"),
    "link_traces": ("linkstraceid",),
    "link_spans": ("linksspanid",),
    "resource": ("resourceattributes",),
    "service": ("servicename", "service"),
    "process": ("process",),
    "tags": ("tags",),
}
"""Normalized names of columns, by preference."""
PAIRS = (
    ("spanid", "transactionid"),
    ("spanname", "transactionname"),
    ("spandurationus", "transactiondurationus"),
)
"""Columns of Elastic APM: the second replaces blanks in the first."""
UNITS = {
    "starttimeunixnano": "ns",
    "endtimeunixnano": "ns",
    **{f"{side}timeunixms": "ms" for side in ("start", "end")},
    **{f"{side}{unit}": unit for side in ("start", "end") for unit in ("ns", "us", "ms")},
    "durationnano": "ns",
    "timestampus": "us",
    "spandurationus": "us",
    "transactiondurationus": "us",
}
DOCUMENTS = {
    "Jaeger's export": ("data", "spans"),
    "OTLP's JSON": ("resourcespans", "batches", "scopespans"),
    "Chrome's trace events": ("traceevents",),
    "OpenTelemetry's console exporter": ("context", "spancontext"),
}
"""Nested documents that only readers of files support, by some of their columns."""
COLUMNS = (
    *("kind", "id", "member", "causes", "topics", "start_time", "end_time", "role", "text"),
    *("reason", "unreadable_times", "time_unit", "unreadable_causes"),
)
"""Columns of the result: the event schema's columns of spans, and defects of the row."""
_TEXTS = pa.list_(pa.string())
_KINDS = [pa.string()] * 3 + [_TEXTS] * 2 + [pa.int64()] * 2 + [pa.string()] * 3
_KINDS += [pa.int64(), pa.string(), pa.int64()]
SCHEMA = pa.schema(list(zip(COLUMNS, _KINDS, strict=True)))


_TIME_LIKE = re.compile(r"time|start|begin|^ts|date$")


class SpanColumns(NamedTuple):
    """Columns of a table of spans (None: absent)."""

    trace: str
    span: str
    parent: str | None
    name: str | None
    kind: str | None
    start: str | None
    end: str | None
    duration: str | None
    links: str | None
    link_traces: str | None
    link_spans: str | None
    resource: str | None
    service: str | None
    process: str | None
    """Struct with the service and its tags (Jaeger)."""
    tags: str | None
    """List of structs with key and value (Jaeger)."""

    def unit(self) -> str:
        """Return the declared unit of times: of the column's name, else of the format."""
        declared = None if self.start is None else UNITS.get(plain_name(self.start))
        return declared or ("us" if self.process is not None else "ns")

    def duration_unit(self) -> str | None:
        """Return the unit in the name of the duration, if any."""
        return None if self.duration is None else UNITS.get(plain_name(self.duration))


def find_span_columns(columns: Sequence[str]) -> SpanColumns:
    """Return the columns of spans. Raise InputError without ids of spans or causes."""
    known = {plain_name(name): name for name in reversed(columns)}
    of = {
        what: next((known[name] for name in names if name in known), None)
        for what, names in NAMES.items()
    }
    shown = ", ".join(columns)[:300]
    if of["trace"] is None or of["span"] is None:
        raise InputError(
            f"no columns of a trace's and a span's id (traceId, spanId); columns are {shown}"
            + _describe_document(known)
        )
    if "references" not in known:  # only in tables of Jaeger
        of["process"] = of["tags"] = None
    if (of["link_traces"] is None) != (of["link_spans"] is None):
        raise InputError("links need two columns, for trace ids and span ids; add the other one")
    if of["parent"] is None and of["links"] != known.get("references", ""):
        raise InputError(
            "no column of a span's parent (parentSpanId, parentId, references), so no span would "
            f"have a cause; columns are {shown}; rename the column of parents, or add one of nulls "
            "if no span has a parent"
        )
    if of["start"] is None and of["end"] is None:
        timed = [name for name in columns if _TIME_LIKE.search(plain_name(name))]
        if timed:
            raise InputError(
                f"no column of a span's start or end (startTimeUnixNano, start); "
                f"{', '.join(timed)[:300]} may hold one: rename it, or drop it"
            )
    return SpanColumns(**of)  # type: ignore[arg-type]


def pairs_in(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns of spans and transactions to merge."""
    known = {plain_name(name): name for name in reversed(columns)}
    return [(known[one], known[other]) for one, other in PAIRS if {one, other} <= known.keys()]


def _join_column_pairs(table: Any) -> Any:
    """Return a table with the cells of transactions in blank cells of spans."""
    for name, other in pairs_in(table.column_names):
        column = table[name]
        if column.type != table[other].type:
            raise InputError(f"columns {name} and {other} differ in type: cast one of them")
        if is_text(column.type):
            column = without_blanks(column)
        at = table.column_names.index(name)
        table = table.set_column(at, name, pc.coalesce(column, table[other]))
    return table


def _describe_document(known: Iterable[str]) -> str:
    for what, names in DOCUMENTS.items():
        if not set(names).isdisjoint(known):
            return (
                f"; this looks like {what}: read the files with antecede.tables.trace.arrow.read, "
                'or on Spark with spark.read.format("antecede") (antecede.spark.register_source)'
            )
    return ""


def events_of_spans(table: pyarrow.Table) -> pyarrow.Table:
    """Return the events of spans in the columns `COLUMNS`, one row per row.

    Ids are text, bytes or integers (`spans_ids`). Times are whole numbers, text or timestamps. The
    unit is that of the column's name, else of the format (Jaeger: us, else ns), unless the size
    shows another (`time_unit`). `kind` is text or a number. Links and references are a list of
    structs or two lists. Resource attributes are a map. A row without ids has a `reason`.

    Tables of Zipkin (`traceId`, `id`, `localEndpoint`) give one row per event, because processes
    may share a span or report it in several rows. They must contain all rows of a trace. Raise
    InputError as `found_in` does.

        events = events_of_spans(pyarrow.parquet.read_table("spans.parquet"))
    """
    if is_zipkin(table.column_names):
        check_zipkin(table.column_names)
        return table_of(list(rows_of(table)))
    of = find_span_columns(table.column_names)
    table = _join_column_pairs(table)
    units = of.unit(), of.duration_unit()
    _check_types(table, of)
    columns = [_read_values(table, name, units[0]) for name in of]
    return table_of(
        [_make_event_row(SpanColumns(*row), *units) for row in zip(*columns, strict=True)]
    )


def _check_types(table: Any, of: SpanColumns) -> None:
    types = pa.types
    for name in (of.links, of.link_traces, of.link_spans):
        kind = None if name is None else table[name].type
        if kind and not (types.is_list(kind) or types.is_large_list(kind) or types.is_null(kind)):
            raise InputError(f"column {name} must be an array; it is {kind}")
    if of.service is not None:
        kind = table[of.service].type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not (is_text(kind) or types.is_null(kind)):
            raise InputError(f"column {of.service} must be text; it is {kind}")


def table_of(rows: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    """Return a table of rows with the columns `COLUMNS`."""
    if not rows:
        nothing: pyarrow.Table = SCHEMA.empty_table()
        return nothing
    values = zip(zip(*rows, strict=True), _KINDS, strict=True)
    arrays = [pa.array(column, kind) for column, kind in values]
    found: pyarrow.Table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    return found


def _read_values(table: Any, name: str | None, unit: str) -> Iterable[Any]:
    """Return the values of a column, timestamps and durations as numbers of `unit`."""
    if name is None:
        return [None] * table.num_rows
    column = table[name]
    if (times := times_to_numbers(column, unit)) is not None:
        return times
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        return [None if value is None else int(value) for value in column.to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def _make_event_row(row: Any, unit: str, duration_unit: str | None) -> tuple[Any, ...]:
    links = row.links or ()
    if row.link_traces is not None and row.link_spans is not None:
        pairs = zip_longest(row.link_traces, row.link_spans)
        links = [{"traceId": trace, "spanId": span} for trace, span in pairs]
    tags = read_tags({"tags": _map_to_dict(row.tags)})
    record = {
        "traceId": row.trace,
        "spanId": row.span,
        "parentSpanId": row.parent,
        "startTimeUnixNano": row.start,
        "endTimeUnixNano": row.end,
        "duration": row.duration,
        "kind": tags.get("span.kind") if row.kind is None else row.kind,
        "name": row.name,
        "links": [_normalize_link(link) for link in links],
    }
    try:
        part = read_span(record, _find_member(row), Unit(unit), duration_unit=duration_unit)
    except ValueError:
        return (EVENT, None, None, [], [], None, None, None, None, NO_ID, 0, None, 0)
    name = f"{part.trace}/{part.span}"
    fields = (
        part.start,
        part.end,
        part.role,
        part.name,
        None,
        part.unreadable_times,
        part.actual_unit,
    )
    causes = list(part.causes)
    return (EVENT, name, part.member, causes, [part.trace], *fields, part.unreadable_causes)


def _find_member(row: Any) -> str | None:
    if isinstance(row.process, Mapping):
        where = {plain_name(key): value for key, value in row.process.items()}
        tags = {key: _map_to_dict(where.get(key)) for key in ("tags", "tag")}
        return find_member(where.get("servicename"), read_tags(tags))
    attributes = dict(row.resource or ())
    if row.service is not None:
        attributes.setdefault(SERVICE, row.service)
    return find_process(attributes)


def _map_to_dict(value: Any) -> Any:
    is_map = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if is_map else value


def _normalize_link(link: Any) -> dict[str, Any]:
    known = {plain_name(key): value for key, value in (link or {}).items()}
    return {"traceId": known.get("traceid"), "spanId": known.get("spanid")}
