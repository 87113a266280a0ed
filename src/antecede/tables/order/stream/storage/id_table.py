"""Long-term tables of a shard: keys with values, in sealed segments, the newest one right.

Each micro-batch adds one segment. `fan` segments of about one size are merged into one, so an entry
is written again as often as the logarithm of their number; segments of `cap` entries stay as they
are. A key that is written again stands in a newer segment, which is asked first; merging drops the
older entry. Every entry has a stamp, the clock when it was written. Entries older than a limit are
not found; a segment of nothing else is deleted.

A segment is two parts: `index` (5 bytes an entry) and `data`, which is read only where the index
has a match.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.interning import Text, same_bytes
from antecede.tables.order.stream.kernels.rows import NO_TIME, Bits, Ints, Longs
from antecede.tables.order.stream.storage.blobs import Arrays, ShardParts, dump_parts, load_parts
from antecede.tables.order.stream.storage.index import (
    Hashes,
    Words,
    bucket_of,
    hashes_of,
    index_of,
    may_hold,
)

_SMALL = 64
_BYTES = 256 * 2**20
"""Segments with so much text are not merged any more: ends are 32 bits."""


class Entries(NamedTuple):
    """n keys (owner and text), each with a mark, a stamp and its part of `values`.

    The values of entry i are `values[first[i]:first[i + 1]]`.
    """

    owner: Longs
    text: Text
    mark: Bits
    stamp: Longs
    first: Longs
    values: Longs


class LookUp(NamedTuple):
    """What a look-up of n keys found: marks and values as in `Entries`; `known[i]` is 0 or 1."""

    known: NDArray[np.bool_]
    mark: Bits
    stamp: Longs
    first: Longs
    values: Longs

    def column(self, index: int) -> Longs:
        """Return one value of each key that is known, 0 for the others."""
        out = np.zeros(len(self.known), np.int64)
        at = np.flatnonzero(self.known)
        out[at] = self.values[self.first[at] + index]
        return out


class _Asked(NamedTuple):
    """Keys to be looked up; those not `pending` are entry `entry` of segment `where`."""

    value: Hashes
    owner: Longs
    text: Text
    pending: Bits
    entry: Ints
    where: Ints


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed segment: its number, entries, bytes, greatest stamp, and digests of its parts."""

    number: int
    count: int
    size: int
    newest: int
    index: bytes
    data: bytes


