"""Table of known ids: log-structured, immutable segments, newest value wins.

Each micro-batch adds one segment; `fan` segments of about one size are merged, unless they have
`cap` entries. Newer segments are searched first; merging drops the older entry of a key. Every
entry has a timestamp, the clock when it was written. Entries older than a limit are not found, and
a segment of such entries is deleted. A segment is two blobs: `index` (5 bytes an entry), and
`data`, which is read only after a match in the index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.interning import Text, is_equal
from antecede.tables.order.stream.kernels.rows import NO_TIME, Bits, Ints, Longs
from antecede.tables.order.stream.storage.blobs import (
    Arrays,
    ShardParts,
    dump_segments,
    load_segments,
)
from antecede.tables.order.stream.storage.index import (
    Hashes,
    Words,
    build_index,
    count_candidates,
    find_bucket,
    hash_keys,
)

_SMALL = 64
_BYTES = 256 * 2**20


class IdEntries(NamedTuple):
    """Keys (namespace and text), each with mark, timestamp and `values[first[i]:first[i + 1]]`."""

    namespace: Longs
    text: Text
    mark: Bits
    timestamp: Longs
    first: Longs
    values: Longs


class LookupResult(NamedTuple):
    """Marks and values of n looked-up keys, as in entries; `known[i]` is 0 or 1."""

    known: NDArray[np.bool_]
    mark: Bits
    timestamp: Longs
    first: Longs
    values: Longs

    def get_column(self, index: int) -> Longs:
        """Return one value of each key that is known, 0 for the others."""
        out = np.zeros(len(self.known), np.int64)
        at = np.flatnonzero(self.known)
        out[at] = self.values[self.first[at] + index]
        return out


class _Query(NamedTuple):
    value: Hashes
    namespace: Longs
    text: Text
    pending: Bits
    entry: Ints
    segment: Ints


@dataclass(frozen=True, slots=True)
class IdSegment:
    """Immutable segment: number, entries, bytes, greatest timestamp, digests of its blobs."""

    number: int
    count: int
    size: int
    newest: int
    index: bytes
    data: bytes


class IdTable:
    """Table of one shard; `segments` are from old to new."""

    def __init__(self, name: str, parts: ShardParts, fan: int, cap: int) -> None:
        self.name = name
        self.blobs = parts
        self.fan = fan
        self.cap = cap
        self.segments: list[IdSegment] = []
        self.next = 0

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def find(self, namespace: Longs, text: Text, limit: int = NO_TIME) -> LookupResult:
        """Look keys up; entries with a timestamp below `limit` count as unknown."""
        query = _Query(
            hash_keys(namespace, *text),
            namespace,
            text,
            np.ones(len(namespace), np.uint8),
            np.full(len(namespace), -1, np.int32),
            np.full(len(namespace), -1, np.int32),
        )
        opened: list[Arrays] = []
        left = len(namespace)
        for segment in reversed(self.segments):
            if not left:
                break
            if NO_TIME != segment.newest < limit:
                continue
            index = self.blobs.open(f"{self.name}{segment.number}i", segment.index)
            bucket, finger = index["bucket"], index["finger"]
            if count_candidates(bucket, finger, query.value, query.pending):
                data = self._open_data(segment)
                keys = data["owner"], data["end"], data["pool"]
                left -= _look_up(bucket, finger, *keys, query, len(opened))
                opened.append(data)
        return _gather(query.segment, query.entry, opened, limit)

    def add(self, entries: IdEntries, limit: int = NO_TIME, keep: Any = None) -> None:
        """Write entries, no key twice, as a new segment, and merge segments.

        Merging drops entries with a timestamp below `limit`, except those that `keep` marks.
        """
        if len(entries.namespace):
            self.segments.append(self._write(entries))
        while (begin := self._find_merge_begin()) is not None:
            self._merge(begin, limit, keep)

    def forget(self, limit: int) -> None:
        """Delete the segments without a timestamp from `limit` on."""
        kept = []
        for segment in self.segments:
            if NO_TIME != segment.newest < limit:
                self._delete(segment)
            else:
                kept.append(segment)
        self.segments = kept

    # -- segments ---------------------------------------------------------------------------

    def _open_data(self, segment: IdSegment) -> Arrays:
        return self.blobs.open(f"{self.name}{segment.number}d", segment.data)

    def _read_entries(self, segment: IdSegment) -> IdEntries:
        data = self._open_data(segment)
        text = Text(data["pool"], data["end"].astype(np.int64))
        first = _read_firsts(data, segment.count)
        return IdEntries(data["owner"], text, data["mark"], data["stamp"], first, data["values"])

    def _write(self, entries: IdEntries) -> IdSegment:
        index = build_index(hash_keys(entries.namespace, *entries.text))
        sorted_ = _take(entries, index.item)
        width = np.diff(sorted_.first)
        even = len(width) == 0 or bool((width == width[0]).all())
        values = {"width": width[:1]} if even else {"first": sorted_.first}
        name = f"{self.name}{self.next}"
        head, small = self.blobs.save(f"{name}i", {"bucket": index.bucket, "finger": index.finger})
        data, size = self.blobs.save(
            f"{name}d",
            {
                "owner": sorted_.namespace,
                "end": sorted_.text.ends.astype(np.int32),
                "pool": sorted_.text.data,
                "mark": sorted_.mark,
                "stamp": sorted_.timestamp,
                "values": sorted_.values,
                **values,
            },
        )
        # An entry without a timestamp never expires, so neither does its segment.
        timestamp = sorted_.timestamp
        newest = (
            NO_TIME if (timestamp == NO_TIME).any() else int(timestamp.max(initial=NO_TIME + 1))
        )
        made = IdSegment(self.next, len(timestamp), small + size, newest, head, data)
        self.next += 1
        return made

    def _delete(self, segment: IdSegment) -> None:
        for part in "id":
            self.blobs.remove(f"{self.name}{segment.number}{part}")

    def _find_merge_begin(self) -> int | None:
        tiers = [99 if s.size >= _BYTES else find_tier(s.count, self.fan) for s in self.segments]
        return find_merge_begin(tiers, self.fan, find_tier(self.cap, self.fan))

    def _merge(self, begin: int, limit: int, keep: Any) -> None:
        old = self.segments[begin:]
        newest_first = [self._read_entries(segment) for segment in reversed(old)]
        whole = _concatenate(newest_first)
        pick = _find_first_entries(
            hash_keys(whole.namespace, *whole.text), whole.namespace, *whole.text
        )
        whole = _take(whole, pick)
        stale = (whole.timestamp < limit) & (whole.timestamp != NO_TIME)
        if keep is not None and begin:
            stale[:] = False  # else an older entry of the key would become visible
        elif keep is not None and stale.any():
            stale[stale] = ~keep(_take(whole, np.flatnonzero(stale).astype(np.int32)))
        if stale.any():
            whole = _take(whole, np.flatnonzero(~stale).astype(np.int32))
        for segment in old:
            self._delete(segment)
        del self.segments[begin:]
        if len(whole.namespace):
            self.segments.append(self._write(whole))

    # -- the head ---------------------------------------------------------------------------

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return the segments for the head of the shard."""
        names = f"{self.name}.segments", f"{self.name}.digests"
        return dump_segments(*names, self.next, self.segments)

    def load(self, head: Arrays) -> None:
        """Read the segments from the head of the shard."""
        numbers, seals = head[f"{self.name}.segments"], head[f"{self.name}.digests"]
        self.next, self.segments = load_segments(IdSegment, numbers, seals)


