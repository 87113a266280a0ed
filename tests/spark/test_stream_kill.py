"""SIGKILL of the driver and its JVM in mid-stream: every row once, in order, after a restart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antecede.order.table import order_table
from tests.spark.stream_child import SPEC
from tests.spark.test_stream import by_id, history, pieces

FILES = 6
DEADLINE_S = 120


def start(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "pids").unlink(missing_ok=True)
    child = Path(__file__).with_name("stream_child.py")
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, str(child), str(folder)], stdout=log, stderr=log)


def batches(folder: Path, what: str) -> int:
    """Number of micro-batches that were begun ("offsets") or are done ("commits")."""
    return sum(1 for path in (folder / "checkpoint" / what).glob("*") if path.name.isdigit())


def kill_within_a_batch(folder: Path, child: subprocess.Popen[bytes], commits: int) -> int:
    """Kill driver and JVM once a batch after the first `commits` is under way; return commits."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        assert child.poll() is None, (folder / "log").read_text()
        done = batches(folder, "commits")
        if done >= commits and batches(folder, "offsets") > done:
            break
        time.sleep(0.01)
    python, java = map(int, (folder / "pids").read_text().split())
    assert python == child.pid
    os.kill(python, signal.SIGKILL)
    os.kill(java, signal.SIGKILL)
    child.wait(10)
    for _ in range(500):  # the JVM is not our child: wait until it has let go of the files
        try:
            os.kill(java, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    assert batches(folder, "offsets") > batches(folder, "commits")
    return batches(folder, "commits")


def test_every_row_once_and_in_order_through_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    table = history(400, seed=3)
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
    got = by_id(spark.read.parquet(str(tmp_path / "out")).toArrow())
    want = by_id(order_table(table, SPEC))
    assert got.keys() == want.keys()
    for name, row in got.items():
        assert {**row, "position": 0} == {**want[name], "position": 0}
        for cause in row["after"]:
            assert got[cause]["position"] < row["position"]
    for group in {row["group"] for row in got.values()}:
        places = sorted(row["position"] for row in got.values() if row["group"] == group)
        assert places == list(range(len(places)))
