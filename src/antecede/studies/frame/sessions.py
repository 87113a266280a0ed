"""What a study asks of a session besides DataFrames: slots, tags of jobs, whether it lives.

A session beside its JVM is asked through its context. Through Spark Connect there is none: tags are
the client's, task slots are the partitions that Spark gives to a range (asked once, by a small
job, so executors that come later are used, but no more jobs are submitted for them), and a server
that answers is alive.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812


class Classic:
    """A session whose JVM belongs to this process."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def slots(self) -> int:
        """Return how many tasks run at a time: the parallelism follows executors as they go."""
        return int(self.session.sparkContext.defaultParallelism)

    def tag(self, name: str) -> None:
        """Tag the jobs that this thread submits from now on."""
        self.session.sparkContext.addJobTag(name)

    def cancel(self, name: str) -> None:
        """End the jobs of a tag."""
        self.session.sparkContext.cancelJobsWithTag(name)

    def alive(self) -> bool:
        """Tell whether Spark is still there: ask the JVM's context."""
        try:
            context: Any = self.session.sparkContext._jsc
            return not context.sc().isStopped()
        except Exception:
            return False

    def on_this_machine(self) -> bool:
        """Tell whether the workers certainly have the driver's files: look at the master."""
        return str(self.session.sparkContext.master).startswith("local")


class Connect:
    """A session of a Spark Connect server."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._slots: int | None = None

    def slots(self) -> int:
        """Return the partitions of a range, counted once."""
        if self._slots is None:
            numbers = self.session.range(100_000).select(F.spark_partition_id().alias("p"))
            found = numbers.agg(F.max("p").alias("p")).collect()[0]
            self._slots = int(found.p) + 1
        return self._slots

    def tag(self, name: str) -> None:
        """Tag this thread's operations."""
        self.session.addTag(name)

    def cancel(self, name: str) -> None:
        """Interrupt operations by tag."""
        self.session.interruptTag(name)

    def alive(self) -> bool:
        """Ask the server for a setting."""
        try:
            self.session.conf.get("spark.sql.shuffle.partitions")
        except Exception:
            return False
        return True

    def on_this_machine(self) -> bool:
        """Return False: a server tells nothing that is certain."""
        return False


Handle: TypeAlias = Classic | Connect


def handle_of(session: SparkSession) -> Handle:
    """Return the handle of a session, classic or of Spark Connect."""
    return Classic(session) if hasattr(session, "_jsparkSession") else Connect(session)