class Ledger:
    """A table of one shard; `segments` go from old to new."""

    def __init__(self, name: str, parts: ShardParts, fan: int, cap: int) -> None:
        self.name = name
        self.parts = parts
        self.fan = fan
        self.cap = cap
        self.segments: list[Segment] = []
        self.next = 0

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def find(self, owner: Longs, text: Text, limit: int = NO_TIME) -> LookUp:
        """Look keys up; entries with a stamp below `limit` count as unknown."""
        asked = _Asked(
            hashes_of(owner, *text),
            owner,
            text,
            np.ones(len(owner), np.uint8),
            np.full(len(owner), -1, np.int32),
            np.full(len(owner), -1, np.int32),
        )
        opened: list[Arrays] = []
        left = len(owner)
        for segment in reversed(self.segments):
            if not left:
                break
            if NO_TIME != segment.newest < limit:
                continue
            index = self.parts.open(f"{self.name}{segment.number}i", segment.index)
            bucket, finger = index["bucket"], index["finger"]
            if may_hold(bucket, finger, asked.value, asked.pending):
                data = self._data(segment)
                keys = data["owner"], data["end"], data["pool"]
                left -= _look_up(bucket, finger, *keys, asked, len(opened))
                opened.append(data)
        return _gather(asked.where, asked.entry, opened, limit)

    def add(self, entries: Entries, limit: int = NO_TIME, keep: Any = None) -> None:
        """Write entries, no key twice, as a new segment, and merge where there are many.

        Merging drops entries with a stamp below `limit`, except those that `keep(entries)` (an
        array of bools) marks as needed.
        """
        if len(entries.owner):
            self.segments.append(self._write(entries))
        while (begin := self._crowded()) is not None:
            self._merge(begin, limit, keep)

    def forget(self, limit: int) -> None:
        """Delete the segments that hold nothing with a stamp from `limit` on."""
        kept = []
        for segment in self.segments:
            if NO_TIME != segment.newest < limit:
                self._delete(segment)
            else:
                kept.append(segment)
        self.segments = kept

    # -- segments ---------------------------------------------------------------------------

    def _data(self, segment: Segment) -> Arrays:
        return self.parts.open(f"{self.name}{segment.number}d", segment.data)

    def _entries(self, segment: Segment) -> Entries:
        data = self._data(segment)
        text = Text(data["pool"], data["end"].astype(np.int64))
        first = _firsts(data, segment.count)
        return Entries(data["owner"], text, data["mark"], data["stamp"], first, data["values"])

    def _write(self, entries: Entries) -> Segment:
        index = index_of(hashes_of(entries.owner, *entries.text))
        sorted_ = _taken(entries, index.item)
        width = np.diff(sorted_.first)
        even = len(width) == 0 or bool((width == width[0]).all())
        values = {"width": width[:1]} if even else {"first": sorted_.first}
        name = f"{self.name}{self.next}"
        head, small = self.parts.save(f"{name}i", {"bucket": index.bucket, "finger": index.finger})
        data, size = self.parts.save(
            f"{name}d",
            {
                "owner": sorted_.owner,
                "end": sorted_.text.ends.astype(np.int32),
                "pool": sorted_.text.data,
                "mark": sorted_.mark,
                "stamp": sorted_.stamp,
                "values": sorted_.values,
                **values,
            },
        )
        # An entry without a stamp is never forgotten, so neither is its segment as a whole.
        stamp = sorted_.stamp
        newest = NO_TIME if (stamp == NO_TIME).any() else int(stamp.max(initial=NO_TIME + 1))
        made = Segment(self.next, len(stamp), small + size, newest, head, data)
        self.next += 1
        return made

    def _delete(self, segment: Segment) -> None:
        for part in "id":
            self.parts.remove(f"{self.name}{segment.number}{part}")

    def _crowded(self) -> int | None:
        tiers = [99 if s.size >= _BYTES else tier_of(s.count, self.fan) for s in self.segments]
        return merge_begin(tiers, self.fan, tier_of(self.cap, self.fan))

    def _merge(self, begin: int, limit: int, keep: Any) -> None:
        old = self.segments[begin:]
        newest_first = [self._entries(segment) for segment in reversed(old)]
        whole = _joined(newest_first)
        pick = _first_of_each(hashes_of(whole.owner, *whole.text), whole.owner, *whole.text)
        whole = _taken(whole, pick)
        stale = (whole.stamp < limit) & (whole.stamp != NO_TIME)
        if keep is not None and begin:
            stale[:] = False  # an older entry of the key, with other values, would come to light
        elif keep is not None and stale.any():
            stale[stale] = ~keep(_taken(whole, np.flatnonzero(stale).astype(np.int32)))
        if stale.any():
            whole = _taken(whole, np.flatnonzero(~stale).astype(np.int32))
        for segment in old:
            self._delete(segment)
        del self.segments[begin:]
        if len(whole.owner):
            self.segments.append(self._write(whole))

    # -- the head ---------------------------------------------------------------------------

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return the segments for the head of the shard."""
        names = f"{self.name}.segments", f"{self.name}.digests"
        return dump_parts(*names, self.next, self.segments)

    def load(self, head: Arrays) -> None:
        """Take the segments from the head of the shard."""
        numbers, seals = head[f"{self.name}.segments"], head[f"{self.name}.digests"]
        self.next, self.segments = load_parts(Segment, numbers, seals)


def tier_of(count: int, fan: int) -> int:
    """Return the size of a part of so many entries, as a power of `fan`; small ones are alike."""
    return int(math.log(max(count, _SMALL) / _SMALL) / math.log(fan) + 1e-9)


def merge_begin(tiers: list[int], fan: int, top: int) -> int | None:
    """Return from where on parts, from old to new, are merged; None: too few of one size.

    Parts of the tier `top` or above stay as they are.
    """
    begin = len(tiers)
    while begin and tiers[begin - 1] <= tiers[-1]:
        begin -= 1
    return begin if len(tiers) - begin >= fan and tiers[-1] < top else None


def _firsts(data: Arrays, count: int) -> Longs:
    if "first" in data:
        return data["first"]
    return np.arange(count + 1, dtype=np.int64) * int(data["width"][0])


def _taken(entries: Entries, pick: Ints) -> Entries:
    owner, text, mark, stamp, first, values = entries
    kept = take_values(first, values, pick)
    return Entries(owner[pick], text.taken(pick), mark[pick], stamp[pick], *kept)


def _joined(parts: list[Entries]) -> Entries:
    owner, text, mark, stamp, first, values = zip(*parts, strict=True)
    return Entries(
        np.concatenate(owner),
        joined_text(text),
        np.concatenate(mark),
        np.concatenate(stamp),
        joined_ends(first),
        np.concatenate(values),
    )


def joined_text(parts: Sequence[Text]) -> Text:
    """Return the strings of several texts, one behind the other."""
    data = [part.data[part.ends[0] : part.ends[-1]] for part in parts]
    return Text(np.concatenate(data), joined_ends([part.ends - part.ends[0] for part in parts]))


def joined_ends(parts: Sequence[Longs]) -> Longs:
    """Return where each of several joined runs begins; each part begins with 0."""
    shifted = [np.zeros(1, np.int64)]
    base = 0
    for ends in parts:
        shifted.append(ends[1:] + base)
        base += int(ends[-1])
    return np.concatenate(shifted)


def _gather(where: Ints, entry: Ints, opened: list[Arrays], limit: int) -> LookUp:
    known = where >= 0
    mark = np.zeros(len(where), np.uint8)
    stamp = np.full(len(where), NO_TIME, np.int64)
    width = np.zeros(len(where), np.int64)
    begin = np.zeros(len(where), np.int64)
    for number, data in enumerate(opened):
        at = np.flatnonzero(where == number)
        pick = entry[at]
        mark[at], stamp[at] = data["mark"][pick], data["stamp"][pick]
        if "first" in data:
            begin[at] = data["first"][pick]
            width[at] = data["first"][pick + 1] - begin[at]
        else:
            width[at] = int(data["width"][0])
            begin[at] = pick.astype(np.int64) * int(data["width"][0])
    stale = known & (stamp < limit) & (stamp != NO_TIME)
    known &= ~stale
    mark[stale] = 0
    width[~known] = 0
    first = np.zeros(len(where) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    values = np.empty(first[-1], np.int64)
    for number, data in enumerate(opened):
        at = np.flatnonzero((where == number) & known)
        _copy_values(values, first, begin, data["values"], at)
    return LookUp(known, mark, stamp, first, values)


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
    bucket: Ints, finger: Words, owner: Longs, end: Ints, pool: Bits, asked: _Asked, number: int
) -> int:
    """Settle the pending keys that are in this segment; return how many."""
    found = 0
    buckets = len(bucket) - 1
    data, ends = asked.text
    for key in range(len(asked.value)):
        if not asked.pending[key]:
            continue
        value = asked.value[key]
        at = bucket_of(value, buckets)
        low = np.uint32(value & np.uint64(0xFFFFFFFF))
        for item in range(bucket[at], bucket[at + 1]):
            if finger[item] != low or owner[item] != asked.owner[key]:
                continue
            if same_bytes(pool, end[item], end[item + 1], data, ends[key], ends[key + 1]):
                asked.pending[key] = 0
                asked.where[key] = number
                asked.entry[key] = item
                found += 1
                break
    return found


@njit
def _first_of_each(value: Hashes, owner: Longs, data: Bits, ends: Longs) -> Ints:
    """Return the first entry of each key, in order."""
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
                and owner[other] == owner[entry]
                and same_bytes(
                    data, ends[other], ends[other + 1], data, ends[entry], ends[entry + 1]
                )
            ):
                known = True
                break
            at = (at + np.uint64(1)) & mask
        if not known:
            slots[at] = entry
            out[size] = entry
            size += 1
    return out[:size].copy()
