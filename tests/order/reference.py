"""Causal order of declared causes, written a second time: sets and plain loops, no kernel."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Row:
    """One event: id, its causes as declared, its time (None: unknown)."""

    id: str
    after: Sequence[str | None]
    time: int | None = None


@dataclass
class Expected:
    """What a row should get."""

    status: str
    position: int | None = None
    waited_for: list[str] | None = None
    waited: int | None = None
    missing: list[str] | None = None


def reaches(start: str, goal: str, parents: dict[str, set[str]]) -> bool:
    seen, todo = set(), list(parents[start])
    while todo:
        node = todo.pop()
        if node == goal:
            return True
        if node not in seen and node in parents:
            seen.add(node)
            todo.extend(parents[node])
    return False


def expected(rows: Sequence[Row]) -> dict[str, Expected]:
    """Order rows of distinct ids by the rules of the documentation."""
    by_id = {row.id: row for row in rows}
    parents = {row.id: {p for p in row.after if p is not None} for row in rows}
    answer: dict[str, Expected] = {}
    for row in rows:
        if row.id in parents[row.id]:
            answer[row.id] = Expected("self_parent")
    good = {i: parents[i] for i in by_id if i not in answer}
    for i in good:
        if reaches(i, i, good):
            answer[i] = Expected("cycle")
    left = [row for row in rows if row.id not in answer]
    alive = {row.id for row in left}
    released: dict[str, int | None] = {}
    while left:
        ready = [r for r in left if all(p in released or p not in alive for p in parents[r.id])]
        row = min(ready, key=lambda r: (r.time is None, r.time or 0, r.id))
        left.remove(row)
        times = [released[p] for p in parents[row.id] if p in released]
        known = [t for t in [row.time, *times] if t is not None]
        released[row.id] = max(known) if known else None
        waited = []
        for p in dict.fromkeys(p for p in row.after if p is not None):
            at = released.get(p)
            if row.time is not None and at is not None and at > row.time:
                waited.append(p)
        missing = [p for p in dict.fromkeys(row.after) if p is not None and p not in alive]
        wait = None if row.time is None else (released[row.id] or 0) - row.time
        place = len(released) - 1
        status = "missing_cause" if missing else "ordered"
        answer[row.id] = Expected(status, place, waited, wait, missing)
    return answer


def random_rows(seed: int, n: int, *, backward: float = 0.1) -> list[Row]:
    """Make rows with several causes: some missing, some null, some against the grain."""
    rng = random.Random(seed)
    rows = []
    for k in range(n):
        after: list[str | None] = []
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            pick = rng.random()
            if pick < 0.05:
                after.append(None)
            elif pick < 0.1:
                after.append(f"gone{rng.randrange(3)}")
            else:
                high = n if rng.random() < backward else max(k, 1)
                after.append(f"e{rng.randrange(high)}")
        time = None if rng.random() < 0.1 else rng.randrange(n)
        rows.append(Row(f"e{k}", after, time))
    rng.shuffle(rows)
    return rows
