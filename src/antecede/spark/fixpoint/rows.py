"""First steps of a fixpoint: control columns, duplicates, and numbering of rows by rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from antecede.spark.columns import column_of, hash_content, is_hashable, to_binary_collation
from antecede.spark.fixpoint.tables import IntermediateTables
from antecede.spark.order_columns import make_empty_table
from antecede.tables.kernels import BEFORE_ALL
from antecede.tables.order import OrderSpec, Status, code, control, control_type, tie_names

GROUP_NUMBER = "__antecede_fixpoint_group"
"""Hidden column with the number of an oversized group; visible in the plan."""
DIGEST_NAMES = ("w", "x", "y")
_DIGESTS = tuple(f"__antecede_{name}" for name in DIGEST_NAMES)
_KEPT, _DUPLICATE, _CONFLICT = (
    int(code(s)) for s in (Status.ORDERED, Status.DUPLICATE, Status.CONFLICT)
)


def add_signature(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Add the hidden columns that identify rows which `order` cannot distinguish."""
    used = [*spec.used]
    hashed = [name for name in used if is_hashable(df.schema[name].dataType)]
    made = (
        hash_content(df, used),
        F.xxhash64(F.lit("antecede"), *(to_binary_collation(df, name) for name in hashed)),
        hash_content(df, spec.content_of([n for n in df.columns if n != GROUP_NUMBER])),
    )
    return df.withColumns(dict(zip(_DIGESTS, made, strict=True)))


def select_signature(df: DataFrame, spec: OrderSpec) -> list[Column]:
    """Return the columns that are equal exactly for rows which `order` cannot distinguish."""
    names = [n for n in (spec.id, spec.member, spec.sender, spec.seq) if n is not None]
    own = [to_binary_collation(df, name).alias(f"own{k}") for k, name in enumerate(names)]
    digests = [F.col(name).alias(short) for name, short in zip(_DIGESTS, DIGEST_NAMES, strict=True)]
    return [F.col(GROUP_NUMBER).alias("g"), *digests, *own]


def list_signature_names(spec: OrderSpec) -> list[str]:
    """Return the names of the columns of `select_signature`."""
    own = [n for n in (spec.id, spec.member, spec.sender, spec.seq) if n is not None]
    return ["g", *DIGEST_NAMES, *(f"own{k}" for k in range(len(own)))]


def deduplicate(
    df: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> tuple[DataFrame, bool]:
    """Return the distinct lines of all rows, and whether any line stands for several rows.

    Columns: the signature, the fields of `control`, `h` (a hash of the identity), and the statuses
    `first` of a line's first row and `rest` of its other rows.
    """
    kind = control_type(make_empty_table(df, spec), spec)
    given = add_signature(df, spec)
    read = given.select(
        *select_signature(given, spec),
        _make_reader(spec, kind)(*map(column_of, spec.used)).alias("k"),
    )
    rows = read.select(
        *list_signature_names(spec), *(F.col("k")[f.name].alias(f.name) for f in kind)
    )
    good = F.col("status") == _KEPT
    rows = rows.withColumns(
        {"h": F.when(good, F.xxhash64("g", "a", "n")).otherwise(F.col("w")), "u": F.isnull("t")}
    )
    identity = ("h", "g", "a", "n")
    rows = rows.repartition(tables.limits.count_partitions(tables.rows), *identity)
    one = Window.partitionBy(*identity).orderBy("u", "t", "y", "w", "x")
    before = [F.lag(name).over(one) == F.col(name) for name in DIGEST_NAMES]
    rows = rows.withColumns(
        {
            "nth": F.row_number().over(one),
            "first_content": F.first("y").over(one),
            "again": F.coalesce(before[0] & before[1] & before[2], F.lit(False)),
        }
    )
    rows, _ = tables.persist(rows)
    lines = rows.where(~F.col("again"))
    repeated = F.when(F.col("y") == F.col("first_content"), _DUPLICATE).otherwise(_CONFLICT)
    first = F.when(~good, F.col("status")).when(F.col("nth") == 1, _KEPT).otherwise(repeated)
    lines = lines.withColumn("first", first.cast("tinyint"))
    rest = F.when(F.col("first") == _KEPT, _DUPLICATE).otherwise(F.col("first"))
    lines = lines.withColumn("rest", rest.cast("tinyint"))
    return lines.drop("nth", "first_content", "again", "status"), (
        rows.where("again").limit(1).count() > 0
    )


def rank_rows(
    lines: DataFrame, spec: OrderSpec, kind: Any, tables: IntermediateTables
) -> tuple[DataFrame, int]:
    """Number the ordered lines by (group, time, identity), `row` from 0; return their count."""
    aside = F.col("first") != _KEPT
    lines = lines.withColumns({"aside": aside, "causes": F.when(~aside, F.col("causes"))})
    by = ["aside", "g", "u", "t", *tie_names(kind), "w"]
    parts = tables.limits.count_partitions(tables.rows)
    spread = lines.repartitionByRange(parts, *by).sortWithinPartitions(*by)
    spread, _ = tables.persist(spread.withColumn("place", F.monotonically_increasing_id()))
    numbered = spread.withColumn("row", number_rows(spread, "place"))
    drop = [name for name in tie_names(kind) if name != "a"]
    numbered = numbered.withColumn("t", F.coalesce("t", F.lit(BEFORE_ALL))).drop(*drop, "place")
    return numbered, spread.where("NOT aside").count()


def number_rows(df: DataFrame, order: str) -> Column:
    """Return the number of each row from 0, for rows sorted within range partitions."""
    part = F.shiftright(order, 33)
    counts = {r[0]: r[1] for r in df.groupBy(part.alias("p")).count().collect()}
    before, total = [], 0
    for p in range(max(counts, default=0) + 1):
        before.append(total)
        total += counts.get(p, 0)
    offsets = F.array(*(F.lit(number).cast("bigint") for number in before))
    inside = F.col(order).bitwiseAND((1 << 33) - 1)
    return F.get(offsets, part.cast("int")) + inside


def _make_reader(spec: OrderSpec, kind: Any) -> Any:
    # Spark evaluates these hints, and pa.Array takes no parameters at run time.
    def antecede_control(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        for columns in batches:
            yield control(pa.table(dict(zip(spec.used, columns, strict=True))), spec)

    functions: Any = F  # the stubs lack arrow_udf
    result: t.DataType = from_arrow_type(kind)
    return functions.arrow_udf(antecede_control, result).asNondeterministic()
