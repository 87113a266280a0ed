"""Orders without causes, and their cost on the same arrivals.

arrival     take every row as it comes: nothing waits, effects come before causes
timestamp   sort the finished data by the sender's timestamp: skewed clocks invert edges
watermark   buffer, release in timestamp order once the watermark (greatest timestamp seen,
            less a width) has passed a row; a row that arrives behind the watermark is dropped

An edge (cause, effect) is inverted when both are released and the effect goes first, and broken
when only the cause was dropped.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from antecede.quantiles import quantile

NS_PER_MS = 1e6


class Arrival(NamedTuple):
    """One row of a stream: receiver, id and causes, both clocks in nanoseconds."""

    stream: str
    id: str
    causes: tuple[str, ...]
    arrived_ns: int
    sent_ns: int


class BaselineOutcome(NamedTuple):
    """Result of a scheme: counts of rows and edges, and each released row's wait."""

    scheme: str
    rows: int
    dropped: int
    inverted: int
    broken: int
    waits_ms: tuple[float, ...]
    """One a released row, ascending; rows flushed at the end of the data are left out."""
    flushed: int = 0  # Rows that still waited when the data ended

    def wait_ms(self, fraction: float) -> float | None:
        """Return the wait of this part of the rows (0 to 1), by nearest rank; None without rows."""
        return quantile(self.waits_ms, fraction) if self.waits_ms else None


def streams(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    """Return the arrivals of each stream in the order of their arrival."""
    split: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        split[arrival.stream].append(arrival)
    for rows in split.values():
        rows.sort(key=lambda row: row.arrived_ns)
    return dict(split)


def as_they_come(split: Mapping[str, Sequence[Arrival]]) -> BaselineOutcome:
    """Deliver on arrival."""
    total = sum(len(rows) for rows in split.values())
    inverted, broken = _count_violations(split, split)
    return BaselineOutcome("as they come", total, 0, inverted, broken, (0.0,) * total)


def by_timestamp(split: Mapping[str, Sequence[Arrival]]) -> BaselineOutcome:
    """Sort each finished stream by the senders' timestamps (ties by id)."""
    order = {
        name: sorted(rows, key=lambda row: (row.sent_ns, row.id)) for name, rows in split.items()
    }
    inverted, broken = _count_violations(split, order)
    total = sum(len(rows) for rows in split.values())
    return BaselineOutcome("sort by timestamp", total, 0, inverted, broken, ())


def by_watermark(
    split: Mapping[str, Sequence[Arrival]], width_ns: int, label: str
) -> BaselineOutcome:
    """Buffer behind a watermark of that width, and sort by timestamp what it lets go."""
    order: dict[str, list[Arrival]] = {}
    waits: list[float] = []
    flushed = 0
    for name, rows in split.items():
        released, stream_waits, left = _apply_watermark(rows, width_ns)
        order[name] = released
        waits += stream_waits
        flushed += left
    total = sum(len(rows) for rows in split.values())
    inverted, broken = _count_violations(split, order)
    dropped = total - sum(len(rows) for rows in order.values())
    scheme = f"watermark {label}"
    return BaselineOutcome(scheme, total, dropped, inverted, broken, tuple(sorted(waits)), flushed)


def _apply_watermark(
    rows: Sequence[Arrival], width_ns: int
) -> tuple[list[Arrival], list[float], int]:
    """Return released rows in order, their waits in ms, and how many the end of data flushed."""
    buffer: list[tuple[int, str, Arrival]] = []
    released: list[Arrival] = []
    waits: list[float] = []
    newest = None
    for row in rows:
        if newest is not None and row.sent_ns < newest - width_ns:
            continue
        newest = row.sent_ns if newest is None else max(newest, row.sent_ns)
        heapq.heappush(buffer, (row.sent_ns, row.id, row))
        while buffer and buffer[0][0] <= newest - width_ns:
            passed = heapq.heappop(buffer)[2]
            released.append(passed)
            waits.append((row.arrived_ns - passed.arrived_ns) / NS_PER_MS)
    left = len(buffer)
    released += (heapq.heappop(buffer)[2] for _ in range(left))
    return released, waits, left


def _count_violations(
    split: Mapping[str, Sequence[Arrival]], order: Mapping[str, Sequence[Arrival]]
) -> tuple[int, int]:
    """Return how many edges are inverted and how many lost their cause."""
    inverted = broken = 0
    for name, rows in split.items():
        there = {row.id for row in rows}
        place = {row.id: position for position, row in enumerate(order[name])}
        for row in order[name]:
            for cause in row.causes:
                if cause not in there:
                    continue
                if cause not in place:
                    broken += 1
                elif place[cause] > place[row.id]:
                    inverted += 1
    return inverted, broken
