"""Happened-before as sets of row numbers, without kernels, labels or Arrow."""

from __future__ import annotations

import random
from typing import Any

from antecede.tables.order.spec import POSITIONED, OrderSpec

Row = dict[str, Any]
Past = dict[int, set[int]]
"""Row number -> numbers of the rows before it; without excluded rows."""


def key(value: Any) -> Any:
    """Return null for NaN, as in every table of keys."""
    return None if isinstance(value, float) and value != value else value


def to_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def identity(row: Row, spec: OrderSpec) -> tuple[Any, int]:
    if spec.id:
        return key(row[spec.id]), 1
    if spec.clock:
        return row[str(spec.member)], dict(row[spec.clock]).get(row[str(spec.member)], 0)
    return row[str(spec.sender)], row[str(spec.seq)]


def causes(row: Row, spec: OrderSpec) -> list[tuple[Any, int]]:
    """Return the identities that a row names as its causes."""
    actor, count = identity(row, spec)
    if spec.id:
        named = [key(one) for column in spec.after for one in to_list(row[column])]
        return [(one, 1) for one in named if one is not None]
    if spec.clock:
        entries = dict(row[spec.clock])
        return [(m, k - 1 if m == actor else k) for m, k in entries.items()]
    return [(actor, count - 1)]


def direct(rows: list[Row], statuses: list[str], spec: OrderSpec) -> Past:
    """Return the direct causes of each row with a position.

    Of numbered events that the table lacks, the preceding one replaces it. A row on a cycle
    replaces only itself.
    """
    group = [row[spec.group] if spec.group else 0 for row in rows]
    there = {
        (group[k], *identity(row, spec)): k
        for k, row in enumerate(rows)
        if statuses[k] in (*POSITIONED, "cycle")
    }
    found: Past = {}
    for k, row in enumerate(rows):
        if statuses[k] not in POSITIONED:
            continue
        found[k] = set()
        for actor, count in causes(row, spec):
            counts = [c for g, a, c in there if (g, a) == (group[k], actor) and c <= count]
            if not counts or (spec.id and max(counts) != count):
                continue
            cause = there[group[k], actor, max(counts)]
            if statuses[cause] in POSITIONED:
                found[k].add(cause)
    return found


def pasts(edges: Past) -> Past:
    """Return all rows before each row: direct causes and their pasts."""
    found: Past = {}
    for start in edges:
        seen: set[int] = set()
        todo = list(edges[start])
        while todo:
            row = todo.pop()
            if row not in seen:
                seen.add(row)
                todo.extend(edges[row])
        found[start] = seen
    return found


def log(seed: int, events: int = 60, *, lost: float = 0.0) -> list[Row]:
    """Return a log of members that receive from each other; with `lost`, without some rows.

    Columns: id, after (the member's preceding event, and the received one), run, member, clock,
    seq, at.
    """
    rng = random.Random(seed)
    rows: list[Row] = []
    clocks: dict[tuple[str, str], dict[str, int]] = {}
    last: dict[tuple[str, str], Row] = {}
    for k in range(events):
        run, member = rng.choice(("r", "s")), rng.choice("abcd")
        clock = clocks.setdefault((run, member), {})
        after = [last[run, member]["id"]] if (run, member) in last else []
        sent = [row for row in rows if row["run"] == run and row["member"] != member]
        if sent and rng.random() < 0.6:
            heard = rng.choice(sent[-6:])
            after.append(heard["id"])
            for name, count in heard["clock"].items():
                clock[name] = max(clock.get(name, 0), count)
        clock[member] = clock.get(member, 0) + 1
        row = {
            "id": f"e{k}",
            "after": after,
            "run": run,
            "member": member,
            "clock": dict(clock),
            "seq": clock[member],
            "at": k,
        }
        rows.append(row)
        last[run, member] = row
    rows = [row for row in rows if rng.random() >= lost]
    rng.shuffle(rows)
    return rows
