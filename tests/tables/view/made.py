"""Traces for several tests of the page."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from antecede.tables.trace.arrow import QUARANTINE_SCHEMA, Trace
from antecede.tables.trace.rows import conform

T0 = 1_700_000_000 * 10**9
MS = 10**6


def trace_of(rows: Sequence[dict[str, Any]], format: str = "table") -> Trace:
    """Return a trace of rows with the given columns."""
    names = {name: None for row in rows for name in row}
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    return Trace(conform(table), QUARANTINE_SCHEMA.empty_table(), format, {})


def make_row(kind: str, id: str, member: str, ms: int, **more: Any) -> dict[str, Any]:
    """Return one row of a send, receipt or delivery."""
    time = "send_time" if kind == "send" else "arrival"
    return {"kind": kind, "id": id, "member": member, time: T0 + ms * MS, **more}


def steps(text: str) -> list[dict[str, Any]]:
    """Return rows of words like p!a@5 (p sends a after 5 ms), q?a@6 (receipt), q.a@7 (delivery)."""
    kinds = {"!": "send", "?": "receive", ".": "deliver"}
    words = (re.fullmatch(r"(\w+)([!?.])(\w+)@(\d+)", word) for word in text.split())
    return [make_row(kinds[w[2]], w[3], w[1], int(w[4])) for w in words if w]


def make_held_trace() -> Trace:
    """Return a trace: b answers a, c holds the reply, d is lost, a comes to b twice."""
    rows = steps(
        "ann!a@0 bob?a@10 bob.a@10 bob!b@12 cyd?b@20 bob?a@22 ann?b@25 ann.b@25 cyd?a@40 cyd.a@41 "
        "cyd.b@42 ann!d@50"
    )
    for row, text in ((0, "what time is it?"), (3, "noon"), (11, "anyone?")):
        rows[row]["text"] = text
    return trace_of(rows)


def drawn(seed: int, events: int = 60, members: int = 5) -> Trace:
    """Return random sends, receipts and deliveries."""
    draw = random.Random(seed)
    names = [f"m{k}" for k in range(members)]
    rows: list[dict[str, Any]] = []
    under_way: list[tuple[str, str]] = []
    for k in range(events):
        if under_way and draw.random() < 0.6:
            id, member = under_way.pop(draw.randrange(len(under_way)))
            rows.append(make_row("receive", id, member, k))
            if draw.random() < 0.8:
                rows.append(make_row("deliver", id, member, k + draw.randrange(3)))
            if draw.random() < 0.1:
                under_way.append((id, member))
        else:
            sender = draw.choice(names)
            rows.append(make_row("send", f"x{k}", sender, k - draw.randrange(4)))
            others = [name for name in names if name != sender]
            under_way += [(f"x{k}", one) for one in draw.sample(others, draw.randrange(members))]
    return trace_of(rows)


def declared(seed: int, events: int = 50, members: int = 4) -> Trace:
    """Return random events with declared causes, some missing."""
    draw = random.Random(seed)
    rows = []
    for k in range(events):
        known = [f"e{draw.randrange(k)}" for _ in range(draw.randrange(3))] if k else []
        lost = ["nowhere"] if draw.random() < 0.05 else []
        member = f"m{draw.randrange(members)}"
        rows.append({"id": f"e{k}", "member": member, "causes": sorted({*known, *lost})})
    draw.shuffle(rows)
    return trace_of(rows)


def make_random_clocks(seed: int, events: int = 60, members: int = 4) -> Trace:
    """Return a vector-clock log of random events."""
    draw = random.Random(seed)
    clocks: dict[str, dict[str, int]] = {f"m{k}": {} for k in range(members)}
    rows = []
    for _ in range(events):
        member = draw.choice(list(clocks))
        clock = clocks[member]
        if draw.random() < 0.5:
            for name, count in clocks[draw.choice(list(clocks))].items():
                clock[name] = max(clock.get(name, 0), count)
        clock[member] = clock.get(member, 0) + 1
        rows.append(
            {
                "id": f"{member}:{clock[member]}",
                "member": member,
                "clock_members": list(clock),
                "clock_counts": list(clock.values()),
            }
        )
    return trace_of(rows, "shiviz")
