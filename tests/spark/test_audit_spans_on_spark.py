"""Spans on Spark: the same report as the local engine, bounds of clocks and all."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import antecede.spark
from antecede.tables.audit import audit
from antecede.tables.trace.arrow import read


@pytest.mark.slow
def test_same_bounds_of_clocks_as_the_local_engine(spark: SparkSession, shared_data: Path) -> None:
    path = shared_data / "traces/onlineboutique-17_00.csv.gz"
    local = audit([path]).to_dict()
    df = spark.createDataFrame(read([path]).events).repartition(3)
    found = antecede.spark.audit_report(df, format="spans")
    assert found["details"]["clock_skew"] == local["details"]["clock_skew"]
    assert local["details"].pop("worst_inversions")  # names events: from files alone
    assert found["details"]["clock_skew"]["total_shift_ns"] == 244_899
    assert found == local
