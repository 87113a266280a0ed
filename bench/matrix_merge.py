"""Costs of the matrix of `sent`, with numpy for comparison: a maximum, and a receive.

    python -m bench.matrix_merge

Microseconds, medians of processor time. The two matrices differ in about half of their entries.
`decode` decodes the messages, and `receive` delivers them at once; `anew`: no row is the same as in
the previous message.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from antecede.core.clocks import guards, merge, pack
from antecede.core.protocols.multicast.rst import Rst
from antecede.core.protocols.multicast.rst_messages import MatrixBytes
from bench.traffic import synthetic

MEMBERS = (10, 30, 100, 300)
REPEATS = 51
WIDTHS = (8, 10, 8, 8, 10, 9, 14, 9)


def main() -> None:
    names = ("members", "maximum", "int32", "int64", "decode", "receive", "anew: decode", "receive")
    print(*(f"{name:>{w}}" for name, w in zip(names, WIDTHS, strict=True)), sep="")
    for members in MEMBERS:
        row = [
            _measure_maximum_us(members),
            *_measure_numpy_us(members),
            *_measure_arrival_us(members),
        ]
        row += _measure_arrival_us(members, anew=True)
        print(
            f"{members:{WIDTHS[0]}}",
            *(f"{us:{w}.1f}" for us, w in zip(row, WIDTHS[1:], strict=True)),
            sep="",
        )


def _make_counts(members: int) -> tuple[list[int], list[int]]:
    draw = random.Random(1)
    one = [draw.randint(100, 120) for _ in range(members * members)]
    return one, [count + draw.choice((-1, 0, 0, 1)) for count in one]


def _measure_maximum_us(members: int) -> float:
    one, other = (pack(enumerate(counts)) for counts in _make_counts(members))
    guard = guards(members * members)
    return _measure_median_us(lambda: merge(one, other, guard))


def _measure_numpy_us(members: int) -> list[float]:
    found = []
    for kind in (np.int32, np.int64):
        one, other = (np.array(counts, kind) for counts in _make_counts(members))
        found.append(_measure_median_us(partial(np.maximum, one, other)))
    return found


def _measure_arrival_us(members: int, *, anew: bool = False) -> tuple[float, float]:
    stream = synthetic.make_rst(members, 100)
    observer = stream.make()
    assert isinstance(observer, Rst)
    controls = iter([observer.encode(message) for message in stream.messages])
    decoded: list[Any] = []

    def decode() -> None:
        if anew:
            observer.bytes = MatrixBytes()
        decoded.append(observer.decode(next(controls), None))

    decode_us = _measure_median_us(decode)
    messages = iter(decoded)
    return decode_us, _measure_median_us(lambda: observer.receive(next(messages)))


def _measure_median_us(call: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPEATS):
        before = time.process_time_ns()
        call()
        spent.append(time.process_time_ns() - before)
    return statistics.median(spent) / 1000


if __name__ == "__main__":
    main()
