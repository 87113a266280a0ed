"""Out-of-sequence message store (OSMS) of S_b, with an index by parent.

Source: Bhavanasi and Iyer, sections IV.B.3 and VI.C. The table of the text is searched row by row;
here a dictionary maps a parent to the rows that wait for it. So releasing a thread costs one step
per message, without recursion. Rows are in order of arrival.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from antecede.core.protocols.base import MessageId
from antecede.core.protocols.reply.messages import ID_BYTES, SbMessage

Key = tuple[int, int]
"""(sender, number): equal to the MessageId with the same values, and cheaper to make."""


class HeldReply:
    """Held message with its arrival time (ns; 0: not used) and its number of missing parents."""

    __slots__ = ("message", "missing_parents", "since")

    def __init__(self, message: SbMessage, since: int, waits: int) -> None:
        self.message = message
        self.since = since
        self.missing_parents = waits

    @property
    def key(self) -> Key:
        return self.message[:2]


class ReplyStore:
    """Held messages of a member."""

    __slots__ = ("by_parent", "rows")

    def __init__(self) -> None:
        self.rows: OrderedDict[Key, HeldReply] = OrderedDict()
        self.by_parent: dict[Key, dict[Key, HeldReply]] = {}

    def put(self, message: SbMessage, missing: Iterable[Key], now: int) -> None:
        """Hold a message until all its `missing` parents are delivered (InsertInOSMT)."""
        row = HeldReply(message, now, 0)
        key = row.key
        self.rows[key] = row
        for parent in missing:
            self.by_parent.setdefault(parent, {})[key] = row
            row.missing_parents += 1

    def take_deliverable(self, parent: Key) -> list[SbMessage]:
        """Take the messages that waited only for this parent, in order of arrival (getRow)."""
        ready: list[SbMessage] = []
        for key, row in self.by_parent.pop(parent, {}).items():
            row.missing_parents -= 1
            if not row.missing_parents:
                del self.rows[key]
                ready.append(row.message)
        return ready

    def take(self, key: Key) -> tuple[SbMessage, tuple[MessageId, ...]]:
        row = self.rows.pop(key)
        missing = self._list_missing_of(row)
        for parent in missing:
            waiting = self.by_parent[parent]
            del waiting[key]
            if not waiting:
                del self.by_parent[parent]
        return row.message, missing

    def find_oldest(self) -> HeldReply:
        return next(iter(self.rows.values()))

    def list_replies(self, parent: Key) -> list[Key]:
        return list(self.by_parent.get(parent, ()))

    def list_missing(self, key: Key) -> tuple[MessageId, ...]:
        """Return the parents for which a held message waits, in the order of the message."""
        return self._list_missing_of(self.rows[key])

    def _list_missing_of(self, row: HeldReply) -> tuple[MessageId, ...]:
        key = row.key
        return tuple(p for p in row.message.parents if key in self.by_parent.get(p, ()))

    def list_blockers(self, key: Key) -> list[Key]:
        """Return this message and held ancestors that have a parent which is neither held nor here.

        Ancestors first. Of a cycle without such a parent, one message.
        """
        order: list[Key] = []
        seen = {key}
        path = [(key, iter(self.list_missing(key)))]
        while path:
            current, parents = path[-1]
            above = next((p for p in parents if p in self.rows and p not in seen), None)
            if above is None:
                path.pop()
                order.append(current)
            else:
                seen.add(above)
                path.append((above, iter(self.list_missing(above))))
        return [k for k in order if any(p not in self.rows for p in self.list_missing(k))] or order[
            :1
        ]

    def storage_bytes(self) -> int:
        return sum(ID_BYTES * (1 + len(row.message.parents)) for row in self.rows.values())
