"""Details that name events of a whole trace: worst inversions, missing ids, clocks.

A report added up from parts of a trace (Spark) has none of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.audit.counts import Counts, backward
from antecede.tables.audit.skew import clock_skew
from antecede.tables.kernels import graph

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays


CLOCKS = ("shiviz", "table", "cloudevents")
"""Formats whose members are hosts with one clock each; people who mail have several."""


class Named(NamedTuple):
    """Number of missing ids to name."""

    missing: int = 0


def witnesses(
    counts: Counts, format: str, clocked: bool, aside: pa.Table, named: Named
) -> dict[str, Any]:
    """Return the details that name events of a whole trace."""
    found: dict[str, Any] = {"worst_inversions": _worst(counts)}
    if named.missing and not clocked:
        found["missing"] = _missing(counts.events, aside, named.missing)
    events = counts.events
    known = [events[name].null_count < len(events) for name in ("member", "send_time")]
    # Of spans, which have a start, other times tell.
    if format in CLOCKS and all(known) and events["start_time"].null_count == len(events):
        found["clock_skew"] = clock_skew(counts.events, counts.sender, counts.receiver, "send_time")
    return found


def _worst(counts: Counts) -> dict[str, dict[str, Any]]:
    """Return, by order, the edge with the largest step back."""
    worst = {}
    for order in counts.details["max_inversions"]:
        steps = backward(counts, order)
        if steps is None:
            continue
        valid = counts.events[order].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        both = np.flatnonzero(valid[counts.sender] & valid[counts.receiver])
        edge = int(both[int(steps.argmax())])
        worst[order] = {
            "cause": counts.events["id"][int(counts.sender[edge])].as_py(),
            "effect": counts.events["id"][int(counts.receiver[edge])].as_py(),
        }
    return worst


def _missing(events: pa.Table, aside: pa.Table, most: int) -> list[dict[str, Any]]:
    """Return ids that events name and that are nowhere, those named most often first."""
    edges: Any = graph.edge_table(events)
    edges = edges.filter(edges["parent"].is_null())
    runs = events["run"].take(edges["child"]).to_pylist()
    named = list(zip(runs, edges["parent_id"].to_pylist(), strict=True))
    counted = Counter(named)
    first: dict[Any, int] = {}
    for key, child in zip(named, edges["child"].to_pylist(), strict=True):
        first[key] = min(child, first.get(key, child))
    bad = set(aside["id"].to_pylist())
    order = sorted(counted, key=lambda key: (-counted[key], first[key], key[1]))
    return [
        {
            "id": key[1],
            "run": key[0],
            "references": counted[key],
            "first": events["id"][first[key]].as_py(),
            "quarantined": key[1] in bad,
        }
        for key in order[:most]
    ]