def find_tier(count: int, fan: int) -> int:
    """Return the tier of a segment by its number of entries: a power of `fan`."""
    return int(math.log(max(count, _SMALL) / _SMALL) / math.log(fan) + 1e-9)


def find_merge_begin(tiers: list[int], fan: int, top: int) -> int | None:
    """Return the first of the segments, from old to new, to merge; None: too few of one size."""
    begin = len(tiers)
    while begin and tiers[begin - 1] <= tiers[-1]:
        begin -= 1
    return begin if len(tiers) - begin >= fan and tiers[-1] < top else None


def _read_firsts(data: Arrays, count: int) -> Longs:
    if "first" in data:
        return data["first"]
    return np.arange(count + 1, dtype=np.int64) * int(data["width"][0])


def _take(entries: IdEntries, pick: Ints) -> IdEntries:
    namespace, text, mark, timestamp, first, values = entries
    kept = take_values(first, values, pick)
    return IdEntries(namespace[pick], text.take(pick), mark[pick], timestamp[pick], *kept)


def _concatenate(parts: list[IdEntries]) -> IdEntries:
    namespace, text, mark, timestamp, first, values = zip(*parts, strict=True)
    return IdEntries(
        np.concatenate(namespace),
        concatenate_strings(text),
        np.concatenate(mark),
        np.concatenate(timestamp),
        concatenate_offsets(first),
        np.concatenate(values),
    )


