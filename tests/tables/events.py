"""Short forms of events, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from antecede.tables.trace.arrow import to_batch
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event

KINDS = {"!": SEND, "?": RECEIVE, ".": DELIVER}


def table_of(rows: Sequence[Event]) -> pa.Table:
    """Return events as a table, in the order of a file."""
    placed = [row._replace(file_order=k) for k, row in enumerate(rows)]
    return pa.Table.from_batches([to_batch(placed)])


def moves(text: str, **more: Any) -> list[Event]:
    """Return rows of words like P!a (P sends a), Q?a (a arrives at Q), Q.a (Q delivers a).

    P!b<a,c: b declares a and c as causes.
    """
    found = []
    for word in text.split():
        id, _, parents = word[2:].partition("<")
        causes = tuple(parents.split(",")) if parents else ()
        found.append(Event(kind=KINDS[word[1]], id=id, member=word[0], causes=causes, **more))
    return found


def clocked(id: str, member: str | None, clock: dict[str, int], **more: Any) -> Event:
    """Return an event with a vector clock."""
    names, counts = tuple(clock), tuple(clock.values())
    return Event(id=id, member=member, clock_members=names, clock_counts=counts, **more)
