"""Kills of drivers, executors and Python workers of a stream at random times."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.processes import count_batches, kill, list_executors, list_processes
from pipeline.spark_job import FINISH_FILE, PIDS_FILE, TABLE_FILE

ROOT = Path(__file__).resolve().parents[2]
MASTER = "local-cluster[2,1,900]"
DEADLINE_S = 240
GAP_S = 2.5
"""Maximum time from the start of a target to its kill."""
TARGETS = ("driver", "executor", "worker")


class StreamKill(NamedTuple):
    """One SIGKILL: target, pids, and number of finished micro-batches."""

    what: str
    pids: list[int]
    commits: int
    within_a_batch: bool


class KilledStream:
    """Stream in its own processes; `python` runs it, with the `jars` of its source and sink."""

    def __init__(
        self,
        folder: Path,
        *,
        source: str = "files",
        sink: str = "parquet",
        python: str = sys.executable,
        jars: Path | None = None,
    ) -> None:
        self.folder, self.source, self.python = folder, source, python
        self.words = [source, sink, MASTER, *([] if jars is None else [str(jars)])]
        self.child: subprocess.Popen[bytes] | None = None
        self.left: list[int] = []
        """Executors whose driver was killed before them."""
        self.commits = 0
        """Micro-batches that were done when the last kill was over."""
        (folder / "in").mkdir()

    def feed(self, parts: list[pa.Table], first: int = 0) -> None:
        """Give the source some files, in order: `first` is the number of the first one."""
        names = []
        for index, part in enumerate(parts, first):
            draft = self.folder / f"draft-{index}"
            pq.write_table(part, draft)
            os.utime(draft, (1_700_000_000 + index,) * 2)
            names.append(f"part-{index:04}.parquet")
            draft.rename(self.folder / "in" / names[-1])
        kind, _, where = self.source.partition(":")
        if kind == "kafka":
            done = self._run([f"fill:{where}", *names]).wait(60)
            assert done == 0, self.log()

    def start(self) -> None:
        (self.folder / PIDS_FILE).unlink(missing_ok=True)
        self.child = self._run(self.words)

    def kill(self, what: str, rng: random.Random, wait_s: float) -> StreamKill:
        """Wait until the target runs and then `wait_s` more; kill it, start a driver again."""
        self._wait(lambda: (self.folder / PIDS_FILE).exists())
        self._wait(lambda: bool(self._targets(what)))
        if rng.random() < 0.7:  # else it may not even have come so far
            self._wait(lambda: count_batches(self.folder, "commits") > self.commits)
        time.sleep(wait_s)
        self._wait(lambda: bool(self._targets(what)))
        found = self._targets(what)
        pids = found if what == "driver" else [rng.choice(found)]
        java = self._java()
        ended = list_executors(java)
        if what == "driver":
            rng.shuffle(pids)
            if rng.random() < 0.5:  # the executors at once, too, else they find out by themselves
                pids += ended
        done, begun = (count_batches(self.folder, name) for name in ("commits", "offsets"))
        for pid in pids:
            kill(pid)
        if what == "driver":
            assert self.child is not None
            self.child.wait(15)
            self.left += [pid for pid in ended if pid not in pids]
            self.start()
        self.commits = count_batches(self.folder, "commits")
        return StreamKill(what, pids, done, begun > done)

    def finish(self) -> list[dict[str, Any]]:
        """Let the stream work off all, and return the rows in the sink."""
        (self.folder / FINISH_FILE).touch()
        assert self.child is not None
        assert self.child.wait(DEADLINE_S) == 0, self.log()
        rows: list[dict[str, Any]] = pq.read_table(self.folder / TABLE_FILE).to_pylist()
        return rows

    def end(self) -> None:
        """Leave no process behind."""
        pids = list(self.left)
        if self.child is not None and self.child.poll() is None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                pids += [*list_executors(self._java()), self._java()]
            self.child.kill()
            self.child.wait(15)
        for pid, _, words in list(list_processes()):
            if pid in pids and str(self.folder) in words:
                kill(pid)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-6000:]

    def _run(self, words: list[str]) -> subprocess.Popen[bytes]:
        command = [self.python, "-m", "tests.spark.kill_child", str(self.folder), *words]
        path = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
        environ = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": self.python}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environ)

    def _java(self) -> int:
        return int((self.folder / PIDS_FILE).read_text().split()[1])

    def _targets(self, what: str) -> list[int]:
        java = self._java()
        if what == "driver":
            assert self.child is not None
            return [self.child.pid, java]
        own = list_executors(java)
        if what == "executor":
            return own
        below: list[int] = []  # daemons of Python, and the workers that they fork
        every = list(list_processes())
        level = set(own)
        for _ in range(2):
            level = {pid for pid, parent, words in every if parent in level and "pyspark" in words}
            below += sorted(level)
        return below

    def _wait(self, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + DEADLINE_S
        while not ready():
            assert self.child is not None
            assert self.child.poll() is None, self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)


def run_with_kills(
    stream: KilledStream, parts: list[pa.Table], kills: int, seed: int
) -> tuple[list[dict[str, Any]], list[StreamKill]]:
    """Run a stream over files with some kills; return its output, and the kills.

    The last file arrives after all kills. Every third kill is of the driver.
    """
    rng = random.Random(seed)
    plan = [TARGETS[k % len(TARGETS)] for k in range(kills)]
    rng.shuffle(plan)
    try:
        stream.feed(parts[:-1])
        stream.start()
        done = [stream.kill(what, rng, rng.random() * GAP_S) for what in plan]
        stream.feed(parts[-1:], len(parts) - 1)
        return stream.finish(), done
    finally:
        stream.end()
