"""Vector-clock logs: ordered pairs, message edges, and inconsistencies of the clocks.

Event e of member h has the clock V(e); its own entry V(e)[h] is its number at h. Event (g, n) is in
the causal past of e if V(e)[g] >= n (Mattern 1989). So pairs are counted by binary search in each
member's numbers, entry by entry.

Events of a member are sorted by their own numbers, or by row if the member repeats a number (a
restart, or uncounted events).
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.jit import njit


class ClockLog(NamedTuple):
    """Clocks of events as numbers; events are sorted by member, then by their order there."""

    row: Ints  # [n] row of the Arrow table that each event came from
    member: Ints  # [n] member (of an execution) of each event, from 0
    own: Ints  # [n] own entry of each event
    start: Ints  # [members + 1] where each member's events begin
    entry_start: Ints  # [n + 1] where each event's clock begins
    entry_member: Ints  # [entries] members in ascending order within each event
    entry_count: Ints  # [entries] counters, above zero
    sorted_own: Ints  # [n] own entries in ascending order within each member
    sorted_event: Ints  # [n] the event of each of them


class ClockEdges(NamedTuple):
    """Edges between members; events are numbers of the log."""

    sender: Ints  # [edges] event that becomes known
    receiver: Ints  # [edges] at this event
    redundant_steps: int  # program-order edges that message edges imply


class ClockInconsistencies(NamedTuple):
    """Inconsistencies of clocks; events are numbers of the log."""

    lowered: Bools  # [n] an entry of the member's previous event is missing or lower
    repeated: int  # events with the number of the member's previous event
    mutual: int  # events with an event of another member both in past and future
    unmerged: int  # events that know another event, but not all of its past
    gaps: int  # gaps in the numbers of members


class ClockPairs(NamedTuple):
    """Pairs of events of the same execution, by clock comparison."""

    ordered: int
    concurrent: int


def clock_log(events: pa.Table) -> ClockLog:
    """Return the clocks of a table; each row needs `member`, its own entry, and a clock."""
    n = len(events)
    run = _encode_text(events, "run")
    names = pa.array(events["member"].to_pylist(), pa.string())
    lists = cast("Any", events["clock_members"].combine_chunks())
    entry_event = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    counts = cast("Any", pc.list_flatten(events["clock_counts"].combine_chunks())).to_numpy()
    all_names = pa.concat_arrays([names, pc.list_flatten(lists).cast(pa.string())])
    codes = all_names.dictionary_encode().indices.to_numpy().astype(np.int64)
    width = int(codes.max(initial=0)) + 1
    in_run = np.concatenate([run, run[entry_event]]) * width + codes
    keys, numbers = np.unique(in_run, return_inverse=True)  # members without events too
    member, entry_member = numbers[:n], numbers[n:]
    own = np.zeros(n, dtype=np.int64)
    mine = entry_member == member[entry_event]
    own[entry_event[mine]] = counts[mine]
    order = _sort_events(member, own)
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    member, own = member[order].astype(np.int64), own[order]
    entries = np.lexsort((entry_member, position[entry_event]))
    sorted_event = np.lexsort((np.arange(n), own, member))
    return ClockLog(
        row=order,
        member=member,
        own=own,
        start=_compute_offsets(member, len(keys)),
        entry_start=_compute_offsets(np.sort(position[entry_event]), n),
        entry_member=entry_member[entries].astype(np.int64),
        entry_count=counts[entries].astype(np.int64),
        sorted_own=own[sorted_event],
        sorted_event=sorted_event.astype(np.int64),
    )


def clock_edges(log: ClockLog) -> ClockEdges:
    """Return the message edges, and the count of program-order edges that they imply.

    Causes are events of other members, new maxima at this member, none in the past of another.
    """
    sender, receiver, redundant = _find_edges(log)
    return ClockEdges(sender, receiver, int(redundant))


def find_clock_inconsistencies(log: ClockLog) -> ClockInconsistencies:
    """Find inconsistencies between clocks."""
    lowered = _mask_lowered(log)
    mutual, unmerged = _count_contradictions(log)
    same = log.member[1:] == log.member[:-1]
    step = np.diff(log.own)
    first = np.ones(len(log.own), dtype=np.bool_)
    first[1:] = ~same
    gaps = int(np.count_nonzero(same & (step > 1)) + np.count_nonzero(first & (log.own > 1)))
    return ClockInconsistencies(
        lowered, int(np.count_nonzero(same & (step == 0))), int(mutual), int(unmerged), gaps
    )


def count_clock_pairs(log: ClockLog, events: pa.Table) -> ClockPairs:
    """Count ordered and concurrent pairs; exact for consistent clocks."""
    ordered = int(_count_ordered_pairs(log))
    sizes = np.bincount(_encode_text(events, "run"))
    return ClockPairs(ordered, int((sizes * (sizes - 1) // 2).sum()) - ordered)


def _encode_text(events: pa.Table, column: str) -> Ints:
    """Encode the distinct values of a text column; null and "" are equal, as in identities [n]."""
    if column not in events.column_names:
        return np.zeros(len(events), dtype=np.int64)
    values = pa.array([value or "" for value in events[column].to_pylist()], pa.string())
    encoded = values.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _sort_events(member: Ints, own: Ints) -> Ints:
    order = np.lexsort((own, member))
    same = (member[order][1:] == member[order][:-1]) & (own[order][1:] == own[order][:-1])
    repeats = np.zeros(int(member.max(initial=-1)) + 1, dtype=np.bool_)
    repeats[member[order][1:][same]] = True
    return np.lexsort((np.where(repeats[member], 0, own), member)).astype(np.int64)


def _compute_offsets(sorted_numbers: Ints, size: int) -> Ints:
    start = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(sorted_numbers, minlength=size), out=start[1:])
    return start


@njit
def find_entry(event: int, member: int, entry_start: Ints, entry_member: Ints, counts: Ints) -> int:
    """Return the entry of a member in an event's clock, 0 without one; by binary search."""
    low, high = entry_start[event], entry_start[event + 1]
    while low < high:
        middle = (low + high) // 2
        if entry_member[middle] < member:
            low = middle + 1
        else:
            high = middle
    if low < entry_start[event + 1] and entry_member[low] == member:
        return int(counts[low])
    return 0


