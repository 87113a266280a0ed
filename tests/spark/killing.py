"""Kill of a stream and its JVM within a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from pipeline.processes import count_batches, kill
from tests.spark.parts import write_parts

FILES = 6
DEADLINE_S = 300


def survive_a_kill(folder: Path, operator: str, pieces: Iterable[pa.Table]) -> None:
    """Run `stream_child.py OPERATOR` with one file per batch; kill it once, and restart it.

    FOLDER/out then holds the output.
    """
    write_parts(folder / "in", pieces)
    assert 2 <= kill_within_a_batch(folder, start(folder, operator), 2) < FILES
    last = start(folder, operator)
    assert last.wait(DEADLINE_S) == 0, (folder / "log").read_text()
    assert count_batches(folder, "commits") >= FILES


def start(folder: Path, operator: str) -> subprocess.Popen[bytes]:
    (folder / "pids").unlink(missing_ok=True)
    child = [sys.executable, "-m", "tests.spark.stream_child", operator, str(folder)]
    root = Path(__file__).resolve().parents[2]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(child, stdout=log, stderr=log, cwd=root)


def kill_within_a_batch(folder: Path, child: subprocess.Popen[bytes], commits: int) -> int:
    """Kill driver and JVM once a batch after the first `commits` is under way; return commits."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        assert child.poll() is None, (folder / "log").read_text()
        done = count_batches(folder, "commits")
        if done >= commits and count_batches(folder, "offsets") > done:
            break
        time.sleep(0.01)
    python, java = map(int, (folder / "pids").read_text().split())
    assert python == child.pid
    for pid in (python, java):  # at once: a JVM without its driver begins an orderly end
        os.kill(pid, signal.SIGKILL)
    for pid in (python, java):
        kill(pid)  # returns when it is gone
    child.wait(10)
    assert count_batches(folder, "offsets") > count_batches(folder, "commits")
    return count_batches(folder, "commits")
