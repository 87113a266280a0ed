"""Spark sessions: a quiet local one, or one on a cluster's master.

Spark's own output is suppressed at its source: host name look-ups by SPARK_LOCAL_IP, noisy loggers
by `log4j2.properties`, the progress bar by its setting. The time zone is UTC, and Parquet uses zstd
(pyarrow cannot read Spark's lz4).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from typing import Any

from pyspark.sql import SparkSession

from antecede.errors import InputError, SetupError
from antecede.spark.java import use_java

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The only state store that ordered streams support.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_LOCAL = re.compile(r"local\b|spark://(127\.|localhost\b|\[::1\])")
"""Pattern of masters whose executors run on this machine."""
_TASK_LOGGERS = (
    "org.apache.spark.TaskContextImpl",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.scheduler.TaskSchedulerImpl",
    "org.apache.spark.api.python.PythonRunner",
    "org.apache.spark.sql.execution.python",
)


def local_session(
    cores: int | None = None,
    *,
    partitions: int | None = None,
    memory: str = "1g",
    name: str = "antecede",
    java_options: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark inside this process and return the session, or return the active one.

    `cores`: task threads (default: all processors). `partitions`: shuffle partitions (default:
    `cores`; Spark's 200 slow down small data). `memory`: heap of the Java process, in Java's
    notation. `settings` override those of this module. The caller stops the session. Sets
    SPARK_LOCAL_IP and PYSPARK_PYTHON (unless set) and JAVA_HOME in the environment. Raises
    SetupError without Java, and InputError if `cores` or `partitions` is below 1.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    threads = os.cpu_count() or 1 if cores is None else cores
    shuffle = threads if partitions is None else partitions
    if threads < 1 or shuffle < 1:
        raise InputError(f"cores={threads}, partitions={shuffle}: both must be at least 1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": str(shuffle)}
    chosen |= {**_LOOPBACK, **(settings or {})}
    return _start(f"local[{threads}]", name, java_options, chosen)


def cluster_session(
    master: str,
    *,
    memory: str = "1g",
    python: str | None = None,
    py_files: Sequence[str] = (),
    name: str = "antecede",
    java_options: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Connect to a Spark master and return the session, or return the active one.

    `master`: in Spark's notation (`spark://host:7077`, `yarn`, `k8s://...`, `local[4]`). `memory`:
    heap of an executor. `python`: interpreter of the workers; sets PYSPARK_PYTHON (default:
    python3, or this interpreter for a local master). `py_files`: zip, egg or .py files that workers
    import from. `settings` override all others. For a remote master, the driver's address is left
    to Spark and SPARK_LOCAL_IP. The caller stops the session. Raises SetupError without Java, and
    if the master is unknown or unreachable.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    chosen = {"spark.executor.memory": memory}
    if is_local(master):
        chosen |= _LOOPBACK
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    try:
        session = _start(master, name, java_options, {**chosen, **(settings or {})})
    except SetupError:
        raise
    except Exception as error:  # Py4JJavaError contains Java's message
        raise SetupError(
            f"cannot start Spark with master {master!r}: {_get_first_line(error)}"
        ) from error
    for path in py_files:
        session.sparkContext.addPyFile(path)
    return session


def is_local(master: str) -> bool:
    """Return whether the executors of a master run on this machine."""
    return _LOCAL.match(master) is not None


def quiet_failures(session: SparkSession) -> None:
    """Suppress Java stack traces of failed tasks, for callers that report the errors."""
    log4j: Any = session.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for logger in _TASK_LOGGERS:
        log4j.core.config.Configurator.setLevel(logger, log4j.Level.OFF)


def _start(
    master: str, name: str, java_options: Sequence[str], settings: Mapping[str, str]
) -> SparkSession:
    use_java()
    if "spark.driver.host" in settings:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _make_java_options(java_options) as options:
        builder = SparkSession.builder.master(master).appName(name)
        builder = builder.config("spark.driver.extraJavaOptions", options)
        for key, value in {**_SETTINGS, **settings}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def _get_first_line(error: Exception) -> str:
    java_error = getattr(error, "java_exception", None)
    text = str(java_error.getMessage() if java_error is not None else error) or type(error).__name__
    return text.splitlines()[0]


@contextmanager
def _make_java_options(more: Sequence[str]) -> Iterator[str]:
    """Yield the Java options with the path of the log settings, which Java reads at start."""
    with as_file(files("antecede.spark") / "log4j2.properties") as path:
        yield " ".join([f'"-Dlog4j2.configurationFile={path.as_uri()}"', *more])
