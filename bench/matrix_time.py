"""Costs of rule R2 of matrix time, with numpy for comparison, and of a message with a matrix.

python -m bench.matrix_time
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable

import numpy as np

from antecede.core.clocks import join_rows
from antecede.core.protocols.matrix.matrix import Matrix
from bench.receive_path import measure_receive_us
from bench.traffic import synthetic
from examples.clocks.matrix import MatrixClock

SIDES = (10, 100, 300)
MESSAGES = 20
REPEATS = 9


def main() -> None:
    print("us:       R2 by rows   one integer   np.maximum   receive   encode   decode     bytes")
    for side in SIDES:
        print(f"n = {side:<5}{_format_row(side)}", flush=True)


def _format_row(side: int) -> str:
    stream = synthetic.make_matrix(side, MESSAGES)
    observer, last = stream.make(), stream.messages[-1]
    assert isinstance(observer, Matrix)
    one, other = (MatrixClock(join_rows(m, side), side) for m in (observer.matrix, last.rows))
    arrays = [np.array(clock.rows, dtype=np.int64) for clock in (one, other)]
    control = observer.encode(last)
    # A member that learns from an undelivered message has a state that cannot be stored.
    learner = copy.deepcopy(observer)
    times = [
        _measure_us(lambda: learner.learn(last)),
        _measure_us(lambda: one.merge(other)),
        _measure_us(lambda: np.maximum(arrays[0], arrays[1])),
        measure_receive_us(observer, stream.messages),
        _measure_us(lambda: observer.encode(last)),
        _measure_us(lambda: observer.decode(control, None)),
    ]
    places = zip(times, (12, 14, 13, 10, 9, 9), strict=True)
    return "".join(f"{time_us:{wide}.1f}" for time_us, wide in places) + f"{len(control):10,}"


def _measure_us(call: Callable[[], object]) -> float:
    times = 20
    spent = []
    for _ in range(REPEATS):
        before = time.process_time()
        for _ in range(times):
            call()
        spent.append(time.process_time() - before)
    return statistics.median(spent) / times * 1e6


if __name__ == "__main__":
    main()
