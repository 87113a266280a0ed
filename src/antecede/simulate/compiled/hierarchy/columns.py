"""Names of what stands where in the arrays of the compiled hierarchy (`hierarchy.state`)."""

from __future__ import annotations

import numpy as np

NOWHERE = np.uint64(2**32 - 1)
"""In place of a group: an external peer."""
SAFE, NONE = np.uint64(0), np.uint64(1)

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
    EARLY,
    EXTRA,
    MISSING,
    COUNTED,
    FULL,
) = (np.uint64(k) for k in range(17))
"""Places in `State.at`: copies that arrived; deliveries; next message; next sample; logged
deliveries and transmissions; acknowledgements; used rows of `needs`; unused nodes and
acknowledgements (free, never used); deliveries before a cause; bits that Lemma 3 forbids, and
wants; deliveries of messages that count; 1: `needs` has no room."""

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
) = (np.uint64(k) for k in range(16))
"""Columns of `State.process`, those of every delivery first: its group or NOWHERE; first block in
which DV, CI or IDR's CI has anything, and the block after the last; highest number in RV;
deliveries since it last sent or acknowledged; messages held back, own ones not;
RV has all numbers up to this; kind of its channels; row of `base`; arrival of what was put last on
the FIFO channels to and from the super peer; messages of an internal peer that were forwarded;
floor that its super peer knows; floor that it told last; messages that it sent; external peers of
whom an external peer has something."""

(
    SENDER,
    SEQ,
    BEFORE,
    AFTER,
    ROW,
    BOTTOM,
    ROWS,
    FAR,
    FLOOR,
    OWN,
    TOP_TOLD,
) = (np.uint64(k) for k in range(11))
"""Columns of `State.message`: address; the sender's number for it, from 1; 1 + the sender's message
before it, and after it (0: none); first row of `needs`; block of that row, and number of rows;
1 + the sender's message before it, where that is outside of the rows; floor that it carries; (not
of this message:) messages of a group in the order of their numbers; highest number in its I."""

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

HAVE, KEPT, SHADOW, AWAITED = (np.uint64(k) for k in range(4))
"""Sets of a process: RV, what was delivered or sent, or what a super peer numbered; DV or CI; what
IDR's CI would be; what held messages wait for."""
LIST, READY, DONE = (np.uint64(k) for k in range(3))
"""Rows of `State.scratch`: a set as a list; nodes to look at again; messages of the external group
that one arrival lets go."""
NUMBER, ORDER = np.uint64(0), np.uint64(1)
"""Rows of `State.numbers`: number of a message, message of a number."""
COMPLETE, TOP = np.uint64(0), np.uint64(1)
"""Rows of `State.vtx`: so many of a super peer's own messages, from the first on, are delivered;
highest number that is set."""
