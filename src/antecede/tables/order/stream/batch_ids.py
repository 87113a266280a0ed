"""Ids of one micro-batch, numbered, with the shard's knowledge of them.

The numbers are valid for one step (`kernels.interning`). Three id tables hold the knowledge:

- `g`: groups, with serial number, next position, rows held
- `i`: ids, with release and content digest, and the mark `IdStates.flag`
- `m`: members (clocks and FIFO), with rows held and ranges of released numbers, each with the
  release and digest of its last number; single numbers outside of ranges are in `i`
"""

from __future__ import annotations

import numpy as np

from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.interning import NameTable, Text
from antecede.tables.order.stream.kernels.released_ranges import ReleasedRanges, mark_released
from antecede.tables.order.stream.kernels.rows import Ints, Longs
from antecede.tables.order.stream.storage.id_table import IdEntries, IdTable
from antecede.tables.order.stream.types import ShardPlan

RESTARTED = 1
"""Mark of a forgotten group: its next row with a position is the first."""


class BatchIds:
    """Numbering of one step; tables grow as rows are added."""

    def __init__(self, plan: ShardPlan, id_tables: dict[str, IdTable], before: int) -> None:
        self.plan = plan
        self.id_tables = id_tables
        self.groups, self.members, self.events = NameTable(), NameTable(), NameTable()
        none = np.zeros(0, np.int64)
        self.serial, self.next, self.held, self.member_held = none, none, none, none
        self.ranges = ReleasedRanges(np.zeros(0, np.int32), none, none, none, none)
        self.mark, self.flag = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        self.released, self.digest = none, none
        self.held_row = none  # by id: its held row (`affected_rows`), or -1
        forgets = plan.state_ttl >= 0 and before != shape.NO_TIME
        self.limit = before - plan.state_ttl if forgets else shape.NO_TIME

    @property
    def size(self) -> int:
        """Number of ids."""
        return self.events.size

    def number_groups(self, text: Text, serials: int) -> tuple[Ints, int]:
        """Number groups by name; return the numbers and the next free serial number."""
        before = self.groups.size
        numbers = self.groups.intern(np.zeros(text.size, np.int32), text)
        new = np.arange(before, self.groups.size, dtype=np.int32)
        names = self.groups.take(new)
        found = self.id_tables["g"].find(np.zeros(len(new), np.int64), names)
        held = found.get_column(2)
        idle = found.known & (found.timestamp < self.limit) & (found.timestamp != shape.NO_TIME)
        idle &= held == 0
        anew = idle & (found.timestamp >= self.limit - max(self.plan.state_ttl, 0))
        mark = np.where(idle, 0, found.mark).astype(np.uint8)
        mark[anew] |= RESTARTED
        serial = found.get_column(0)
        unknown = np.flatnonzero(~found.known)
        serial[unknown] = serials + np.arange(len(unknown))
        self.serial = np.concatenate([self.serial, serial])
        self.next = np.concatenate([self.next, np.where(idle, 0, found.get_column(1))])
        self.held = np.concatenate([self.held, held])
        self.mark = np.concatenate([self.mark, mark])
        return numbers, serials + len(unknown)

    def identify(self, group: Ints, text: Text, count: Longs) -> tuple[Ints, Ints]:
        """Return the index of the name that breaks ties, and the index of the id."""
        if not self.plan.counted:
            id_index = self.events.intern(group, text)
            return id_index, id_index
        member = self.members.intern(group, text)
        numbers = np.ascontiguousarray(count)
        ends = np.arange(0, 8 * len(numbers) + 8, 8, dtype=np.int64)
        return member, self.events.intern(member, Text(numbers.view(np.uint8), ends))

    def look_up(self) -> None:
        """Look up the ids that were added since the last call."""
        begin = len(self.flag)
        new = np.arange(begin, self.size, dtype=np.int32)
        owner, text = self.get_keys(new)
        found = self.id_tables["i"].find(owner, text, self.limit)
        self.flag = np.concatenate([self.flag, found.mark])
        released = np.where(found.known, found.get_column(0), shape.NO_TIME)
        self.released = np.concatenate([self.released, released])
        self.digest = np.concatenate([self.digest, found.get_column(1)])
        if self.plan.counted:
            self._look_up_members()
            member, number = self.get_numbers()
            mark_released(self.ranges, member, number, begin, self.flag, self.released, self.digest)

    def _look_up_members(self) -> None:
        begin = len(self.member_held)
        new = np.arange(begin, self.members.size, dtype=np.int32)
        names = self.members.take(new)
        found = self.id_tables["m"].find(self.serial[self.members.namespace[new]], names)
        held = found.get_column(0)
        stale = found.known & (found.timestamp < self.limit) & (found.timestamp != shape.NO_TIME)
        stale &= held == 0
        self.member_held = np.concatenate([self.member_held, held])
        width = np.where(found.known & ~stale, np.diff(found.first) - 1, 0) // 4
        owner = np.repeat(np.arange(len(new)), width)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width)
        at = found.first[owner] + 1 + 4 * within
        columns = [found.values[at + k] for k in range(4)]
        self.ranges = ReleasedRanges(
            np.concatenate([self.ranges.member, new[owner]]),
            *(
                np.concatenate([old, more])
                for old, more in zip(self.ranges[1:], columns, strict=True)
            ),
        )

    def get_numbers(self) -> tuple[Ints, Longs]:
        """Return member and number of every id (clocks and FIFO)."""
        text = self.events.get_all()
        return self.events.namespace[: self.size], text.data.view(np.int64)

    def get_keys(self, id_index: Ints) -> tuple[Longs, Text]:
        """Return the keys of ids in the table `i`: serial, and id or member and number."""
        own = self.events.take(id_index)
        if not self.plan.counted:
            return self.serial[self.events.namespace[id_index]], own
        member = self.events.namespace[id_index]
        name = self.members.take(member)
        return self.serial[self.members.namespace[member]], _append_numbers(name, own)

    def get_names(self, id_index: Ints) -> tuple[Longs, Text, Longs]:
        """Return serial, name and number of ids, as `affected_rows` compares them."""
        if not self.plan.counted:
            owner, text = self.get_keys(id_index)
            return owner, text, np.zeros(len(id_index), np.int64)
        member, number = self.get_numbers()
        member = member[id_index]
        name = self.members.take(member)
        return self.serial[self.members.namespace[member]], name, number[id_index]


