"""Change of the number of tasks of a stopped ordered stream.

Shards stay; a task gets more or fewer of them. Spark's `repartition` of a checkpoint (PySpark 4.2
and later) rewrites the state as a micro-batch without input and output. Spark's file sink lacks
that batch in its log and then cannot be read; so an empty entry is added.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from antecede.errors import InputError, SetupError
from antecede.spark.streams.state import list_operators, list_shard_counts


def repartition_stream(checkpoint: str, tasks: int, *, output: str | None = None) -> None:
    """Change the number of tasks of a stopped ordered stream; `tasks` must divide its shards.

    `output`: folder of the query's file sink, if any (`format("parquet")` and similar). Positions,
    held rows and known ids are kept. Uses the active session. The query must be stopped, which
    Spark cannot check. All stateful operators of the query keep that number, regardless of
    `spark.sql.shuffle.partitions`. Raises InputError without an ordered stream, and if tasks do not
    divide its shards or are unchanged; SetupError through Spark Connect and before PySpark 4.2.

    >>> repartition_stream("/data/checkpoint", 8)  # doctest: +SKIP
    """
    session = SparkSession.active()
    manager: Any = _get_manager(session)
    if isinstance(tasks, bool) or not isinstance(tasks, int):
        raise InputError(f"tasks={tasks!r}: expected an integer")
    shards = list_shard_counts(session, checkpoint)
    if tasks < 1 or any(number % tasks for number in shards):
        allowed = [n for n in range(1, min(shards) + 1) if not any(s % n for s in shards)]
        raise InputError(
            f"tasks={tasks} does not divide the {', '.join(map(str, shards))} shards of checkpoint "
            f"{checkpoint}; choose from {', '.join(map(str, allowed))}"
        )
    if {row.numPartitions for row in list_operators(session, checkpoint)} == {tasks}:
        raise InputError(f"checkpoint {checkpoint} has {tasks} tasks already")
    log = None if output is None else _open_sink_log(session, output)
    try:
        manager.repartition(checkpoint, tasks)
    except PySparkException as error:
        raise InputError(f"checkpoint {checkpoint} is unchanged: {error}") from error
    if log is not None:
        context: Any = session.sparkContext  # the entry is empty; Spark compacts the log when due
        status = context._jvm.org.apache.spark.sql.execution.streaming.sinks.SinkFileStatus
        batch = max(row.maxBatchId for row in list_operators(session, checkpoint))
        log.add(batch, context._gateway.new_array(status, 0))


def _get_manager(session: SparkSession) -> Any:
    if not hasattr(session, "_jsparkSession"):
        raise SetupError(
            "Spark Connect cannot change the tasks of a stream: use a classic session on the "
            "cluster"
        )
    if not hasattr(SparkSession, "_streamingCheckpointManager"):
        raise SetupError("changing the tasks of a stream needs PySpark 4.2 or later")
    return session._streamingCheckpointManager


def _open_sink_log(session: SparkSession, output: str) -> Any:
    context: Any = session.sparkContext
    jvm = context._jvm
    name = f"{output.rstrip('/')}/_spark_metadata"
    path = jvm.org.apache.hadoop.fs.Path(name)
    if not path.getFileSystem(context._jsc.hadoopConfiguration()).exists(path):
        raise InputError(f"{output} has no log of a file sink (_spark_metadata)")
    sinks = jvm.org.apache.spark.sql.execution.streaming.sinks  # opening a log creates its folder
    version, nothing = sinks.FileStreamSinkLog.VERSION(), jvm.scala.Option.empty()
    return sinks.FileStreamSinkLog(version, session._jsparkSession, name, nothing)
