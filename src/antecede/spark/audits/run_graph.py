"""The graph of a run's declared causes in one task: cycles, ordered pairs, implied edges.

Only this part of an audit needs a run in one place. It takes 24 bytes an edge, a 64-bit digest of
each end with a 32-bit one of another kind beside it. Two ids of one digest are refused, unless the
other digests agree as well (one pair in 2^96). Cycles and a forest's pairs are linear (depths).
Where events have several causes, pasts are counted exactly by blocks of bits, in edges times events
/ 64 steps. Beyond `pair_steps` that is refused, or estimated (`tables.audit.pairs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.audits.event_columns import (
    ROW_ORDER,
    RUN_KEY,
    describe_run,
    partition_by_run,
    read_runs,
)
from antecede.tables.audit import PairChoice, PairsFound, find_pairs
from antecede.tables.kernels import Ints, graph, steps_needed

MAX_GRAPH_EDGES = 40_000_000
"""Edges of one run that its task takes: about 4 GiB of memory while they are numbered."""
END_COLUMNS = ("child", "child_check", "parent", "parent_check")
_ESTIMATE_COLUMNS = ("estimated", "low", "high")
_RESULT_SCHEMA = (
    f"{RUN_KEY} string, node long, ordered long, redundant long, "
    "estimated long, low long, high long, confidence double, cycles long, on_cycles long"
)
Batches = Iterable[pa.RecordBatch]


def count_graphs(edges: DataFrame, choice: PairChoice, max_edges: int) -> DataFrame:
    """Return a row a run (`node` null), and a row for each event on a cycle (`node` its digest).

    `edges` has `KEY` and `END_COLUMNS`. Counts are of what is left without the events on cycles. A run
    without edges has no row. The task of a run fails with InputError beyond `most` edges, and,
    where exact pairs are asked for, beyond `choice.steps`.
    """
    refused = (
        f"the graph of a run's causes is one task and takes {max_edges:,} edges at most (graph_edges=); "
        "this run has more. Raise it if the workers have 100 bytes of memory an edge, or split it"
    )

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, table in read_runs(batches, max_edges, refused, lambda piece: piece.num_rows):
            yield _count_graph(key, table, choice)

    placed = edges.select(RUN_KEY, *END_COLUMNS, F.lit(0).alias(ROW_ORDER))
    return partition_by_run(placed).mapInArrow(count, _RESULT_SCHEMA)


def _count_graph(key: str, table: pa.Table, choice: PairChoice) -> pa.RecordBatch:
    nodes, child, parent = _number_nodes(key, table)
    of = graph.build_graph(len(nodes), child, parent)
    cycle = graph.nodes_on_cycles(of)
    bad = np.flatnonzero(cycle >= 0)
    if len(bad):
        kept = (cycle[child] < 0) & (cycle[parent] < 0)
        of = graph.build_graph(len(nodes), child[kept], parent[kept])
    found = _count_pairs(key, of, nodes, choice)
    n = 1 + len(bad)

    def once(value: int | float | None) -> Any:
        kind = pa.float64() if isinstance(value, float) else pa.int64()
        return pa.array([value] + [None] * (n - 1), kind)

    estimate = found.estimate or (None, None, None, None)
    columns: dict[str, Any] = {
        RUN_KEY: pa.array([key] * n, pa.string()),
        "node": pa.array([None, *nodes[bad].tolist()], pa.int64()),
        "ordered": once(found.ordered),
        "redundant": once(found.redundant),
        **{name: once(estimate[k]) for k, name in enumerate(_ESTIMATE_COLUMNS)},
        "confidence": pa.array([estimate[3]] + [None] * (n - 1), pa.float64()),
        "cycles": once(int(cycle.max(initial=-1)) + 1),
        "on_cycles": once(len(bad)),
    }
    return pa.RecordBatch.from_pydict(columns)


def _number_nodes(key: str, table: pa.Table) -> tuple[Ints, Ints, Ints]:
    """Return the digests of the nodes, and the edges in numbers of nodes."""
    ends = np.concatenate([table["child"].to_numpy(), table["parent"].to_numpy()])
    check = np.concatenate([table["child_check"].to_numpy(), table["parent_check"].to_numpy()])
    nodes, first, number = np.unique(ends, return_index=True, return_inverse=True)
    if (check[first][number] != check).any():
        raise InputError(f"{describe_run(key)}: two ids have one 64-bit digest; rename one of them")
    return nodes, number[: len(table)], number[len(table) :]


def _count_pairs(
    key: str, graph_of_run: graph.Graph, nodes: Ints, choice: PairChoice
) -> PairsFound:
    """Return what is asked for; nodes are digests of ids. Raises InputError beyond the steps."""
    needed = steps_needed(graph_of_run)
    if choice.pairs is True and needed > choice.steps:
        raise InputError(
            f"{describe_run(key)}: to count the pairs of {graph_of_run.nodes:,} events with {len(graph_of_run.parent):,} "
            f"edges, some events with several causes, takes {needed:,} steps; the most is "
            f"{choice.steps:,} (pair_steps=): raise it, have them estimated (pairs='estimate'), or "
            "leave pairs out (pairs=False)"
        )
    return find_pairs(graph_of_run, lambda: nodes, choice)