def make_group_entries(known: BatchIds, pick: Ints, timestamp: int) -> IdEntries:
    """Return the entries of groups for the table `g`."""
    text = known.groups.take(pick)
    values = np.stack([known.serial[pick], known.next[pick], known.held[pick]], axis=1)
    owner, timestamps = np.zeros(len(pick), np.int64), np.full(len(pick), timestamp, np.int64)
    first = np.arange(len(pick) + 1, dtype=np.int64) * 3
    return IdEntries(owner, text, known.mark[pick], timestamps, first, values.ravel())


def make_member_entries(
    known: BatchIds, ranges: ReleasedRanges, pick: Ints, timestamp: int
) -> IdEntries:
    """Return the entries of members for the table `m`; `ranges` are sorted by member."""
    begin = np.searchsorted(ranges.member, pick)
    width = np.searchsorted(ranges.member, pick, side="right") - begin
    owner = np.repeat(np.arange(len(pick)), width)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width)
    first = np.zeros(len(pick) + 1, np.int64)
    np.cumsum(1 + 4 * width, out=first[1:])
    values = np.empty(first[-1], np.int64)
    values[first[:-1]] = known.member_held[pick]
    at, run = first[owner] + 1 + 4 * within, begin[owner] + within
    for k, column in enumerate(ranges[1:]):
        values[at + k] = column[run]
    text = known.members.take(pick)
    namespace = known.serial[known.members.namespace[pick]]
    timestamps = np.full(len(pick), timestamp, np.int64)
    return IdEntries(namespace, text, np.zeros(len(pick), np.uint8), timestamps, first, values)


def make_id_entries(
    known: BatchIds, pick: Ints, states: shape.IdStates, timestamp: Longs
) -> IdEntries:
    """Return the entries of ids for the table `i`."""
    owner, text = known.get_keys(pick)
    values = np.stack([states.released[pick], states.digest[pick]], axis=1)
    mark = states.flag[pick]
    if known.plan.counted:  # the member's ranges have the released numbers
        mark &= shape.EXCLUDED | shape.ABANDONED
    first = np.arange(len(pick) + 1, dtype=np.int64) * 2
    return IdEntries(owner, text, mark, timestamp, first, values.ravel())


def _append_numbers(left: Text, right: Text) -> Text:
    size = left.size
    width = np.diff(left.ends)
    ends = np.zeros(size + 1, np.int64)
    np.cumsum(width + 8, out=ends[1:])
    out = np.empty(ends[-1], np.uint8)
    tail = (ends[1:] - 8)[:, None] + np.arange(8)
    rest = np.ones(len(out), np.bool_)
    rest[tail.ravel()] = False
    out[tail.ravel()] = right.data[right.ends[0] : right.ends[-1]]
    out[rest] = left.data[left.ends[0] : left.ends[-1]]
    return Text(out, ends)
