"""Intermediate tables of the fixpoint: kept, cut off from their plans, and freed.

A table that is only a plan would be made anew by every later step, and its plan would grow without
end. So it is cut off (a local checkpoint, or a reliable one where the session has a checkpoint
folder), counted, and freed at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.storagelevel import StorageLevel


@dataclass(frozen=True)
class TaskLimits:
    """Bounds of a task, and of work that does not come to an end."""

    partition_rows: int = 250_000
    """Rows of a partition, by plan."""
    task_edges: int = 24_000_000
    """Edges (and rows) that one task of the compiled kernel takes: about 70 bytes each."""
    small_edges: int = 2_000_000
    """Edges (64 MiB) that go to one task without any rounds."""
    max_supersteps: int = 12
    """Rounds of joins, before whole parts are settled at once."""
    max_exchanges: int = 200
    """Rounds in which parts tell each other what they found, before the work is refused."""

    def count_partitions(self, rows: int) -> int:
        """Return into how many partitions a table of so many rows goes."""
        return max(1, math.ceil(rows / self.partition_rows))


@dataclass
class IntermediateTables:
    """The tables of one run; `free` gives back all but those that were handed out."""

    limits: TaskLimits
    rows: int
    """Rows that take part; the number of partitions follows them."""
    stats: dict[str, Any] = field(
        default_factory=lambda: {"raised": [], "exchanges": 0, "depth_exchanges": 0, "tied": 0}
    )
    """Numbers of rounds, raised rows and edges."""
    _persisted: list[DataFrame] = field(default_factory=list)
    _checkpoints: list[Any] = field(default_factory=list)

    def persist(self, df: DataFrame) -> tuple[DataFrame, int]:
        """Persist a table that has a short plan; return it and its number of rows."""
        kept = df.persist(StorageLevel.MEMORY_AND_DISK)
        self._persisted.append(kept)
        return kept, kept.count()

    def checkpoint(self, df: DataFrame, *, is_result: bool = False) -> DataFrame:
        """Make a table and forget its plan; a `result` is not freed."""
        context: Any = getattr(df.sparkSession, "_sc", None)
        if context is not None and context.getCheckpointDir():
            return df.checkpoint()
        made = df.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
        if context is not None and not is_result:
            self._checkpoints.append(made)
        return made

    def free(self) -> None:
        """Give back memory and disk. A remote session gives back what is cut by itself."""
        for kept in self._persisted:
            kept.unpersist()
        for made in self._checkpoints:
            rdd = made._jdf.queryExecution().analyzed().rdd()
            # What Spark's own cleaner calls; `rdd.unpersist` warns of every one.
            made.sparkSession.sparkContext._jsc.sc().unpersistRDD(rdd.id(), False)
        self._persisted.clear()
        self._checkpoints.clear()


def union_tables(tables: list[DataFrame]) -> DataFrame:
    """Return the union of tables with the same columns; a column that one lacks is null there."""
    whole = tables[0]
    for table in tables[1:]:
        whole = whole.unionByName(table, allowMissingColumns=True)
    return whole


def remove_rows(edges: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the edges that neither come from nor lead to some rows."""
    for end in ("c", "e"):
        edges = edges.join(rows.select("row"), F.col(end) == F.col("row"), "left_anti")
    return edges
