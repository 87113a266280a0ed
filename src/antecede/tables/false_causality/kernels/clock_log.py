"""Vector clocks of a log as numbers of events: what the meter counts over.

A counter is no number of events: logs begin late, leave events out, and count in steps or by the
milliseconds of a clock. So an entry (member, c) becomes the number of the member's events in the
log whose own number is at most c, as in `tables.kernels.vector_clocks`. These numbers are dense.
"""

from __future__ import annotations

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import Counters
from antecede.tables.kernels import Bools, ClockLog, Ints, entry_of, njit, place_of


@njit
def dense_vectors(log: ClockLog, column: Ints, width: int) -> Counters:
    """Return how many events of each member an event's clock covers [n, width].

    `column` is by member of the log: its place among those that have events, or -1. No member may
    have two events of the same number.
    """
    start, entry_start, sorted_own = log.start, log.entry_start, log.sorted_own
    found = np.zeros((len(log.own), width), np.int32)
    for event in range(len(log.own)):
        for entry in range(entry_start[event], entry_start[event + 1]):
            other = log.entry_member[entry]
            if column[other] >= 0:
                known = place_of(other, log.entry_count[entry], start, sorted_own) - start[other]
                found[event, column[other]] = known
    return found


@njit
def impossible_claims(log: ClockLog) -> Bools:
    """Mask the events that cannot know what their clocks say [n].

    Such an event claims a number of another member beyond all that this member has in the log,
    and the member's last event knows the claiming event: it would have come before itself.
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
            mine = entry_of(knows, member[event], entry_start, entry_member, entry_count)
            if mine >= own[event]:
                found[event] = True
    return found
