"""Model of a watermark and of causal release on the same arrivals, by micro-batch.

Time advances in ticks, the triggers of a query. A row is in the first micro-batch at or after its
arrival, and waits until the micro-batch that releases it.

`run_watermark` models a stateful operator that buffers rows and emits them sorted by event time
when the watermark has passed. It follows Spark (`tests/spark/test_watermark_model.py` compares
them):

- The watermark of a micro-batch is max(event time) - delay over all rows of earlier ones, dropped
  rows included. It never decreases.
- A row with event time <= the watermark of the previous micro-batch is dropped.
- A row with event time <= the watermark leaves.
- A trigger without rows runs a micro-batch if the watermark has moved.

`run_causal` models `antecede.spark.order` with the arrival as `time`. A row leaves when its causes
have left. Missing causes: `patience_ms` None holds the row forever (on_missing="hold"), else they
are ignored that long after the row's arrival (on_missing="release").
`tests/bench/test_watermark_curve.py` compares it with the engine.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

NEVER = -1
SETTLED_MS = 14 * 86_400_000
"""Twice the longest delay and patience."""


class FeedRow(NamedTuple):
    """Row of a feed, in ms; `causes` are row numbers."""

    arrived: int
    stamp: int
    causes: tuple[int, ...] = ()
    absent: int = 0
    """Number of missing causes."""


class ModelRun(NamedTuple):
    """Outcome of each row of a feed."""

    came: list[int]
    """Tick of its micro-batch."""
    left: list[int]
    """Tick in which it left; NEVER: dropped, or held at the end."""
    dropped: list[bool]
    place: list[tuple[int, ...]]
    """Sort key of rows that left."""


def group_batches(rows: Sequence[FeedRow], tick_ms: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the micro-batches that have rows: tick, and row numbers."""
    order = sorted(range(len(rows)), key=lambda k: (rows[k].arrived, k))
    for tick, some in groupby(order, key=lambda k: -(-rows[k].arrived // tick_ms)):
        yield tick, list(some)


def run_watermark(rows: Sequence[FeedRow], delay_ms: int, tick_ms: int) -> ModelRun:
    """Buffer and sort behind a watermark on `stamp`, as Spark does."""
    run = _make_empty_run(rows)
    buffer: list[tuple[int, int]] = []
    late = mark = newest = 0  # the first watermark is 1970
    last: int | None = None

    def leave(tick: int) -> None:
        while buffer and buffer[0][0] <= mark:
            stamp, k = heapq.heappop(buffer)
            run.left[k], run.place[k] = tick, (tick, stamp, k)

    def without_rows(tick: int) -> None:
        nonlocal late, mark
        if newest - delay_ms > mark:
            late, mark = mark, newest - delay_ms
            leave(tick)

    for tick, some in group_batches(rows, tick_ms):
        if last is not None and tick > last + 1:
            without_rows(last + 1)
        late, mark = mark, max(mark, newest - delay_ms)
        for k in some:
            run.came[k] = tick
            run.dropped[k] = rows[k].stamp <= late
            if not run.dropped[k]:
                heapq.heappush(buffer, (rows[k].stamp, k))
            newest = max(newest, rows[k].stamp)
        leave(tick)
        last = tick
    if last is not None:
        without_rows(last + 1)
    return run


def run_causal(rows: Sequence[FeedRow], patience_ms: int | None, tick_ms: int) -> ModelRun:
    """Release every row after its causes; None: wait forever for missing ones."""
    run = _make_empty_run(rows)
    effects: list[list[int]] = [[] for _ in rows]
    for k, row in enumerate(rows):
        for cause in row.causes:
            effects[cause].append(k)
    open_ = [len(row.causes) + row.absent for row in rows]
    """Number of causes that hold the row."""
    unseen: list[set[int]] = [set(row.causes) for row in rows]
    """Causes that have not arrived yet."""
    given_up = [False] * len(rows)
    patient: list[tuple[int, int]] = []
    gone = 0

    def settle(ready: list[int], tick: int) -> None:
        nonlocal gone
        while ready:
            k = ready.pop()
            if run.left[k] != NEVER or run.came[k] == NEVER or open_[k]:
                continue
            run.left[k], run.place[k] = tick, (tick, gone)
            gone += 1
            for effect in effects[k]:
                if not given_up[effect] or k not in unseen[effect]:
                    open_[effect] -= 1
                    ready.append(effect)

    for tick, some in group_batches(rows, tick_ms):
        for k in some:
            run.came[k] = tick
            for effect in effects[k]:
                if not given_up[effect]:
                    unseen[effect].discard(k)
            heapq.heappush(patient, (rows[k].arrived, k))
        cutoff = None if patience_ms is None else max(rows[k].arrived for k in some) - patience_ms
        ready = list(some)
        while cutoff is not None and patient and patient[0][0] <= cutoff:
            k = heapq.heappop(patient)[1]
            if run.left[k] == NEVER:
                given_up[k] = True
                open_[k] -= rows[k].absent + len(unseen[k])
                ready.append(k)
        settle(sorted(ready, reverse=True), tick)
    return run


def compute_earliest(rows: Sequence[FeedRow], tick_ms: int) -> list[int]:
    """Return the earliest tick of each row in causal order, with hindsight."""
    return run_causal([row._replace(absent=0) for row in rows], None, tick_ms).left


class ModelMetrics(NamedTuple):
    """Costs and errors of a run; times in ms.

    Waits are those of the `settled` rows, which arrived SETTLED_MS before the end of the data or
    earlier. A wait that never ended is longer than all others, and is None as a quantile.
    """

    rows: int
    pairs: int
    """Pairs of a row and one of its causes, both in the feed."""
    absent: int
    """Missing causes."""
    dropped: int
    judged: int
    """Pairs whose effect left."""
    inverted: int
    """Pairs whose effect left before its cause."""
    broken: int
    """Pairs whose cause was dropped and whose effect left."""
    settled: int
    stuck: int
    """Settled rows that never left, and were not dropped."""
    unnecessary: int
    """Settled rows that left later than their last existing cause arrived."""
    unnecessary_mean: int
    """Mean of that delay over the settled rows that left."""
    wait_p50: int | None
    wait_p99: int | None
    wait_max: int | None
    buffered_most: int
    buffered_mean: float
    """Rows held after a micro-batch: maximum, and mean over time."""
    remembered: int
    """Known ids at the end (causal release without `state_ttl`)."""


def compute_metrics(
    rows: Sequence[FeedRow], run: ModelRun, need: Sequence[int], tick_ms: int, *, remembers: bool
) -> ModelMetrics:
    """Compute the metrics of a run; `need` is the result of `compute_earliest`."""
    end = max(run.came) - -(-SETTLED_MS // tick_ms)
    settled = [k for k in range(len(rows)) if run.came[k] <= end and not run.dropped[k]]
    out = [k for k in settled if run.left[k] != NEVER]
    waits = [tick_ms * wait for wait in sorted(run.left[k] - run.came[k] for k in out)]
    without = [run.left[k] - need[k] for k in out if run.left[k] > need[k]]
    judged, inverted, broken = _count_wrong_pairs(rows, run)
    most, mean = _measure_buffer(run)
    return ModelMetrics(
        rows=len(rows),
        pairs=sum(len(row.causes) for row in rows),
        absent=sum(row.absent for row in rows),
        dropped=sum(run.dropped),
        judged=judged,
        inverted=inverted,
        broken=broken,
        settled=len(settled),
        stuck=len(settled) - len(out),
        unnecessary=len(without),
        unnecessary_mean=round(sum(without) * tick_ms / max(len(out), 1)),
        wait_p50=_find_quantile(waits, len(settled), 0.5),
        wait_p99=_find_quantile(waits, len(settled), 0.99),
        wait_max=_find_quantile(waits, len(settled), 1.0),
        buffered_most=most,
        buffered_mean=round(mean, 1),
        remembered=len(rows) if remembers else 0,
    )


def _count_wrong_pairs(rows: Sequence[FeedRow], run: ModelRun) -> tuple[int, int, int]:
    """Return the numbers of pairs whose effect left, of inverted ones, and of dropped causes."""
    judged = inverted = broken = 0
    for k, row in enumerate(rows):
        if run.left[k] == NEVER:
            continue
        judged += len(row.causes)
        for cause in row.causes:
            if run.dropped[cause]:
                broken += 1
            elif run.left[cause] == NEVER or run.place[cause] > run.place[k]:
                inverted += 1
    return judged, inverted, broken


def _measure_buffer(run: ModelRun) -> tuple[int, float]:
    """Return the maximum and the mean over time of rows held after a micro-batch."""
    first, last = min(run.came), max(*run.came, *run.left)
    change: dict[int, int] = {}
    total = 0
    for came, left, dropped in zip(run.came, run.left, run.dropped, strict=True):
        if dropped or came == left:
            continue
        end = last if left == NEVER else left
        total += end - came
        change[came] = change.get(came, 0) + 1
        change[end] = change.get(end, 0) - (left != NEVER)
    held = most = 0
    for tick in sorted(change):
        held += change[tick]
        most = max(most, held)
    return most, total / max(last - first, 1)


def _find_quantile(waits: Sequence[int], count: int, part: float) -> int | None:
    """Return a quantile (nearest rank) of `count` waits; those not in `waits` never ended."""
    rank = min(int(part * count), count - 1)
    return waits[rank] if 0 <= rank < len(waits) else None


def _make_empty_run(rows: Sequence[FeedRow]) -> ModelRun:
    n = len(rows)
    return ModelRun([NEVER] * n, [NEVER] * n, [False] * n, [()] * n)
