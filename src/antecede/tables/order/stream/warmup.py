"""Compilation of a stream's kernels before its first batch."""

from __future__ import annotations

import numpy as np

from antecede.tables.kernels import first_on_machine
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.shard import Shard
from antecede.tables.order.stream.storage.blobs import Memory
from antecede.tables.order.stream.types import ControlColumns, ShardPlan


def warm_up_once(has_counts: bool) -> None:
    """Run `warm_up` in one process of those on a machine that share a cache; the others wait."""
    with first_on_machine(f"stream-{'counts' if has_counts else 'ids'}") as first:
        if first:
            warm_up(has_counts)


def warm_up(has_counts: bool) -> None:
    """Compile the kernels of a stream by ids, or by member and number, or load them.

    A shard gets an effect before its cause, and reads its own state back.
    """
    state = Memory()
    for policy in ("release", "drop"):
        plan = ShardPlan(has_counts, timed=True, policy=policy, patience=9, state_ttl=1)
        for number, causes in ((3, [1, 2]), (2, [1]), (1, [])):
            Shard(plan, state).step(_make_row(has_counts, number, causes), number)
        Shard(plan, state).deadline()


def _make_row(counted: bool, number: int, causes: list[int]) -> ControlColumns:
    def text(*names: str) -> Text:
        ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
        return Text(np.frombuffer("".join(names).encode(), np.uint8), ends)

    counts = np.array([number, *causes], np.int64) * counted
    names = ["m" if counted else str(each) for each in (number, *causes)]
    time, first = np.array([number], np.int64), np.array([0, len(causes)], np.int64)
    status = np.zeros(1, np.uint8)
    own = text("g"), text(names[0]), counts[:1], time, time
    return ControlColumns(*own, status, first, text(*names[1:]), counts[1:])
