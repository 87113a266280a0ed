"""Identities of one micro-batch, numbered, and the shard's knowledge of them.

Groups, members and identities get numbers for one step (`kernels.interning`), so that
`kernels.drain` decides on integers. Three ledgers hold what is known:

`g`  groups: serial number, next position, rows held; marked when they began anew
`i`  ids: release and digest of their content; marked with `Tokens.flag`
`m`  members (clocks and FIFO): rows held, and runs of numbers that are out, each with the
     release and digest of its last one; `i` has single numbers outside of runs
"""

from __future__ import annotations

import numpy as np

from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.interning import NameTable, Text
from antecede.tables.order.stream.kernels.released_ranges import Runs, settled_by
from antecede.tables.order.stream.kernels.rows import Ints, Longs
from antecede.tables.order.stream.storage.id_table import Entries, Ledger
from antecede.tables.order.stream.types import ShardPlan

RESTARTED = 1
"""Mark of a group that was forgotten and begins anew: its next row with a position is the first."""


class Identities:
    """The numbering of one step; tables grow as rows are taken in."""

    def __init__(self, plan: ShardPlan, ledgers: dict[str, Ledger], before: int) -> None:
        self.plan = plan
        self.ledgers = ledgers
        self.groups, self.members, self.events = NameTable(), NameTable(), NameTable()
        none = np.zeros(0, np.int64)
        self.serial, self.next, self.held, self.member_held = none, none, none, none
        self.runs = Runs(np.zeros(0, np.int32), none, none, none, none)
        self.mark, self.flag = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        self.released, self.digest = none, none
        self.place = none  # by identity: its held row (`affected_rows`), or -1
        forgets = plan.state_ttl >= 0 and before != shape.NO_TIME
        self.limit = before - plan.state_ttl if forgets else shape.NO_TIME

    @property
    def size(self) -> int:
        """Number of identities."""
        return self.events.size

    def group_numbers(self, text: Text, serials: int) -> tuple[Ints, int]:
        """Number groups by name; return the numbers and the next free serial number."""
        before = self.groups.size
        numbers = self.groups.intern(np.zeros(text.size, np.int32), text)
        new = np.arange(before, self.groups.size, dtype=np.int32)
        names = self.groups.taken(new)
        found = self.ledgers["g"].find(np.zeros(len(new), np.int64), names)
        held = found.column(2)
        idle = found.known & (found.stamp < self.limit) & (found.stamp != shape.NO_TIME)
        idle &= held == 0
        anew = idle & (found.stamp >= self.limit - max(self.plan.state_ttl, 0))
        mark = np.where(idle, 0, found.mark).astype(np.uint8)
        mark[anew] |= RESTARTED
        serial = found.column(0)
        unknown = np.flatnonzero(~found.known)
        serial[unknown] = serials + np.arange(len(unknown))
        self.serial = np.concatenate([self.serial, serial])
        self.next = np.concatenate([self.next, np.where(idle, 0, found.column(1))])
        self.held = np.concatenate([self.held, held])
        self.mark = np.concatenate([self.mark, mark])
        return numbers, serials + len(unknown)

    def identify(self, group: Ints, text: Text, count: Longs) -> tuple[Ints, Ints]:
        """Return the number of the name that breaks ties, and the number of the identity."""
        if not self.plan.counted:
            token = self.events.intern(group, text)
            return token, token
        member = self.members.intern(group, text)
        numbers = np.ascontiguousarray(count)
        ends = np.arange(0, 8 * len(numbers) + 8, 8, dtype=np.int64)
        return member, self.events.intern(member, Text(numbers.view(np.uint8), ends))

    def learn(self) -> None:
        """Look up what the ledgers know of the identities that came since the last call."""
        begin = len(self.flag)
        new = np.arange(begin, self.size, dtype=np.int32)
        owner, text = self.keys_of(new)
        found = self.ledgers["i"].find(owner, text, self.limit)
        self.flag = np.concatenate([self.flag, found.mark])
        released = np.where(found.known, found.column(0), shape.NO_TIME)
        self.released = np.concatenate([self.released, released])
        self.digest = np.concatenate([self.digest, found.column(1)])
        if self.plan.counted:
            self._learn_members()
            member, number = self.numbers()
            settled_by(self.runs, member, number, begin, self.flag, self.released, self.digest)

    def _learn_members(self) -> None:
        begin = len(self.member_held)
        new = np.arange(begin, self.members.size, dtype=np.int32)
        names = self.members.taken(new)
        found = self.ledgers["m"].find(self.serial[self.members.owner[new]], names)
        held = found.column(0)
        stale = found.known & (found.stamp < self.limit) & (found.stamp != shape.NO_TIME)
        stale &= held == 0
        self.member_held = np.concatenate([self.member_held, held])
        width = np.where(found.known & ~stale, np.diff(found.first) - 1, 0) // 4
        owner = np.repeat(np.arange(len(new)), width)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width)
        at = found.first[owner] + 1 + 4 * within
        columns = [found.values[at + k] for k in range(4)]
        self.runs = Runs(
            np.concatenate([self.runs.member, new[owner]]),
            *(np.concatenate([old, one]) for old, one in zip(self.runs[1:], columns, strict=True)),
        )

    def numbers(self) -> tuple[Ints, Longs]:
        """Return member and number of every identity (clocks and FIFO)."""
        text = self.events.text()
        return self.events.owner[: self.size], text.data.view(np.int64)

    def keys_of(self, token: Ints) -> tuple[Longs, Text]:
        """Return the keys of identities in the ledger `i`: serial, and id or member and number."""
        own = self.events.taken(token)
        if not self.plan.counted:
            return self.serial[self.events.owner[token]], own
        member = self.events.owner[token]
        name = self.members.taken(member)
        return self.serial[self.members.owner[member]], _side_by_side(name, own)

    def names_of(self, token: Ints) -> tuple[Longs, Text, Longs]:
        """Return serial, name and number of identities, as `affected_rows` compares them."""
        if not self.plan.counted:
            owner, text = self.keys_of(token)
            return owner, text, np.zeros(len(token), np.int64)
        member, number = self.numbers()
        member = member[token]
        name = self.members.taken(member)
        return self.serial[self.members.owner[member]], name, number[token]


