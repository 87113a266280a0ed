"""The kernels of a stream, run once over two rows, so that its first batch does not wait."""

from __future__ import annotations

import numpy as np

from antecede.tables.kernels import first_on_machine
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.shard import Shard
from antecede.tables.order.stream.storage.blobs import Memory
from antecede.tables.order.stream.types import Batch, ShardPlan


def warm_up_once(counted: bool) -> None:
    """Do `warm_up` in one process of a machine, for all that share its cache, while others wait.

    For Spark's workers: two that begin at once would both compile everything.
    """
    with first_on_machine(f"stream-{'counts' if counted else 'ids'}") as first:
        if first:
            warm_up(counted)


def warm_up(counted: bool) -> None:
    """Compile what a stream by ids (`counted`: by member and number) runs, or load it.

    A shard takes an effect before its cause, and reads its own state back. What is compiled goes
    to the cache on disk, where Spark's workers on this machine find it.
    """
    state = Memory()
    for policy in ("release", "drop"):
        plan = ShardPlan(counted, timed=True, policy=policy, patience=9, remember=1)
        for number, causes in ((3, [1, 2]), (2, [1]), (1, [])):
            Shard(plan, state).step(_row(counted, number, causes), number)
        Shard(plan, state).deadline()


def _row(counted: bool, number: int, causes: list[int]) -> Batch:
    names = [b"m" if counted else str(cause).encode() for cause in causes]
    return Batch(
        group=_text([b"g"]),
        name=_text([b"m" if counted else str(number).encode()]),
        number=np.array([number if counted else 0], np.int64),
        time=np.array([number], np.int64),
        digest=np.array([number], np.int64),
        status=np.zeros(1, np.uint8),
        first=np.array([0, len(causes)], np.int64),
        cause_name=_text(names),
        cause_count=np.array([cause if counted else 0 for cause in causes], np.int64),
    )


def _text(names: list[bytes]) -> Text:
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    return Text(np.frombuffer(b"".join(names), np.uint8), ends)
