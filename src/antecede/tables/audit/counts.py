"""Counts of distinct events, by declared causes or by vector clocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.audit.pairs import (
    EXACT,
    PairChoice,
    count_pairs_within_runs,
    find_pairs,
    format_estimate,
    format_pair_keys,
    hash_ids,
)
from antecede.tables.kernels import Bools, Ints, encode_column, graph, vector_clocks
from antecede.tables.trace import ORDERS, refuse
from antecede.tables.trace.user_tables import several_in_one

pc: Any = pyarrow.compute  # incomplete stubs

SHOWN_IDS = 8  # ids of a cycle in its reason


@dataclass
class AuditCounts:
    """Keys of the report that are counted here, and the data of its details."""

    events: pa.Table
    sender: Ints  # [edges] row of the cause
    receiver: Ints  # [edges] row of the effect
    keys: dict[str, Any]
    quarantine: pa.Table | None = None
    details: dict[str, Any] = field(default_factory=dict)


def by_causes(
    events: pa.Table, self_causing: Bools | None = None, choice: PairChoice = EXACT
) -> AuditCounts:
    """Count declared causes; events on a cycle are quarantined, and their effects lose them.

    `self_causing`: events that name themselves as well [n]. `choice`: treatment of pairs.
    """
    named_self = 0 if self_causing is None else int(np.count_nonzero(self_causing))
    causes, edges = _build_graph(events)
    cycle = graph.nodes_on_cycles(causes)
    details: dict[str, Any] = {}
    quarantine = None
    if (cycle >= 0).any():
        bad = np.flatnonzero(cycle >= 0)
        quarantine = refuse(events.take(bad), _describe_cycles(events, causes, cycle))
        details = {"cycles": int(cycle.max()) + 1, "events_on_cycles": len(bad)}
        events = events.take(np.flatnonzero(cycle < 0))
        causes, edges = _build_graph(events)
    effect, cause = edges["effect"].to_numpy(), edges["cause"]
    declared = np.bincount(effect, minlength=len(events))
    found = find_pairs(causes, lambda: hash_ids(events), choice)
    pairs = count_pairs_within_runs(events)
    details |= format_estimate(found, pairs)
    details |= _count_missing(events, edges)
    keys = {
        "edges": len(causes.cause),
        "roots": int(np.count_nonzero(declared == 0)),
        "merges": int(np.count_nonzero(declared > 1)),
        "max_causes": int(declared.max(initial=0)),
        "missing_causes": int(cause.null_count),
        "self_causes": named_self,
        **format_pair_keys(found, pairs, len(causes.cause)),
    }
    return AuditCounts(events, causes.cause, causes.effect(), keys, quarantine, details)


def count_by_clocks(events: pa.Table) -> AuditCounts:
    """Count by vector clocks; pair counts are None if the clocks are inconsistent."""
    log = vector_clocks.clock_log(events)
    edges = vector_clocks.clock_edges(log)
    defects = vector_clocks.find_clock_inconsistencies(log)
    steps = len(events) - len(np.unique(log.member))
    sound = not (defects.lowered.any() or defects.repeated or defects.mutual)
    counted = vector_clocks.count_clock_pairs(log, events) if sound else None
    keys = {
        "edges": len(edges.sender),
        "immediate_edges": steps + len(edges.sender) - edges.redundant_steps,
        "redundant_edges": edges.redundant_steps,
        "ordered_pairs": counted.ordered if counted else None,
        "concurrent_pairs": counted.concurrent if counted else None,
        "clock_inconsistencies": _find_inconsistencies(events, log, defects.lowered),
    }
    details = {
        "clock_gaps": defects.gaps,
        "repeated_counters": defects.repeated,
        "mutual_events": defects.mutual,
        "unmerged_events": defects.unmerged,
        **_find_unlogged(events, log),
    }
    return AuditCounts(events, log.row[edges.sender], log.row[edges.receiver], keys, None, details)


def add_common(counts: AuditCounts) -> None:
    """Add the keys of both kinds: messages, members, cross-member edges, inversions."""
    events = counts.events
    members, code = encode_column(events["member"])
    above, below = code[counts.sender], code[counts.receiver]
    known = (above >= 0) & (below >= 0)
    counts.keys["messages"] = len(events)
    counts.keys["members"] = len(members) or None
    counts.keys["cross_member_edges"] = (
        int(np.count_nonzero(known & (above != below))) if members else None
    )
    inverted = {
        order: steps for order in ORDERS if (steps := measure_steps_back(counts, order)) is not None
    }
    counts.keys["inversions"] = {
        order: int(np.count_nonzero(steps > 0)) for order, steps in inverted.items()
    }
    counts.details["compared_edges"] = {order: len(steps) for order, steps in inverted.items()}
    counts.details["max_inversions"] = {
        order: int(steps.max()) for order, steps in inverted.items() if (steps > 0).any()
    }


def measure_steps_back(counts: AuditCounts, order: str) -> Ints | None:
    """Return the steps back of each edge in an order, 0 for a tie, -1 for a forward edge.

    None for an order without values. Edges with an unknown end are omitted. The maximum is 2**63 -
    1.
    """
    column = counts.events[order].combine_chunks()
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if not valid.any():
        return None
    value = pc.fill_null(column, 0).to_numpy()
    both = valid[counts.sender] & valid[counts.receiver]
    cause, effect = value[counts.sender[both]], value[counts.receiver[both]]
    modulo = cause.astype(np.uint64) - effect.astype(np.uint64)  # exact if the cause is larger
    steps = np.minimum(modulo, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)
    return np.where(cause > effect, steps, np.where(cause == effect, 0, -1)).astype(np.int64)


def _build_graph(events: pa.Table) -> tuple[graph.Graph, pa.Table]:
    edges = graph.edge_table(events)
    present = edges.filter(edges["cause"].is_valid())
    causes = graph.build_graph(
        len(events), present["effect"].to_numpy(), present["cause"].to_numpy()
    )
    return causes, edges


def _count_missing(events: pa.Table, edges: Any) -> dict[str, Any]:
    """Count missing ids that events name, by run; hint at several ids in one."""
    nowhere = edges.filter(edges["cause"].is_null())
    ids: list[Any] = nowhere["cause_id"].to_pylist()
    runs = pc.fill_null(events["run"].take(nowhere["effect"]), "").to_pylist()
    known: set[Any] = {*events["id"].to_pylist()} if ids else set()
    hint = several_in_one(ids, known)
    found = {"missing_ids": len({*zip(runs, ids, strict=True)})}
    return found | ({"separator_hint": hint} if hint else {})


def _describe_cycles(events: pa.Table, causes: graph.Graph, cycle: Ints) -> list[str]:
    reasons = []
    ids = events["id"]
    effect = causes.effect()
    for number in range(int(cycle.max()) + 1):
        inside = (cycle[effect] == number) & (cycle[causes.cause] == number)
        part = graph.build_graph(causes.nodes, effect[inside], causes.cause[inside])
        circle = [ids[row].as_py() for row in graph.find_cycle(part)]
        shown = " <- ".join(circle[:SHOWN_IDS])
        more = f" <- ... ({len(circle)} in all)" if len(circle) > SHOWN_IDS else ""
        reasons.append(f"causes form a cycle: {shown}{more} <- {circle[0]}")
    return [reasons[int(number)] for number in cycle[cycle >= 0]]


def _find_unlogged(events: pa.Table, log: vector_clocks.ClockLog) -> dict[str, Any]:
    """Return the count of entries beyond a host's last number, and each host's first one."""
    event = np.repeat(np.arange(len(log.row)), np.diff(log.entry_start))
    logged = np.zeros(len(log.start) - 1, np.int64)
    there = log.start[1:] > log.start[:-1]
    logged[there] = log.sorted_own[log.start[1:][there] - 1]
    beyond = np.flatnonzero(log.entry_count > logged[log.entry_member])
    if not len(beyond):
        return {}
    beyond = beyond[np.argsort(log.row[event[beyond]], kind="stable")]
    _, first = np.unique(log.entry_member[beyond], return_index=True)
    shown = beyond[np.sort(first)]
    rows = events.take(log.row[event[shown]])
    places = [
        {
            "host": host,
            "count": int(log.entry_count[entry]),
            "logged": int(logged[log.entry_member[entry]]),
            **row,
        }
        for entry, row, host in zip(
            shown,
            rows.select(["member", "run", "id", "source", "line"]).to_pylist(),
            _find_host_names(events, log, shown, event[shown]),
            strict=True,
        )
    ]
    return {"unlogged_entries": len(beyond), "unlogged_hosts": places}


def _find_host_names(
    events: pa.Table, log: vector_clocks.ClockLog, entry: Ints, event: Ints
) -> list[str]:
    lists = events["clock_members"].combine_chunks()
    names = pa.array(events["member"].to_pylist(), pa.string())
    known = pa.concat_arrays([names, pc.list_flatten(lists).cast(pa.string())]).unique()
    number = {name: k for k, name in enumerate(known.to_pylist())}
    places = (entry - log.entry_start[event]).tolist()
    rows: list[Any] = events["clock_members"].take(log.row[event]).to_pylist()
    return [
        str(sorted(row, key=number.__getitem__)[k]) for row, k in zip(rows, places, strict=True)
    ]


def _find_inconsistencies(
    events: pa.Table, log: vector_clocks.ClockLog, lowered: Bools
) -> list[dict[str, Any]]:
    found = []
    for event in np.flatnonzero(lowered):
        before, row = events.take(log.row[[event - 1, event]]).to_pylist()
        then, now = (
            dict(zip(one["clock_members"], one["clock_counts"], strict=True))
            for one in (before, row)
        )
        found.append(
            {
                "member": row["member"],
                "position": int(event - log.start[log.member[event]]) + 1,
                **{name: row[name] for name in ("run", "id", "source", "line")},
                "entries": {
                    name: [count, now.get(name, 0)]
                    for name, count in then.items()
                    if now.get(name, 0) < count
                },
            }
        )
    return found
