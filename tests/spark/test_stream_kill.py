"""SIGKILL of driver and JVM within a stream: every row once, in order, after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from antecede.tables.order.replay.table import deliver_table
from tests.spark.killing import FILES, survive_a_kill
from tests.spark.stream_child import DELIVER, ORDER
from tests.spark.test_stream import check_as_batch, make_history, split_rows
from tests.tables.order.logs import ended, many_groups
from tests.tables.order.logs import pieces as log_pieces


@pytest.mark.slow
def test_every_row_once_and_in_order_through_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    table = make_history(400, seed=3)
    survive_a_kill(tmp_path, "order", split_rows(table, FILES))

    # Spark reads a file sink through its log: files of killed batches are there, but do not count.
    got = spark.read.parquet(str(tmp_path / "out")).toArrow()
    check_as_batch(got, table, ORDER)


@pytest.mark.slow
def test_deliveries_are_those_of_the_batch_through_a_kill(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = ended(many_groups(DELIVER, lost=0.02))
    survive_a_kill(tmp_path, "deliver", log_pieces(table, FILES))
    got = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    want = deliver_table(table, DELIVER)
    assert set(want["status"].to_pylist()) >= {"delivered", "expired", "sent", "duplicate"}
    assert sorted(map(repr, got)) == sorted(map(repr, want.to_pylist()))
