"""Queue of the compiled engines: arrivals in the order of (time, ticket).

Theory of operation
-------------------
A bucket holds the arrivals of 64 us, in a ring as long as the longest delay. An arrival is a word
of 64 bits: 6 bits of time within the bucket, then at most `CARGO_BITS` bits of receiver and
message. A bucket is a chain of chunks of a common pool, so an arrival is one store.

A bucket is sorted when it is opened, by a counting sort into `now` that keeps the order of equal
times, which is the order of tickets. Arrivals for the open bucket go to `late`. `settle` merges
them behind those of the same time, after each event that may add some.

    open_bucket(queue, bucket)              ascending; none left out, unless at.left is 0
    while queue.at.next < queue.at.end:     the entry is queue.now[queue.at.next]
        queue.at.next += 1                  before the event, which may put, and then settles

A heap makes an engine 2.3 times slower.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.compiled.records import make_record
from antecede.tables.kernels import inlined_lent as inlined
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

    open: np.uint64  # the open bucket
    next: np.uint64  # the place in `now` of the next entry
    end: np.uint64  # the place in `now` after the last entry
    late: np.uint64  # number of entries of the open bucket that are not merged yet
    unopened: np.uint64  # number of entries in buckets that were not opened yet
    free: np.uint64  # first unused chunk, 0: none
    fresh: np.uint64  # first chunk that was never used


class Queue(NamedTuple):
    """The queue's arrays; `make_queue` makes them, the functions below change them."""

    pool: Words  # [chunks * 32] entries
    first: Words  # [buckets] place in the pool of the first chunk
    tail: Words
    """[buckets] place of the next entry; 0: the bucket is empty; a multiple of 32: its chunk is
    full."""
    now: Words  # entries of the open bucket in their order
    late: Words  # entries for the open bucket that came after it was opened
    offsets: Words  # [65] of the counting sort
    counters: QueueCounters
    mask: np.uint64  # number of buckets, a power of two, less one


def make_queue(longest_us: int, max_entries: int) -> Queue:
    """Return an empty queue for delays to `longest_us`, with at most `most` entries under way.

    An entry is under way until the next bucket is opened: up to 64 us longer than on the network.
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
    """Return the memory of `make_queue(longest_us, most)` at most."""
    buckets = 1 << int((longest_us >> 6) + 1).bit_length()
    return 8 * (3 * max_entries + 34 * buckets + max_entries // int(_INNER) + 256)


@inlined
def put(queue: Queue, time: np.uint64, cargo: np.uint64) -> None:
    """Add an arrival at `time` (us), within the open bucket or the longest delay behind it.

    After a put into the open bucket, call `settle` before the next entry.
    """
    bucket = time >> BUCKET_BITS
    entry = ((time & _WITHIN) << CARGO_BITS) | cargo
    if bucket == queue.counters.open:
        queue.late[queue.counters.late] = entry
        queue.counters.late += _1
    else:
        ring = bucket & queue.mask
        place = queue.tail[ring]
        if place & _INNER == _0:
            place = _add_chunk(queue, ring, place)
        queue.pool[place] = entry
        queue.tail[ring] = place + _1
        queue.counters.unopened += _1


@inlined
def decode_time(queue: Queue, entry: np.uint64) -> np.uint64:
    """Return the time in us of an entry of the open bucket."""
    return np.uint64((queue.counters.open << BUCKET_BITS) | (entry >> CARGO_BITS))


@inlined
def decode_cargo(entry: np.uint64) -> np.uint64:
    """Return what was put."""
    return entry & _CARGO


@njit
def _add_chunk(queue: Queue, ring: np.uint64, place: np.uint64) -> np.uint64:
    """Give a bucket one more chunk; return the place of its first entry."""
    chunk = queue.counters.free
    if chunk == _0:
        chunk = queue.counters.fresh
        queue.counters.fresh += _CHUNK
    else:
        queue.counters.free = queue.pool[chunk]
    if place == _0:
        queue.first[ring] = chunk
    else:
        queue.pool[place - _CHUNK] = chunk
    return np.uint64(chunk + _1)


@njit
def open_bucket(queue: Queue, bucket: np.uint64) -> None:
    """Open a bucket: its entries stand in `now`, in order; its chunks are free again."""
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
        for place in range(chunk + _1, tail if last else chunk + _CHUNK):
            entry = queue.pool[place]
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
    """Set `places` to where the entries of each microsecond begin, and END."""
    queue.offsets[:] = _0
    while True:
        last = tail - chunk - _1 < _CHUNK
        for place in range(chunk + _1, tail if last else chunk + _CHUNK):
            queue.offsets[(queue.pool[place] >> CARGO_BITS) + _1] += _1
        if last:
            break
        chunk = queue.pool[chunk]
    for within in range(_1, np.uint64(65)):
        queue.offsets[within] += queue.offsets[within - _1]
    queue.counters.end = queue.offsets[_WITHIN + _1]


@inlined
def merge_late(queue: Queue) -> None:
    """Merge what was put into the open bucket; cheap when that is nothing."""
    if queue.counters.late != _0:
        _merge(queue)


@njit
def _merge(queue: Queue) -> None:
    """Sort `late` by time and merge it into what is left of `now`, from the end."""
    late = queue.counters.late
    for k in range(_1, late):
        entry = queue.late[k]
        place = np.uint64(k)
        while place > _0 and queue.late[place - _1] >> CARGO_BITS > entry >> CARGO_BITS:
            queue.late[place] = queue.late[place - _1]
            place -= _1
        queue.late[place] = entry
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
