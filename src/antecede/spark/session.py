"""The one place that creates a SparkSession: a quiet local one for the command line and demo.

Library functions never create a session; they turn a DataFrame into a DataFrame.

Theory of operation
-------------------
Everything that Spark prints by itself is stopped where it comes from: host name look-ups by
SPARK_LOCAL_IP, log lines by our own `log4j2.properties` (warnings of three chatty loggers off,
the rest at `warn`), the console progress bar by its setting. The process that calls
`local_session` keeps its own stderr: nothing is redirected and real warnings still show. One
Python warning is ignored: PySpark's on pandas 3, which antecede never uses.
Results do not depend on the machine: the time zone is UTC, Parquet is zstd (pyarrow cannot
read the lz4 that Spark writes).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files

from pyspark.sql import SparkSession

from antecede.errors import InputError
from antecede.spark.java import use_java

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The one state store that streams of causal order can use.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


_PANDAS = "PySpark does not yet fully support pandas"


def local_session(
    cores: int | None = None,
    *,
    partitions: int | None = None,
    memory: str = "1g",
    name: str = "antecede",
    java_options: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark inside this process and return the session; an active one is returned as is.

    `cores` task threads (default: all processors), `partitions` shuffle partitions (default:
    `cores`; Spark's 200 make small data slow), `memory` of the Java process as Java writes it.
    `settings` override those of this module. The caller stops the session. Sets SPARK_LOCAL_IP,
    PYSPARK_PYTHON (both unless set) and JAVA_HOME in the environment of this process. Raises
    SetupError when there is no Java, InputError when `cores` or `partitions` is below 1.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    threads = os.cpu_count() or 1 if cores is None else cores
    shuffle = threads if partitions is None else partitions
    if threads < 1 or shuffle < 1:
        raise InputError(f"cores and partitions must be at least 1, not {threads} and {shuffle}")
    use_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", _PANDAS, FutureWarning)
    with _quiet_options(java_options) as options:
        builder = SparkSession.builder.master(f"local[{threads}]").appName(name)
        builder = builder.config("spark.driver.extraJavaOptions", options)
        builder = builder.config("spark.driver.memory", memory)
        builder = builder.config("spark.sql.shuffle.partitions", str(shuffle))
        for key, value in {**_SETTINGS, **(settings or {})}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


@contextmanager
def _quiet_options(more: Sequence[str]) -> Iterator[str]:
    """Give the Java options that name our log settings, which are read once at the start."""
    with as_file(files("antecede.spark") / "log4j2.properties") as path:
        yield " ".join([f'"-Dlog4j2.configurationFile={path.as_uri()}"', *more])
