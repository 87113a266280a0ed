"""Event queue of the compiled engines: arrivals in the order of (time, sequence).

Theory of operation
-------------------
A bucket holds the arrivals of 64 us, in a ring as long as the longest delay. An arrival is a word
of 64 bits: 6 bits of time within the bucket, then at most `CARGO_BITS` bits of receiver and
message. A bucket is a chain of chunks of a common pool, so adding an arrival is one store. A heap
makes an engine 2.3 times slower.

A bucket is sorted when it is opened, by a counting sort into `now` that keeps the sequence of equal
times. Arrivals for the open bucket go to `late`. `merge_late` merges them behind those of the same
time, after each event that may add some.

    open_bucket(queue, bucket)              ascending, without gaps unless `unopened` is 0
    while counters.next < counters.end:     the entry is queue.now[counters.next]
        counters.next += 1                  before the event, which may put, then merge_late
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.compiled.records import make_record
from antecede.tables.kernels import inline_lent as inlined
from antecede.tables.kernels import njit_lent as njit

Words = npt.NDArray[np.uint64]

BUCKET_BITS = np.uint64(6)
CARGO_BITS = np.uint64(58)
_WITHIN = np.uint64(63)
_CARGO = np.uint64((1 << 58) - 1)
_CHUNK = np.uint64(32)  # words of a chunk: the first names the next chunk, or the next free one
_INNER = np.uint64(31)
_0, _1 = np.uint64(0), np.uint64(1)


class QueueCounters:
    """Scalars of the queue."""

    open: np.uint64  # The open bucket
    next: np.uint64  # Index in `now` of the next entry
    end: np.uint64  # Index in `now` after the last entry
    late: np.uint64  # Unmerged entries of the open bucket
    unopened: np.uint64  # Entries in buckets that were not opened yet
    free: np.uint64  # First unused chunk, 0: none
    fresh: np.uint64  # First chunk that was never used


class Queue(NamedTuple):
    """Arrays of the queue, made by `make_queue`."""

    pool: Words  # [chunks * 32] Entries
    first: Words  # [buckets] Index in the pool of the first chunk
    tail: Words  # [buckets] Index of the next entry. 0: empty; a multiple of 32: its chunk is full.
    now: Words  # Entries of the open bucket, sorted
    late: Words  # Entries for the open bucket that came after it was opened
    offsets: Words  # [65] For the counting sort
    counters: QueueCounters
    mask: np.uint64  # Number of buckets, a power of two, minus one


def make_queue(longest_us: int, max_entries: int) -> Queue:
    """Return an empty queue for delays up to `longest_us` and `max_entries` entries.

    An entry stays until the next bucket is opened: up to 64 us longer than on the network.
    """
    buckets = 1 << int((longest_us >> 6) + 1).bit_length()
    chunks = max_entries // int(_INNER) + buckets + 2
    at = make_record(QueueCounters)
    at.fresh = _CHUNK
    at.open = np.uint64(2**64 - 1)
    return Queue(
        pool=np.empty(chunks * int(_CHUNK), np.uint64),
        first=np.zeros(buckets, np.uint64),
        tail=np.zeros(buckets, np.uint64),
        now=np.empty(max_entries + 1, np.uint64),
        late=np.empty(max_entries + 1, np.uint64),
        offsets=np.zeros(65, np.uint64),
        counters=at,
        mask=np.uint64(buckets - 1),
    )


def compute_queue_bytes(longest_us: int, max_entries: int) -> int:
    """Return the memory of `make_queue(longest_us, max_entries)`, an upper limit."""
    buckets = 1 << int((longest_us >> 6) + 1).bit_length()
    return 8 * (3 * max_entries + 34 * buckets + max_entries // int(_INNER) + 256)


@inlined
def put(queue: Queue, time: np.uint64, cargo: np.uint64) -> None:
    """Add an arrival at `time` (us), within the longest delay. Call `merge_late` before reading."""
    bucket = time >> BUCKET_BITS
    entry = ((time & _WITHIN) << CARGO_BITS) | cargo
    if bucket == queue.counters.open:
        queue.late[queue.counters.late] = entry
        queue.counters.late += _1
    else:
        ring = bucket & queue.mask
        position = queue.tail[ring]
        if position & _INNER == _0:
            position = _add_chunk(queue, ring, position)
        queue.pool[position] = entry
        queue.tail[ring] = position + _1
        queue.counters.unopened += _1


@inlined
def decode_time(queue: Queue, entry: np.uint64) -> np.uint64:
    """Return the time in us of an entry of the open bucket."""
    return np.uint64((queue.counters.open << BUCKET_BITS) | (entry >> CARGO_BITS))


@inlined
def decode_cargo(entry: np.uint64) -> np.uint64:
    """Return the cargo of an entry."""
    return entry & _CARGO


@njit
def _add_chunk(queue: Queue, ring: np.uint64, position: np.uint64) -> np.uint64:
    """Add a chunk to a bucket. Return the index of its first entry."""
    chunk = queue.counters.free
    if chunk == _0:
        chunk = queue.counters.fresh
        queue.counters.fresh += _CHUNK
    else:
        queue.counters.free = queue.pool[chunk]
    if position == _0:
        queue.first[ring] = chunk
    else:
        queue.pool[position - _CHUNK] = chunk
    return np.uint64(chunk + _1)


@njit
def open_bucket(queue: Queue, bucket: np.uint64) -> None:
    """Sort a bucket into `now` and release its chunks."""
    ring = bucket & queue.mask
    tail = queue.tail[ring]
    queue.counters.open = bucket
    queue.counters.next = _0
    queue.counters.end = _0
    if tail == _0:
        return
    queue.tail[ring] = _0
    _count_entries(queue, queue.first[ring], tail)
    chunk = queue.first[ring]
    while True:
        last = tail - chunk - _1 < _CHUNK
        for position in range(chunk + _1, tail if last else chunk + _CHUNK):
            entry = queue.pool[position]
            within = entry >> CARGO_BITS
            queue.now[queue.offsets[within]] = entry
            queue.offsets[within] += _1
        after = queue.pool[chunk]
        queue.pool[chunk] = queue.counters.free
        queue.counters.free = chunk
        if last:
            break
        chunk = after
    queue.counters.unopened -= queue.counters.end


@inlined
def _count_entries(queue: Queue, chunk: np.uint64, tail: np.uint64) -> None:
    queue.offsets[:] = _0
    while True:
        last = tail - chunk - _1 < _CHUNK
        for position in range(chunk + _1, tail if last else chunk + _CHUNK):
            queue.offsets[(queue.pool[position] >> CARGO_BITS) + _1] += _1
        if last:
            break
        chunk = queue.pool[chunk]
    for within in range(_1, np.uint64(65)):
        queue.offsets[within] += queue.offsets[within - _1]
    queue.counters.end = queue.offsets[_WITHIN + _1]


@inlined
def merge_late(queue: Queue) -> None:
    """Merge entries that were put into the open bucket."""
    if queue.counters.late != _0:
        _merge(queue)


@njit
def _merge(queue: Queue) -> None:
    late = queue.counters.late
    for k in range(_1, late):
        entry = queue.late[k]
        position = np.uint64(k)
        while position > _0 and queue.late[position - _1] >> CARGO_BITS > entry >> CARGO_BITS:
            queue.late[position] = queue.late[position - _1]
            position -= _1
        queue.late[position] = entry
    old = queue.counters.end
    queue.counters.end = old + late
    queue.counters.late = _0
    while late > _0:
        entry = queue.late[late - _1]
        if old > queue.counters.next and queue.now[old - _1] >> CARGO_BITS > entry >> CARGO_BITS:
            entry = queue.now[old - _1]
            old -= _1
        else:
            late -= _1
        queue.now[old + late] = entry
