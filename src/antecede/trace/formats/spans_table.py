"""Spans in a table: which column of OpenTelemetry holds what, and Arrow tables to events.

Collectors write a row a span, under names of their own (`traceId`, `TraceId`, `trace_id`,
`Links.TraceId`, ...): a column is known by its name without dots, underscores and case. The rule
is that of `antecede.trace.formats.spans_otlp`, whose functions are used here;
`antecede.spark.sources.span_tables` has it as column expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow

from antecede.errors import InputError
from antecede.trace import text
from antecede.trace.formats.spans_otlp import process_of, span_of
from antecede.trace.formats.zipkin_table import is_zipkin, plain_name, rows_of
from antecede.trace.reader import NO_ID
from antecede.trace.schema import EVENT

pa: Any = pyarrow  # its stubs know too few of the types that meet here
SERVICE = "service.name"
NAMES = {
    "trace": ("traceid",),
    "span": ("spanid",),
    "parent": ("parentspanid", "parentid"),
    "name": ("spanname", "name"),
    "kind": ("spankind", "kind"),
    "start": ("starttimeunixnano", "timestamp", "starttime"),
    "end": ("endtimeunixnano", "endtime"),
    "duration": ("duration", "durationnano"),
    "links": ("links",),
    "link_traces": ("linkstraceid",),
    "link_spans": ("linksspanid",),
    "resource": ("resourceattributes",),
    "service": ("servicename",),
}
COLUMNS = (
    *("kind", "id", "member", "parents", "topics", "start_time", "end_time", "role", "text"),
    *("reason", "unreadable_times"),
)
"""Of the result: those of the event schema that spans tell; why a row is no event, else null; and
how many of its times could not be read and are null."""
_TEXTS = pa.list_(pa.string())
_KINDS = [pa.string()] * 3 + [_TEXTS] * 2 + [pa.int64()] * 2 + [pa.string()] * 3 + [pa.int64()]
SCHEMA = pa.schema(list(zip(COLUMNS, _KINDS, strict=True)))


class Found(NamedTuple):
    """The columns of a table of spans; None for what it lacks."""

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


def found_in(columns: Sequence[str]) -> Found:
    """Tell which column is which. Raises InputError where these are no spans of OpenTelemetry."""
    known = {plain_name(name): name for name in reversed(columns)}
    of = {
        what: next((known[name] for name in names if name in known), None)
        for what, names in NAMES.items()
    }
    if of["trace"] is None or of["span"] is None:
        shown = ", ".join(columns)[:300]
        raise InputError(
            f"no columns of a trace's and a span's id (traceId, spanId); there are {shown}"
        )
    if (of["link_traces"] is None) != (of["link_spans"] is None):
        raise InputError("links need both columns, of trace ids and of span ids")
    return Found(**of)  # type: ignore[arg-type]


def events_of_spans(table: pyarrow.Table) -> pyarrow.Table:
    """Return the events of spans in the columns `COLUMNS`: OpenTelemetry's, a row for each row.

    Zipkin's (`traceId`, `id`, `localEndpoint`, ...; times in microseconds or timestamps): a row for
    each event, as two processes may share a span, or one report it in pieces (`zipkin_table`); all
    rows of a trace must be there.

    Ids are text (hexadecimal or base64) or bytes; times whole numbers of nanoseconds, as numbers or
    text, or timestamps; `kind` a word or a number; links a list of structs or two lists; resource
    attributes a map. A row without its ids has a `reason` and no id. Raises InputError as
    `found_in` does.

        events = events_of_spans(pyarrow.parquet.read_table("spans.parquet"))
    """
    if is_zipkin(table.column_names):
        return table_of(list(rows_of(table)))
    of = found_in(table.column_names)
    columns = [_values(table, name) for name in of]
    return table_of([_event(Found(*row)) for row in zip(*columns, strict=True)])


def table_of(made: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    """Return rows in `COLUMNS` as a table."""
    if not made:
        nothing: pyarrow.Table = SCHEMA.empty_table()
        return nothing
    values = zip(zip(*made, strict=True), _KINDS, strict=True)
    arrays = [pa.array(column, kind) for column, kind in values]
    found: pyarrow.Table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    return found


def _values(table: Any, name: str | None) -> Iterable[Any]:
    if name is None:
        return [None] * table.num_rows
    column = table[name]
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        # What is beyond 64 bits in nanoseconds is counted as not readable, like any other time.
        factor = text.nanoseconds(1, column.type.unit) or 1
        counts = column.cast(pa.int64()).to_pylist()
        return [None if count is None else count * factor for count in counts]
    found: list[Any] = column.to_pylist()
    return found


def _event(row: Any) -> tuple[Any, ...]:
    """Return one row of the result."""
    attributes = dict(row.resource or ())
    if row.service is not None:
        attributes.setdefault(SERVICE, row.service)
    links = row.links or ()
    if row.link_traces is not None and row.link_spans is not None:
        pairs = zip(row.link_traces, row.link_spans, strict=False)
        links = [{"traceId": trace, "spanId": span} for trace, span in pairs]
    end = row.end
    if end is None and row.duration is not None and text.int64(row.start) is not None:
        begin, length = text.int64(row.start), text.int64(row.duration)
        end = None if not begin or length is None else begin + length
    record = {
        "traceId": _words(row.trace),
        "spanId": _words(row.span),
        "parentSpanId": _words(row.parent),
        "startTimeUnixNano": row.start,
        "endTimeUnixNano": end,
        "kind": row.kind,
        "name": row.name,
        "links": [
            {key: _words(value) for key, value in _plain(link).items()} for link in links if link
        ],
    }
    try:
        span = span_of(record, process_of(attributes))
    except ValueError:
        return (EVENT, None, None, [], [], None, None, None, None, NO_ID, 0)
    part = span.part
    name = f"{part.trace}/{part.span}"
    told = (part.start, part.end, part.role, part.name, None, part.unreadable)
    return (EVENT, name, part.member, list(span.causes), [part.trace], *told)


def _plain(link: Any) -> dict[str, Any]:
    """Return a link under the names of OTLP's JSON."""
    known = {plain_name(key): value for key, value in link.items()}
    return {"traceId": known.get("traceid"), "spanId": known.get("spanid")}


def _words(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
