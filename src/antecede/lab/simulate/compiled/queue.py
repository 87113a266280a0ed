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

from antecede.lab.simulate.compiled.records import one
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


class Places:
    """Scalars of the queue."""

    open: np.uint64  # the open bucket
    next: np.uint64  # the place in `now` of the next entry
    end: np.uint64  # the place in `now` after the last entry
    late: np.uint64  # number of entries of the open bucket that are not merged yet
    left: np.uint64  # number of entries in buckets that were not opened yet
    free: np.uint64  # first unused chunk, 0: none
    fresh: np.uint64  # first chunk that was never used


class Queue(NamedTuple):
    """The queue's arrays; `new_queue` makes them, the functions below change them."""

    pool: Words  # [chunks * 32] entries
    first: Words  # [buckets] place in the pool of the first chunk
    tail: Words
    """[buckets] place of the next entry; 0: the bucket is empty; a multiple of 32: its chunk is
    full."""
    now: Words  # entries of the open bucket in their order
    late: Words  # entries for the open bucket that came after it was opened
    places: Words  # [65] of the counting sort
    at: Places
    mask: np.uint64  # number of buckets, a power of two, less one


def new_queue(longest_us: int, most: int) -> Queue:
    """Return an empty queue for delays to `longest_us`, with at most `most` entries under way.

    An entry is under way until the next bucket is opened: up to 64 us longer than on the network.
    """
    buckets = 1 << int((longest_us >> 6) + 1).bit_length()
    chunks = most // int(_INNER) + buckets + 2
    at = one(Places)
    at.fresh = _CHUNK
    at.open = np.uint64(2**64 - 1)
    return Queue(
        pool=np.empty(chunks * int(_CHUNK), np.uint64),
        first=np.zeros(buckets, np.uint64),
        tail=np.zeros(buckets, np.uint64),
        now=np.empty(most + 1, np.uint64),
        late=np.empty(most + 1, np.uint64),
        places=np.zeros(65, np.uint64),
        at=at,
        mask=np.uint64(buckets - 1),
    )


def queue_bytes(longest_us: int, most: int) -> int:
    """Return the memory of `new_queue(longest_us, most)` at most."""
    buckets = 1 << int((longest_us >> 6) + 1).bit_length()
    return 8 * (3 * most + 34 * buckets + most // int(_INNER) + 256)


@inlined
def put(queue: Queue, time: np.uint64, cargo: np.uint64) -> None:
    """Add an arrival at `time` (us), within the open bucket or the longest delay behind it.

    After a put into the open bucket, call `settle` before the next entry.
    """
    bucket = time >> BUCKET_BITS
    entry = ((time & _WITHIN) << CARGO_BITS) | cargo
    if bucket == queue.at.open:
        queue.late[queue.at.late] = entry
        queue.at.late += _1
    else:
        ring = bucket & queue.mask
        place = queue.tail[ring]
        if place & _INNER == _0:
            place = _extend(queue, ring, place)
        queue.pool[place] = entry
        queue.tail[ring] = place + _1
        queue.at.left += _1


@inlined
def entry_time(queue: Queue, entry: np.uint64) -> np.uint64:
    """Return the time in us of an entry of the open bucket."""
    return np.uint64((queue.at.open << BUCKET_BITS) | (entry >> CARGO_BITS))


@inlined
def entry_cargo(entry: np.uint64) -> np.uint64:
    """Return what was put."""
    return entry & _CARGO


@njit
def _extend(queue: Queue, ring: np.uint64, place: np.uint64) -> np.uint64:
    """Give a bucket one more chunk; return the place of its first entry."""
    chunk = queue.at.free
    if chunk == _0:
        chunk = queue.at.fresh
        queue.at.fresh += _CHUNK
    else:
        queue.at.free = queue.pool[chunk]
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
    queue.at.open = bucket
    queue.at.next = _0
    queue.at.end = _0
    if tail == _0:
        return
    queue.tail[ring] = _0
    _count(queue, queue.first[ring], tail)
    chunk = queue.first[ring]
    while True:
        last = tail - chunk - _1 < _CHUNK
        for place in range(chunk + _1, tail if last else chunk + _CHUNK):
            entry = queue.pool[place]
            within = entry >> CARGO_BITS
            queue.now[queue.places[within]] = entry
            queue.places[within] += _1
        after = queue.pool[chunk]
        queue.pool[chunk] = queue.at.free
        queue.at.free = chunk
        if last:
            break
        chunk = after
    queue.at.left -= queue.at.end


@inlined
def _count(queue: Queue, chunk: np.uint64, tail: np.uint64) -> None:
    """Set `places` to where the entries of each microsecond begin, and END."""
    queue.places[:] = _0
    while True:
        last = tail - chunk - _1 < _CHUNK
        for place in range(chunk + _1, tail if last else chunk + _CHUNK):
            queue.places[(queue.pool[place] >> CARGO_BITS) + _1] += _1
        if last:
            break
        chunk = queue.pool[chunk]
    for within in range(_1, np.uint64(65)):
        queue.places[within] += queue.places[within - _1]
    queue.at.end = queue.places[_WITHIN + _1]


@inlined
def settle(queue: Queue) -> None:
    """Merge what was put into the open bucket; cheap when that is nothing."""
    if queue.at.late != _0:
        _merge(queue)


@njit
def _merge(queue: Queue) -> None:
    """Sort `late` by time and merge it into what is left of `now`, from the end."""
    late = queue.at.late
    for k in range(_1, late):
        entry = queue.late[k]
        place = np.uint64(k)
        while place > _0 and queue.late[place - _1] >> CARGO_BITS > entry >> CARGO_BITS:
            queue.late[place] = queue.late[place - _1]
            place -= _1
        queue.late[place] = entry
    old = queue.at.end
    queue.at.end = old + late
    queue.at.late = _0
    while late > _0:
        entry = queue.late[late - _1]
        if old > queue.at.next and queue.now[old - _1] >> CARGO_BITS > entry >> CARGO_BITS:
            entry = queue.now[old - _1]
            old -= _1
        else:
            late -= _1
        queue.now[old + late] = entry
