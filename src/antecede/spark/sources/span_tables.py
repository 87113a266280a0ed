"""Spans in a DataFrame to events: OpenTelemetry's by column expressions.

The rule is that of `antecede.trace.formats.spans_otlp`; which column is which,
`antecede.trace.formats.spans_table` tells. Tests hold all three to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import bare, column_of
from antecede.spark.sources.zipkin_tables import events_of_zipkin
from antecede.trace.formats.spans_otlp import INSTANCE, KINDS, SPAN_BYTES, TRACE_BYTES
from antecede.trace.formats.spans_part import ROLES
from antecede.trace.formats.spans_table import COLUMNS, Found, found_in
from antecede.trace.formats.zipkin_table import is_zipkin, plain_name
from antecede.trace.reader import NO_ID
from antecede.trace.schema import EVENT

_WHOLE = r"\A[+-]?[0-9]{1,31}\z"
_NUMBERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_OF_64_BITS = "decimal(38,0)"


def events_of_spans(df: DataFrame) -> DataFrame:
    """Return the events of spans: of OpenTelemetry's a row for each row.

    The columns are `antecede.trace.formats.spans_table.COLUMNS`: those of the event schema that
    spans tell, then `reason` (why a row is no event; its `id` is null) and `unreadable_times`. For
    tables as collectors write them: flat OTLP (`traceId`, `spanId`, `parentSpanId`,
    `startTimeUnixNano`, ...) and ClickHouse's (`TraceId`, `Timestamp`, `Duration`, `Links.TraceId`,
    `ResourceAttributes`); names count without dots, underscores and case. Native expressions alone:
    also for streams. Spark keeps microseconds of timestamps.

    Zipkin's tables (`traceId`, `id`, `parentId`, `kind`, `timestamp`, `duration`, `localEndpoint`,
    ...; times in microseconds; version 1: `annotations`) give a row for each event, as two
    processes may share a span and one may report it in pieces. So the rows of a trace go to one
    task, of at most 1 GiB a trace, and streams are refused.

    Raises InputError where the columns are not there or of types that cannot serve.

        events = spark.table("otel_traces").transform(events_of_spans)
        antecede.spark.audit(events.where("reason is null"))
    """
    if is_zipkin(df.columns):
        return events_of_zipkin(df)
    of = found_in(df.columns)
    trace = _identity(df, of.trace, TRACE_BYTES)
    span = _identity(df, of.span, SPAN_BYTES)
    parent = None if of.parent is None else _identity(df, of.parent, SPAN_BYTES)
    start, bad_start = _time(df, of.start)
    end, bad_end = _end(df, of, start)
    good = trace.isNotNull() & span.isNotNull()
    own = F.array() if parent is None else F.array(F.concat(trace, F.lit("/"), parent))
    causes = F.array_distinct(
        F.filter(F.concat(own, _links(df, of)), lambda name: name.isNotNull())
    )
    name = F.lit(None).cast("string") if of.name is None else _words(column_of(of.name))
    none = F.array().cast("array<string>")
    made = (
        F.lit(EVENT),
        _if(good, F.concat(trace, F.lit("/"), span)),
        _if(good, _member(df, of)),
        F.when(good, causes).otherwise(none),
        F.when(good, F.array(trace)).otherwise(none),
        _if(good, start),
        _if(good, end),
        _if(good, _role(df, of.kind)),
        _if(good, name),
        F.when(~good, F.lit(NO_ID)),
        F.when(good, bad_start + bad_end).otherwise(F.lit(0)).cast("long"),
    )
    return df.select(*(column.alias(name) for name, column in zip(COLUMNS, made, strict=True)))


def _if(good: Column, column: Column) -> Column:
    return F.when(good, column)


def _words(column: Column) -> Column:
    """Return text without blanks around it, null for blanks alone."""
    stripped = bare(column)
    return F.when(stripped != "", stripped)


def _identity(df: DataFrame, name: str, size: int) -> Column:
    kind = df.schema[name].dataType
    if not isinstance(kind, t.StringType | t.BinaryType):
        raise InputError(f"column {name} must be text or bytes; it is {kind.simpleString()}")
    return _identity_of(column_of(name), kind, size)


def _identity_of(column: Column, kind: t.DataType, size: int) -> Column:
    """Return an identity in hexadecimal; null for none, blank and all zero."""
    written = F.hex(column) if isinstance(kind, t.BinaryType) else column
    written = _words(written)
    hexadecimal = written.rlike(rf"\A[0-9a-fA-F]{{{2 * size}}}\z")
    digits, padding = {TRACE_BYTES: (22, "=="), SPAN_BYTES: (11, "=")}[size]
    base64 = written.rlike(rf"\A[A-Za-z0-9+/]{{{digits}}}{padding}\z")
    whole = F.concat(F.substring(written, 1, digits), F.lit("=" * (-digits % 4)))
    found = F.lower(
        F.when(hexadecimal, written).when(base64, F.hex(F.unbase64(whole))).otherwise(written)
    )
    return F.when(~found.rlike(r"\A0*\z"), found)


def _links(df: DataFrame, of: Found) -> Column:
    """Return the names of linked spans, null for links that name none."""
    none = F.array().cast("array<string>")
    if of.link_traces is not None and of.link_spans is not None:
        kinds = [_element(df, name) for name in (of.link_traces, of.link_spans)]
        both = F.arrays_zip(
            column_of(of.link_traces).alias("trace"), column_of(of.link_spans).alias("span")
        )
        keys = [field.name for field in df.select(both.alias("b")).schema["b"].dataType.elementType]  # type: ignore[attr-defined]
        return F.coalesce(F.transform(both, lambda link: _link(link, keys, kinds)), none)
    if of.links is None:
        return none
    kind = _element(df, of.links)
    if not isinstance(kind, t.StructType):
        raise InputError(f"column {of.links} must be an array of structs with traceId and spanId")
    known = {plain_name(field.name): field for field in kind.fields}
    if not {"traceid", "spanid"} <= known.keys():
        raise InputError(f"column {of.links}: its structs lack traceId or spanId")
    fields = [known["traceid"], known["spanid"]]
    keys, kinds = [field.name for field in fields], [field.dataType for field in fields]
    named = F.transform(column_of(of.links), lambda link: _link(link, keys, kinds))
    return F.coalesce(named, none)


def _link(link: Column, keys: Sequence[str], kinds: Sequence[t.DataType]) -> Column:
    trace = _identity_of(link.getField(keys[0]), kinds[0], TRACE_BYTES)
    span = _identity_of(link.getField(keys[1]), kinds[1], SPAN_BYTES)
    return F.concat(trace, F.lit("/"), span)


def _element(df: DataFrame, name: str) -> t.DataType:
    kind = df.schema[name].dataType
    if not isinstance(kind, t.ArrayType):
        raise InputError(f"column {name} must be an array; it is {kind.simpleString()}")
    return kind.elementType


def _time(df: DataFrame, name: str | None) -> tuple[Column, Column]:
    """Return nanoseconds since 1970, and 1 where a time could not be read."""
    nothing = F.lit(None).cast("long")
    if name is None:
        return nothing, F.lit(0)
    kind, column = df.schema[name].dataType, column_of(name)
    if isinstance(kind, t.TimestampType | t.TimestampNTZType):
        micros: Any = F.unix_micros(column.cast("timestamp"))
        found = F.when(micros != 0, F.try_multiply(micros, F.lit(1000)))
        return found, _unread(micros.isNotNull() & (micros != 0), found)
    if isinstance(kind, _NUMBERS):
        return F.when(column != 0, column.cast("long")), F.lit(0)
    whole_decimal = isinstance(kind, t.DecimalType) and kind.scale == 0
    if not whole_decimal and not isinstance(kind, t.StringType):
        raise InputError(
            f"column {name} must be whole numbers of nanoseconds, as numbers or text, or "
            f"timestamps; it is {kind.simpleString()}"
        )
    if whole_decimal:
        found = F.when(column != 0, column.try_cast("long"))
        return found, _unread(column.isNotNull() & (column != 0), found)
    stripped = bare(column)
    number = F.when(stripped.rlike(_WHOLE), stripped.try_cast(_OF_64_BITS))
    absent = column.isNull() | column.isin("", "0")
    found = F.when(~absent, number.try_cast("long"))
    return found, _unread(~absent, found)


def _unread(there: Column, found: Column) -> Column:
    return F.when(there & found.isNull(), 1).otherwise(0)


def _end(df: DataFrame, of: Found, start: Column) -> tuple[Column, Column]:
    if of.end is not None or of.duration is None:
        return _time(df, of.end)
    kind = df.schema[of.duration].dataType
    whole = isinstance(kind, _NUMBERS) or (isinstance(kind, t.DecimalType) and kind.scale == 0)
    if not whole:
        raise InputError(
            f"column {of.duration} must be whole numbers of nanoseconds; it is "
            f"{kind.simpleString()}"
        )
    return F.try_add(start, column_of(of.duration).try_cast("long")), F.lit(0)


def _role(df: DataFrame, name: str | None) -> Column:
    if name is None:
        return F.lit(None).cast("string")
    column, kind = column_of(name), df.schema[name].dataType
    by_number = F.create_map(*(F.lit(one) for pair in KINDS.items() for one in pair))
    if isinstance(kind, _NUMBERS):
        return by_number[column.cast("int")]
    if not isinstance(kind, t.StringType):
        raise InputError(f"column {name} must be a word or a number; it is {kind.simpleString()}")
    word = F.regexp_replace(F.lower(column), r"\Aspan_kind_", "")
    number = bare(column)
    number = F.when(number.rlike(r"\A[+]?[0-9]{1,9}\z"), number.try_cast("int"))
    return F.when(word.isin(*ROLES), word).otherwise(by_number[number])


def _member(df: DataFrame, of: Found) -> Column:
    def attribute(key: str) -> Column:
        if of.resource is None:
            return F.lit(None).cast("string")
        return _words(F.element_at(column_of(of.resource), F.lit(key)))

    if of.resource is not None:
        kind = df.schema[of.resource].dataType
        texts = isinstance(kind, t.MapType) and isinstance(kind.valueType, t.StringType)
        if not texts or not isinstance(kind.keyType, t.StringType):  # type: ignore[attr-defined]
            raise InputError(
                f"column {of.resource} must be a map of texts; it is {kind.simpleString()}"
            )
    service = attribute("service.name")
    if of.service is not None:
        said = _words(column_of(of.service))
        if of.resource is not None:
            there = F.array_contains(F.map_keys(column_of(of.resource)), "service.name")
            said = F.when(~F.coalesce(there, F.lit(False)), said)
        service = F.coalesce(service, said)
    instance = F.coalesce(*map(attribute, INSTANCE))
    both = service.isNotNull() & instance.isNotNull() & (service != instance)
    process = F.when(both, F.concat(service, F.lit("@"), instance))
    return F.coalesce(attribute("k8s.pod.name"), process, service, instance)
