"""Processes of the pipeline: started here, killed by pid, and stopped at the end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from antecede.errors import SetupError
from pipeline import spark_job

ROOT = Path(__file__).resolve().parents[1]
KILL_LOG = "killed.jsonl"
QUIET_S = 10.0
EXECUTOR = "CoarseGrainedExecutorBackend"


class Kill(NamedTuple):
    """One SIGKILL: target, time (ms since 1970), and number of finished micro-batches."""

    what: str
    pids: list[int]
    at_ms: float
    commits: int
    within_a_batch: bool


class Processes:
    """Python processes of this package, with one log file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, *words: str) -> None:
        """Start `python -m module words` as `name`."""
        command = [sys.executable, "-m", module, *words]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=ROOT, stdin=subprocess.DEVNULL
            )

    def check(self) -> None:
        """Raise SetupError with the end of its log if a process failed."""
        for name, process in self.running.items():
            if process.poll():
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                raise SetupError(f"{name} ended with {process.returncode}: {log[-2000:]}")

    def wait(self, names: Iterator[str] | list[str], seconds: float) -> None:
        """Wait until these processes have ended without an error."""
        end = time.monotonic() + seconds
        for name in names:
            while self.running[name].poll() is None:
                self.check()
                if time.monotonic() > end:
                    raise SetupError(f"{name} has not ended after {seconds:.0f} s")
                time.sleep(0.05)
        self.check()

    def stop(self) -> None:
        """Kill all processes that still run, including those of a driver."""
        for pid in list_spark_pids(self.folder):
            kill(pid)
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
            process.wait(15)


def list_spark_pids(folder: Path) -> list[int]:
    """Return the pids of the driver's JVM and of its executors that still run."""
    with contextlib.suppress(OSError, ValueError):
        java = int((folder / spark_job.PIDS_FILE).read_text().split()[1])
        ours = f"{spark_job.RUN_PROPERTY}={folder.resolve()}"  # the pid may have been reused
        if any(pid == java and ours in words for pid, _, words in list_processes()):
            return [*list_executors(java), java]
    return []


def list_executors(java: int) -> list[int]:
    """Return the pids of the executors of a driver's JVM, ascending.

    Raises SetupError without /proc and ps.
    """
    return sorted(
        pid for pid, parent, words in list_processes() if parent == java and EXECUTOR in words
    )


def list_processes() -> Iterator[tuple[int, int, str]]:
    """Yield pid, parent and command line of all processes.

    Raises SetupError without /proc and ps.
    """
    if Path("/proc/self/stat").exists():
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                yield int(entry.name), int(state[1]), words
        return
    try:
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError("neither /proc nor ps found: cannot list executors") from error
    for line in listed.stdout.splitlines():
        pid, parent, words = line.split(None, 2)
        yield int(pid), int(parent), words


def kill(pid: int) -> None:
    """Send SIGKILL to a process, and wait until it has ended."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(500):
            os.kill(pid, signal.SIGKILL)
            if _is_zombie(pid):
                return
            time.sleep(0.01)


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def count_batches(folder: Path, kind: str) -> int:
    """Return the number of started ("offsets") or finished ("commits") micro-batches."""
    numbers = (path.name for path in (folder / "checkpoint" / kind).glob("[0-9]*"))
    return max((int(name) + 1 for name in numbers if name.isdigit()), default=0)


class Killer:
    """Kills an executor, then the driver, each within a micro-batch; restarts the driver.

    Call `step` often. `plan` has targets, and the micro-batches to finish before each. If no row
    arrives and no micro-batch runs for QUIET_S, the rest of the plan is killed outside of a
    micro-batch, and the page says so.
    """

    def __init__(self, processes: Processes, words: list[str], plan: list[tuple[str, int]]) -> None:
        self.processes, self.words, self.plan = processes, words, plan
        self.folder = processes.folder
        self.since = 0
        self.busy = time.monotonic()
        self.kills: list[Kill] = []

    def start(self) -> None:
        """Start or restart the driver."""
        (self.folder / spark_job.PIDS_FILE).unlink(missing_ok=True)
        self.processes.start("spark", "pipeline.spark_job", *self.words)

    def step(self, *, over: bool) -> bool:
        """Execute a due kill if a micro-batch is running; return whether the plan is complete.

        `over`: no more rows arrive.
        """
        if not self.plan:
            return True
        what, after = self.plan[0]
        done, begun = count_batches(self.folder, "commits"), count_batches(self.folder, "offsets")
        if begun > done or not done or not over:
            self.busy = time.monotonic()
        due = begun > done >= self.since + after
        if not due and time.monotonic() < self.busy + QUIET_S:
            return False
        java = int((self.folder / spark_job.PIDS_FILE).read_text().split()[1])
        pids = list_executors(java)
        if not pids:
            return False  # the driver is replacing an executor
        driver = self.processes.running["spark"]
        pids = pids[:1] if what == "executor" else [driver.pid, java, *pids]
        at_ms = time.time() * 1000
        for pid in pids:
            kill(pid)
        within = count_batches(self.folder, "commits") == done < begun
        self._record(Kill(what, pids, at_ms, done, within))
        self.since, self.busy = done, time.monotonic()
        self.plan = self.plan[1:]
        if what == "driver":
            driver.wait(15)
            self.start()
        return not self.plan

    def _record(self, killed: Kill) -> None:
        self.kills.append(killed)
        with (self.folder / KILL_LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(killed._asdict()) + "\n")
