"""Ordered pairs and implied edges of declared causes: exact, estimated on demand, or none.

One definition for the local engine and for Spark. Exact counts are linear where each event has one
cause, and take edges times events / 64 steps where some have several (`tables.kernels.pairs`).
Estimates (`tables.kernels.sketches`) have names of their own, beside the bounds of an interval;
then the exact figures are null. Edges that others imply are not estimated.
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
    estimated_pairs,
    hash_bytes,
    pair_counts,
    steps_needed,
)

Pairs = bool | Literal["estimate"]
"""True: exact; False: none; "estimate": exact up to a number of steps, estimated beyond it."""
PAIR_STEPS = 1 << 37
"""Edges times events / 64 up to which "estimate" counts exactly: some minutes of one core."""
MOST_RANKS = 1 << 16
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
"""Names of what is exact or null."""
_SEED = 42  # that of Spark's xxhash64


class PairChoice(NamedTuple):
    """Treatment of pairs."""

    pairs: Pairs = True
    steps: int = PAIR_STEPS
    ranks: int = RANKS


class PairsFound(NamedTuple):
    """Exact counts, None where they were not made, or an estimate."""

    ordered: int | None = None
    redundant: int | None = None
    estimate: PairEstimate | None = None


EXACT = PairChoice()


def chosen(pairs: Pairs, steps: int, ranks: int) -> PairChoice:
    """Return a choice. Raises InputError naming the argument that is wrong."""
    if not (isinstance(pairs, bool) or pairs == "estimate"):
        raise InputError(f"pairs={pairs!r} is none of True, False, 'estimate'")
    if not _whole(steps) or steps < 0:
        raise InputError(f"pair_steps={steps!r}: a whole number of steps, 0 or more")
    if not _whole(ranks) or not LEAST_RANKS <= ranks <= MOST_RANKS:
        raise InputError(f"pair_ranks={ranks!r}: a number from {LEAST_RANKS} to {MOST_RANKS:,}")
    if pairs != "estimate" and ranks != RANKS:
        raise InputError(f"pair_ranks={ranks} is for pairs='estimate'; pairs={pairs!r} draws none")
    if pairs is False and steps != PAIR_STEPS:
        raise InputError(f"pair_steps={steps} bounds pairs; with pairs=False none are counted")
    return PairChoice(pairs, steps, ranks)


def _whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def find_pairs(of: Graph, digests: Callable[[], Ints], choice: PairChoice) -> PairsFound:
    """Count or estimate the pairs of a graph without cycles, as chosen.

    `digests` returns `xxhash64` of each node's id [nodes]: estimates are the same on every engine.
    """
    if choice.pairs is False:
        return PairsFound()
    if choice.pairs == "estimate" and steps_needed(of) > choice.steps:
        return PairsFound(estimate=estimated_pairs(of, digests(), ranks=choice.ranks))
    counted = pair_counts(of)
    return PairsFound(counted.ordered, int(counted.redundant.sum()))


def pairs_within_runs(events: pa.Table) -> int:
    """Count the pairs of events of one run: events of two runs are not compared."""
    runs: Any = cast("Any", pc).fill_null(events["run"], "").value_counts()
    sizes = (int(one) for one in runs.field("counts").to_pylist())
    return sum(size * (size - 1) // 2 for size in sizes)


def keys_of(found: PairsFound, pairs: int, edges: int) -> dict[str, Any]:
    """Return `PAIR_KEYS` of a report; `pairs`: of any two events of one run."""
    if found.ordered is None or found.redundant is None:
        return dict.fromkeys(PAIR_KEYS)
    return {
        "immediate_edges": edges - found.redundant,
        "redundant_edges": found.redundant,
        "ordered_pairs": found.ordered,
        "concurrent_pairs": pairs - found.ordered,
    }


def details_of(found: PairsFound, every: int) -> dict[str, Any]:
    """Return an estimate by the names of `ESTIMATED`, and its confidence; {} without one."""
    if found.estimate is None:
        return {}
    ordered, low, high, confidence = found.estimate
    values = (ordered, low, high, every - ordered, every - high, every - low)
    return {**dict(zip(ESTIMATED, values, strict=True)), CONFIDENCE_NAME: confidence}


def id_digests(events: pa.Table) -> Ints:
    """Return `xxhash64` of each id, as Spark has it [n]."""
    ids: Any = events["id"].combine_chunks()
    ids = pa.concat_arrays([pa.array([], pa.large_string()), ids.cast(pa.large_string())])
    _, ends, data = ids.buffers()
    where = np.frombuffer(ends, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    digests = np.full(len(ids), _SEED, np.uint64)
    held = np.frombuffer(data or b"", np.uint8)
    hash_bytes(digests, held, where, np.ones(len(ids), np.bool_))
    return digests.view(np.int64)
