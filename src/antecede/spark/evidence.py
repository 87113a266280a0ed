"""Checks whether a DataFrame contains evidence of causality, by Spark jobs.

The rule is that of `antecede.tables.trace.evidence`. A first job looks up a sample of the causes
among the ids and ends at the first match. Only without a match are all causes joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import column_of, get_id_column, to_id
from antecede.tables.causality import order_spec
from antecede.tables.order import OrderSpec
from antecede.tables.trace import (
    CAUSE_COLUMNS,
    CAUSES,
    CLOCKS,
    DELIVER,
    NAMES,
    NONE,
    RECEIPTS,
    RECEIVE,
    SEND,
    Cells,
    cells_of,
    conform,
    describe_cells,
    describe_unsupported,
    warn_none,
)


def select_keys(df: DataFrame, spec: OrderSpec) -> tuple[Column, Column]:
    """Return a row's group and id as `g` and `k`, in the form that causes are compared with."""
    group = F.lit(0) if spec.group is None else column_of(spec.group)
    own = column_of(str(spec.id))
    key = get_id_column(df, str(spec.id)) if _compares_as_text(df, spec) else own
    return group.alias("g"), key.alias("k")


def explode_causes(df: DataFrame, spec: OrderSpec, *, backwards: bool) -> DataFrame:
    """Return the declared causes as (g, start, end), with repeats."""
    as_text = _compares_as_text(df, spec)
    kind = "string" if as_text else df.schema[str(spec.id)].dataType
    ends = ("k", "cause") if backwards else ("cause", "k")

    def of(name: str) -> DataFrame:
        column = column_of(name)
        several = isinstance(df.schema[name].dataType, t.ArrayType)
        # A cause that is not a value of the ids' type becomes null, as in the engine.
        cause = (F.explode(column) if several else column).alias("cause")
        one = df.select(*select_keys(df, spec), cause)
        cause = F.col("cause")
        inner = one.schema["cause"].dataType
        one = one.withColumn("cause", to_id(cause, inner) if as_text else cause.try_cast(kind))
        return one.select("g", F.col(ends[0]).alias("start"), F.col(ends[1]).alias("end"))

    every = reduce(DataFrame.unionAll, map(of, spec.after))
    return every.where("g IS NOT NULL AND start IS NOT NULL AND end IS NOT NULL")


def _compares_as_text(df: DataFrame, spec: OrderSpec) -> bool:
    """Return whether ids and causes are compared as text: text or floats (see `key_types`)."""
    kinds = [df.schema[name].dataType for name in (str(spec.id), *spec.after)]
    plain = [kind.elementType if isinstance(kind, t.ArrayType) else kind for kind in kinds]
    return any(isinstance(kind, t.StringType | t.FloatType | t.DoubleType) for kind in plain)


FIRST_CAUSES: Final = 1000
"""Number of causes that are looked up first."""
_RUN: Final = "__antecede_evidence_run"


def has_evidence(df: DataFrame, spec: OrderSpec) -> bool:
    """Return whether the columns of a spec contain evidence of causality.

    Runs one or two jobs. Returns True in Declarative Pipelines, where no job may run.
    """
    return _check_unless_pipeline(df, spec, _has_matching_cause)


def _check_unless_pipeline(
    df: DataFrame, spec: OrderSpec, check: Callable[[DataFrame, OrderSpec], bool]
) -> bool:
    try:
        return check(df, spec)
    except AnalysisException as error:
        if "PIPELINE_QUERY_FUNCTION" in str(error.getCondition()):
            return True
        raise


def warn_without_causes(df: DataFrame, spec: OrderSpec) -> None:
    """Issue `NoEvidenceWarning` if there are rows and none has a cause, clock or number.

    Runs a job that ends at the first such row; none in Declarative Pipelines.
    """
    if not (_check_unless_pipeline(df, spec, _has_any_cause) or df.isEmpty()):
        warn_none(spec.ways)


def require_evidence(df: DataFrame, spec: OrderSpec) -> None:
    """Raise InputError if there are rows and no evidence of causality."""
    if not (has_evidence(df, spec) or df.isEmpty()):
        raise InputError(describe_unsupported(spec.ways, df.columns))


def _has_any_cause(df: DataFrame, spec: OrderSpec) -> bool:
    if spec.sender is not None:
        usable = column_of(spec.sender).isNotNull() & (column_of(str(spec.seq)) >= 0)
        return not df.where(usable).isEmpty()
    if spec.clock is not None:
        return not df.where(_has_own_entry(df, spec)).isEmpty()
    return not _select_causes(df, spec).isEmpty()


