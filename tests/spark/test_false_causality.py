"""False causality on Spark: the local rows, for any partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import InputError
from antecede.spark.audits.false_causality import find_violations, measure_false_causality
from antecede.tables.false_causality.measure import measure
from antecede.tables.false_causality.violations import find_violations as local_violations
from antecede.tables.trace.arrow import to_batch
from antecede.tables.trace.schema import Event
from tests.tables.false_causality.runs import ALIKE, random_run

BOUNDS = Bounds[str](accuracy_s=1, least_s=1, most_s=4)


def events(runs: int = 5, *, deliver: bool = False) -> pa.Table:
    rows = [
        row._replace(run=f"run {seed}")
        for seed in range(runs)
        for row in random_run(seed, ALIKE, deliver=deliver).rows
    ]
    return pa.Table.from_batches([to_batch(rows)])


def frame(spark: SparkSession, table: pa.Table, folder: Path) -> DataFrame:
    """Return the table in several files, its rows shuffled between them."""
    for part in range(3):
        chosen = [row for row in range(len(table)) if row * 7 % 3 == part]
        pq.write_table(
            table.take(pa.array(chosen[::-1], pa.int64())), str(folder / f"{part}.parquet")
        )
    return spark.read.parquet(str(folder))


def rows(found: pa.Table | DataFrame) -> list[dict[str, Any]]:
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return sorted(table.to_pylist(), key=lambda row: [str(value) for value in row.values()])


def test_it_counts_what_the_local_meter_counts(spark: SparkSession, tmp_path: Path) -> None:
    table = events()
    options: dict[str, Any] = {
        "bounds": BOUNDS,
        "relation": "receipt",
        "subscriptions": Subscriptions({"P": ["x"], "Q": ["x", "y"]}),
    }
    found = rows(measure_false_causality(frame(spark, table, tmp_path), **options))
    assert len(found) > 100
    assert found == rows(measure(table, **options))


@pytest.mark.slow
def test_rules_and_observers_can_be_chosen(spark: SparkSession, tmp_path: Path) -> None:
    table = events()
    df = frame(spark, table, tmp_path)
    found = rows(
        measure_false_causality(
            df, rules=["arrival", "linear"], observers=["P", "Q"], relation="receipt"
        )
    )
    wanted = [
        row
        for row in rows(measure(table, ["arrival", "linear"], relation="receipt"))
        if row["observer"] in ("P", "Q")
    ]
    assert found == wanted


def test_early_deliveries_are_those_of_the_local_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(deliver=True)
    found = rows(find_violations(frame(spark, table, tmp_path)))
    assert found
    assert found == rows(local_violations(table))


def test_declared_causes_need_no_run(spark: SparkSession, tmp_path: Path) -> None:
    thread = [Event(id=f"m{k}", causes=(f"m{k // 2}",) if k else ()) for k in range(20)]
    table = pa.Table.from_batches([to_batch(thread)]).drop_columns(["run", "member"])
    found = rows(measure_false_causality(frame(spark, table, tmp_path)))
    assert [row["rule"] for row in found] == ["arrival", "linear"]
    assert found == rows(measure(table))


@pytest.mark.slow
def test_nothing_gives_nothing(spark: SparkSession, tmp_path: Path) -> None:
    df = frame(spark, events().slice(0, 0), tmp_path)
    assert rows(measure_false_causality(df)) == []
    assert rows(find_violations(df)) == []


def test_what_cannot_be_measured_is_said(spark: SparkSession, tmp_path: Path) -> None:
    df = frame(spark, events(1), tmp_path)
    with pytest.raises(InputError, match="unknown rule 'lamport'"):
        measure_false_causality(df, rules=["lamport"])
    with pytest.raises(InputError, match="no column file_order"):
        measure_false_causality(df.drop("file_order"))
    with pytest.raises(InputError, match="no column file_order"):
        find_violations(df.drop("file_order"))
    with pytest.raises(PythonException, match="no bounds of clocks and delays"):
        measure_false_causality(df, rules=["physical"]).collect()
