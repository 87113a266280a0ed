"""Intermediate tables of the fixpoint: persisted, checkpointed, and freed.

Each table is checkpointed, locally or in the session's checkpoint folder, so that later steps do
not recompute it and plans stay short.
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
    """Limits of a task and of iterations."""

    partition_rows: int = 250_000
    """Planned rows of a partition."""
    task_edges: int = 24_000_000
    """Edges or rows of one task of the compiled kernel, about 70 bytes each."""
    small_edges: int = 2_000_000
    """Edges (64 MiB) that are one task without supersteps."""
    max_supersteps: int = 12
    """Supersteps of joins before ranges of rows are solved in tasks."""
    max_exchanges: int = 200
    """Exchanges between ranges before the work is rejected."""

    def count_partitions(self, rows: int) -> int:
        """Return the number of partitions for a number of rows."""
        return max(1, math.ceil(rows / self.partition_rows))


@dataclass
class IntermediateTables:
    """Intermediate tables of one fixpoint; `free` releases all but the results."""

    limits: TaskLimits
    rows: int
    """Number of rows to order; partitions are sized by it."""
    stats: dict[str, Any] = field(
        default_factory=lambda: {"raised": [], "exchanges": 0, "depth_exchanges": 0, "tied": 0}
    )
    """Numbers of supersteps, raised rows and edges, for the log."""
    _persisted: list[DataFrame] = field(default_factory=list)
    _checkpoints: list[Any] = field(default_factory=list)

    def persist(self, df: DataFrame) -> tuple[DataFrame, int]:
        """Persist a table with a short plan; return it and its row count."""
        kept = df.persist(StorageLevel.MEMORY_AND_DISK)
        self._persisted.append(kept)
        return kept, kept.count()

    def checkpoint(self, df: DataFrame, *, is_result: bool = False) -> DataFrame:
        """Checkpoint a table, which truncates its plan; `is_result`: not freed."""
        context: Any = getattr(df.sparkSession, "_sc", None)
        if context is not None and context.getCheckpointDir():
            return df.checkpoint()
        made = df.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
        if context is not None and not is_result:
            self._checkpoints.append(made)
        return made

    def free(self) -> None:
        """Release memory and disk. A remote session releases checkpoints itself."""
        for kept in self._persisted:
            kept.unpersist()
        for made in self._checkpoints:
            rdd = made._jdf.queryExecution().analyzed().rdd()
            # Spark's cleaner calls this; `rdd.unpersist` logs a warning each time.
            made.sparkSession.sparkContext._jsc.sc().unpersistRDD(rdd.id(), False)
        self._persisted.clear()
        self._checkpoints.clear()


def union_tables(tables: list[DataFrame]) -> DataFrame:
    """Return the union of tables; a missing column is null."""
    whole = tables[0]
    for table in tables[1:]:
        whole = whole.unionByName(table, allowMissingColumns=True)
    return whole


def remove_rows(edges: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the edges that neither start nor end at some rows."""
    for end in ("c", "e"):
        edges = edges.join(rows.select("row"), F.col(end) == F.col("row"), "left_anti")
    return edges
