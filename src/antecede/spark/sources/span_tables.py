"""Conversion of span tables to events.

OpenTelemetry, Jaeger and similar tables are converted by column expressions, with the rules of
`antecede.tables.trace.formats`: `spans_otlp`, `spans_jaeger`, `spans_ids`, `spans_times`.
`spans_table` finds the columns. Zipkin needs all rows of a trace (`zipkin_table`): Spark sorts the
rows by trace, and a task holds one trace at a time. Rows without ids are distributed. Tests compare
all engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.audits.event_columns import (
    MAX_RUN_BYTES,
    ROW_ORDER,
    RUN_KEY,
    partition_by_run,
    read_runs,
)
from antecede.spark.columns import column_of, strip_blanks
from antecede.spark.sources.span_ids import (
    INTEGER_TYPES,
    IdColumn,
    add_ids,
    is_integer,
    is_unreadable,
    make_steps,
    normalize_ids,
    strip_or_null,
)
from antecede.spark.workers import check_workers
from antecede.tables.trace import EVENT, NO_ID
from antecede.tables.trace.formats import (
    COLUMNS,
    DIGITS,
    FACTORS,
    HOSTS,
    INSTANCE,
    KINDS,
    RANGES,
    ROLES,
    SPAN_BYTES,
    TRACE_BYTES,
    SpanColumns,
    check_zipkin,
    find_span_columns,
    is_zipkin,
    pairs_in,
    plain_name,
    rows_of,
    table_of,
    used,
)

ZIPKIN_SCHEMA = (
    "kind string, id string, member string, causes array<string>, topics array<string>, "
    "start_time long, end_time long, role string, text string, reason string, "
    "unreadable_times long, time_unit string, unreadable_causes long"
)
_NO_TRACE = "\0"
_SPREAD_KEYS = 1000


def zipkin_to_events(df: DataFrame) -> DataFrame:
    """Return the events of Zipkin spans. Raises InputError for streams and unsupported columns."""
    if df.isStreaming:
        raise InputError(
            "Zipkin's spans need all rows of their trace, so streams are not supported: call this "
            "on the stream's output table, or in foreachBatch"
        )
    of = used(df.columns)
    for name in (of[what] for what in ("traceId", "id", "parentId") if what in of):
        make_steps(name, df.schema[name].dataType, SPAN_BYTES)  # raises for types that hold no ids
    check_workers(df.sparkSession)
    # Some rows of a trace may have a 128-bit id and others only its right half.
    key = F.right(column_of(RUN_KEY), F.lit(DIGITS))
    spread = F.concat(
        F.lit(_NO_TRACE), (F.monotonically_increasing_id() % _SPREAD_KEYS).cast("string")
    )
    rows = add_ids(df, {RUN_KEY: IdColumn(of["traceId"], TRACE_BYTES)}).select(
        *(column_of(name) for name in of.values()),
        F.coalesce(key, spread).alias(RUN_KEY),
        F.lit(0).alias(ROW_ORDER),
    )
    refusal = f"the rows of a trace are one task, limited to {MAX_RUN_BYTES:,} bytes"

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, rows in read_runs(batches, MAX_RUN_BYTES, refusal):
            yield from table_of(list(rows_of(rows))).to_batches()

    return partition_by_run(rows).mapInArrow(make, ZIPKIN_SCHEMA)


_INTEGER = r"\A[+-]?[0-9]{1,31}\z"
_DECIMAL = "decimal(38,0)"
_TRACE, _SPAN, _PARENT, _START, _END, _UNIT, _END_UNIT = (
    f"antecede {name}"
    for name in ("trace", "span", "parent", "start", "end", "unit", "unit of end")
)
"""Columns between two steps, with names that tables hardly use."""


def spans_to_events(df: DataFrame) -> DataFrame:
    """Return the events of spans, one row for each row (Zipkin: one row for each event).

    Columns are `antecede.tables.trace.formats.spans_table.COLUMNS`: those of the event schema that
    spans contain, `reason` (why a row is not an event; its `id` is null), `unreadable_times`,
    `time_unit` (if not the declared one) and `unreadable_causes` (parents and links without ids).

    Tables may be flat OTLP (`traceId`, `startTimeUnixNano`, ...), ClickHouse (`TraceId`,
    `Timestamp`, `Links.TraceId`, ...), Jaeger (`traceID`, `references`, `process`; microseconds),
    Elastic APM (`trace.id`, `timestamp.us`), Datadog (ids as integers) or Zipkin (`traceId`,
    `localEndpoint`, ...). Names ignore dots, underscores and case. Spark keeps microseconds of
    timestamps. A 64-bit and a 128-bit trace id are two traces here. All but Zipkin are native
    expressions, also for streams. In Zipkin tables processes may share a span, so the rows of a
    trace are one task of at most 1 GiB, and streams are rejected.

    Raises InputError for missing columns, if no column holds causes, and for unsupported types.

        events = spark.table("otel_traces").transform(spans_to_events)
        antecede.spark.audit(events.where("reason is null"))
    """
    if is_zipkin(df.columns):
        check_zipkin(df.columns)
        return zipkin_to_events(df)
    of = find_span_columns(df.columns)
    df = _join_column_pairs(df)
    wanted = {_TRACE: IdColumn(of.trace, TRACE_BYTES), _SPAN: IdColumn(of.span, SPAN_BYTES)}
    if of.parent is not None:
        wanted[_PARENT] = IdColumn(of.parent, SPAN_BYTES)
    name = F.lit(None).cast("string") if of.name is None else strip_or_null(column_of(of.name))
    trace, span = column_of(_TRACE), column_of(_SPAN)
    own = F.array()
    if of.parent is not None:
        own = F.array(F.concat(trace, F.lit("/"), column_of(_PARENT)))
    links = _read_links(df, of)
    causes = F.array_distinct(F.filter(F.concat(own, links), lambda name: name.isNotNull()))
    unread = F.size(F.filter(links, lambda name: name.isNull()))
    if of.parent is not None:
        kind = df.schema[of.parent].dataType
        unread += is_unreadable(column_of(of.parent), kind).cast("int")
    none = F.array().cast("array<string>")
    good = trace.isNotNull() & span.isNotNull()
    member, role = _read_member(df, of), _read_role(df, of)
    timed, times = _add_times(add_ids(df, wanted), of)
    made = (
        F.lit(EVENT),
        F.when(good, F.concat(trace, F.lit("/"), span)),
        F.when(good, member),
        F.when(good, causes).otherwise(none),
        F.when(good, F.array(trace)).otherwise(none),
        F.when(good, times.start),
        F.when(good, times.end),
        F.when(good, role),
        F.when(good, name),
        F.when(~good, F.lit(NO_ID)),
        F.when(good, times.unreadable).otherwise(F.lit(0)).cast("long"),
        F.when(good, times.unit),
        F.when(good, unread).otherwise(F.lit(0)).cast("long"),
    )
    return timed.select(*(column.alias(name) for name, column in zip(COLUMNS, made, strict=True)))


def _join_column_pairs(df: DataFrame) -> DataFrame:
    """Fill blank span columns from the columns of transactions."""
    joined = {}
    for name, other in pairs_in(df.columns):
        kind = df.schema[name].dataType
        if kind != df.schema[other].dataType:
            raise InputError(f"columns {name} and {other} differ in type: cast one of them")
        column = column_of(name)
        there = (
            F.when(strip_blanks(column) != "", column) if isinstance(kind, t.StringType) else column
        )
        joined[name] = F.coalesce(there, column_of(other))
    if not joined:
        return df
    return df.select(*(joined.get(name, column_of(name)).alias(name) for name in df.columns))


def _read_links(df: DataFrame, columns: SpanColumns) -> Column:
    none = F.array().cast("array<string>")
    if columns.link_traces is not None and columns.link_spans is not None:
        names = (columns.link_traces, columns.link_spans)
        parts = [(column_of(name), name, _get_element_type(df, name)) for name in names]
    elif columns.links is not None:
        parts = _split_links(df, columns.links)
    else:
        return none
    traces, spans = (
        normalize_ids(*part, size)
        for part, size in zip(parts, (TRACE_BYTES, SPAN_BYTES), strict=True)
    )
    named = F.zip_with(traces, spans, lambda trace, span: F.concat(trace, F.lit("/"), span))
    return F.coalesce(named, none)


def _split_links(df: DataFrame, name: str) -> list[tuple[Column, str, t.DataType]]:
    """Return the lists of trace ids and span ids in a list of structs, for `normalize_ids`."""
    kind = _get_element_type(df, name)
    if not isinstance(kind, t.StructType):
        raise InputError(f"column {name} must be an array of structs with traceId and spanId")
    known = {plain_name(field.name): field for field in kind.fields}
    if not {"traceid", "spanid"} <= known.keys():
        raise InputError(f"column {name}: its structs lack traceId or spanId")

    def field(key: str) -> tuple[Column, str, t.DataType]:
        found = known[key]
        return F.transform(column_of(name), lambda one: one[found.name]), name, found.dataType

    return [field("traceid"), field("spanid")]


def _get_element_type(df: DataFrame, name: str) -> t.DataType:
    kind = df.schema[name].dataType
    if not isinstance(kind, t.ArrayType):
        raise InputError(f"column {name} must be an array; it is {kind.simpleString()}")
    return kind.elementType


class _Times(NamedTuple):
    start: Column
    end: Column
    unreadable: Column
    unit: Column


def _add_times(df: DataFrame, columns: SpanColumns) -> tuple[DataFrame, _Times]:
    """Add columns and return the times of spans, by `spans_times.read_times`."""
    unit = columns.unit()
    numbers = {
        _START: _read_number(df, columns.start, unit),
        _END: _read_number(df, columns.end, unit),
    }
    df = df.withColumns(
        {new: one.value for new, one in numbers.items()}
        | {f"{new} is there": one.is_there for new, one in numbers.items()}
    )
    start, end = (_TimeNumber(column_of(new), column_of(f"{new} is there")) for new in numbers)
    begins = F.when(start.is_there, start.value).otherwise(end.value)
    df = df.withColumns({_UNIT: _infer_unit(begins, F.lit(unit))})
    taken = column_of(_UNIT)
    df = df.withColumns({_END_UNIT: _infer_unit(end.value, taken)})
    ends = column_of(_END_UNIT)
    first, last = (
        F.when(one.is_there, _to_nanoseconds(one.value, of_one))
        for one, of_one in ((start, taken), (end, ends))
    )
    bad = _is_unread(start.is_there, first)
    also_bad = _is_unread(end.is_there, last)
    if columns.duration is not None:
        kind = df.schema[columns.duration].dataType
        if not is_integer(kind):
            raise InputError(
                f"column {columns.duration} must be whole numbers; it is {kind.simpleString()}"
            )
        given = columns.duration_unit()
        length = column_of(columns.duration)
        in_ns = _to_nanoseconds(length.cast(_DECIMAL), taken if given is None else F.lit(given))
        counts = ~end.is_there & length.isNotNull()
        last = F.when(counts, F.try_add(first, in_ns)).otherwise(last)
        also_bad = F.when(counts, _is_unread(F.lit(True), in_ns)).otherwise(also_bad)
    suspected = F.when(taken != unit, taken).when(ends != unit, ends)
    return df, _Times(first, last, bad + also_bad, suspected)


def _infer_unit(number: Column, declared: Column) -> Column:
    found = declared
    for unit, (low, high) in RANGES.items():
        found = F.when((number >= low) & (number < high), F.lit(unit)).otherwise(found)
    return found


class _TimeNumber(NamedTuple):
    """A time as a decimal number (null: missing or unreadable), and whether it has a value."""

    value: Column
    is_there: Column


def _read_number(df: DataFrame, name: str | None, unit: str) -> _TimeNumber:
    if name is None:
        return _TimeNumber(F.lit(None).cast(_DECIMAL), F.lit(False))
    kind, column = df.schema[name].dataType, column_of(name)
    if isinstance(kind, t.TimestampType | t.TimestampNTZType):
        micros = F.unix_micros(column.cast("timestamp")).cast("decimal(28,0)")
        found = (micros * 1000 / FACTORS[unit]).cast(_DECIMAL)
        return _TimeNumber(found, F.coalesce(found != 0, F.lit(False)))
    if is_integer(kind):
        return _TimeNumber(column.cast(_DECIMAL), F.coalesce(column != 0, F.lit(False)))
    if not isinstance(kind, t.StringType):
        raise InputError(
            f"column {name} must be whole numbers, as numbers or text, or timestamps; it is "
            f"{kind.simpleString()}"
        )
    stripped = strip_blanks(column)
    number = F.when(stripped.rlike(_INTEGER), stripped.try_cast(_DECIMAL))
    return _TimeNumber(number, column.isNotNull() & ~column.isin("", "0"))


def _to_nanoseconds(number: Column, unit: Column) -> Column:
    """Convert a number to ns; null for zero and beyond 64 bits."""
    factor = F.create_map(*(F.lit(one) for pair in FACTORS.items() for one in pair))[unit]
    return F.try_multiply(number, factor.cast("decimal(10,0)")).try_cast("long")


def _is_unread(is_there: Column, value: Column) -> Column:
    return F.when(is_there & value.isNull(), 1).otherwise(0)


def _read_role(df: DataFrame, columns: SpanColumns) -> Column:
    of_tags = (
        F.lit(None).cast("string")
        if columns.tags is None
        else _get_tag(column_of(columns.tags), df.schema[columns.tags].dataType, "span.kind")
    )
    of_tags = F.lower(strip_or_null(of_tags))
    of_tags = F.when(of_tags.isin(*ROLES), of_tags)
    if columns.kind is None:
        return of_tags
    name = columns.kind
    column, kind = column_of(name), df.schema[name].dataType
    by_number = F.create_map(*(F.lit(one) for pair in KINDS.items() for one in pair))
    if isinstance(kind, INTEGER_TYPES):
        return F.when(column.isNull(), of_tags).otherwise(by_number[column.cast("int")])
    if not isinstance(kind, t.StringType):
        raise InputError(f"column {name} must be a word or a number; it is {kind.simpleString()}")
    word = F.regexp_replace(F.lower(strip_blanks(column)), r"\A(span_kind_|spankind\.)", "")
    number = strip_blanks(column)
    number = F.when(number.rlike(r"\A[+]?[0-9]{1,9}\z"), number.try_cast("int"))
    found = F.when(word.isin(*ROLES), word).otherwise(by_number[number])
    return F.when(column.isNull(), of_tags).otherwise(found)


def _get_tag(tags: Column, kind: t.DataType, key: str) -> Column:
    none = F.lit(None).cast("string")
    if isinstance(kind, t.MapType) and isinstance(kind.keyType, t.StringType):
        keys = (key, key.replace(".", "@"))
        return F.coalesce(*(F.element_at(tags, F.lit(one)).cast("string") for one in keys))
    if isinstance(kind, t.StructType):
        names = {one.name.replace("@", "."): one.name for one in kind.fields}
        return tags.getField(names[key]).cast("string") if key in names else none
    if not isinstance(kind, t.ArrayType) or not isinstance(kind.elementType, t.StructType):
        return none
    fields = kind.elementType.names
    held = [name for name in ("value", "vStr") if name in fields]
    if "key" not in fields or not held:
        return none
    first = F.try_element_at(F.filter(tags, lambda tag: tag.getField("key") == key), F.lit(1))
    return F.coalesce(*(first.getField(name).cast("string") for name in held))


def _read_member(df: DataFrame, columns: SpanColumns) -> Column:
    if columns.process is not None:
        return _read_jaeger_member(df, columns.process)

    def attribute(key: str) -> Column:
        if columns.resource is None:
            return F.lit(None).cast("string")
        return strip_or_null(F.element_at(column_of(columns.resource), F.lit(key)))

    if columns.resource is not None:
        kind = df.schema[columns.resource].dataType
        texts = isinstance(kind, t.MapType) and isinstance(kind.valueType, t.StringType)
        if not texts or not isinstance(kind.keyType, t.StringType):  # type: ignore[attr-defined]
            raise InputError(
                f"column {columns.resource} must be a map of texts; it is {kind.simpleString()}"
            )
    service = attribute("service.name")
    if columns.service is not None:
        kind = df.schema[columns.service].dataType
        if not isinstance(kind, t.StringType | t.NullType):
            raise InputError(f"column {columns.service} must be text; it is {kind.simpleString()}")
        service_name = strip_or_null(column_of(columns.service))
        if columns.resource is not None:
            there = F.array_contains(F.map_keys(column_of(columns.resource)), "service.name")
            service_name = F.when(~F.coalesce(there, F.lit(False)), service_name)
        service = F.coalesce(service, service_name)
    instance = F.coalesce(*map(attribute, INSTANCE))
    return F.coalesce(attribute("k8s.pod.name"), _name_process(service, instance))


def _name_process(service: Column, instance: Column) -> Column:
    both = service.isNotNull() & instance.isNotNull() & (service != instance)
    named = F.when(both, F.concat(service, F.lit("@"), instance))
    return F.coalesce(named, service, instance)


def _read_jaeger_member(df: DataFrame, name: str) -> Column:
    kind = df.schema[name].dataType
    known = (
        {plain_name(one.name): one for one in kind.fields} if isinstance(kind, t.StructType) else {}
    )
    if "servicename" not in known:
        raise InputError(
            f"column {name} must be a struct with serviceName; it is {kind.simpleString()}"
        )

    def tag(key: str) -> Column:
        held = [known[one] for one in ("tag", "tags") if one in known]
        values = (_get_tag(where.getField(one.name), one.dataType, key) for one in held)
        return strip_or_null(F.coalesce(F.lit(None).cast("string"), *values))

    where = column_of(name)
    service = strip_or_null(where.getField(known["servicename"].name).cast("string"))
    instance = F.coalesce(*map(tag, INSTANCE))
    host = F.when(service.isNotNull(), F.coalesce(*map(tag, HOSTS)))
    found = _name_process(service, F.coalesce(instance, host))
    return F.coalesce(tag("k8s.pod.name"), found)
