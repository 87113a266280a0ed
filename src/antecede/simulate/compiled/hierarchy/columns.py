"""Names of what stands where in the arrays of the compiled hierarchy (`hierarchy.state`)."""

from __future__ import annotations

import numpy as np

NOWHERE = np.uint64(2**32 - 1)
"""In place of a group: an external peer."""
SAFE, NONE, PUBLISHED = np.uint64(0), np.uint64(1), np.uint64(2)

(
    ARRIVALS,
    DELIVERIES,
    SENT,
    SAMPLED,
    LOGGED,
    CARRIED,
    NOTES,
    USED,
    FREE,
    FRESH,
    ACK_FREE,
    ACK_FRESH,
    LOOSE,
    EARLY,
    DEBTS,
    EXTRA,
    MISSING,
    COUNTED,
    FULL,
    STAMP,
) = (np.uint64(k) for k in range(20))
"""Places in `State.at`: copies that arrived; deliveries; next message; next sample; logged
deliveries and transmissions; acknowledgements; used rows of `needs`; unused nodes and
acknowledgements (free, never used); used places of `loose`; deliveries before a cause; debts;
bits that Lemma 3 forbids, and wants; deliveries of messages that count; 1: `needs` or the like has
no room; searches."""

INTERNAL, EXTERNAL, IDR, DS = (np.uint64(k) for k in range(4))
"""Rows of `State.sizes`."""
AT_INTERNAL, AT_EXTERNAL, AT_SUPER, AT_IDR, AT_HELD, AT_TT = (np.uint64(k) for k in range(6))
"""Columns of `State.stored`."""


(
    HOME,
    LOW,
    HIGH,
    NEWEST,
    SILENT,
    DEBT,
    HELD,
    PREFIX,
    KIND,
    STAND,
    NEWEST_UP,
    NEWEST_DOWN,
    TAKEN,
    FLOORS,
    TOLD,
    SPOKEN,
    HEARD,
) = (np.uint64(k) for k in range(17))
"""Columns of `State.process`, those of every delivery first: its group or NOWHERE; first block in
which DV, CI or IDR's CI has anything, and the block after the last; highest number in RV;
deliveries since it last sent or acknowledged; number of debts; messages held back, own ones not;
RV has all numbers up to this; kind of its channels; row of `base`; arrival of what was put last on
the FIFO channels to and from the super peer; messages of an internal peer that were forwarded;
floor that its super peer knows; floor that it told last; messages that it sent; external peers of
whom an external peer has something."""

(
    SENDER,
    SEQ,
    BEFORE,
    AFTER,
    ROW_IN,
    ROW_OUT,
    BOTTOM,
    ROWS,
    FAR,
    FLOOR,
    OWN,
    TOP_TOLD,
    SEEN,
    LOOSE_FIRST,
    LOOSE_COUNT,
) = (np.uint64(k) for k in range(15))
"""Columns of `State.message`: address; the sender's number for it, from 1; 1 + the sender's message
before it, and after it (0: none); first row of `needs` in its sender's group, and elsewhere; block
of that row, and number of rows; 1 + the sender's message before it, where that is outside of the
rows; floor that it carries; (not of this message:) messages of a group in the order of their
numbers; highest number in its I; number of the last search that came by; where those of its
dependencies stand that TT had forgotten ("published"), and how many they are."""

(
    FIRST,
    OWN_FIRST,
    GIVEN,
    OWNED,
    LOWEST,
    TRANSLATED,
    LOWEST_BIT,
    HIGHEST_BIT,
    TOUCHED,
) = (np.uint64(k) for k in range(9))
"""Columns of `State.group`: address of the first internal peer; where its part of OWN begins; last
number given; messages of its own numbered; least floor; entries of TT; scratch of spans (0 in
HIGHEST_BIT between uses)."""

HAVE, KEPT, SHADOW, AWAITED, EXACT = (np.uint64(k) for k in range(5))
"""Sets of a process: RV, what was delivered or sent, or what a super peer numbered; DV or CI; what
IDR's CI would be; what held messages wait for; immediate dependencies of the next message, where
order may be violated."""
LIST, READY, DONE, STACK = (np.uint64(k) for k in range(4))
"""Rows of `State.scratch`: a set as a list; nodes to look at again; messages of the external group
that one arrival lets go; searches."""
NUMBER, ORDER = np.uint64(0), np.uint64(1)
"""Rows of `State.numbers`: number of a message, message of a number."""
HEIR, HEIRS, CO_HEIR = (np.uint64(k) for k in range(3))
"""Rows of `State.heirs`, by number: the first number that names it; the first entry of TT that it
inherits; the next entry with the same heir."""
COMPLETE, TOP = np.uint64(0), np.uint64(1)
"""Rows of `State.vtx`: so many of a super peer's own messages, from the first on, are delivered;
highest number that is set."""