@njit
def find_position(member: int, count: int, start: Ints, sorted_own: Ints) -> int:
    """Return the position, in sorted events, after the last of `member` numbered <= count."""
    low, high = start[member], start[member + 1]
    while low < high:
        middle = (low + high) // 2
        if sorted_own[middle] <= count:
            low = middle + 1
        else:
            high = middle
    return int(low)


@njit
def _count_ordered_pairs(log: ClockLog) -> int:
    total = 0
    for event in range(len(log.own)):
        for entry in range(log.entry_start[event], log.entry_start[event + 1]):
            other = log.entry_member[entry]
            place = find_position(other, log.entry_count[entry], log.start, log.sorted_own)
            total += place - log.start[other]
        total -= 1  # the event itself
    return total


@njit
def _find_edges(log: ClockLog) -> tuple[Ints, Ints, int]:
    entry_start, entry_member, entry_count = log.entry_start, log.entry_member, log.entry_count
    members = len(log.start) - 1
    n = len(log.own)
    senders = np.empty(len(log.entry_member), np.int64)
    receivers = np.empty(len(log.entry_member), np.int64)
    highest = np.zeros(members, np.int64)
    fresh = np.empty(members, np.int64)
    found = redundant = 0
    for event in range(n):
        here = log.member[event]
        if event == log.start[here]:
            highest[:] = 0
        count = 0
        for entry in range(entry_start[event], entry_start[event + 1]):
            other, number = entry_member[entry], entry_count[entry]
            if other == here or number <= highest[other]:
                continue
            highest[other] = number
            place = find_position(other, number, log.start, log.sorted_own)
            if place > log.start[other] and log.sorted_own[place - 1] == number:
                fresh[count] = log.sorted_event[place - 1]
                count += 1
        before = found
        for one in range(count):
            implied = False
            for two in range(count):
                if one == two:
                    continue
                if (
                    find_entry(
                        fresh[two], log.member[fresh[one]], entry_start, entry_member, entry_count
                    )
                    >= log.own[fresh[one]]
                ):
                    implied = True
                    break
            if not implied:
                senders[found] = fresh[one]
                receivers[found] = event
                found += 1
        if event > log.start[here]:
            for edge in range(before, found):
                if (
                    find_entry(senders[edge], here, entry_start, entry_member, entry_count)
                    >= log.own[event - 1]
                ):
                    redundant += 1
                    break
    return senders[:found].copy(), receivers[:found].copy(), redundant


@njit
def _mask_lowered(log: ClockLog) -> Bools:
    entry_start, entry_member, entry_count = log.entry_start, log.entry_member, log.entry_count
    n = len(log.member)
    lowered = np.zeros(n, np.bool_)
    for event in range(1, n):
        if log.member[event] != log.member[event - 1]:
            continue
        for entry in range(entry_start[event - 1], entry_start[event]):
            other = entry_member[entry]
            now = find_entry(event, other, entry_start, entry_member, entry_count)
            if now < entry_count[entry]:
                lowered[event] = True
                break
    return lowered


@njit
def _count_contradictions(log: ClockLog) -> tuple[int, int]:
    """Count events in their own past through another event, and events with unmerged entries."""
    entry_start, entry_member, entry_count = log.entry_start, log.entry_member, log.entry_count
    mutual = unmerged = 0
    for event in range(len(log.own)):
        circle = ignorant = False
        for entry in range(entry_start[event], entry_start[event + 1]):
            other = entry_member[entry]
            if other == log.member[event]:
                continue
            place = find_position(other, entry_count[entry], log.start, log.sorted_own)
            if place == log.start[other]:
                continue
            known = log.sorted_event[place - 1]
            for above in range(entry_start[known], entry_start[known + 1]):
                third, number = entry_member[above], entry_count[above]
                if third == log.member[event] and number >= log.own[event]:
                    circle = True
                elif find_entry(event, third, entry_start, entry_member, entry_count) < number:
                    ignorant = True
        mutual += circle
        unmerged += ignorant
    return mutual, unmerged
