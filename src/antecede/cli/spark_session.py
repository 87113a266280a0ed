"""Spark's session of a command: the active one, one of a master, or a local one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from antecede.cli.engines import free_bytes
from antecede.spark import cluster_session, local_session, quiet_failures


@contextmanager
def session(master: str | None, needed: int) -> Iterator[SparkSession]:
    """Give Spark: the active session, one with a master, or a local one; stop what was started."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    shuffle = max(2, min(10_000, needed // (5 * SHUFFLE_BYTES)))
    # Else Spark warns that it shortens the plan of a wide table, which nobody asked to see.
    settings = {"spark.sql.debug.maxToStringFields": "10000"}
    if master is None:
        gigabytes = max(1, min(8, (free_bytes() or 0) // (4 << 30)))
        made = local_session(memory=f"{gigabytes}g", partitions=shuffle, settings=settings)
    else:
        settings["spark.sql.shuffle.partitions"] = str(shuffle)
        made = cluster_session(master, settings=settings)
    try:
        quiet_failures(made)
        yield made
    finally:
        made.stop()


SHUFFLE_BYTES = 32 << 20
"""About so much of the rows is one task after a shuffle."""
