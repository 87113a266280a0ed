"""SIGKILL of the driver and its JVM in mid-stream: every row once, in order, after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from antecede.tables.order.table import order_table
from tests.spark.killing import FILES, survive_a_kill
from tests.spark.stream_child import ORDER
from tests.spark.test_stream import by_id, history, pieces, settled


@pytest.mark.slow
def test_every_row_once_and_in_order_through_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    table = history(400, seed=3)
    survive_a_kill(tmp_path, "order", pieces(table, FILES))

    # Spark reads a file sink through its log: files of killed batches are there, but do not count.
    got = by_id(spark.read.parquet(str(tmp_path / "out")).toArrow())
    want = by_id(order_table(table, ORDER))
    assert got.keys() == want.keys()
    for name, row in got.items():
        assert settled(row) == settled(want[name])
        for cause in row["after"]:
            assert got[cause]["position"] < row["position"]
    for group in {row["group"] for row in got.values()}:
        places = sorted(row["position"] for row in got.values() if row["group"] == group)
        assert places == list(range(len(places)))
