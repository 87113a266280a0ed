"""`released_at`: equal in every engine, and a valid watermark behind a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark import OrderSpec, order
from antecede.tables.order.table import order_table
from tests.spark.sampling import sample_cases
from tests.spark.test_stream import finish, make_timed, source

COLUMNS = ["id", "position", "released_at", "waited_ms", "antecede_status"]
KINDS = {
    "timestamp": ("timestamp_seconds(x)", None),
    "timestamp_ntz": ("cast(timestamp_seconds(x) as timestamp_ntz)", None),
    "date": ("date_from_unix_date(x)", None),
    "bigint": ("cast(x as bigint)", "ms"),
    "int": ("x", None),
    "none": (None, None),
}


def list_outcomes(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.select(COLUMNS).to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", sample_cases(KINDS, {"timestamp", "timestamp_ntz", "bigint", "none"})
)
def test_every_engine_says_when_a_row_was_released(
    rocks: SparkSession, tmp_path: Path, kind: str
) -> None:
    expression, unit = KINDS[kind]
    df = rocks.sql("select * from values ('b','a',1), ('a',null,3), (null,null,5) t(id,after,x)")
    if expression is not None:
        df = df.selectExpr("id", "after", f"{expression} t")
    ways: dict[str, Any] = {"id": "id", "after": "after", "time_unit": unit}
    ways["time"] = None if expression is None else "t"
    batch = order(df, **ways).toArrow()
    assert list_outcomes(order(df, large_groups="always", **ways).toArrow()) == list_outcomes(batch)
    assert list_outcomes(
        order_table(df.toArrow(), OrderSpec(**ways | {"after": ("after",)}))
    ) == list_outcomes(batch)
    df.coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = rocks.readStream.schema(df.schema).parquet(str(tmp_path / "in"))
    assert list_outcomes(finish(order(stream, **ways), tmp_path)) == list_outcomes(batch)
    known = [value is not None for value in batch.column("released_at").to_pylist()]
    assert sum(known) == (0 if kind in ("int", "none") else 2)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["released_at", "at"])
def test_a_window_behind_an_order_loses_nothing_by_the_time_of_release(
    rocks: SparkSession, tmp_path: Path, by: str
) -> None:
    seconds = {"b": 1, "v": 30, "w": 40, "x": 50, "a": 60, "y": 90, "z": 200}
    tables = [make_timed((name, ["a"] * (name == "b"), at, "g")) for name, at in seconds.items()]
    stream = source(rocks, tmp_path / "in", tables)
    ordered = order(stream, id="id", after="after", group="group", time="at", shards=2)
    counts = (
        ordered.where(F.col("position").isNotNull())
        .withWatermark(by, "0 seconds")
        .groupBy(F.window(by, "10 seconds"))
        .count()
    )
    counted = sum(row["count"] for row in finish(counts, tmp_path).to_pylist())
    # The window of z stays open; by its own time b is dropped, which Spark does in silence.
    assert counted == {"released_at": 6, "at": 5}[by]
