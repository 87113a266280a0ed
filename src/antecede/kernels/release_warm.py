"""The kernels of a stream, run once over two rows, so that its first batch does not wait."""

from __future__ import annotations

import numpy as np

from antecede.kernels.release import Batch, Plan, Shard
from antecede.kernels.release_names import Text


def warm_up(counted: bool) -> None:
    """Compile what a stream by ids (`counted`: by member and number) runs, or load it.

    A shard takes an effect before its cause, and reads its own state back. What is compiled goes
    to the cache on disk, where Spark's workers on this machine find it.
    """
    plan = Plan(counted, timed=True, policy="release", patience=1)
    shard = Shard(plan)
    for number, causes in ((2, [b"1"]), (1, [])):
        name = b"m" if counted else str(number).encode()
        cause_names = [b"m"] * len(causes) if counted else causes
        shard.step(
            Batch(
                group=_text([b"g"]),
                name=_text([name]),
                number=np.array([number], np.int64),
                time=np.array([number], np.int64),
                digest=np.array([number], np.int64),
                status=np.zeros(1, np.uint8),
                first=np.array([0, len(causes)], np.int64),
                cause_name=_text(cause_names),
                cause_count=np.array([int(cause) for cause in causes], np.int64),
            )
        )
        shard = Shard(plan, shard.dump())


def _text(names: list[bytes]) -> Text:
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    return Text(np.frombuffer(b"".join(names), np.uint8), ends)