def group_entries(known: Identities, pick: Ints, stamp: int) -> Entries:
    """Return the entries of groups for the ledger `g`."""
    text = known.groups.taken(pick)
    values = np.stack([known.serial[pick], known.next[pick], known.held[pick]], axis=1)
    owner, stamps = np.zeros(len(pick), np.int64), np.full(len(pick), stamp, np.int64)
    first = np.arange(len(pick) + 1, dtype=np.int64) * 3
    return Entries(owner, text, known.mark[pick], stamps, first, values.ravel())


def member_entries(known: Identities, runs: Runs, pick: Ints, stamp: int) -> Entries:
    """Return the entries of members for the ledger `m`; `runs` are sorted by member."""
    begin = np.searchsorted(runs.member, pick)
    width = np.searchsorted(runs.member, pick, side="right") - begin
    owner = np.repeat(np.arange(len(pick)), width)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width)
    first = np.zeros(len(pick) + 1, np.int64)
    np.cumsum(1 + 4 * width, out=first[1:])
    values = np.empty(first[-1], np.int64)
    values[first[:-1]] = known.member_held[pick]
    at, run = first[owner] + 1 + 4 * within, begin[owner] + within
    for k, column in enumerate(runs[1:]):
        values[at + k] = column[run]
    text = known.members.taken(pick)
    owners, stamps = known.serial[known.members.owner[pick]], np.full(len(pick), stamp, np.int64)
    return Entries(owners, text, np.zeros(len(pick), np.uint8), stamps, first, values)


def id_entries(known: Identities, pick: Ints, tokens: shape.Tokens, stamp: Longs) -> Entries:
    """Return the entries of identities for the ledger `i`."""
    owner, text = known.keys_of(pick)
    values = np.stack([tokens.released[pick], tokens.digest[pick]], axis=1)
    mark = tokens.flag[pick]
    if known.plan.counted:  # that a number is out is told by its member's runs
        mark &= shape.ASIDE | shape.GIVEN_UP
    first = np.arange(len(pick) + 1, dtype=np.int64) * 2
    return Entries(owner, text, mark, stamp, first, values.ravel())


def _side_by_side(left: Text, right: Text) -> Text:
    """Return each string of `left` with that of `right` (of eight bytes) behind it."""
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
