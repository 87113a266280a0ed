"""Another number of tasks for a stopped ordered stream: Spark moves its shards.

The number of shards stays, and so does each group's shard; a task gets more or fewer of them.
Spark's `repartition` of a checkpoint (PySpark 4.2 and later) writes the state anew as a micro-batch
that reads nothing and puts nothing out. Spark's file sink misses that batch in its log and then
refuses to be read; so an empty entry is put there as well.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from antecede.errors import InputError, SetupError
from antecede.spark.streams.state import list_operators, list_shard_counts


def repartition_stream(checkpoint: str, tasks: int, *, output: str | None = None) -> None:
    """Let a stopped ordered stream go on with another number of tasks.

    `tasks` must divide the number of its shards. `output`: folder of the query's file sink, if it
    has one (`format("parquet")` and its like). Positions, held rows and what is remembered go on.
    Uses the active session. The query must not run, which Spark cannot see. All stateful operators
    of the query get that number, and the query keeps it, whatever `spark.sql.shuffle.partitions`
    is. Raises InputError when there is no ordered stream in that folder, tasks do not divide its
    shards, or it has that number already; SetupError through Spark Connect and before PySpark 4.2.

    >>> repartition_stream("/data/checkpoint", 8)  # doctest: +SKIP
    """
    session = SparkSession.active()
    manager: Any = _get_manager(session)
    if isinstance(tasks, bool) or not isinstance(tasks, int):
        raise InputError(f"tasks={tasks!r} is no whole number")
    shards = list_shard_counts(session, checkpoint)
    if tasks < 1 or any(number % tasks for number in shards):
        allowed = [n for n in range(1, min(shards) + 1) if not any(s % n for s in shards)]
        raise InputError(
            f"the stream of {checkpoint} has {', '.join(map(str, shards))} shards: its tasks may "
            f"be {', '.join(map(str, allowed))}, not {tasks}"
        )
    if {row.numPartitions for row in list_operators(session, checkpoint)} == {tasks}:
        raise InputError(f"the stream of {checkpoint} has {tasks} tasks already")
    log = None if output is None else _open_sink_log(session, output)
    try:
        manager.repartition(checkpoint, tasks)
    except PySparkException as error:
        raise InputError(f"{checkpoint} stays as it was: {error}") from error
    if log is not None:
        context: Any = session.sparkContext  # the entry is empty; Spark compacts the log when due
        status = context._jvm.org.apache.spark.sql.execution.streaming.sinks.SinkFileStatus
        batch = max(row.maxBatchId for row in list_operators(session, checkpoint))
        log.add(batch, context._gateway.new_array(status, 0))


def _get_manager(session: SparkSession) -> Any:
    if not hasattr(session, "_jsparkSession"):
        raise SetupError(
            "through Spark Connect the tasks of a stream cannot be changed; do it in a session of "
            "its own on the cluster"
        )
    if not hasattr(SparkSession, "_streamingCheckpointManager"):
        raise SetupError("to change the tasks of a stream takes PySpark 4.2 or later")
    return session._streamingCheckpointManager


def _open_sink_log(session: SparkSession, output: str) -> Any:
    """Return the log of a file sink, as Spark has it. Raises InputError where there is none."""
    context: Any = session.sparkContext
    jvm = context._jvm
    name = f"{output.rstrip('/')}/_spark_metadata"
    path = jvm.org.apache.hadoop.fs.Path(name)
    if not path.getFileSystem(context._jsc.hadoopConfiguration()).exists(path):
        raise InputError(f"{output} has no log of a file sink (_spark_metadata)")
    sinks = jvm.org.apache.spark.sql.execution.streaming.sinks  # to make a log makes its folder
    version, nothing = sinks.FileStreamSinkLog.VERSION(), jvm.scala.Option.empty()
    return sinks.FileStreamSinkLog(version, session._jsparkSession, name, nothing)
