"""Stamps of events in a DataFrame, and relations between two stamps.

`add_causal_labels` makes the stamps of `antecede.tables.causality` a partition at a time; payload
stays in the JVM. Stamps go back a batch at a time: until then what rows have in common is held
once.

`happened_before`, `concurrent` and `past_size` are look-ups in the arrays of a stamp, as Column
expressions and as SQL functions; no Python runs in the plan. `antecede.tables.causality.relations`
says when they are null.
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
from antecede.spark.order_columns import check
from antecede.spark.partitions import analysed, by_group, made_by_worker, slices
from antecede.spark.workers import ready_workers
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
"""The type of a stamp in Spark."""


def happened_before(a: Column | str, b: Column | str) -> Column:
    """Return whether event a is among the causes, direct or indirect, of event b.

    `a` and `b` are stamps of one call of `add_causal_labels`, as columns or names. Boolean; null
    where a stamp is null or the two were not made together. For pairs in a join give Spark an
    equality too, so that it need not compare all with all: `a.causal_label.group <=>
    b.causal_label.group`.

    >>> from antecede.spark import happened_before, add_causal_labels
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 2)], "id int, after int")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> first = made.where("id = 1").select(made.causal_label.alias("first"))
    >>> pairs = made.crossJoin(first)
    >>> pairs = pairs.select("id", happened_before("first", "causal_label").alias("x"))
    >>> [(row.id, row.x) for row in pairs.sort("id").collect()]
    [(1, False), (2, True), (3, True)]
    """
    x, y = _column(a), _column(b)
    return _answered(x, y, F.lit(False), _before(x, y))


def concurrent(a: Column | str, b: Column | str) -> Column:
    """Return whether neither of two distinct events happened before the other.

    Arguments and null as for `happened_before`; an event is not concurrent with itself.

    >>> from antecede.spark import concurrent, add_causal_labels
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 1)], "id int, after int")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> two = made.where("id = 2").select(made.causal_label.alias("two"))
    >>> [row.id for row in made.crossJoin(two).where(concurrent("two", "causal_label")).collect()]
    [3]
    """
    x, y = _column(a), _column(b)
    same = (x["chain"] == y["chain"]) & (x["position"] == y["position"])
    return _answered(x, y, F.lit(True), ~(same | _before(x, y) | _before(y, x)))


def past_size(label: Column | str) -> Column:
    """Return how many events happened before this one (long); null for a null stamp.

    The sum over all events is the number of ordered pairs, without making pairs.

    >>> from antecede.spark import past_size, add_causal_labels
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 2)], "id int, after int")
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> [row[0] for row in made.sort("id").select(past_size("causal_label")).collect()]
    [0, 1, 2]
    """
    x = _column(label)
    start = (x["position"] - F.lit(1)).cast("long")
    return F.aggregate(x["positions"], start, lambda total, one: total + one.cast("long"))


def register_functions(session: SparkSession) -> None:
    """Make `happened_before`, `concurrent` and `past_size` temporary SQL functions of a session.

    They serve SQL and `selectExpr` over stamps of `add_causal_labels`. For functions in a catalog
    take `sql_functions`.

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
    for statement in sql_functions():
        session.sql(statement)


def sql_functions(prefix: str = "", *, temporary: bool = True) -> list[str]:
    """Return the statements that make the SQL functions.

    `prefix` comes before each name, such as "catalog.schema." with `temporary=False`. SQL functions
    came with Spark 4.0.

    >>> from antecede.spark.relations.labels import sql_functions
    >>> sql_functions()[0].split("(")[0]
    'CREATE OR REPLACE TEMPORARY FUNCTION happened_before'
    """
    kind = "TEMPORARY FUNCTION" if temporary else "FUNCTION"
    label = f"STRUCT<{', '.join(f'`{name}`: {k.simpleString()}' for name, k in _FIELDS.items())}>"
    two = f"a {label}, b {label}"
    before, after = _BEFORE.format(a="a", b="b"), _BEFORE.format(a="b", b="a")
    unrelated = f"NOT (a.chain = b.chain AND a.position = b.position OR {before} OR {after})"
    made = {
        f"happened_before({two}) RETURNS BOOLEAN": _ANSWERED.format(across="FALSE", within=before),
        f"concurrent({two}) RETURNS BOOLEAN": _ANSWERED.format(across="TRUE", within=unrelated),
        f"past_size(label {label}) RETURNS BIGINT": (
            "aggregate(label.positions, CAST(label.position - 1 AS BIGINT), "
            "(total, one) -> total + CAST(one AS BIGINT))"
        ),
    }
    return [f"CREATE OR REPLACE {kind} {prefix}{head} RETURN {body}" for head, body in made.items()]