def concatenate_strings(parts: Sequence[Text]) -> Text:
    """Return the strings of several sequences, in their order."""
    data = [part.data[part.ends[0] : part.ends[-1]] for part in parts]
    return Text(
        np.concatenate(data), concatenate_offsets([part.ends - part.ends[0] for part in parts])
    )


def concatenate_offsets(parts: Sequence[Longs]) -> Longs:
    """Return the offsets of concatenated parts; each part begins with 0."""
    shifted = [np.zeros(1, np.int64)]
    base = 0
    for ends in parts:
        shifted.append(ends[1:] + base)
        base += int(ends[-1])
    return np.concatenate(shifted)


def _gather(where: Ints, entry: Ints, opened: list[Arrays], limit: int) -> LookupResult:
    known = where >= 0
    mark = np.zeros(len(where), np.uint8)
    timestamp = np.full(len(where), NO_TIME, np.int64)
    width = np.zeros(len(where), np.int64)
    begin = np.zeros(len(where), np.int64)
    for number, data in enumerate(opened):
        at = np.flatnonzero(where == number)
        pick = entry[at]
        mark[at], timestamp[at] = data["mark"][pick], data["stamp"][pick]
        if "first" in data:
            begin[at] = data["first"][pick]
            width[at] = data["first"][pick + 1] - begin[at]
        else:
            width[at] = int(data["width"][0])
            begin[at] = pick.astype(np.int64) * int(data["width"][0])
    stale = known & (timestamp < limit) & (timestamp != NO_TIME)
    known &= ~stale
    mark[stale] = 0
    width[~known] = 0
    first = np.zeros(len(where) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    values = np.empty(first[-1], np.int64)
    for number, data in enumerate(opened):
        at = np.flatnonzero((where == number) & known)
        _copy_values(values, first, begin, data["values"], at)
    return LookupResult(known, mark, timestamp, first, values)


@njit
def _copy_values(out: Longs, first: Longs, begin: Longs, values: Longs, at: Longs) -> None:
    for key in at:
        for offset in range(first[key + 1] - first[key]):
            out[first[key] + offset] = values[begin[key] + offset]


@njit
def take_values(first: Longs, values: Longs, pick: Ints) -> tuple[Longs, Longs]:
    """Return the values of the picked entries, in their order."""
    new = np.zeros(len(pick) + 1, np.int64)
    for item in range(len(pick)):
        new[item + 1] = new[item] + first[pick[item] + 1] - first[pick[item]]
    out = np.empty(new[-1], np.int64)
    for item in range(len(pick)):
        start = first[pick[item]]
        for offset in range(new[item + 1] - new[item]):
            out[new[item] + offset] = values[start + offset]
    return new, out


@njit
def _look_up(
    bucket: Ints, finger: Words, namespace: Longs, end: Ints, pool: Bits, query: _Query, number: int
) -> int:
    found = 0
    buckets = len(bucket) - 1
    data, ends = query.text
    for key in range(len(query.value)):
        if not query.pending[key]:
            continue
        value = query.value[key]
        at = find_bucket(value, buckets)
        low = np.uint32(value & np.uint64(0xFFFFFFFF))
        for item in range(bucket[at], bucket[at + 1]):
            if finger[item] != low or namespace[item] != query.namespace[key]:
                continue
            if is_equal(pool, end[item], end[item + 1], data, ends[key], ends[key + 1]):
                query.pending[key] = 0
                query.segment[key] = number
                query.entry[key] = item
                found += 1
                break
    return found


@njit
def _find_first_entries(value: Hashes, namespace: Longs, data: Bits, ends: Longs) -> Ints:
    slots = np.full(1 << max(3, int(np.ceil(np.log2(2.0 * len(value) + 1)))), -1, np.int32)
    mask = np.uint64(len(slots) - 1)
    out = np.empty(len(value), np.int32)
    size = 0
    for entry in range(len(value)):
        at = value[entry] & mask
        known = False
        while slots[at] >= 0:
            other = slots[at]
            if (
                value[other] == value[entry]
                and namespace[other] == namespace[entry]
                and is_equal(data, ends[other], ends[other + 1], data, ends[entry], ends[entry + 1])
            ):
                known = True
                break
            at = (at + np.uint64(1)) & mask
        if not known:
            slots[at] = entry
            out[size] = entry
            size += 1
    return out[:size].copy()
