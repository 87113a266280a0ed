"""Time and written bytes of a step of one shard, by numbers of known ids and held rows."""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pyarrow as pa

from antecede.tables.order.stream import ControlColumns, Memory, Shard, ShardPlan, Text

SMALL = 1_000
LARGE = 50_000
GROUPS = 1_000
STEPS = 40


def make_texts(names: list[str], width: int) -> Text:
    data = np.array(names, dtype=f"S{width}")
    ends = np.arange(0, width * len(names) + 1, width)
    return Text(np.frombuffer(data.tobytes(), np.uint8).copy(), ends)


def make_rows(begin: int, end: int, held: bool) -> ControlColumns:
    """Return rows begin..end, each naming the previous one in its group; held: a missing one."""
    number = np.arange(begin, end)
    cause = number - GROUPS
    has = np.ones(len(number), np.bool_) if held else cause >= 0
    names = [f"{'lost' if held else ''}{k:032x}"[-32:] + "-abc" for k in cause[has]]
    if held:
        names = [f"lost{k:028x}-abc" for k in number]
    return ControlColumns(
        group=make_texts([f"group-{k % GROUPS:06d}" for k in number], 12),
        name=make_texts([f"{k:032x}-abc" for k in number], 36),
        number=np.zeros(len(number), np.int64),
        time=number,
        digest=number,
        status=np.zeros(len(number), np.uint8),
        first=np.concatenate([[0], np.cumsum(has)]),
        cause_name=make_texts(names, 36),
        cause_count=np.zeros(len(names), np.int64),
    )


def run_step(state: Memory, begin: int, size: int, held: bool = False) -> tuple[float, int]:
    batch, users = make_rows(begin, begin + size, held), pa.table({"row": np.arange(size)})
    start = time.process_time()
    shard = Shard(ShardPlan(counted=False, timed=True), state)
    shard.step(batch, begin + size, users)
    return time.process_time() - start, shard.parts.written


def measure(remembered: int, waiting: int) -> None:
    state, at, large = Memory(), 0, 0.0
    while at < remembered:
        size = min(LARGE, remembered - at)
        large = run_step(state, at, size)[0] / size
        at += size
    for begin in range(0, waiting, LARGE):
        run_step(state, 10**9 + begin, min(LARGE, waiting - begin), held=True)
    taken = [run_step(state, at + k * SMALL, SMALL) for k in range(STEPS)]
    print(
        f"{remembered:12,} ids {waiting:10,} rows held   {SMALL:,} rows: "
        f"{statistics.median(t for t, _ in taken) * 1e3:5.1f} ms, "
        f"{sum(w for _, w in taken) / STEPS / SMALL:4.0f} bytes a row written; "
        f"{LARGE:,} rows: {large * 1e6:4.2f} us a row; "
        f"state {sum(map(len, state.values())) / 1e6:,.0f} MB in {len(state)} parts",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="thirty million ids, too")
    args = parser.parse_args()
    measure(10_000, 0)  # compiles, or loads what is compiled
    for remembered in (10_000, 1_000_000, 4_000_000, *((30_000_000,) if args.full else ())):
        measure(remembered, 0)
    measure(10_000, 1_000_000)


if __name__ == "__main__":
    main()