_BEFORE = (
    "CASE WHEN {a}.chain = {b}.chain THEN {a}.position < {b}.position ELSE coalesce(get("
    "{b}.positions, CAST(array_position({b}.chains, {a}.chain) AS INT) - 1) >= {a}.position, "
    "FALSE) END"
)
_ANSWERED = (
    "CASE WHEN a IS NULL OR b IS NULL OR (a.`group` IS NULL) <> (b.`group` IS NULL) THEN NULL "
    "WHEN a.`group` <> b.`group` THEN {across} WHEN a.version <> b.version THEN NULL "
    "ELSE {within} END"
)


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given


def _before(x: Column, y: Column) -> Column:
    place = F.array_position(y["chains"], x["chain"]).cast("int") - 1
    known = F.get(y["positions"], place) >= x["position"]
    return F.when(x["chain"] == y["chain"], x["position"] < y["position"]).otherwise(
        F.coalesce(known, F.lit(False))
    )


def _answered(x: Column, y: Column, across: Column, within: Column) -> Column:
    grouped = x["group"].isNull() != y["group"].isNull()
    nothing = F.lit(None).cast("boolean")
    return (
        F.when(x.isNull() | y.isNull() | grouped, nothing)
        .when(x["group"] != y["group"], across)
        .when(x["version"] != y["version"], nothing)
        .otherwise(within)
    )


MADE = "__antecede_made"
"""Hidden column: what the worker adds, as one struct."""


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
    """Return the rows with a stamp and a status each; rows come in no particular order.

    The stamp answers `happened_before` and `concurrent` exactly and by itself: keep it in a table
    and ask in SQL. Causes are told as in `order`; `time` decides only which of repeated rows takes
    part. The status is that of `order`; a row without a place there (a repeat, on a cycle, without
    a key) has a null stamp. Stamps compare only with those of the same call; across calls that made
    different stamps the answer is null. `max_entries`: entries of a stamp at most; `partitions`: of
    the shuffle (None: the session's). A group is one task, and without `group` everything is: see
    docs/design/causality.md for what that holds.

    Raises InputError on the driver as `order` does; a task fails, naming the event, when its past
    meets more chains than `max_entries`.

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
    checked(df, spec.order, "add_causal_labels", {"causal_label": causal_label, "status": status})
    if analysed(df):
        warn_without_causes(df, spec.order)
    placed = by_group(df, spec.order).withColumn(MADE, _make_label_column(df, spec))
    # `drop` would look at the columns, which a declarative pipeline does not allow.
    own = F.expr(f"* EXCEPT ({MADE})")
    return placed.select(own, *(F.col(MADE)[name].alias(name) for name in spec.added))


def checked(
    df: DataFrame,
    spec: OrderSpec,
    what: str,
    added: Mapping[str, str] | None = None,
    fixed: Sequence[str] = (),
) -> None:
    """Refuse on the driver what cannot work, and see to the workers' Python. Raises InputError.

    In a declarative pipeline nothing can be checked before it runs, and workers or Spark refuse.
    """
    if not analysed(df):
        return
    if df.isStreaming:
        raise InputError(
            f"{what} needs all rows of a group, and a stream never has them: call it on the table "
            "that the stream writes, or in foreachBatch"
        )
    fold = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true"
    refuse_taken(df.columns, added or {}, fold=fold)
    refuse_fixed(df.columns, fixed, fold=fold)
    if MADE in df.columns:
        raise InputError(f"{MADE} is a name that antecede needs: rename the column")
    check(df, spec)
    ready_workers(df.sparkSession)


def _make_label_column(df: DataFrame, spec: LabelSpec) -> Column:
    def antecede_label(table: pa.Table, digests: Any, sizes: list[int]) -> Iterator[pa.StructArray]:
        stamped = Stamped(table, spec, digests)
        statuses = slices(stamped.statuses(), sizes)
        for columns in zip(stamped.pieces(sizes), statuses, strict=True):
            yield pa.StructArray.from_arrays(list(columns), list(spec.added))

    kinds = (LABEL_TYPE, t.StringType())
    fields = [t.StructField(name, kind) for name, kind in zip(spec.added, kinds, strict=True)]
    return made_by_worker(df, spec.order, antecede_label, t.StructType(fields))
