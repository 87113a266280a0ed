"""Vector clocks of a log as numbers of events: what the meter counts over.

A counter says how far somebody counted, not how many events there are: logs begin late, leave
events out, and count in steps or by the milliseconds of a clock. So an entry (member, c) is
turned into the number of the member's events in the log whose own number is at most c, which is
what `tables.kernels.vector_clocks` compares by. These numbers are dense, whatever the counters are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels import Bools, ClockLog, Ints, entry_of, njit, place_of

Counters = npt.NDArray[np.int32]


def dense_vectors(log: ClockLog, column: Ints, width: int) -> Counters:
    """Return how many events of each member an event's clock covers [n, width].

    `column` is by member of the log: its place among those that have events, or -1. No member may
    have two events of the same number.
    """
    return _dense(*log[1:], column, width)


def impossible_claims(log: ClockLog) -> Bools:
    """Tell the events that cannot know what their clocks say [n].

    Such an event claims a number of another member beyond all that this member has in the log,
    and the member's last event knows the claiming event: it would have come before itself.
    """
    return _impossible(*log[1:])


@njit
def _dense(
    member: Ints,
    own: Ints,
    start: Ints,
    entry_start: Ints,
    entry_member: Ints,
    entry_count: Ints,
    sorted_own: Ints,
    sorted_event: Ints,
    column: Ints,
    width: int,
) -> Counters:
    found = np.zeros((len(own), width), np.int32)
    for event in range(len(own)):
        for entry in range(entry_start[event], entry_start[event + 1]):
            other = entry_member[entry]
            if column[other] >= 0:
                known = place_of(other, entry_count[entry], start, sorted_own) - start[other]
                found[event, column[other]] = known
    return found


@njit
def _impossible(
    member: Ints,
    own: Ints,
    start: Ints,
    entry_start: Ints,
    entry_member: Ints,
    entry_count: Ints,
    sorted_own: Ints,
    sorted_event: Ints,
) -> Bools:
    found = np.zeros(len(own), np.bool_)
    for event in range(len(own)):
        for entry in range(entry_start[event], entry_start[event + 1]):
            other = entry_member[entry]
            if other == member[event] or start[other] == start[other + 1]:
                continue
            last = start[other + 1] - 1
            if entry_count[entry] <= sorted_own[last]:
                continue
            mine = entry_of(
                sorted_event[last], member[event], entry_start, entry_member, entry_count
            )
            if mine >= own[event]:
                found[event] = True
    return found
