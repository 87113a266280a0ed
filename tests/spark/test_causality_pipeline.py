"""Causality functions in a declarative pipeline."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

SPEC = """
name: causality
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""
TRANSFORMATIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import antecede.spark as a

spark = SparkSession.active()
ROWS = "('a', NULL, 'x', 1), ('b', 'a', 'y', 1), ('c', 'a', 'y', 2), ('d', 'b', 'x', 2)"


@dp.materialized_view
def events():
    return spark.sql(f"SELECT * FROM VALUES {ROWS} AS t(id, after, host, n)")


@dp.materialized_view
def stamped():
    return a.add_causal_labels(spark.read.table("events"), id="id", after="after")


@dp.materialized_view
def pairs():
    x, y = (spark.read.table("stamped").alias(name) for name in "xy")
    pairs = x.join(y, a.happened_before("x.causal_label", "y.causal_label"))
    return pairs.select(F.col("x.id").alias("first"), F.col("y.id").alias("second"))


@dp.materialized_view
def before_d():
    rows = spark.read.table("stamped")
    return a.past(rows, rows.where("id = 'd'")).select("id")


@dp.materialized_view
def line():
    rows = spark.read.table("events").selectExpr("*", "n = 1 OR id = 'd' AS saved")
    return a.recovery_line(rows, "saved", process="host", at="n", id="id", after="after")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("java")
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("grpc", "yaml"))),
    reason="declarative pipelines need grpcio and pyyaml",
)
def test_pipeline(tmp_path: Path) -> None:
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "all.py").write_text(TRANSFORMATIONS)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        [home / "bin" / "spark-pipelines", "run", "--spec", "spark-pipeline.yml"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]

    def made(name: str) -> list[tuple[object, ...]]:
        rows = pq.read_table(tmp_path / "spark-warehouse" / name).to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    assert made("pairs") == [("a", "b"), ("a", "c"), ("a", "d"), ("b", "d")]
    assert made("before_d") == [("a",), ("b",)]
    assert made("line") == [("x", 2, 2, 0, 0), ("y", 1, 1, 1, 0)]
