"""Partitions of a graph that is too large for one process, settled by compiled kernels.

A partition is record batches of edges between rows, numbered from 0 over the whole data. Results of
other partitions come as further rows of the batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.tables.kernels import BEFORE_ALL, cycles
from antecede.tables.order.kernels.fixpoint import (
    KNOWN,
    OPEN,
    Ints,
    Longs,
    build_out_edges,
    propagate_depths,
    propagate_releases,
)

pa: Any = pyarrow


@dataclass(frozen=True)
class PartNodes:
    """Rows of a partition as node numbers from 0: a full range, or a list."""

    base: int
    size: int
    ids: Longs | None = None

    def rows_to_nodes(self, rows: Longs) -> Ints:
        """Return the nodes of rows; numbers below 0 stay as they are."""
        if self.ids is None:
            return np.where(rows < 0, rows, rows - self.base).astype(np.int32)
        return np.where(rows < 0, rows, np.searchsorted(self.ids, rows)).astype(np.int32)

    def nodes_to_rows(self, nodes: NDArray[Any]) -> Longs:
        """Return the rows of nodes."""
        return nodes.astype(np.int64) + self.base if self.ids is None else self.ids[nodes]


def release_of(batches: Iterable[Any]) -> Any:
    """Return (row, released) for the rows of a partition released later than their own time.

    Columns: `c`, `e` (rows), `tc`, `te` (their times, BEFORE_ALL where unknown). With `c` below 0
    the row `e` is known to be released at `tc` or later. Memory: about 70 bytes an edge.
    """
    c, e, tc, te = _read_columns(batches, ("c", "e", "tc", "te"))
    is_bound = c < 0
    nodes = _number_nodes(c, e)
    cause, effect = nodes.rows_to_nodes(c), nodes.rows_to_nodes(e)
    own = np.full(nodes.size, BEFORE_ALL, np.int64)
    own[cause[~is_bound]] = tc[~is_bound]
    own[effect[~is_bound]] = te[~is_bound]
    released = own.copy()
    np.maximum.at(released, effect[is_bound], tc[is_bound])
    del c, e, tc, te, is_bound
    start, effects = build_out_edges(nodes.size, cause, effect)
    del cause, effect
    propagate_releases(start, effects, released, np.argsort(released, kind="stable")[::-1])
    late = np.flatnonzero(released > own)
    return pa.record_batch([nodes.nodes_to_rows(late), released[late]], ["row", "released"])


def depths_of(batches: Iterable[Any], *, whole: bool) -> Any:
    """Return (row, depth, cycle) for the rows of a partition that have causes of the same release.

    Columns: `c`, `e` (rows), `v`. With `c` KNOWN the cause of `e` is in another partition and gives
    `e` the depth `v`. With OPEN that depth is not known yet. Unsettled rows are left out. With the
    whole graph, rows on a cycle have depth -1. Memory: about 70 bytes an edge.
    """
    c, e, v = _read_columns(batches, ("c", "e", "v"))
    nodes = _number_nodes(c, e)
    cause, effect = nodes.rows_to_nodes(c), nodes.rows_to_nodes(e)
    given = v.astype(np.int32)
    del c, e, v
    start, effects = build_out_edges(nodes.size, cause, effect)
    depth = propagate_depths(start, effects, cause, effect, given)
    del start, effects, given
    circle = _find_cycles(cause, effect, depth < 0) if whole else np.zeros(0, np.int64)
    settled = np.flatnonzero(depth > 0)
    rows = np.concatenate([settled, circle])
    is_cycle = pa.array(np.arange(len(rows)) >= len(settled))
    columns = [nodes.nodes_to_rows(rows), depth[rows].astype(np.int64), is_cycle]
    return pa.record_batch(columns, ["row", "depth", "cycle"])


def _find_cycles(cause: Ints, effect: Ints, stuck: NDArray[np.bool_]) -> Longs:
    inside, cause, effect = _induce_subgraph(cause, effect, stuck)
    start, effects = build_out_edges(len(inside), effect, cause)
    after = propagate_depths(start, effects, effect, cause, np.zeros(len(cause), np.int32)) >= 0
    del start, effects
    core, cause, effect = _induce_subgraph(cause, effect, ~after)
    start, effects = build_out_edges(len(core), cause, effect)
    on_cycle = cycles(start, effects.astype(np.int64), np.ones(len(core), np.bool_))
    cyclic: Longs = inside[core[on_cycle]]
    return cyclic


def _induce_subgraph(
    cause: Ints, effect: Ints, some: NDArray[np.bool_]
) -> tuple[Longs, Ints, Ints]:
    place = np.where(some, np.cumsum(some, dtype=np.int32) - 1, -1).astype(np.int32)
    both = (cause >= 0) & some[cause] & some[effect]
    return np.flatnonzero(some), place[cause[both]], place[effect[both]]


def _read_columns(batches: Iterable[Any], names: tuple[str, ...]) -> list[Longs]:
    chunks: list[list[Longs]] = [[] for _ in names]
    for batch in batches:
        for chunk, name in zip(chunks, names, strict=True):
            # Copied, because a view of one column would keep the whole batch.
            chunk.append(np.array(batch.column(name).to_numpy(zero_copy_only=False), np.int64))
    return [np.concatenate([np.zeros(0, np.int64), *chunks.pop(0)]) for _ in names]


def _number_nodes(c: Longs, e: Longs) -> PartNodes:
    """Return a range of rows if most of them occur, else the list of rows that occur."""
    if not len(e):
        return PartNodes(0, 0)
    inside = c[c >= 0]
    low = int(min(e.min(), inside.min(initial=e.min())))
    high = int(max(e.max(), inside.max(initial=e.max())))
    if high - low < 2 * len(e) + 16:
        return PartNodes(low, high - low + 1)
    ids = np.unique(np.concatenate([inside, e]))
    return PartNodes(0, len(ids), ids)


__all__ = ["KNOWN", "OPEN", "depths_of", "release_of"]
