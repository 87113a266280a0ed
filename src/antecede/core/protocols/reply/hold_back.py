"""The out-of-sequence message store (OSMS) of S_b, with an index by parent.

Source: Bhavanasi and Iyer, sections IV.B.3 and VI.C. The table of the text is searched row by row
(O(q) for each step of the depth-first search); here a dictionary leads from a parent to the rows
that wait for it, so that releasing a thread costs one step a message.

Theory of operation
-------------------
`rows` keeps the held messages in the order of their arrival. `by_parent[p]` has the rows that wait
for message p, in the same order, also when p itself is held. A row is ready when as many
parents were delivered as were missing on arrival. Nothing here recurses.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from antecede.core.protocols.base import MessageId
from antecede.core.protocols.reply.messages import ID_BYTES, SbMessage

Key = tuple[int, int]
"""(sender, number): equal to the MessageId with the same values, and quicker to make."""


class Row:
    """One held message: when it arrived (ns; 0: nobody asks) and how many parents it waits for."""

    __slots__ = ("message", "since", "waits")

    def __init__(self, message: SbMessage, since: int, waits: int) -> None:
        self.message = message
        self.since = since
        self.waits = waits

    @property
    def key(self) -> Key:
        """The id of the message."""
        return self.message[:2]


class Store:
    """The held messages of one member."""

    __slots__ = ("by_parent", "rows")

    def __init__(self) -> None:
        self.rows: OrderedDict[Key, Row] = OrderedDict()
        self.by_parent: dict[Key, dict[Key, Row]] = {}

    def put(self, message: SbMessage, missing: Iterable[Key], now: int) -> None:
        """Hold a message (InsertInOSMT) until every one of its `missing` parents is delivered."""
        row = Row(message, now, 0)
        key = row.key
        self.rows[key] = row
        for parent in missing:
            self.by_parent.setdefault(parent, {})[key] = row
            row.waits += 1

    def parent_delivered(self, parent: Key) -> list[SbMessage]:
        """Take out and return what waited for this parent last, in order of arrival (getRow)."""
        ready: list[SbMessage] = []
        for key, row in self.by_parent.pop(parent, {}).items():
            row.waits -= 1
            if not row.waits:
                del self.rows[key]
                ready.append(row.message)
        return ready

    def take(self, key: Key) -> tuple[SbMessage, tuple[MessageId, ...]]:
        """Take one message out whatever it waits for; return it and what it waited for."""
        row = self.rows.pop(key)
        missing = self._waits_for(row)
        for parent in missing:
            waiting = self.by_parent[parent]
            del waiting[key]
            if not waiting:
                del self.by_parent[parent]
        return row.message, missing

    def oldest(self) -> Row:
        """Return the row that arrived first; the store must not be empty."""
        return next(iter(self.rows.values()))

    def answers(self, parent: Key) -> list[Key]:
        """Return the ids of the held messages that wait for this parent."""
        return list(self.by_parent.get(parent, ()))

    def missing(self, key: Key) -> tuple[MessageId, ...]:
        """Return the parents that a held message waits for, as it names them."""
        return self._waits_for(self.rows[key])

    def _waits_for(self, row: Row) -> tuple[MessageId, ...]:
        key = row.key
        return tuple(p for p in row.message.parents if key in self.by_parent.get(p, ()))

    def blockers(self, key: Key) -> list[Key]:
        """Return the held messages, this one or above it, that lack a parent that is not here.

        Ancestors first; of a cycle that lacks nothing, one message.
        """
        order: list[Key] = []
        seen = {key}
        path = [(key, iter(self.missing(key)))]
        while path:
            current, parents = path[-1]
            above = next((p for p in parents if p in self.rows and p not in seen), None)
            if above is None:
                path.pop()
                order.append(current)
            else:
                seen.add(above)
                path.append((above, iter(self.missing(above))))
        return [k for k in order if any(p not in self.rows for p in self.missing(k))] or order[:1]

    def storage_bytes(self) -> int:
        """Return 8 bytes for mid_c and 8 for each mid_p of every row."""
        return sum(ID_BYTES * (1 + len(row.message.parents)) for row in self.rows.values())
