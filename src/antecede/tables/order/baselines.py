"""Orders without causes, and their cost on the same arrivals.

- arrival: deliver each row on arrival; effects come before causes
- timestamp: sort the finished data by the sender's timestamp; skewed clocks invert edges
- watermark: buffer, and release in timestamp order; drop rows behind the watermark, which is the
  greatest timestamp seen, less a width

An edge is inverted when both ends are released and the effect comes first. It is broken when only
the cause was dropped.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from antecede.quantiles import quantile

NS_PER_MS = 1e6


class Arrival(NamedTuple):
    """Row of a stream: receiver, id and causes, both clocks in nanoseconds."""

    stream: str
    id: str
    causes: tuple[str, ...]
    arrived_ns: int
    sent_ns: int


class BaselineOutcome(NamedTuple):
    """Result of a scheme: counts of rows and edges, and the wait of each released row."""

    scheme: str
    rows: int
    dropped: int
    inverted: int
    broken: int
    waits_ms: tuple[float, ...]
    """Wait of each released row, ascending; without rows flushed at the end of the data."""
    flushed: int = 0  # rows released at the end of the data

    def wait_ms(self, fraction: float) -> float | None:
        """Return the wait quantile at a fraction (0 to 1), by nearest rank; None without rows."""
        return quantile(self.waits_ms, fraction) if self.waits_ms else None


def streams(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    """Return the rows of each stream, sorted by arrival."""
    split: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        split[arrival.stream].append(arrival)
    for rows in split.values():
        rows.sort(key=lambda row: row.arrived_ns)
    return dict(split)


def as_they_come(split: Mapping[str, Sequence[Arrival]]) -> BaselineOutcome:
    """Deliver each row on arrival."""
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
    """Buffer rows behind a watermark of that width, and release them in timestamp order."""
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
    """Return released rows in order, their waits in ms, and the number flushed at the end."""
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
