"""By how much the clocks of processes must differ for their spans to be possible.

Theory of operation
-------------------
Timestamps are never changed. A shift s[h] is what one would add to all times of process h; it
stands for an offset that stays the same over the trace (a clock that drifts or steps has none,
and may show as a contradiction). Each edge between two processes bounds a difference of shifts:

    a child starts no earlier than its parent:
        s[child] - s[parent] >= start(parent) - start(child)
    a call contains the work that it waits for:
        s[child] - s[parent] <= end(parent) - end(child)

The second holds for a server's span below the client's span of the same call, where it is not
longer than that one; nothing else in a span says that the parent waits. Edges are reduced to
the tightest bound in each direction of each pair, so time is linear in edges and the rest goes
by processes. What all bounds allow together is a system of difference constraints, solved by
shortest paths (Bellman and Ford): the tightest bounds are arcs x -> y of weight w, for
s[y] <= s[x] + w. A cycle of negative weight is a contradiction, and its arcs are the witness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from antecede.tables.audit.clock_diagnosis import Blame, blame
from antecede.tables.audit.difference_constraints import Arc, Solution, solve
from antecede.tables.kernels import Ints
from antecede.tables.trace.formats import CLIENT, SERVER

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

Bools = npt.NDArray[np.bool_]

STARTS = "a child starts no earlier than its parent"
CONTAINED = "a call contains the work that it waits for"
_FAR = 1 << 62
"""Times beyond are left out: differences must fit into 64 bits."""


def clock_skew(
    events: pa.Table, sender: Ints, receiver: Ints, column: str = "start_time"
) -> dict[str, Any]:
    """Return what the edges of a trace say of its processes' clocks; see docs/design/traces.md.

    `events` in the schema; `sender` and `receiver` are rows of the cause and the effect [edges];
    `column` is the time that each event has by its process's clock.
    """
    names, code = _processes(events)
    start, started = _times(events, column)
    timed = started[sender] & started[receiver] & (code[sender] >= 0) & (code[receiver] >= 0)
    within = timed & (code[sender] == code[receiver]) & (start[sender] > start[receiver])
    across = timed & (code[sender] != code[receiver])
    sender, receiver = sender[across], receiver[across]
    above, below = code[sender], code[receiver]
    lower = start[sender] - start[receiver]
    upper, call = _contained(events, sender, receiver, lower)
    arcs = [
        *_tightest(below, above, -lower, np.arange(len(lower)), STARTS),
        *_tightest(above[call], below[call], upper[call], np.flatnonzero(call), CONTAINED),
    ]
    violated = (lower > 0) | (call & (upper < 0))
    solution = solve(len(names), arcs)
    found = None if solution.shifts is None else blame(len(names), arcs, solution.shifts)
    shifts = None if found is None else {names[host]: s for host, s in found.shifts.items()}
    worst = _Worst(events, names, Sides(above, below, sender, receiver, lower))
    return {
        "hosts": [] if found is None else _hosts(names, found, worst),
        "fewest": None if found is None else found.fewest,
        "other_choices": None if found is None else found.others,
        "worst": worst.of(None),
        "pairs": _pairs(names, arcs, Edges(above, below, call, violated)),
        "violations_within_a_process": int(np.count_nonzero(within)),
        "consistent": shifts is not None,
        "shifts_ns": None if shifts is None else dict(sorted(shifts.items())),
        "total_shift_ns": None if shifts is None else sum(map(abs, shifts.values())),
        "least_total": _is_least(shifts, solution),
        "least_largest_shift_ns": solution.least_largest,
        "contradiction": [
            {
                "rule": arc.rule,
                "parent": events["id"][int(sender[arc.edge])].as_py(),
                "child": events["id"][int(receiver[arc.edge])].as_py(),
                "of": names[below[arc.edge]],
                "against": names[above[arc.edge]],
                "least_ns" if arc.rule == STARTS else "most_ns": (
                    -arc.weight if arc.rule == STARTS else arc.weight
                ),
            }
            for arc in solution.contradiction
        ],
    }


def _is_least(shifts: Mapping[str, int] | None, solution: Solution) -> bool | None:
    """Tell whether no shifts at all have a smaller sum; None where there are none."""
    if shifts is None or solution.shifts is None:
        return None
    ours, best = (sum(map(abs, them)) for them in (shifts.values(), solution.shifts))
    return solution.least and ours == best


class Sides(NamedTuple):
    """Both ends of the edges between two processes, and by how much the effect is too early."""

    above: Ints
    below: Ints
    cause: Ints
    effect: Ints
    early: Ints
    """[edges] ns, above 0 where the effect has the earlier time."""


class _Worst:
    """Which effect is the earliest before its cause, of all or of those that touch a process."""

    def __init__(self, events: pa.Table, names: Sequence[str], sides: Sides) -> None:
        self.ids, self.names, self.sides = events["id"], names, sides

    def of(self, host: int | None) -> dict[str, Any] | None:
        """Return the worst edge; None where no effect is early."""
        sides = self.sides
        early = sides.early
        if host is not None:
            early = np.where((sides.above == host) | (sides.below == host), early, 0)
        if not len(early) or early.max() <= 0:
            return None
        edge = int(early.argmax())
        return {
            "cause": self.ids[int(sides.cause[edge])].as_py(),
            "effect": self.ids[int(sides.effect[edge])].as_py(),
            "of": self.names[sides.below[edge]],
            "against": self.names[sides.above[edge]],
            "early_ns": int(early[edge]),
        }


def _hosts(names: Sequence[str], found: Blame, worst: _Worst) -> list[dict[str, Any]]:
    """Return those whose clocks are wrong, the largest shift first."""
    return [
        {
            "host": names[host],
            "shift_ns": shift,
            "from_ns": found.ranges[host][0],
            "to_ns": found.ranges[host][1],
            "worst": worst.of(host),
        }
        for host, shift in sorted(found.shifts.items(), key=lambda one: (-abs(one[1]), one[0]))
    ]


class Edges(NamedTuple):
    """Edges between two processes, both of known start [edges]."""

    above: Ints
    """Process of the parent."""
    below: Ints
    """Process of the child."""
    call: Bools
    """Whether the parent waits for the child."""
    violated: Bools
    """Whether the times as recorded contradict a bound."""


def _processes(events: pa.Table) -> tuple[list[str], Ints]:
    """Return the processes' names, and the number of each event's, -1 if unknown [n]."""
    encoded = events["member"].combine_chunks().dictionary_encode()
    code: Ints = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    return [str(name) for name in encoded.dictionary.to_pylist()], code


def _times(events: pa.Table, column: str) -> tuple[Ints, Bools]:
    """Return times in ns and whether each is known [n]."""
    values = events[column].combine_chunks()
    times = pc.fill_null(values, 0).to_numpy()
    near = (times > -_FAR) & (times < _FAR)
    return times, near & values.is_valid().to_numpy(zero_copy_only=False)


def _contained(events: pa.Table, sender: Ints, receiver: Ints, lower: Ints) -> tuple[Ints, Bools]:
    """Return the upper bound of each edge, and whether it has one: it is a call [edges]."""
    end, ended = _times(events, "end_time")
    role = events["role"].combine_chunks()
    client = pc.fill_null(pc.equal(role, CLIENT), False).to_numpy(zero_copy_only=False)
    server = pc.fill_null(pc.equal(role, SERVER), False).to_numpy(zero_copy_only=False)
    call = client[sender] & server[receiver] & ended[sender] & ended[receiver]
    upper = end[sender] - end[receiver]
    # A server that works on after its answer is longer than the call, whatever the clocks.
    return upper, call & (upper >= lower)


def _tightest(before: Ints, after: Ints, weight: Ints, edge: Ints, rule: str) -> list[Arc]:
    """Keep the least weight of each pair of processes."""
    if not len(weight):
        return []
    order = np.lexsort((weight, after, before))
    before, after = before[order], after[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (before[1:] != before[:-1]) | (after[1:] != after[:-1])
    kept = order[first]
    columns = (before[first], after[first], weight[kept], edge[kept])
    return [Arc(x, y, w, e, rule) for x, y, w, e in zip(*map(_list, columns), strict=True)]


def _list(numbers: Ints) -> list[int]:
    return [int(number) for number in numbers]


def _pairs(names: Sequence[str], arcs: Sequence[Arc], edges: Edges) -> list[dict[str, Any]]:
    """Return one entry a pair, the worst first; `of` is the side that is called more often."""
    weight: dict[tuple[int, int], int] = {}
    for arc in arcs:
        key = (arc.before, arc.after)
        weight[key] = min(weight.get(key, arc.weight), arc.weight)
    counted = _per_direction(len(names), edges)
    none = (0, 0, 0)
    found = []
    for x, y in {(min(pair), max(pair)) for pair in counted}:
        down, up = counted.get((x, y), none), counted.get((y, x), none)
        of, against = (y, x) if (down[0], names[y]) >= (up[0], names[x]) else (x, y)
        least = weight.get((of, against))
        upper = weight.get((against, of))
        lower = None if least is None else -least
        possible = lower is None or upper is None or lower <= upper
        found.append(
            {
                "of": names[of],
                "against": names[against],
                "least_shift_ns": max(lower or 0, 0) + min(upper or 0, 0) if possible else None,
                "lower_ns": lower,
                "upper_ns": upper,
                "middle_ns": (lower + upper) // 2
                if possible and lower is not None and upper is not None
                else None,
                "edges": down[0] + up[0],
                "calls": down[1] + up[1],
                "violations": down[2] + up[2],
            }
        )
    return sorted(
        found, key=lambda pair: (-pair["violations"], -pair["edges"], pair["of"], pair["against"])
    )


def _per_direction(processes: int, edges: Edges) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Count edges, calls and violations of each (process of the parent, of the child)."""
    key = edges.above * processes + edges.below
    keys, at = np.unique(key, return_inverse=True)
    counts = [
        np.bincount(at, weights=part, minlength=len(keys)).astype(np.int64).tolist()
        for part in (np.ones(len(key)), edges.call, edges.violated)
    ]
    pairs = (divmod(k, processes) for k in keys.tolist())
    return {pair: (n, c, v) for pair, n, c, v in zip(pairs, *counts, strict=True)}
