"""Causal order of declared causes in sets and plain loops, without kernels."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Row:
    """Event: id, causes as declared, time (None: unknown)."""

    id: str
    after: Sequence[str | None]
    time: int | None = None


@dataclass
class Expected:
    """Expected result of a row."""

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


def propagate_times(alive: dict[str, Row]) -> dict[str, float]:
    """Raise each row's time to those of its causes: the least fixpoint."""
    released = {i: -math.inf if row.time is None else row.time for i, row in alive.items()}
    while True:
        raised = {
            i: max([released[i], *(released[p] for p in row.after if p in released)])
            for i, row in alive.items()
        }
        if raised == released:
            return released
        released = raised


def depth(i: str, alive: dict[str, Row], released: dict[str, float]) -> int:
    """Return the longest chain of causes with the same time of release."""
    level, deep = {i}, -1
    while level:
        deep += 1
        level = {
            p
            for one in level
            for p in alive[one].after
            if p in alive and released[p] == released[one]
        }
    return deep


def compute_expected(rows: Sequence[Row]) -> dict[str, Expected]:
    """Order rows of distinct ids by the documented rules."""
    by_id = {row.id: row for row in rows}
    parents = {row.id: {p for p in row.after if p is not None} for row in rows}
    answer: dict[str, Expected] = {}
    for row in rows:
        if row.id in parents[row.id]:
            answer[row.id] = Expected("self_cause")
    good = {i: parents[i] for i in by_id if i not in answer}
    for i in good:
        if reaches(i, i, good):
            answer[i] = Expected("cycle")
    alive = {row.id: row for row in rows if row.id not in answer}
    released = propagate_times(alive)
    deep = {i: depth(i, alive, released) for i in alive}
    order = sorted(
        alive.values(),
        key=lambda row: (released[row.id], deep[row.id], row.time is None, row.time or 0, row.id),
    )
    for place, row in enumerate(order):
        at, causes = released[row.id], [p for p in dict.fromkeys(row.after) if p is not None]
        own = math.inf if row.time is None else row.time
        waited = [p for p in causes if p in alive and released[p] > own]
        missing = [p for p in causes if p not in alive]
        wait = None if row.time is None else int(at - own)
        status = "missing_cause" if missing else "ordered"
        answer[row.id] = Expected(status, place, waited, wait, missing)
    return answer


def random_rows(seed: int, n: int, *, backward: float = 0.1) -> list[Row]:
    """Return rows with several causes: some missing, some null, some later in time."""
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
