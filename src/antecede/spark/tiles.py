"""Spark job that writes the tiles served by `antecede view`, for traces larger than one machine.

The format is `antecede.tables.view.tiles`. The driver holds one row for each member, none for an
event.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.spark.columns import column_of, spark_schema
from antecede.tables.trace import COLUMNS, DELIVER, EVENT, RECEIVE
from antecede.tables.view import ABOUT, OF_ARRIVALS, OF_OTHERS, OWN, about, check_new

NO_AUDIT = (
    "tiles written by Spark: duplicates are shown; there are no further axes and no error counts; "
    "inversions, clocks, waits and lost messages were not checked (use `antecede audit --engine "
    "spark`)"
)


def write_tiles(df: DataFrame, folder: str | Path, title: str, *, force: bool = False) -> int:
    """Write a table in the event schema as tiles; return their number of rows.

    `df`: all columns but `id` are optional. `folder` must be shared by executors and driver. Raises
    InputError for a table without events, and if the folder exists (see `force`).
    """
    folder = Path(folder)
    check_new(folder, force)
    events, timed = _add_positions(df)
    placed = events.where(f.col("at").isNotNull())
    low, high, rows, all_rows = _find_ends(events)
    if not rows:
        raise InputError("the table has no event")
    members = _list_members(placed)
    notes = [NO_AUDIT]
    if all_rows > rows:
        notes.append(f"{pluralize(all_rows - rows, 'row')} without a time: not in the picture")
    own = [name for name, _ in _list_extra_columns(df)]
    more: dict[str, Any] = {
        "notes": notes,
        "format": "table",
        "by": None,
        "own": own,
    }
    header = about(title, rows, low, high, timed, **more)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(members, folder / "members.parquet")
    _write_levels(placed, members, header, folder)
    parts = max(1, rows // 1_000_000)
    ordered = placed.repartitionByRange(parts, "at").sortWithinPartitions("at", "file_order")
    ordered.write.mode("overwrite").parquet(_to_uri(folder / "events"))
    (folder / ABOUT).write_text(json.dumps(header, indent=1), encoding="utf-8")
    return rows


def _add_positions(df: DataFrame) -> tuple[DataFrame, bool]:
    """Return the schema's columns and `at`, and whether `at` is a time (else the file order)."""
    if "id" not in df.columns:
        raise InputError("the table has no column id")
    columns = []
    kinds = {field.name: field.dataType for field in spark_schema()}
    for column in COLUMNS:
        kind = kinds[column.name]
        if column.name in df.columns:
            found = f.col(column.name).cast(kind)
        elif column.name == "kind":
            found = f.lit(EVENT)
        elif column.name == "file_order":
            found = f.monotonically_increasing_id()
        elif column.nullable:
            found = f.lit(None).cast(kind)
        else:
            found = f.array().cast(kind)
        columns.append(found.alias(column.name))
    # Bytes are shown as hexadecimal, as in local `antecede view`.
    further = [
        (
            f.lower(f.hex(column_of(name))) if kind == "binary" else column_of(name).cast("string")
        ).alias(OWN + name)
        for name, kind in _list_extra_columns(df)
    ]
    events = df.select(*columns, *further)
    arrived = f.col("kind").isin(RECEIVE, DELIVER)
    time = f.when(arrived, f.coalesce(*map(f.col, OF_ARRIVALS))).otherwise(
        f.coalesce(*map(f.col, OF_OTHERS))
    )
    timed = bool(events.where(time.isNotNull()).limit(1).count())
    return events.withColumn("at", time if timed else f.col("file_order")), timed


def _list_extra_columns(df: DataFrame) -> list[tuple[str, str]]:
    known = {column.name for column in COLUMNS}
    return [(name, kind) for name, kind in df.dtypes if name not in known]


def _find_ends(events: DataFrame) -> tuple[int, int, int, int]:
    found: Any = events.agg(
        f.min("at").alias("low"),
        f.max("at").alias("high"),
        f.count("at").alias("rows"),
        f.count(f.lit(1)).alias("all"),
    ).first()
    return int(found["low"] or 0), int(found["high"] or 0), int(found["rows"]), int(found["all"])


def _list_members(placed: DataFrame) -> pa.Table:
    """Return member, row count and first position, by that; rows without a member come last."""
    grouped = placed.groupBy("member").agg(
        f.count(f.lit(1)).alias("rows"), f.min("at").alias("first")
    )
    found = sorted(
        grouped.collect(),
        key=lambda row: (row["member"] is None, row["first"], row["member"] or ""),
    )
    names = ["(no member)" if row["member"] is None else row["member"] for row in found]
    columns = {
        "member": pa.array(names, pa.string()),
        "rows": pa.array([row["rows"] for row in found], pa.int64()),
        "first": pa.array([row["first"] for row in found], pa.int64()),
    }
    return pa.table(columns)


def _write_levels(
    events: DataFrame, members: pa.Table, header: dict[str, Any], folder: Path
) -> None:
    names = members["member"].to_pylist()
    if has_no_member := events.where(f.col("member").isNull()).limit(1).count():
        names = names[:-1]
    known = events.sparkSession.createDataFrame(
        list(enumerate(names)), t.StructType([
            t.StructField("number", t.IntegerType()), t.StructField("member", t.StringType()),
        ]),
    )  # fmt: skip
    width = header["levels"][-1]["width"]
    number = f.coalesce(f.col("number"), f.lit(len(names) if has_no_member else -1))
    cells = (
        events.join(f.broadcast(known), "member", "left")
        .select(
            f.expr(f"(at - {header['low']}L) div {width}L").alias("bin"),
            number.cast("int").alias("member"),
            f.lit(1).cast("long").alias("rows"),
        )
    )  # fmt: skip
    for level in reversed(header["levels"]):
        cells = cells.groupBy("bin", "member").agg(f.sum("rows").alias("rows"))
        path = _to_uri(folder / f"level-{level['level']}.parquet")
        cells.coalesce(4).sortWithinPartitions("bin").write.mode("overwrite").parquet(path)
        cells = cells.sparkSession.read.parquet(path).withColumn("bin", f.shiftright("bin", 1))


def _to_uri(folder: Path) -> str:
    return folder.absolute().as_uri()
