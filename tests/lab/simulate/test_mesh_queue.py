"""The queue of compiled engines gives what a heap of (time, ticket) gives."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.lab.simulate.compiled import queue as sim_queue
from antecede.tables.kernels.jit import njit

LONGEST_US = 1000


@njit
def _put(queue, time, cargo):  # type: ignore[no-untyped-def]
    sim_queue.put(queue, time, cargo)


@njit
def _settle(queue):  # type: ignore[no-untyped-def]
    sim_queue.merge_late(queue)


@njit
def _entry(queue, entry):  # type: ignore[no-untyped-def]
    return sim_queue.decode_time(queue, entry), sim_queue.decode_cargo(entry)


EVENTS = st.lists(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 80), st.integers(0, LONGEST_US))),
    max_size=80,
)


@given(st.lists(st.integers(0, LONGEST_US), min_size=1), EVENTS)
def test_order_of_a_heap_by_time_and_ticket(first: list[int], follow: list[list[int]]) -> None:
    total = len(first) + sum(map(len, follow))
    queue = sim_queue.make_queue(LONGEST_US, total)
    heap: list[tuple[int, int]] = []
    put = 0
    for time in first:
        _put(queue, np.uint64(time), np.uint64(put))
        heapq.heappush(heap, (time, put))
        put += 1
    found, expected = [], []
    bucket, done = 0, 0
    at = queue.counters
    while int(at.unopened) or heap:
        sim_queue.open_bucket(queue, np.uint64(bucket))
        while at.next < at.end:
            time, cargo = _entry(queue, queue.now[at.next])
            at.next += np.uint64(1)
            found.append((int(time), int(cargo)))
            expected.append(heapq.heappop(heap))
            for delay in follow[done] if done < len(follow) else ():
                _put(queue, np.uint64(time + delay), np.uint64(put))
                heapq.heappush(heap, (int(time) + delay, put))
                put += 1
            _settle(queue)
            done += 1
        bucket += 1
    assert found == expected
    assert len(found) == put


@pytest.mark.slow
def test_chunks_are_used_again() -> None:
    queue = sim_queue.make_queue(LONGEST_US, 400)
    put: dict[int, list[tuple[int, int]]] = {0: []}
    for bucket in range(500):
        for half in (0, 1):  # chunks of two buckets alternate, and are freed in another order
            for ahead in (1, 2):
                for k in range(31 * (1 + (bucket * ahead + half) % 3)):
                    time = (bucket + ahead) * 64 + k % 64
                    _put(queue, np.uint64(time), np.uint64(k))
                    put.setdefault(bucket + ahead, []).append((time, k))
        sim_queue.open_bucket(queue, np.uint64(bucket))
        found = [_entry(queue, entry) for entry in queue.now[: int(queue.counters.end)]]
        assert found == sorted(put.pop(bucket), key=lambda entry: entry[0])
    assert int(queue.counters.fresh) <= len(queue.pool)
