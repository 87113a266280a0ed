"""Vector clocks of a log as dense numbers of events.

An entry (member, c) becomes the number of the member's events in the log whose own number is at
most c, as in `tables.kernels.vector_clocks`. Counters skip events and begin anywhere.
"""

from __future__ import annotations

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import Counters
from antecede.tables.kernels import Bools, ClockLog, Ints, find_entry, find_position, njit


@njit
def compute_rank_vectors(log: ClockLog, column: Ints, width: int) -> Counters:
    """Return the number of events of each member that an event's clock covers [n, width].

    `column`: index of each member among those with events, or -1. Numbers of a member are distinct.
    """
    start, entry_start, sorted_own = log.start, log.entry_start, log.sorted_own
    found = np.zeros((len(log.own), width), np.int32)
    for event in range(len(log.own)):
        for entry in range(entry_start[event], entry_start[event + 1]):
            other = log.entry_member[entry]
            if column[other] >= 0:
                known = (
                    find_position(other, log.entry_count[entry], start, sorted_own) - start[other]
                )
                found[event, column[other]] = known
    return found


@njit
def mask_impossible_claims(log: ClockLog) -> Bools:
    """Mask the events whose clocks claim impossible knowledge [n].

    Such an event claims a number beyond a member's last one, whose event knows the claiming event.
    """
    member, own, start = log.member, log.own, log.start
    entry_start, entry_member, entry_count = log.entry_start, log.entry_member, log.entry_count
    found = np.zeros(len(own), np.bool_)
    for event in range(len(own)):
        for entry in range(entry_start[event], entry_start[event + 1]):
            other = entry_member[entry]
            if other == member[event] or start[other] == start[other + 1]:
                continue
            last = start[other + 1] - 1
            if entry_count[entry] <= log.sorted_own[last]:
                continue
            knows = log.sorted_event[last]
            mine = find_entry(knows, member[event], entry_start, entry_member, entry_count)
            if mine >= own[event]:
                found[event] = True
    return found
