"""Traffic of a group with matrix clocks, and what one R2 costs beside numpy.

    python -m bench.matrix_traffic

Every member sends once a round, after it has delivered all that was sent before; so a round
changes every row. No member is simulated one by one, because their messages follow from the
round alone: 300 members with a real matrix each would take minutes. There are at most MESSAGES,
for 300 members 90,000 entries each.
"""

from __future__ import annotations

import copy
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from antecede.clocks import lanes
from antecede.clocks.matrix import joined
from antecede.protocols.base import Protocol
from antecede.protocols.matrix.matrix import Matrix
from antecede.protocols.matrix.messages import MatrixMessage
from examples.clocks.matrix import MatrixClock

MESSAGES = 120
LATE_PLACES = 50
SIDES = (10, 100, 300)
REPEATS = 9


def traffic(members: int, messages: int, share: float) -> tuple[Protocol, list[Any]]:
    """Return an observer (member 0), warm, and messages; `share` of them come late."""
    stream = _rounds(members, members + min(messages, MESSAGES))
    observer = Matrix(0, range(members))
    for message in stream[:members]:
        observer.receive(message)
    rng = random.Random(1)
    later = stream[members:]
    places = [
        k + (rng.uniform(1, LATE_PLACES) if rng.random() < share else 0) for k in range(len(later))
    ]
    return observer, [later[k] for k in sorted(range(len(later)), key=places.__getitem__)]


def _rounds(members: int, messages: int) -> list[MatrixMessage]:
    """Return messages of members 1 .. members - 1 in turn; the observer sends nothing."""
    rows: tuple[int, ...] = (0,) * members
    counts, stream = 0, []
    for k in range(messages):
        sender = 1 + k % (members - 1)
        seq = lanes.get(counts, sender) + 1
        causes = lanes.put(counts, sender, 0)
        counts = lanes.put(counts, sender, seq)
        others = (*rows[:sender], 0, *rows[sender + 1 :])
        stream.append(MatrixMessage(sender, seq, None, causes, others))
        rows = (*rows[:sender], counts, *rows[sender + 1 :])
    return stream


def main() -> None:
    """Print what R2 takes by rows and by maxima, beside numpy, and what the bytes take."""
    print("us:       R2 by rows   one integer   np.maximum   receive   encode   decode     bytes")
    for side in SIDES:
        print(f"n = {side:<5}{_row(side)}", flush=True)


def _row(side: int) -> str:
    observer, arrivals = traffic(side, 2 * SIDES[0], 0.0)
    assert isinstance(observer, Matrix)
    last = arrivals[-1]
    one, other = (MatrixClock(joined(m, side), side) for m in (observer.matrix, last.rows))
    arrays = [np.array(clock.rows, dtype=np.int64) for clock in (one, other)]
    control = observer.encode(last)
    # One that learns from a message that it has not delivered is in no state that could be stored.
    learner = copy.deepcopy(observer)
    times = [
        _us(lambda: learner.learn(last)),
        _us(lambda: one.merge(other)),
        _us(lambda: np.maximum(arrays[0], arrays[1])),
        _receive_us(observer, arrivals),
        _us(lambda: observer.encode(last)),
        _us(lambda: observer.decode(control, None)),
    ]
    places = zip(times, (12, 14, 13, 10, 9, 9), strict=True)
    return "".join(f"{time_us:{wide}.1f}" for time_us, wide in places) + f"{len(control):10,}"


def _us(call: Callable[[], object]) -> float:
    times = 20
    spent = []
    for _ in range(REPEATS):
        before = time.process_time()
        for _ in range(times):
            call()
        spent.append(time.process_time() - before)
    return statistics.median(spent) / times * 1e6


def _receive_us(observer: Matrix, arrivals: list[Any]) -> float:
    start = observer.snapshot()
    spent = []
    for _ in range(REPEATS):
        observer.restore(start)
        before = time.process_time()
        for message in arrivals:
            observer.receive(message)
        spent.append(time.process_time() - before)
    return statistics.median(spent) / len(arrivals) * 1e6


if __name__ == "__main__":
    main()
