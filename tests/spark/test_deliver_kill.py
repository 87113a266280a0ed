"""SIGKILL of the driver and its JVM in mid-stream: every row once, as in the batch, afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antecede.order.deliver_table import deliver_table
from tests.order.logs import ended, many_groups, pieces
from tests.spark.deliver_child import SPEC
from tests.spark.test_stream_kill import DEADLINE_S, batches, kill_within_a_batch

FILES = 6


def start(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "pids").unlink(missing_ok=True)
    child = Path(__file__).with_name("deliver_child.py")
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, str(child), str(folder)], stdout=log, stderr=log)


def test_every_row_once_and_as_in_the_batch_through_a_kill(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = ended(many_groups(SPEC, lost=0.02))
    (tmp_path / "in").mkdir()
    for index, piece in enumerate(pieces(table, FILES)):
        path = tmp_path / "in" / f"part-{index:03}.parquet"
        pq.write_table(piece, path)
        os.utime(path, (1_700_000_000 + index,) * 2)
    assert 2 <= kill_within_a_batch(tmp_path, start(tmp_path), 2) < FILES
    last = start(tmp_path)
    assert last.wait(DEADLINE_S) == 0, (tmp_path / "log").read_text()
    assert batches(tmp_path, "commits") >= FILES

    # Spark reads a file sink through its log: files of killed batches are there, but do not count.
    got = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    want = deliver_table(table, SPEC)
    assert set(want["status"].to_pylist()) >= {"delivered", "expired", "sent", "duplicate"}
    assert sorted(map(repr, got)) == sorted(map(repr, want.to_pylist()))
