"""Graphs of declared causes: edges, causal order, cycles.

Nodes are the rows of a table of events, 0 to n-1. The causes of node v are
`cause[start[v]:start[v+1]]`, distinct and ascending.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antecede.errors import CycleError
from antecede.tables.kernels.arrays import Ints
from antecede.tables.kernels.components import strong_components
from antecede.tables.kernels.jit import njit
from antecede.tables.trace import in_run
from antecede.tables.trace import keys as keys


class Graph(NamedTuple):
    """Causes of each node, as offsets and a flat list."""

    start: Ints  # [n + 1]: where each node's causes begin
    cause: Ints  # [edges]: causes, node after node

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.start) - 1

    def effect(self) -> Ints:
        """Return the effect of each edge, parallel to `cause`."""
        return np.repeat(np.arange(self.nodes, dtype=np.int64), np.diff(self.start))


def edge_table(events: pa.Table) -> pa.Table:
    """Return the declared causes as rows (effect, cause, cause_id) of an Arrow table.

    `effect` and `cause` are row numbers of `events`, whose (run, id) must be distinct. `cause` is
    null if no row has that id. Causes are distinct; an event that names itself has effect = cause.
    """
    causes = cast("Any", events["causes"].combine_chunks())
    if isinstance(causes, pa.ChunkedArray):  # no chunks
        causes = pa.array([], causes.type)
    names = pc.list_flatten(causes)
    effect = cast("Any", pc.list_parent_indices(causes)).cast(pa.int64())
    known = names.is_valid()
    names, effect = names.filter(known), effect.filter(known)
    own = in_run(events, names, effect)
    cause = pc.index_in(own, value_set=keys(events)).cast(pa.int64())
    table = pa.table({"effect": effect, "cause": cause, "cause_id": names})
    if len(table) < 2:
        return table
    return (
        table.group_by(["effect", "cause_id"], use_threads=False)
        .aggregate([("cause", "min")])
        .rename_columns(["effect", "cause_id", "cause"])
        .select(["effect", "cause", "cause_id"])
    )


def build_graph(nodes: int, effect: Ints, cause: Ints) -> Graph:
    """Return the graph of edges in any order, without duplicates and self-loops."""
    keep = effect != cause
    effect, cause = effect[keep], cause[keep]
    order = np.lexsort((cause, effect))
    effect, cause = effect[order], cause[order]
    if len(effect):
        first = np.ones(len(effect), dtype=np.bool_)
        first[1:] = (effect[1:] != effect[:-1]) | (cause[1:] != cause[:-1])
        effect, cause = effect[first], cause[first]
    start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(effect, minlength=nodes), out=start[1:])
    return Graph(start, np.ascontiguousarray(cause))


def sort_causes_first(graph: Graph) -> Ints:
    """Return all nodes, each after its causes, else as in the input [n]; raise CycleError."""
    order = _sort_depth_first(graph.start, graph.cause)
    if len(order) < graph.nodes:
        rows = find_cycle(graph)
        raise CycleError(f"the causes of rows {rows} form a cycle")
    return order


def nodes_on_cycles(graph: Graph) -> Ints:
    """Return the number of each node's strong component, from 0, or -1 without a cycle [n]."""
    if len(_sort_depth_first(graph.start, graph.cause)) == graph.nodes:
        return np.full(graph.nodes, -1, dtype=np.int64)
    everywhere = np.ones(graph.nodes, dtype=np.bool_)
    component = strong_components(graph.start[:-1], graph.start[1:], graph.cause, everywhere)
    big = np.bincount(component, minlength=1) > 1
    number = np.cumsum(big) - 1
    return np.where(big[component], number[component], -1)


def find_cycle(graph: Graph) -> list[int]:
    """Return the nodes of one cycle, each a cause of the previous one; [] without cycles."""
    component = nodes_on_cycles(graph)
    inside = np.flatnonzero(component >= 0)
    if not len(inside):
        return []
    node, seen = int(inside[0]), dict[int, int]()
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        causes = graph.cause[graph.start[node] : graph.start[node + 1]]
        node = int(causes[component[causes] == component[node]][0])
    return path[seen[node] :]


@njit
def _sort_depth_first(start: Ints, cause: Ints) -> Ints:
    n = len(start) - 1
    order = np.empty(n, np.int64)
    state = np.zeros(n, np.int8)  # 0 new, 1 on the stack, 2 placed
    stack = np.empty(n, np.int64)
    position = start[:-1].copy()
    placed = 0
    for root in range(n):
        if state[root] != 0:
            continue
        stack[0] = root
        state[root] = 1
        depth = 1
        while depth > 0:
            node = stack[depth - 1]
            if position[node] < start[node + 1]:
                above = cause[position[node]]
                position[node] += 1
                if state[above] == 1:
                    return order[:placed]
                if state[above] == 0:
                    state[above] = 1
                    stack[depth] = above
                    depth += 1
            else:
                depth -= 1
                state[node] = 2
                order[placed] = node
                placed += 1
    return order
