"""Causal labels of events in a DataFrame, and relations between two labels.

`add_causal_labels` computes the labels of `antecede.tables.causality`, one partition at a time;
payload stays in the JVM. `happened_before`, `concurrent` and `past_size` are look-ups in the arrays
of a label, as Column expressions and as SQL functions, without Python.
`antecede.tables.causality.relations` defines when they are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.evidence import warn_without_causes
from antecede.spark.order_columns import check_input
from antecede.spark.partitions import (
    is_analyzed,
    make_worker_column,
    partition_by_group,
    split_array,
)
from antecede.spark.workers import check_workers
from antecede.tables.causality import (
    MAX_ENTRIES,
    LabelSpec,
    Stamped,
    make_label_spec,
    refuse_fixed,
    refuse_taken,
)
from antecede.tables.order import OrderSpec

_FIELDS = {
    "group": t.StringType(),
    "version": t.LongType(),
    "chain": t.IntegerType(),
    "position": t.IntegerType(),
    "chains": t.ArrayType(t.IntegerType()),
    "positions": t.ArrayType(t.IntegerType()),
    "complete": t.BooleanType(),
}
LABEL_TYPE = t.StructType([t.StructField(name, kind) for name, kind in _FIELDS.items()])
"""Spark type of a causal label."""


def happened_before(a: Column | str, b: Column | str) -> Column:
    """Return whether event a is a direct or indirect cause of event b.

    `a` and `b` are causal labels from one call of `add_causal_labels`, as columns or names.
    Boolean; null if a label is null or the labels are from different calls. In joins add
    `a.causal_label.group <=> b.causal_label.group`, so that Spark does not compare all pairs.

    >>> from antecede.spark import happened_before, add_causal_labels
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 2)], "id int, after int")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> first = made.where("id = 1").select(made.causal_label.alias("first"))
    >>> pairs = made.crossJoin(first)
    >>> pairs = pairs.select("id", happened_before("first", "causal_label").alias("x"))
    >>> [(row.id, row.x) for row in pairs.sort("id").collect()]
    [(1, False), (2, True), (3, True)]
    """
    x, y = _to_column(a), _to_column(b)
    return _compare(x, y, F.lit(False), _precedes(x, y))


def concurrent(a: Column | str, b: Column | str) -> Column:
    """Return whether neither of two distinct events happened before the other.

    Arguments and nulls as for `happened_before`. An event is not concurrent with itself.

    >>> from antecede.spark import concurrent, add_causal_labels
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 1)], "id int, after int")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> two = made.where("id = 2").select(made.causal_label.alias("two"))
    >>> [row.id for row in made.crossJoin(two).where(concurrent("two", "causal_label")).collect()]
    [3]
    """
    x, y = _to_column(a), _to_column(b)
    same = (x["chain"] == y["chain"]) & (x["position"] == y["position"])
    return _compare(x, y, F.lit(True), ~(same | _precedes(x, y) | _precedes(y, x)))


def past_size(label: Column | str) -> Column:
    """Return the number of events that happened before this one (long); null for a null label.

    The sum over all events is the number of ordered pairs.

    >>> from antecede.spark import past_size, add_causal_labels
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 2)], "id int, after int")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> [row[0] for row in made.sort("id").select(past_size("causal_label")).collect()]
    [0, 1, 2]
    """
    x = _to_column(label)
    start = (x["position"] - F.lit(1)).cast("long")
    return F.aggregate(x["positions"], start, lambda total, one: total + one.cast("long"))


def register_functions(session: SparkSession) -> None:
    """Create `happened_before`, `concurrent` and `past_size` as temporary SQL functions of a
    session.

    They serve SQL and `selectExpr`. For functions in a catalog use `list_sql_functions`.

    >>> import antecede.spark
    >>> events = spark.createDataFrame([(1, None), (2, 1)], "id int, after int")
    >>> made = antecede.spark.add_causal_labels(events, id="id", after="after")
    >>> made.createOrReplaceTempView("events")
    >>> antecede.spark.register(spark)
    >>> query = "SELECT a.id, b.id FROM events a JOIN events b "
    >>> query += "ON happened_before(a.causal_label, b.causal_label)"
    >>> [tuple(row) for row in spark.sql(query).collect()]
    [(1, 2)]
    """
    for statement in list_sql_functions():
        session.sql(statement)


def list_sql_functions(prefix: str = "", *, temporary: bool = True) -> list[str]:
    """Return the statements that create the SQL functions.

    `prefix` is put before each name, for example "catalog.schema." with `temporary=False`. Needs
    Spark 4.0.

    >>> from antecede.spark.relations.labels import list_sql_functions
    >>> list_sql_functions()[0].split("(")[0]
    'CREATE OR REPLACE TEMPORARY FUNCTION happened_before'
    """
    kind = "TEMPORARY FUNCTION" if temporary else "FUNCTION"
    label = f"STRUCT<{', '.join(f'`{name}`: {k.simpleString()}' for name, k in _FIELDS.items())}>"
    two = f"a {label}, b {label}"
    before, after = _PRECEDES_SQL.format(a="a", b="b"), _PRECEDES_SQL.format(a="b", b="a")
    unrelated = f"NOT (a.chain = b.chain AND a.position = b.position OR {before} OR {after})"
    made = {
        f"happened_before({two}) RETURNS BOOLEAN": _COMPARISON_SQL.format(
            across="FALSE", within=before
        ),
        f"concurrent({two}) RETURNS BOOLEAN": _COMPARISON_SQL.format(
            across="TRUE", within=unrelated
        ),
        f"past_size(label {label}) RETURNS BIGINT": (
            "aggregate(label.positions, CAST(label.position - 1 AS BIGINT), "
            "(total, one) -> total + CAST(one AS BIGINT))"
        ),
    }
    return [f"CREATE OR REPLACE {kind} {prefix}{head} RETURN {body}" for head, body in made.items()]


_PRECEDES_SQL = (
    "CASE WHEN {a}.chain = {b}.chain THEN {a}.position < {b}.position ELSE coalesce(get("
    "{b}.positions, CAST(array_position({b}.chains, {a}.chain) AS INT) - 1) >= {a}.position, "
    "FALSE) END"
)
_COMPARISON_SQL = (
    "CASE WHEN a IS NULL OR b IS NULL OR (a.`group` IS NULL) <> (b.`group` IS NULL) THEN NULL "
    "WHEN a.`group` <> b.`group` THEN {across} WHEN a.version <> b.version THEN NULL "
    "ELSE {within} END"
)


def _to_column(column: Column | str) -> Column:
    return F.col(column) if isinstance(column, str) else column


def _precedes(x: Column, y: Column) -> Column:
    place = F.array_position(y["chains"], x["chain"]).cast("int") - 1
    known = F.get(y["positions"], place) >= x["position"]
    return F.when(x["chain"] == y["chain"], x["position"] < y["position"]).otherwise(
        F.coalesce(known, F.lit(False))
    )


def _compare(x: Column, y: Column, across: Column, within: Column) -> Column:
    grouped = x["group"].isNull() != y["group"].isNull()
    nothing = F.lit(None).cast("boolean")
    return (
        F.when(x.isNull() | y.isNull() | grouped, nothing)
        .when(x["group"] != y["group"], across)
        .when(x["version"] != y["version"], nothing)
        .otherwise(within)
    )


RESULT = "__antecede_made"
"""Hidden column: the columns added by the worker as one struct."""


def add_causal_labels(
    df: DataFrame,
    *,
    id: str | None = None,
    after: str | Sequence[str] = (),
    group: str | None = None,
    clock: str | None = None,
    member: str | None = None,
    sender: str | None = None,
    seq: str | None = None,
    first_seq: int = 1,
    time: str | None = None,
    content: Sequence[str] | None = None,
    partitions: int | None = None,
    causal_label: str = "causal_label",
    status: str = "antecede_status",
    max_entries: int = MAX_ENTRIES,
) -> DataFrame:
    """Add a causal label and a status to each row; the order of rows is undefined.

    Labels answer `happened_before` and `concurrent` exactly: store them in a table and query them
    by SQL. Causes and status are those of `order`; `time` only decides which of duplicate rows
    counts. A row without a position in `order` has a null label. Labels of different calls are not
    comparable: the answer is null. `max_entries`: limit of a label's entries; a task fails, naming
    the event, beyond it. `partitions`: of the shuffle (None: the session's). A group is one task;
    without `group` all rows are. Raises InputError on the driver as `order` does.

    >>> from antecede.spark import happened_before, add_causal_labels
    >>> rows = [("a", None), ("b", "a"), ("c", "a")]
    >>> events = spark.createDataFrame(rows, "id string, after string")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> pairs = made.alias("x").crossJoin(made.alias("y"))
    >>> pairs = pairs.where(happened_before("x.causal_label", "y.causal_label"))
    >>> pairs = pairs.select("x.id", "y.id")
    >>> sorted(tuple(row) for row in pairs.collect())
    [('a', 'b'), ('a', 'c')]
    """
    spec = make_label_spec(
        id=id,
        after=after,
        group=group,
        clock=clock,
        member=member,
        sender=sender,
        seq=seq,
        first_seq=first_seq,
        time=time,
        content=content,
        shards=partitions,
        causal_label=causal_label,
        status=status,
        max_entries=max_entries,
    )
    check_relation_input(
        df, spec.order, "add_causal_labels", {"causal_label": causal_label, "status": status}
    )
    if is_analyzed(df):
        warn_without_causes(df, spec.order)
    placed = partition_by_group(df, spec.order).withColumn(RESULT, _make_label_column(df, spec))
    # `drop` needs the columns, which a declarative pipeline does not provide.
    own = F.expr(f"* EXCEPT ({RESULT})")
    return placed.select(own, *(F.col(RESULT)[name].alias(name) for name in spec.added))


def check_relation_input(
    df: DataFrame,
    spec: OrderSpec,
    function: str,
    added: Mapping[str, str] | None = None,
    fixed: Sequence[str] = (),
) -> None:
    """Check columns, types and workers, except in a declarative pipeline. Raises InputError."""
    if not is_analyzed(df):
        return
    if df.isStreaming:
        raise InputError(
            f"{function} needs all rows of a group, so it does not support streams: call it on the "
            "stream's output table, or in foreachBatch"
        )
    fold = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true"
    refuse_taken(df.columns, added or {}, fold=fold)
    refuse_fixed(df.columns, fixed, fold=fold)
    if RESULT in df.columns:
        raise InputError(f"{RESULT}: reserved column name; rename the column")
    check_input(df, spec)
    check_workers(df.sparkSession)


def _make_label_column(df: DataFrame, spec: LabelSpec) -> Column:
    def antecede_label(table: pa.Table, digests: Any, sizes: list[int]) -> Iterator[pa.StructArray]:
        stamped = Stamped(table, spec, digests)
        statuses = split_array(stamped.statuses(), sizes)
        for columns in zip(stamped.pieces(sizes), statuses, strict=True):
            yield pa.StructArray.from_arrays(list(columns), list(spec.added))

    kinds = (LABEL_TYPE, t.StringType())
    fields = [t.StructField(name, kind) for name, kind in zip(spec.added, kinds, strict=True)]
    return make_worker_column(df, spec.order, antecede_label, t.StructType(fields))
