"""Clock skew: shifts between the clocks of processes that make their spans consistent.

Stamps are never changed. A shift s[h] is added to all times of process h. It stands for a
constant offset; a clock that drifts or steps may show as a contradiction. Each edge between two
processes bounds a difference of shifts:

- A child starts no earlier than its parent: s[child] - s[parent] >= start(parent) - start(child).
- A call contains the work that it waits for: s[child] - s[parent] <= end(parent) - end(child).

The second holds for a server's span below the client's span of the same call, unless it is longer.
No other spans imply that the parent waits. `difference_constraints` solves the tightest bounds of
each pair of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.audit.clock_diagnosis import Diagnosis, diagnose_clocks
from antecede.tables.audit.difference_constraints import Arc, solve
from antecede.tables.kernels import Bools, Ints, encode_column
from antecede.tables.trace.formats import CLIENT, SERVER

pc: Any = pyarrow.compute  # incomplete stubs

STARTS = "a child starts no earlier than its parent"
CONTAINED = "a call contains the work that it waits for"
_MAX_TIME_NS = 1 << 62  # larger times are excluded: differences must fit into 64 bits


class ProcessEdges(NamedTuple):
    """Edges between two processes, with known start times of both ends [edges]."""

    cause_process: Ints  # process of the cause
    effect_process: Ints  # process of the effect
    cause: Ints  # row
    effect: Ints  # row
    early_ns: Ints  # above 0: the effect precedes the cause by so many ns
    is_call: Bools  # the parent waits for the child
    is_violated: Bools  # the recorded times contradict a bound


def clock_skew(
    events: pa.Table, sender: Ints, receiver: Ints, column: str = "start_time"
) -> dict[str, Any]:
    """Return bounds and shifts of the processes' clocks, by edges; see docs/design/traces.md.

    `events` in the schema; `sender` and `receiver` are rows of cause and effect [edges]; `column`
    is the time of each event by its process's clock.
    """
    names, code = encode_column(events["member"])
    start, started = _read_times(events, column)
    timed = started[sender] & started[receiver] & (code[sender] >= 0) & (code[receiver] >= 0)
    within = timed & (code[sender] == code[receiver]) & (start[sender] > start[receiver])
    across = timed & (code[sender] != code[receiver])
    sender, receiver = sender[across], receiver[across]
    above, below = code[sender], code[receiver]
    early_ns = start[sender] - start[receiver]
    upper, call = _limit_calls(events, sender, receiver, early_ns)
    edges = ProcessEdges(
        above, below, sender, receiver, early_ns, call, (early_ns > 0) | (call & (upper < 0))
    )
    arcs = [
        *_keep_tightest(below, above, -early_ns, np.arange(len(early_ns)), STARTS),
        *_keep_tightest(above[call], below[call], upper[call], np.flatnonzero(call), CONTAINED),
    ]
    solution = solve(len(names), arcs)
    contradicted = solution.shifts is None
    found = Diagnosis({}, {}, False, 0)
    if solution.shifts is not None:
        found = diagnose_clocks(len(names), arcs, solution.shifts)
    shifts = {names[host]: shift for host, shift in found.shifts.items()}
    total, best = (sum(map(abs, of)) for of in (shifts.values(), solution.shifts or ()))
    ids = events["id"]
    hosts = sorted(found.shifts.items(), key=lambda one: (-abs(one[1]), one[0]))
    return {
        "hosts": [
            {
                "host": names[host],
                "shift_ns": shift,
                "from_ns": found.ranges[host][0],
                "to_ns": found.ranges[host][1],
                "worst": _find_worst(ids, names, edges, host),
            }
            for host, shift in hosts
        ],
        "minimal": None if contradicted else found.is_minimal,
        "other_choices": None if contradicted else found.other_choices,
        "worst": _find_worst(ids, names, edges),
        "pairs": _list_pairs(names, arcs, edges),
        "violations_within_a_process": int(np.count_nonzero(within)),
        "consistent": not contradicted,
        "shifts_ns": None if contradicted else dict(sorted(shifts.items())),
        "total_shift_ns": None if contradicted else total,
        "least_total": None if contradicted else solution.has_least_sum and total == best,
        "least_largest_shift_ns": solution.least_largest,
        "contradiction": [
            {
                "rule": arc.rule,
                "parent": ids[int(sender[arc.edge])].as_py(),
                "child": ids[int(receiver[arc.edge])].as_py(),
                "of": names[below[arc.edge]],
                "against": names[above[arc.edge]],
                **({"least_ns": -arc.weight} if arc.rule == STARTS else {"most_ns": arc.weight}),
            }
            for arc in solution.contradiction
        ],
    }


def _find_worst(
    ids: Any, names: Sequence[str], edges: ProcessEdges, host: int | None = None
) -> dict[str, Any] | None:
    early_ns = edges.early_ns
    if host is not None:
        early_ns = np.where(
            (edges.cause_process == host) | (edges.effect_process == host), early_ns, 0
        )
    if early_ns.max(initial=0) <= 0:
        return None
    edge = int(early_ns.argmax())
    return {
        "cause": ids[int(edges.cause[edge])].as_py(),
        "effect": ids[int(edges.effect[edge])].as_py(),
        "of": names[edges.effect_process[edge]],
        "against": names[edges.cause_process[edge]],
        "early_ns": int(early_ns[edge]),
    }


def _read_times(events: pa.Table, column: str) -> tuple[Ints, Bools]:
    values = events[column].combine_chunks()
    times = pc.fill_null(values, 0).to_numpy()
    near = (times > -_MAX_TIME_NS) & (times < _MAX_TIME_NS)
    return times, near & values.is_valid().to_numpy(zero_copy_only=False)


def _limit_calls(events: pa.Table, sender: Ints, receiver: Ints, lower: Ints) -> tuple[Ints, Bools]:
    """Return the upper bound of each edge, and whether it is a call and so has one [edges]."""
    end, ended = _read_times(events, "end_time")
    role = events["role"].combine_chunks()
    client = pc.fill_null(pc.equal(role, CLIENT), False).to_numpy(zero_copy_only=False)
    server = pc.fill_null(pc.equal(role, SERVER), False).to_numpy(zero_copy_only=False)
    call = client[sender] & server[receiver] & ended[sender] & ended[receiver]
    upper = end[sender] - end[receiver]
    # A server that continues after its reply is longer than the call, whatever the clocks.
    return upper, call & (upper >= lower)


def _keep_tightest(before: Ints, after: Ints, weight: Ints, edge: Ints, rule: str) -> list[Arc]:
    if not len(weight):
        return []
    order = np.lexsort((weight, after, before))
    before, after = before[order], after[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (before[1:] != before[:-1]) | (after[1:] != after[:-1])
    columns = (before[first], after[first], weight[order[first]], edge[order[first]])
    bounds = zip(*(of.tolist() for of in columns), strict=True)
    return [Arc(x, y, least, number, rule) for x, y, least, number in bounds]


def _list_pairs(
    names: Sequence[str], arcs: Sequence[Arc], edges: ProcessEdges
) -> list[dict[str, Any]]:
    """Return one entry for each pair, the worst first; `of` is the process called more often."""
    weight: dict[tuple[int, int], int] = {}
    for arc in arcs:
        key = (arc.before, arc.after)
        weight[key] = min(weight.get(key, arc.weight), arc.weight)
    counted = _count_per_direction(len(names), edges)
    none = (0, 0, 0)
    found = []
    for x, y in {(min(pair), max(pair)) for pair in counted}:
        down, up = counted.get((x, y), none), counted.get((y, x), none)
        of, against = (y, x) if (down[0], names[y]) >= (up[0], names[x]) else (x, y)
        least, upper = weight.get((of, against)), weight.get((against, of))
        lower = None if least is None else -least
        possible = lower is None or upper is None or lower <= upper
        middle = None if lower is None or upper is None else (lower + upper) // 2
        found.append(
            {
                "of": names[of],
                "against": names[against],
                "least_shift_ns": max(lower or 0, 0) + min(upper or 0, 0) if possible else None,
                "lower_ns": lower,
                "upper_ns": upper,
                "middle_ns": middle if possible else None,
                "edges": down[0] + up[0],
                "calls": down[1] + up[1],
                "violations": down[2] + up[2],
            }
        )
    return sorted(
        found, key=lambda pair: (-pair["violations"], -pair["edges"], pair["of"], pair["against"])
    )


def _count_per_direction(
    processes: int, edges: ProcessEdges
) -> dict[tuple[int, int], tuple[int, int, int]]:
    key = edges.cause_process * processes + edges.effect_process
    keys, at = np.unique(key, return_inverse=True)
    counts = [
        np.bincount(at, weights=part, minlength=len(keys)).astype(np.int64).tolist()
        for part in (np.ones(len(key)), edges.is_call, edges.is_violated)
    ]
    pairs = (divmod(k, processes) for k in keys.tolist())
    return {pair: (n, c, v) for pair, n, c, v in zip(pairs, *counts, strict=True)}
