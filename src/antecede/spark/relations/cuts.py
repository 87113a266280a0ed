"""Cuts and recovery lines over DataFrames; semantics in `antecede.tables.causality.cuts`.

The rows of a group form one partition. Positions are compared in the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import column_of, get_id_column
from antecede.spark.evidence import require_evidence
from antecede.spark.partitions import (
    is_analyzed,
    make_worker_column,
    partition_by_group,
    split_array,
)
from antecede.spark.relations.labels import RESULT, check_relation_input
from antecede.tables.causality import (
    ADDED,
    LINE,
    NO,
    UNKNOWN,
    YES,
    Positions,
    check_positions,
    compute_cut_columns,
    cut_spec,
    is_behind_line,
    process_codes,
    refuse_fixed,
    stranger,
)
from antecede.tables.order import OrderSpec

_SIDE, _PROCESS, _POSITION, _CHECKPOINT = (
    f"__antecede_{name}" for name in ("side", "process", "at", "mark")
)


def check_cut(
    df: DataFrame,
    positions: Positions,
    *,
    process: str | None = None,
    at: str,
    id: str | None = None,
    after: str | Sequence[str] = (),
    clock: str | None = None,
    member: str | None = None,
    group: str | None = None,
    time: str | None = None,
    status: str = "antecede_status",
) -> DataFrame:
    """Return the rows with their side of a cut and the causes that contradict the cut.

    `positions`: process -> last value of the column `at` inside the cut (a number or time that
    orders the events of a process), for every group. A process without a position has no event
    inside. Added columns, arguments and errors: `antecede.tables.causality.check_cut`. A job at the
    call finds positions of unknown processes. A group is one task; without `group` all rows are.

    >>> from antecede.spark import check_cut
    >>> rows = [("s", None, "a", 1), ("r", "s", "b", 1), ("t", "r", "b", 2)]
    >>> log = spark.createDataFrame(rows, "id string, after string, host string, n int")
    >>> made = check_cut(log, {"b": 1}, process="host", at="n", id="id", after="after")
    >>> [(row.id, row.inside, row.outside_causes) for row in made.sort("id").collect()]
    [('r', True, ['s']), ('s', False, []), ('t', False, [])]
    """
    ways = {"id": id, "after": after, "clock": clock, "member": member, "group": group}
    spec, process = cut_spec({**ways, "time": time}, process, at, status)
    if not is_analyzed(df):
        raise InputError(
            "in a declarative pipeline the types of positions are unknown: call cut on the output "
            "table of the pipeline"
        )
    check_relation_input(df, spec, "check_cut", {"status": status}, ADDED)
    _check_columns(df, process, at)
    require_evidence(df, spec)
    sided = _add_sides(df, positions, process, at)
    made = partition_by_group(sided, spec).withColumn(RESULT, _make_cut_column(df, spec, process))
    own = [column_of(name) for name in df.columns]
    return made.select(*own, *(F.col(RESULT)[name].alias(name) for name in (*ADDED, status)))


def summarize_cut(sides: DataFrame, *, group: str | None = None) -> DataFrame:
    """Summarize the rows of `check_cut` in one row, or one per group.

    Columns: `antecede.tables.causality.summarize_cut`.

    >>> from antecede.spark import check_cut, summarize_cut
    >>> rows = [("s", None, "a", 1), ("r", "s", "b", 1)]
    >>> log = spark.createDataFrame(rows, "id string, after string, host string, n int")
    >>> made = check_cut(log, {"a": 1}, process="host", at="n", id="id", after="after")
    >>> summarize_cut(made).first()
    Row(consistent=True, inside=1, outside=1, violations=0, in_transit=1, unknown=0)
    """
    rows = sides.groupBy(*([] if group is None else [column_of(group)]))

    def total(name: str) -> Column:
        return F.coalesce(F.sum(F.coalesce(F.size(name), F.lit(0)).cast("long")), F.lit(0))

    violations, unknown = F.count_if(F.size("outside_causes") > 0), total("unknown_causes")
    nothing = F.lit(None).cast("boolean")
    known = F.when((violations > 0) | (unknown == 0), violations == 0).otherwise(nothing)
    return rows.agg(
        known.alias("consistent"),
        F.count_if("inside").alias("inside"),
        F.count_if(~F.col("inside")).alias("outside"),
        violations.alias("violations"),
        total("in_transit").alias("in_transit"),
        unknown.alias("unknown"),
    )


def recovery_line(
    df: DataFrame,
    checkpoints: str,
    *,
    process: str | None = None,
    at: str,
    id: str | None = None,
    after: str | Sequence[str] = (),
    clock: str | None = None,
    member: str | None = None,
    group: str | None = None,
    time: str | None = None,
) -> DataFrame:
    """Return the latest consistent set of checkpoints from which each process can restart.

    `checkpoints`: boolean column that marks them. One row per process (and group): `line`, `kept`,
    `undone`, `discarded`. Meaning, arguments and errors: `antecede.tables.causality.recovery_line`.
    An event without process or `at` fails when the result is used. A group is one task; without
    `group` all rows are.

    >>> from antecede.spark import recovery_line
    >>> rows = [("p", None, "a", 1, True), ("s", "p", "a", 2, False), ("r", "s", "b", 1, True)]
    >>> columns = "id string, after string, host string, n int, saved boolean"
    >>> log = spark.createDataFrame(rows, columns)
    >>> line = recovery_line(log, "saved", process="host", at="n", id="id", after="after")
    >>> [tuple(row) for row in line.sort("host").collect()]
    [('a', 1, 1, 1, 0), ('b', None, 0, 1, 1)]
    """
    ways = {"id": id, "after": after, "clock": clock, "member": member, "group": group}
    spec, process = cut_spec({**ways, "time": time}, process, at, "antecede_status")
    keys = [process] if group is None else [group, process]
    refuse_fixed(keys, LINE, fold=True)
    check_relation_input(df, spec, "recovery_line")
    _check_columns(df, process, at, checkpoints)
    if is_analyzed(df):
        require_evidence(df, spec)
    made = partition_by_group(df, spec).withColumn(
        RESULT, _make_recovery_column(df, spec, process, at, checkpoints)
    )
    kept, marked = F.col(RESULT), F.coalesce(column_of(checkpoints), F.lit(False))
    return (
        made.where(kept.isNotNull())
        .groupBy(*map(column_of, keys))
        .agg(
            F.max(F.when(marked & kept, column_of(at))).alias(LINE[0]),
            F.count_if(kept).alias(LINE[1]),
            F.count_if(~kept).alias(LINE[2]),
            F.count_if(marked & ~kept).alias(LINE[3]),
        )
    )


def _check_columns(df: DataFrame, *names: str) -> None:
    if not is_analyzed(df):
        return
    absent = [name for name in names if name not in df.columns]
    if absent:
        raise InputError(f"no column {', '.join(absent)}; columns are {', '.join(df.columns)}")
    for name in names[2:]:
        kind = df.schema[name].dataType
        if not isinstance(kind, t.BooleanType):
            type_text = kind.simpleString()
            raise InputError(
                f"column {name} must be boolean, true for checkpoints; it is {type_text}"
            )


def _add_sides(df: DataFrame, positions: Positions, process: str, at: str) -> DataFrame:
    """Add the side of each row; runs a job. Raises InputError for an unknown process."""
    check_positions(positions)
    kinds = [df.schema[name].dataType for name in (process, at)]
    names = (_PROCESS, _POSITION, "text")
    fields = [t.StructField(name, kind) for name, kind in zip(names, kinds, strict=False)]
    rows = [(*item, str(item[0])) for item in positions.items()]
    try:
        schema = t.StructType([*fields, t.StructField("text", t.StringType())])
        limits = df.sparkSession.createDataFrame(rows, schema)
    except (PySparkException, TypeError, ValueError, OverflowError) as error:
        type_texts = [kind.simpleString() for kind in kinds]
        raise InputError(
            f"positions must map {process} ({type_texts[0]}) to {at} ({type_texts[1]}): {error}"
        ) from error
    known = df.select(column_of(process).alias("known")).distinct()
    unknown_process = limits.join(known, F.col(_PROCESS) == F.col("known"), "anti").first()
    if unknown_process is not None:
        raise InputError(
            f"{stranger(unknown_process.text)}: processes are the values of column {process}"
        )
    joined = df.join(
        F.broadcast(limits.select(_PROCESS, _POSITION)),
        column_of(process) == F.col(_PROCESS),
        "left",
    )
    inside = F.coalesce(column_of(at) <= F.col(_POSITION), F.lit(False))
    unknown = get_id_column(df, process).isNull() | column_of(at).isNull()
    side = F.when(unknown, UNKNOWN).when(inside, YES).otherwise(NO).cast("tinyint")
    return joined.select(*map(column_of, df.columns), side.alias(_SIDE))


def _make_cut_column(df: DataFrame, spec: OrderSpec, process: str) -> Column:
    names = (*ADDED, spec.status)
    lists = [t.ArrayType(t.StringType())] * 3
    kinds = (t.BooleanType(), *lists, t.StringType())
    fields = [t.StructField(name, kind) for name, kind in zip(names, kinds, strict=True)]

    def antecede_judge(table: pa.Table, digests: Any, sizes: list[int]) -> Iterator[pa.StructArray]:
        codes = process_codes(table, spec, _PROCESS)
        side: Any = table.column(_SIDE).to_numpy()
        columns, _ = compute_cut_columns(table.select(list(spec.used)), spec, side, codes, digests)
        yield from split_array(pa.StructArray.from_arrays(columns, list(names)), sizes)

    more = {_SIDE: F.col(_SIDE), _PROCESS: column_of(process)}
    return make_worker_column(df, spec, antecede_judge, t.StructType(fields), more)


def _make_recovery_column(
    df: DataFrame, spec: OrderSpec, process: str, at: str, checkpoints: str
) -> Column:
    def antecede_hold(table: pa.Table, digests: Any, sizes: list[int]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        made, _ = is_behind_line(
            table, spec, _PROCESS, _POSITION, _CHECKPOINT, digests, (process, at)
        )
        yield from split_array(made, sizes)

    more = {_PROCESS: process, _POSITION: at, _CHECKPOINT: checkpoints}
    columns = {name: column_of(column) for name, column in more.items()}
    return make_worker_column(df, spec, antecede_hold, t.BooleanType(), columns)
