"""Graph of a run's declared causes in one task: cycles, ordered pairs, redundant edges.

An edge takes 24 bytes: a 64-bit and a 32-bit hash of each end. Two ids with one 64-bit hash are
rejected, unless the 32-bit hashes are equal too (one pair in 2^96). Cycles, and the pairs of a
forest, take linear time. Otherwise pasts are counted exactly by blocks of bits, in edges times
events / 64 steps; beyond `pair_steps` this is rejected, or estimated (`tables.audit.pairs`).
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
"""Limit of one run's edges in its task: about 4 GiB of memory while they are numbered."""
END_COLUMNS = ("effect", "check_of_effect", "cause", "check_of_cause")
_ESTIMATE_COLUMNS = ("estimated", "low", "high")
_RESULT_SCHEMA = (
    f"{RUN_KEY} string, node long, ordered long, redundant long, "
    "estimated long, low long, high long, confidence double, cycles long, on_cycles long"
)
Batches = Iterable[pa.RecordBatch]


def count_graphs(edges: DataFrame, choice: PairChoice, max_edges: int) -> DataFrame:
    """Return a row per run (`node` null), and a row for each event on a cycle (`node`: its hash).

    Counts exclude the events on cycles. A run without edges has no row. Raises InputError in the
    task beyond `max_edges`, and beyond `choice.steps` for exact pairs.
    """
    refused = (
        f"the graph of a run's causes is one task, limited to {max_edges:,} edges "
        "(max_graph_edges=); this run has more: raise the limit if workers have 100 bytes of "
        "memory per edge, or split the run"
    )

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, table in read_runs(batches, max_edges, refused, lambda piece: piece.num_rows):
            yield _count_graph(key, table, choice)

    placed = edges.select(RUN_KEY, *END_COLUMNS, F.lit(0).alias(ROW_ORDER))
    return partition_by_run(placed).mapInArrow(count, _RESULT_SCHEMA)


def _count_graph(key: str, table: pa.Table, choice: PairChoice) -> pa.RecordBatch:
    nodes, effect, cause = _number_nodes(key, table)
    of = graph.build_graph(len(nodes), effect, cause)
    cycle = graph.nodes_on_cycles(of)
    bad = np.flatnonzero(cycle >= 0)
    if len(bad):
        kept = (cycle[effect] < 0) & (cycle[cause] < 0)
        of = graph.build_graph(len(nodes), effect[kept], cause[kept])
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
    """Return the hashes of the nodes, and the edges as node numbers."""
    ends = np.concatenate([table["effect"].to_numpy(), table["cause"].to_numpy()])
    check = np.concatenate(
        [table["check_of_effect"].to_numpy(), table["check_of_cause"].to_numpy()]
    )
    nodes, first, number = np.unique(ends, return_index=True, return_inverse=True)
    if (check[first][number] != check).any():
        raise InputError(f"{describe_run(key)}: two ids have one 64-bit hash; rename one of them")
    return nodes, number[: len(table)], number[len(table) :]


def _count_pairs(
    key: str, graph_of_run: graph.Graph, nodes: Ints, choice: PairChoice
) -> PairsFound:
    needed = steps_needed(graph_of_run)
    if choice.pairs is True and needed > choice.steps:
        raise InputError(
            f"{describe_run(key)}: counting the pairs of {graph_of_run.nodes:,} events with "
            f"{len(graph_of_run.cause):,} edges takes {needed:,} steps; the limit is "
            f"{choice.steps:,} (pair_steps=): raise it, estimate the pairs (pairs='estimate'), or "
            "omit them (pairs=False)"
        )
    return find_pairs(graph_of_run, lambda: nodes, choice)
