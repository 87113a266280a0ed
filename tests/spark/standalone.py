"""Standalone cluster on this machine: a Master, and two Workers with one executor each."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from antecede.errors import SetupError
from antecede.spark.java import use_java

ROOT = Path(__file__).resolve().parents[2]
NEEDED_MIB = 3_000
DEADLINE_S = 60


class Cluster(NamedTuple):
    master: str
    workers: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """Process numbers of the executors, which are children of the Workers."""
        own = {worker.pid for worker in self.workers}
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = (folder / "stat").read_text().rpartition(")")[2].split()
                line = (folder / "cmdline").read_bytes()
                if int(state[1]) in own and b"CoarseGrainedExecutorBackend" in line:
                    found.append(int(folder.name))
        return sorted(found)


def copy_package(folder: Path) -> tuple[Path, Path]:
    """Copy the package and the toy study; return the copy and a zip file of it."""
    copy = folder / "shipped"
    ignored = shutil.ignore_patterns("__pycache__", "*.toml")
    shutil.copytree(ROOT / "src" / "antecede", copy / "antecede", ignore=ignored)
    for path in (
        "__init__.py",
        "lab/__init__.py",
        "lab/reproductions/__init__.py",
        "lab/reproductions/toy.py",
        "spark/__init__.py",
    ):
        (copy / "tests" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / path, copy / "tests" / path)
    zipped = shutil.make_archive(str(folder / "shipped"), "zip", copy)
    shutil.copy(ROOT / "tests/spark/study_child.py", copy / "tests" / "spark")
    return copy, Path(zipped)


@contextlib.contextmanager
def run_cluster(folder: Path) -> Iterator[Cluster]:
    """Start the cluster, or skip; all its processes are stopped at the end."""
    environ = _environ(folder)
    with contextlib.ExitStack() as stack:

        def start(name: str, *words: str) -> subprocess.Popen[bytes]:
            command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *words]
            with (folder / name).open("wb") as log:
                made = subprocess.Popen(
                    command, stdout=log, stderr=log, env=environ, cwd=folder, start_new_session=True
                )
            stack.callback(_end, made)
            return made

        port = str(_free_port())
        where = ("--host", "127.0.0.1", "--webui-port", "0")
        master = start("master", "org.apache.spark.deploy.master.Master", "--port", port, *where)
        _wait_for_port(int(port), master, folder / "master")
        address = f"spark://127.0.0.1:{port}"
        worker = ("org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", *where)
        workers = [
            start(f"worker{k}", *worker, "-d", str(folder / f"work{k}"), address) for k in (1, 2)
        ]
        yield Cluster(address, workers)


def _environ(folder: Path) -> dict[str, str]:
    if not sys.platform.startswith("linux"):
        pytest.skip("executors are found by way of /proc, which only Linux has")
    free = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]
    if int(free) < NEEDED_MIB * 1024:
        pytest.skip(f"a cluster needs {NEEDED_MIB} MiB; {int(free) // 1024} are free")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYTHON"))}
    try:
        use_java(environ)
    except SetupError as error:
        pytest.skip(str(error))
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    daemon = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": options}
    return {**environ, **daemon, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder)}


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _wait_for_port(port: int, master: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if master.poll() is not None:
            pytest.skip(f"no Master starts here: {log.read_text()[-500:]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    pytest.skip("no Master answers here")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with its children: they are one process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
