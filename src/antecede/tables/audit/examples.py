"""Details that name events; a report merged from parts of a trace (Spark) has none of them."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.audit.counts import AuditCounts, measure_steps_back
from antecede.tables.audit.skew import clock_skew
from antecede.tables.kernels import graph

pc: Any = pyarrow.compute  # incomplete stubs


HOST_CLOCK_FORMATS = ("shiviz", "table", "cloudevents")
"""Formats whose members are hosts with one clock each; mail users have several."""


class Named(NamedTuple):
    """Limits of the examples in a report."""

    missing_ids: int = 0


def find_examples(
    counts: AuditCounts, format: str, use_clocks: bool, quarantine: pa.Table, limits: Named
) -> dict[str, Any]:
    """Return the details that name events of a whole trace."""
    found: dict[str, Any] = {"worst_inversions": _find_worst_inversions(counts)}
    if limits.missing_ids and not use_clocks:
        found["missing"] = _list_missing(counts.events, quarantine, limits.missing_ids)
    events = counts.events
    known = [events[name].null_count < len(events) for name in ("member", "send_time")]
    # Spans have start times instead.
    if (
        format in HOST_CLOCK_FORMATS
        and all(known)
        and events["start_time"].null_count == len(events)
    ):
        found["clock_skew"] = clock_skew(counts.events, counts.sender, counts.receiver, "send_time")
    return found


def _find_worst_inversions(counts: AuditCounts) -> dict[str, dict[str, Any]]:
    worst = {}
    for order in counts.details["max_inversions"]:
        steps = measure_steps_back(counts, order)
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


def _list_missing(events: pa.Table, quarantine: pa.Table, limit: int) -> list[dict[str, Any]]:
    edges: Any = graph.edge_table(events)
    edges = edges.filter(edges["cause"].is_null())
    runs = events["run"].take(edges["effect"]).to_pylist()
    named = list(zip(runs, edges["cause_id"].to_pylist(), strict=True))
    counted = Counter(named)
    first: dict[Any, int] = {}
    for key, effect in zip(named, edges["effect"].to_pylist(), strict=True):
        first[key] = min(effect, first.get(key, effect))
    bad = set(quarantine["id"].to_pylist())
    order = sorted(counted, key=lambda key: (-counted[key], first[key], key[1]))
    return [
        {
            "id": key[1],
            "run": key[0],
            "references": counted[key],
            "first": events["id"][first[key]].as_py(),
            "quarantined": key[1] in bad,
        }
        for key in order[:limit]
    ]
