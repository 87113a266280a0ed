"""Held rows that a micro-batch can affect, found without reading the others.

Each segment of held rows (`held`) has indexes of awaited causes and of own ids. The kernels follow
these from the new rows: forward, to rows that wait for a releasable one, and for cycles also
backward. They get a table of addresses, one line a segment; the last line is the new rows. The
result may contain too many rows, never too few: `kernels.drain` decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import inline, njit
from antecede.tables.order.stream.kernels.array_addresses import (
    bytes_at,
    ints_at,
    longs_at,
    words_at,
)
from antecede.tables.order.stream.kernels.interning import hash_bytes, is_equal
from antecede.tables.order.stream.kernels.rows import ABANDONED_CAUSE, SETTLED, Bits, Ints, Longs
from antecede.tables.order.stream.storage.index import find_bucket, mix_number

Views = NDArray[np.void]

SEGMENT_VIEW = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("rows", "links", "names", "causes", "waits", "owns", "members", "serial", "number"),
            *("digest", "arrived", "dead", "nend", "npool", "first", "cend", "cpool", "cnum"),
            *("link", "lrow", "w.bucket", "w.finger", "w.item", "o.bucket", "o.finger", "o.item"),
            *("m.bucket", "m.finger", "m.item"),
        )
    ]
)

_LOW = np.uint64(0xFFFFFFFF)


@inline
def _find_slot(slots: Ints, ids: Longs, name: int) -> int:
    mask = len(slots) - 1
    at = np.int64((np.uint64(name) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) & mask
    while slots[at] >= 0 and ids[slots[at]] != name:
        at = (at + 1) & mask
    return int(at)


@njit
def _grow_slots(slots: Ints, ids: Longs, size: int) -> Ints:
    new = np.full(2 * len(slots), -1, np.int32)
    for entry in range(size):
        new[_find_slot(new, ids, ids[entry])] = entry
    return new


@njit
def _double(array: Longs) -> Longs:
    new = np.empty(2 * len(array), array.dtype)
    new[: len(array)] = array
    return new


@njit
def _count_open_edges(view: Any, row: int) -> int:
    first = ints_at(view["first"], view["rows"] + 1)
    flag = bytes_at(view["link"], view["links"])
    count = 0
    for at in range(first[row], first[row + 1]):
        if not flag[at] & (ABANDONED_CAUSE | SETTLED):
            count += 1
    return count


@njit
def _find_dependents(views: Views, name: int, out: Longs) -> tuple[int, Longs]:
    """Fill `out` with the live rows that wait for a row, in any segment; return their number."""
    view = views[name >> 32]
    row = name & 0xFFFFFFFF
    serial = longs_at(view["serial"], view["rows"])[row]
    number = longs_at(view["number"], view["rows"])[row]
    nend = ints_at(view["nend"], view["rows"] + 1)
    npool = bytes_at(view["npool"], view["names"])
    start, stop = nend[row], nend[row + 1]
    value = mix_number(hash_bytes(npool, start, stop, serial), number)
    low = np.uint32(value & _LOW)
    size = 0
    for segment in range(len(views)):
        other = views[segment]
        buckets = other["waits"]
        if other["links"] == 0:
            continue
        bucket = ints_at(other["w.bucket"], buckets + 1)
        finger = words_at(other["w.finger"], bucket[buckets])
        at = find_bucket(value, buckets)
        for entry in range(bucket[at], bucket[at + 1]):
            if finger[entry] != low:
                continue
            edge = ints_at(other["w.item"], bucket[buckets])[entry]
            dependent = ints_at(other["lrow"], other["links"])[edge]
            if bytes_at(other["dead"], other["rows"])[dependent]:
                continue
            if longs_at(other["serial"], other["rows"])[dependent] != serial:
                continue
            if longs_at(other["cnum"], other["links"])[edge] != number:
                continue
            cend = ints_at(other["cend"], other["links"] + 1)
            cpool = bytes_at(other["cpool"], other["causes"])
            if is_equal(cpool, cend[edge], cend[edge + 1], npool, start, stop):
                if size == len(out):
                    out = _double(out)
                out[size] = (segment << 32) | dependent
                size += 1
    return size, out


@njit
def _find_awaited(views: Views, name: int, out: Longs) -> tuple[int, Longs]:
    """Fill `out` with the live rows that a row waits for; return their number."""
    view = views[name >> 32]
    row = name & 0xFFFFFFFF
    serial = longs_at(view["serial"], view["rows"])[row]
    first = ints_at(view["first"], view["rows"] + 1)
    flag = bytes_at(view["link"], view["links"])
    cend = ints_at(view["cend"], view["links"] + 1)
    cpool = bytes_at(view["cpool"], view["causes"])
    cnum = longs_at(view["cnum"], view["links"])
    size = 0
    for at in range(first[row], first[row + 1]):
        if flag[at] & (ABANDONED_CAUSE | SETTLED):
            continue
        start, stop = cend[at], cend[at + 1]
        found = _find_row(views, serial, cpool, start, stop, cnum[at])
        if found >= 0:
            if size == len(out):
                out = _double(out)
            out[size] = found
            size += 1
    return size, out


@inline
def _has_identity(view: Any, row: int, serial: int, data: Bits, start: int, stop: int) -> bool:
    if bytes_at(view["dead"], view["rows"])[row]:
        return False
    if longs_at(view["serial"], view["rows"])[row] != serial:
        return False
    nend = ints_at(view["nend"], view["rows"] + 1)
    npool = bytes_at(view["npool"], view["names"])
    return bool(is_equal(npool, nend[row], nend[row + 1], data, start, stop))


@njit
def _find_row(views: Views, serial: int, data: Bits, start: int, stop: int, number: int) -> int:
    """Return the live row that has an identity, or -1."""
    value = mix_number(hash_bytes(data, start, stop, serial), number)
    low = np.uint32(value & _LOW)
    for segment in range(len(views)):
        view = views[segment]
        rows, buckets = view["rows"], view["owns"]
        if rows == 0:
            continue
        bucket = ints_at(view["o.bucket"], buckets + 1)
        finger = words_at(view["o.finger"], rows)
        at = find_bucket(value, buckets)
        for entry in range(bucket[at], bucket[at + 1]):
            if finger[entry] != low:
                continue
            row = ints_at(view["o.item"], rows)[entry]
            is_number = longs_at(view["number"], rows)[row] == number
            if is_number and _has_identity(view, row, serial, data, start, stop):
                return int((segment << 32) | row)
    return -1


@njit
def find_held(
    views: Views, serial: Longs, data: Bits, ends: Longs, number: Longs, out: Longs
) -> Longs:
    """Return the live row of each identity (segment << 32 | row), or -1; fill `out` with its
    digest.
    """
    rows = np.full(len(serial), -1, np.int64)
    for key in range(len(serial)):
        found = _find_row(views, serial[key], data, ends[key], ends[key + 1], number[key])
        rows[key] = found
        if found >= 0:
            view = views[found >> 32]
            out[key] = longs_at(view["digest"], view["rows"])[found & 0xFFFFFFFF]
    return rows


@njit
def find_lowest(views: Views, serial: Longs, data: Bits, ends: Longs) -> Longs:
    """Return, by member, the least number of its live rows; the greatest integer: none."""
    lowest = np.full(len(serial), 2**63 - 1, np.int64)
    for key in range(len(serial)):
        start, stop = ends[key], ends[key + 1]
        value = hash_bytes(data, start, stop, serial[key])
        low = np.uint32(value & _LOW)
        for segment in range(len(views)):
            view = views[segment]
            rows, buckets = view["rows"], view["members"]
            if rows == 0:
                continue
            bucket = ints_at(view["m.bucket"], buckets + 1)
            finger = words_at(view["m.finger"], rows)
            at = find_bucket(value, buckets)
            for entry in range(bucket[at], bucket[at + 1]):
                if finger[entry] != low:
                    continue
                row = ints_at(view["m.item"], rows)[entry]
                if _has_identity(view, row, serial[key], data, start, stop):
                    number = longs_at(view["number"], rows)[row]
                    lowest[key] = min(lowest[key], number)
    return lowest


@njit
def find_overdue(views: Views, cutoff: int) -> Longs:
    """Return the live rows that arrived at or before `cutoff`."""
    out = np.empty(64, np.int64)
    size = 0
    for segment in range(len(views)):
        view = views[segment]
        arrived = longs_at(view["arrived"], view["rows"])
        dead = bytes_at(view["dead"], view["rows"])
        for row in range(view["rows"]):
            if not dead[row] and arrived[row] <= cutoff:
                if size == len(out):
                    out = _double(out)
                out[size] = (segment << 32) | row
                size += 1
    return out[:size].copy()


@njit
def find_next_arrival(views: Views, after: int) -> int:
    """Return the least arrival of a live row after a time; the greatest integer: none."""
    least = 2**63 - 1
    for segment in range(len(views)):
        view = views[segment]
        arrived = longs_at(view["arrived"], view["rows"])
        dead = bytes_at(view["dead"], view["rows"])
        for row in range(view["rows"]):
            if not dead[row] and after < arrived[row] < least:
                least = arrived[row]
    return least


@njit
def find_affected(views: Views, seeds: Longs, eager: bool) -> tuple[Longs, NDArray[np.bool_]]:
    """Return the rows that the release of the seeds affects, and the mask of those released.

    A row is affected if it can be released, or loses a cause to wait for. With `eager` every row
    that waits for a released one is released. The seeds come first.
    """
    slots = np.full(1024, -1, np.int32)
    ids = np.empty(1024, np.int64)
    left = np.empty(1024, np.int64)
    queue = np.empty(1024, np.int64)
    near = np.empty(64, np.int64)
    size = filled = done = 0
    for name in seeds:
        at = _find_slot(slots, ids, name)
        if slots[at] >= 0:
            continue
        if size == len(ids):
            ids, left, queue = _double(ids), _double(left), _double(queue)
        slots[at] = size
        ids[size], left[size], queue[filled] = name, -1, name
        size += 1
        filled += 1
        if 2 * size > len(slots):
            slots = _grow_slots(slots, ids, size)
    while done < filled:
        count, near = _find_dependents(views, queue[done], near)
        done += 1
        for index in range(count):
            name = near[index]
            at = _find_slot(slots, ids, name)
            entry = slots[at]
            if entry < 0:
                if size == len(ids):
                    ids, left, queue = _double(ids), _double(left), _double(queue)
                entry = size
                slots[at] = entry
                ids[entry] = name
                left[entry] = _count_open_edges(views[name >> 32], name & 0xFFFFFFFF)
                size += 1
                if 2 * size > len(slots):
                    slots = _grow_slots(slots, ids, size)
            if left[entry] < 0:
                continue
            left[entry] -= 1
            if eager or left[entry] == 0:
                left[entry] = -1
                queue[filled] = name
                filled += 1
    return ids[:size].copy(), left[:size] < 0


@njit
def find_on_cycles(views: Views, new: Longs, joined: Longs) -> Longs:
    """Return held rows that include all on a cycle with a new row.

    `joined` are the new rows that name a held one that stays. A row on a cycle is after a new row
    and before one of these; both directions are followed alternately, and the shorter one is the
    result.
    """
    behind, before = _make_empty_set(), _make_empty_set()
    near = np.empty(64, np.int64)
    step = 0  # rows followed in each list
    while True:
        if step == len(joined) + before[2]:
            return before[1][: before[2]].copy()
        if step == len(new) + behind[2]:
            return behind[1][: behind[2]].copy()
        name = new[step] if step < len(new) else behind[1][step - len(new)]
        count, near = _find_dependents(views, name, near)
        behind = _add_rows(behind, near[:count], len(views) - 1)
        name = joined[step] if step < len(joined) else before[1][step - len(joined)]
        count, near = _find_awaited(views, name, near)
        before = _add_rows(before, near[:count], len(views) - 1)
        step += 1


@njit
def _make_empty_set() -> tuple[Ints, Longs, int]:
    return np.full(1024, -1, np.int32), np.empty(1024, np.int64), 0


@njit
def _add_rows(known: tuple[Ints, Longs, int], near: Longs, last: int) -> tuple[Ints, Longs, int]:
    slots, seen, size = known
    for name in near:
        if name >> 32 == last:
            continue
        at = _find_slot(slots, seen, name)
        if slots[at] >= 0:
            continue
        if size == len(seen):
            seen = _double(seen)
        slots[at] = size
        seen[size] = name
        size += 1
        if 2 * size > len(slots):
            slots = _grow_slots(slots, seen, size)
    return slots, seen, size
