"""What the matrix of `sent` costs beside numpy: the maximum of two, and all of receiving.

    python -m bench.matrix_merge

Microseconds, medians of processor time. The two matrices differ in about half of their entries.
`decode` makes the messages of their bytes, and `receive` delivers these at once.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from antecede.clocks.lanes import guards, merge, pack
from bench import addressed_traffic

MEMBERS = (10, 30, 100, 300)
REPEATS = 51


def main() -> None:
    """Print the table."""
    print(f"{'members':>8}{'maximum':>10}{'int32':>8}{'int64':>8}{'receive':>10}{'decode':>9}")
    for members in MEMBERS:
        row = [_maximum_us(members), *_numpy_us(members), *_receive_us(members)]
        widths = (10, 8, 8, 10, 9)
        print(f"{members:8}", *(f"{us:{w}.1f}" for us, w in zip(row, widths, strict=True)), sep="")


def _counts(members: int) -> tuple[list[int], list[int]]:
    draw = random.Random(1)
    one = [draw.randint(100, 120) for _ in range(members * members)]
    return one, [count + draw.choice((-1, 0, 0, 1)) for count in one]


def _maximum_us(members: int) -> float:
    one, other = (pack(enumerate(counts)) for counts in _counts(members))
    guard = guards(members * members)
    return _median_us(lambda: merge(one, other, guard))


def _numpy_us(members: int) -> list[float]:
    found = []
    for kind in (np.int32, np.int64):
        one, other = (np.array(counts, kind) for counts in _counts(members))
        found.append(_median_us(partial(np.maximum, one, other)))
    return found


def _receive_us(members: int) -> tuple[float, float]:
    ((observer, stream),) = addressed_traffic.traffic(addressed_traffic.sent, members, 100, (0.0,))
    controls = iter([observer.encode(message) for message in stream])
    decoded: list[Any] = []
    decode = _median_us(lambda: decoded.append(observer.decode(next(controls), None)))
    messages = iter(decoded)
    return _median_us(lambda: observer.receive(next(messages))), decode


def _median_us(call: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPEATS):
        before = time.process_time_ns()
        call()
        spent.append(time.process_time_ns() - before)
    return statistics.median(spent) / 1000


if __name__ == "__main__":
    main()
