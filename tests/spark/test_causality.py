"""Causal labels on Spark: as on Arrow tables, in PySpark, SQL and Connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import antecede.spark as vocabulary
import antecede.tables.causality as local
from antecede.errors import InputError
from tests.spark.test_odd_values import IDS, history
from tests.tables.causality.naive import log
from tests.tables.causality.test_labels import WAYS, table_of

ODD: dict[str, Any] = {"id": "id", "after": ("after", "also"), "group": "group", "time": "at"}


def frame_of(spark: SparkSession, table: pa.Table, folder: Path, files: int = 3) -> DataFrame:
    size = -(-table.num_rows // files)
    for k in range(0, table.num_rows, size):
        pq.write_table(table.slice(k, size), folder / f"part-{k:06}.parquet")
    return spark.read.parquet(str(folder))


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.few(1)
@pytest.mark.parametrize("case", IDS)
def test_stamps_of_odd_values(spark: SparkSession, tmp_path: Path, case: str) -> None:
    table = history(case, seed=len(case))
    frame = frame_of(spark, table, tmp_path)
    made = vocabulary.add_causal_labels(frame, **ODD, partitions=3).toArrow()
    columns = ["group", "id", "causal_label", "antecede_status"]
    assert rows_of(made.select(columns)) == rows_of(
        local.add_causal_labels(table, **ODD).select(columns)
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_pairs_in_three_ways(spark: SparkSession, tmp_path: Path, way: str) -> None:
    rows = log(7, 50, lost=0.1)
    rows += [dict(rows[0]), {**rows[1], "run": "s" if rows[1]["run"] == "r" else "r"}]
    table = table_of(rows).append_column("k", pa.array(range(len(rows))))
    made = frame_of(spark, table, tmp_path).transform(vocabulary.add_causal_labels, **WAYS[way])
    made = made.select("k", "causal_label").localCheckpoint()
    x, y = (made.select(F.col("k").alias(n), F.col("causal_label").alias(f"s{n}")) for n in "xy")
    pairs = x.crossJoin(y)
    vocabulary.register(spark)
    told = pairs.select(
        "x",
        "y",
        vocabulary.happened_before("sx", "sy"),
        vocabulary.concurrent(F.col("sx"), F.col("sy")),
        F.expr("happened_before(sx, sy)"),
        F.expr("concurrent(sx, sy)"),
    ).collect()
    stamps: Any = local.add_causal_labels(table, **WAYS[way])["causal_label"].combine_chunks()
    assert len(told) == len(rows) ** 2
    xs, ys = (stamps.take(pa.array([row[k] for row in told])) for k in (0, 1))
    before, apart = local.happened_before(xs, ys), local.concurrent(xs, ys)
    assert {True, False, None} <= set(before.to_pylist())
    for row, b, c in zip(told, before.to_pylist(), apart.to_pylist(), strict=True):
        assert list(row)[2:] == [b, c, b, c], row
    sizes = made.select(
        "k", vocabulary.past_size("causal_label"), F.expr("past_size(causal_label)")
    ).collect()
    known = local.past_size(stamps).to_pylist()
    assert all((row[1], row[2]) == (known[row[0]], known[row[0]]) for row in sizes)


@pytest.mark.slow
def test_no_python_in_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    made = frame_of(spark, table_of(log(1)), tmp_path).transform(
        vocabulary.add_causal_labels, **WAYS["declared"]
    )
    made.write.parquet(str(tmp_path / "stamped"))
    kept = spark.read.parquet(str(tmp_path / "stamped"))
    kept.createOrReplaceTempView("stamped")
    vocabulary.register(spark)
    a, b = kept.alias("a"), kept.alias("b")
    same = F.col("a.causal_label.group") == F.col("b.causal_label.group")
    joined = a.join(b, same & vocabulary.happened_before("a.causal_label", "b.causal_label"))
    in_sql = spark.sql(
        "SELECT a.id FROM stamped a JOIN stamped b ON a.causal_label.group = b.causal_label.group "
        "AND happened_before(a.causal_label, b.causal_label)"
    )
    for query in (
        joined,
        in_sql,
        kept.select(vocabulary.concurrent("causal_label", "causal_label")),
    ):
        plan = query._jdf.queryExecution().executedPlan().toString()
        assert "Python" not in plan
        assert "Cartesian" not in plan
        assert "NestedLoop" not in plan
    assert joined.count() == in_sql.count() > 100


@pytest.mark.slow
def test_stamps_of_two_calls_are_null_to_each_other(spark: SparkSession) -> None:
    rows = [(1, None), (2, 1), (3, 1)]
    whole = spark.createDataFrame(rows, "id int, after int")
    both = [
        df.transform(vocabulary.add_causal_labels, id="id", after="after").select(
            "id", "causal_label"
        )
        for df in (whole, whole.where("id > 1"))
    ]
    old = both[1].select(F.col("causal_label").alias("old"))
    told = (
        both[0]
        .crossJoin(old)
        .select(
            vocabulary.happened_before("causal_label", "old"),
            vocabulary.concurrent("old", "causal_label"),
        )
    )
    assert {tuple(row) for row in told.collect()} == {(None, None)}


def test_refusals(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "id int, After int")
    ways: dict[str, Any] = {"id": "id", "after": "After"}
    with pytest.raises(InputError, match=r"a column AFTER already.*causal_label="):
        vocabulary.add_causal_labels(frame, **ways, causal_label="AFTER")
    with pytest.raises(InputError, match="give exactly one of"):
        vocabulary.add_causal_labels(frame, id="id")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InputError, match="add_causal_labels needs all rows of a group"):
        vocabulary.add_causal_labels(stream, id="value", after="value")


def test_a_past_too_wide_fails_with_the_sentence(spark: SparkSession) -> None:
    rows: list[tuple[str, list[str]]] = [(f"s{k}", []) for k in range(5)]
    rows.append(("all", [name for name, _ in rows]))
    frame = spark.createDataFrame(rows, "id string, after array<string>")
    made = vocabulary.add_causal_labels(frame, id="id", after="after", max_entries=3)
    with pytest.raises(PythonException, match="InputError: id all: the past of this event meets"):
        made.collect()
