"""Ordered pairs and implied edges of declared causes: exact, estimated, or omitted.

Exact counts are linear if each event has one cause, and take edges times events / 64 steps
otherwise (`tables.kernels.pairs`). Estimates (`tables.kernels.sketches`) have names of their own,
with the bounds of an interval; then the exact figures are null. Implied edges are not estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antecede.errors import InputError
from antecede.tables.kernels import (
    LEAST_RANKS,
    RANKS,
    Graph,
    Ints,
    PairEstimate,
    count_pairs,
    estimate_pairs,
    hash_bytes,
    steps_needed,
)

Pairs = bool | Literal["estimate"]
"""True: exact; False: omitted; "estimate": exact up to a number of steps, estimated beyond it."""
PAIR_STEPS = 1 << 37
"""Edges times events / 64 up to which "estimate" counts exactly: some minutes of one core."""
MAX_RANKS = 1 << 16
ESTIMATED = (
    "ordered_pairs_estimated",
    "ordered_pairs_low",
    "ordered_pairs_high",
    "concurrent_pairs_estimated",
    "concurrent_pairs_low",
    "concurrent_pairs_high",
)
"""Names of estimates and of the ends of their intervals."""
CONFIDENCE_NAME = "pairs_confidence"
PAIR_KEYS = ("immediate_edges", "redundant_edges", "ordered_pairs", "concurrent_pairs")
"""Names of figures that are exact or null."""
_SEED = 42  # of Spark's xxhash64


class PairChoice(NamedTuple):
    """Treatment of pairs."""

    pairs: Pairs = True
    steps: int = PAIR_STEPS
    ranks: int = RANKS


class PairsFound(NamedTuple):
    """Exact counts, or an estimate; None: not counted."""

    ordered: int | None = None
    redundant: int | None = None
    estimate: PairEstimate | None = None


EXACT = PairChoice()


def choose_pairs(pairs: Pairs, steps: int, ranks: int) -> PairChoice:
    """Return a choice; raise InputError for an invalid argument."""
    if not (isinstance(pairs, bool) or pairs == "estimate"):
        raise InputError(f"unknown pairs={pairs!r}; choose from True, False, 'estimate'")
    if not _is_whole(steps) or steps < 0:
        raise InputError(f"invalid pair_steps={steps!r}; expected a whole number, 0 or more")
    if not _is_whole(ranks) or not LEAST_RANKS <= ranks <= MAX_RANKS:
        raise InputError(f"invalid pair_ranks={ranks!r}; expected {LEAST_RANKS} to {MAX_RANKS:,}")
    if pairs != "estimate" and ranks != RANKS:
        raise InputError(f"pair_ranks={ranks} needs pairs='estimate', not pairs={pairs!r}")
    if pairs is False and steps != PAIR_STEPS:
        raise InputError(f"pair_steps={steps} has no effect with pairs=False; omit it")
    return PairChoice(pairs, steps, ranks)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def find_pairs(graph: Graph, hash_nodes: Callable[[], Ints], choice: PairChoice) -> PairsFound:
    """Count or estimate the pairs of a graph without cycles.

    `hash_nodes` returns `xxhash64` of each node's id [nodes], so that estimates are equal on all
    engines.
    """
    if choice.pairs is False:
        return PairsFound()
    if choice.pairs == "estimate" and steps_needed(graph) > choice.steps:
        return PairsFound(estimate=estimate_pairs(graph, hash_nodes(), ranks=choice.ranks))
    counted = count_pairs(graph)
    return PairsFound(counted.ordered, int(counted.redundant.sum()))


def count_pairs_within_runs(events: pa.Table) -> int:
    """Count the pairs of events within runs; events of different runs are not compared."""
    runs: Any = cast("Any", pc).fill_null(events["run"], "").value_counts()
    sizes = (int(one) for one in runs.field("counts").to_pylist())
    return sum(size * (size - 1) // 2 for size in sizes)


def format_pair_keys(found: PairsFound, pairs: int, edges: int) -> dict[str, Any]:
    """Return `PAIR_KEYS` of a report; `pairs`: number of all pairs within runs."""
    if found.ordered is None or found.redundant is None:
        return dict.fromkeys(PAIR_KEYS)
    return {
        "immediate_edges": edges - found.redundant,
        "redundant_edges": found.redundant,
        "ordered_pairs": found.ordered,
        "concurrent_pairs": pairs - found.ordered,
    }


def format_estimate(found: PairsFound, pairs: int) -> dict[str, Any]:
    """Return an estimate under the names in `ESTIMATED`, and its confidence; {} without one."""
    if found.estimate is None:
        return {}
    ordered, low, high, confidence = found.estimate
    values = (ordered, low, high, pairs - ordered, pairs - high, pairs - low)
    return {**dict(zip(ESTIMATED, values, strict=True)), CONFIDENCE_NAME: confidence}


def hash_ids(events: pa.Table) -> Ints:
    """Return `xxhash64` of each id, as Spark computes it [n]."""
    ids: Any = events["id"].combine_chunks()
    ids = pa.concat_arrays([pa.array([], pa.large_string()), ids.cast(pa.large_string())])
    _, ends, data = ids.buffers()
    where = np.frombuffer(ends, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    digests = np.full(len(ids), _SEED, np.uint64)
    held = np.frombuffer(data or b"", np.uint8)
    hash_bytes(digests, held, where, np.ones(len(ids), np.bool_))
    return digests.view(np.int64)