def _select_causes(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Return group `g` and id `k` of the causes that are not blank and not the row itself."""
    causes = explode_causes(df, spec, backwards=True)
    blank = F.trim(F.col("end").cast("string")) == ""
    causes = causes.where((F.col("start") != F.col("end")) & ~blank)
    return causes.select("g", F.col("end").alias("k"))


def _has_matching_cause(df: DataFrame, spec: OrderSpec) -> bool:
    if spec.id is None:
        return _has_any_cause(df, spec)
    causes = _select_causes(df, spec)
    own = df.select(*select_keys(df, spec))
    for few in (F.broadcast(causes.limit(FIRST_CAUSES)), causes):
        if not own.join(few, ["g", "k"], "left_semi").isEmpty():
            return True
    return False


def _has_own_entry(df: DataFrame, spec: OrderSpec) -> Any:
    """Return whether a row's clock counts its own member; of arrays, any member."""
    clock, member = column_of(str(spec.clock)), column_of(str(spec.member))
    kind = df.schema[str(spec.clock)].dataType
    if isinstance(kind, t.MapType):
        return F.try_element_at(clock, member.cast(kind.keyType)) > 0
    if isinstance(kind, t.StructType):
        names, counts = (clock.getField(field.name) for field in kind.fields)
        at = F.array_position(names, member.cast(kind.fields[0].dataType.elementType))  # type: ignore[attr-defined]
        return (at > 0) & (F.try_element_at(counts, at.cast("int")) > 0)
    return member.isNotNull() & F.exists(clock, lambda count: count > 0)


# -- event schema --------------------------------------------------------------------------------


def source_in(events: DataFrame) -> str:
    """Return the first causality source that an event table contains; runs jobs for each source."""
    if has_receipts(events):
        return RECEIPTS
    return next((way for way in (CLOCKS, CAUSES) if supports_way(events, way)), NONE)


def supports_way(events: DataFrame, source: str) -> bool:
    """Return whether an event table contains causes, clocks, or else receipts."""
    there = set(events.columns)
    if source == CLOCKS:
        pair = F.struct(F.col("clock_members"), F.col("clock_counts"))
        clock = F.when(F.col("clock_members").isNotNull(), pair)
        if not {"clock_members", "clock_counts", "member"} <= there:
            return False
        clocks = events.select("member", clock.alias("c"))
        return has_evidence(clocks, order_spec(clock="c", member="member"))
    if source == CAUSES:
        spec = order_spec(id="id", after="causes", group=_RUN)
        return "causes" in there and has_evidence(events.withColumn(_RUN, _get_run(events)), spec)
    return has_receipts(events)


def has_receipts(events: DataFrame) -> bool:
    """Return whether a receipt or delivery has the id of a send of its run."""
    if "kind" not in events.columns:
        return False
    keyed = events.select(_get_run(events).alias("g"), F.col("id").alias("k"), "kind")
    arrived = keyed.where(F.col("kind").isin(RECEIVE, DELIVER))
    sent = keyed.where(F.col("kind") == SEND)
    return not arrived.join(sent, ["g", "k"], "left_semi").isEmpty()


def require_source(events: DataFrame) -> None:
    """Raise InputError for a non-empty event table without a causality source."""
    if source_in(events) == NONE and not events.isEmpty():
        columns = {CAUSE_COLUMNS: ", ".join(events.columns)[:300]}
        raise InputError(describe_none(events, columns))


def describe_none(events: DataFrame, details: Mapping[str, Any]) -> str:
    """Return why the table contains no causality source."""
    return describe_cells(read_cells(events), details)


def read_cells(events: DataFrame) -> Cells:
    """Collect samples of the columns that could be evidence; of causes the first rows only."""
    names = [name for name in NAMES if name in events.columns]
    rows = events.select(*names)
    parts = [rows.limit(1)]
    if "causes" in names:
        parts.append(rows.where(F.size("causes") > 0).limit(FIRST_CAUSES))
    if "clock_members" in names:
        parts.append(rows.where(F.col("clock_members").isNotNull()).limit(1))
    tables: list[Any] = [part.toArrow() for part in parts]
    cells: Cells = cells_of(conform(pa.concat_tables(tables)))
    kinds = cells.kinds
    if "kind" in names:
        kinds = frozenset(row[0] for row in rows.select("kind").distinct().collect())
    return cells._replace(kinds=kinds, receipts=has_receipts(events))


def _get_run(events: DataFrame) -> Any:
    return F.coalesce(F.col("run"), F.lit("")) if "run" in events.columns else F.lit("")
