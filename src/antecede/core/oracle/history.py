"""Causal pasts of messages, and what a finished execution did wrong.

Theory of operation
-------------------
An execution is a list of rows of kind send, receive and deliver. Only the
order of the rows of ONE member means anything; rows of different members may be interleaved in
any way. The causal past of a message is the least set that holds, for each message in it too,
what its sender knew when it sent it:

    fifo       its earlier messages
    delivery   its earlier messages and all it had delivered        (Evropeytsev et al. 2016, Sahai
    et al. 2020, Bhavanasi and Iyer's comparison) receipt    its earlier messages and all that had
    arrived at it  (Tsuneizumi et al.); what a newcomer
               takes over from its sponsor is delivered there without arriving, and counts
    topic      the same; but a receiver needs a message of this past only where both have a
               topic in common that it subscribes to                (Nakayama 2017)
    reply      the declared parents                                 (Bhavanasi and Iyer)
    total      as delivery; and all members deliver in one order, a sender its own messages too
    none       nothing

The names are the values of `protocols.base.Relation`. A message is addressed to every member
but its sender unless the caller says otherwise; members need their own messages only in total
order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from antecede.core.oracle.events import DELIVER, RECEIVE, SEND, EventLike
from antecede.errors import CycleError, InputError

RELATIONS = ("none", "fifo", "delivery", "receipt", "topic", "reply", "total")


class Early(NamedTuple):
    """`message` was delivered at `member` although `missing`, of its past, had not been."""

    message: str
    member: str
    missing: frozenset[str]


class Fault(NamedTuple):
    """`message` at `member` broke the rule `what` (one of the constants below)."""

    message: str
    member: str
    what: str


TWICE = "delivered twice"
UNSENT = "delivered but never sent"
STUCK = "arrived but never delivered"
UNNECESSARY = "held although its whole causal past was delivered"


class History:
    """One execution, ready to be asked; raises InputError when rows are unusable.

    `addressed` names the receivers of a message where they are not all other members: a
    member that joined later is not owed what its sponsor's frontier covered. `topics` of a
    message and `subscriptions` of a member are needed for the relation "topic" alone.
    """

    def __init__(
        self,
        rows: Iterable[EventLike],
        addressed: Mapping[str, Collection[str]] | None = None,
        topics: Mapping[str, Collection[str]] | None = None,
        subscriptions: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.by_member: dict[str, list[EventLike]] = {}
        self.sends: dict[str, EventLike] = {}
        for row in rows:
            if row.member is None:
                raise InputError("a row without a member cannot be judged", record_id=row.id)
            self.by_member.setdefault(row.member, []).append(row)
            if row.kind == SEND:
                if row.id in self.sends:
                    raise InputError("this message is sent twice", record_id=row.id)
                self.sends[row.id] = row
        self._addressed = addressed
        self._topics = topics or {}
        self._subscriptions = subscriptions or {}

    def receivers(self, message: str) -> set[str]:
        """Return the members that the message is addressed to, never its sender."""
        everyone = set(self.by_member)
        if self._addressed is not None and message in self._addressed:
            everyone = set(self._addressed[message])
        return everyone - {self.sends[message].member or ""}

    # -- causal past ------------------------------------------------------------------------

    def known_at_send(self, message: str, relation: str) -> set[str]:
        """Return what the message depends on directly: known to its sender when it was sent."""
        send = self.sends[message]
        if relation == "reply":
            return {parent for parent in send.parents if parent in self.sends}
        kinds = {
            "none": (),
            "fifo": (SEND,),
            "delivery": (SEND, DELIVER),
            "total": (SEND, DELIVER),
            "receipt": (SEND, RECEIVE, DELIVER),
            "topic": (SEND, RECEIVE, DELIVER),
        }[relation]
        rows = self.by_member[send.member or ""]
        earlier = rows[: rows.index(send)]
        return {row.id for row in earlier if row.kind in kinds and row.id in self.sends}

    def pasts(self, relation: str) -> dict[str, frozenset[str]]:
        """Return the causal past of every message sent; raises CycleError."""
        pasts: dict[str, frozenset[str]] = {}
        direct = {message: self.known_at_send(message, relation) for message in self.sends}
        while len(pasts) < len(direct):
            ready = [m for m, known in direct.items() if m not in pasts and known <= pasts.keys()]
            if not ready:
                stuck = sorted(direct.keys() - pasts.keys())
                raise CycleError(f"these messages are in their own past: {', '.join(stuck)}")
            for message in ready:
                pasts[message] = frozenset().union(
                    direct[message], *(pasts[known] for known in direct[message])
                )
        return pasts

    # -- judgement --------------------------------------------------------------------------

    def early(self, relation: str) -> list[Early]:
        """Return every delivery that came before a message of its past addressed there."""
        pasts = self.pasts(relation)
        found = []
        for member, rows in self.by_member.items():
            delivered: set[str] = set()
            for row in rows:
                if row.kind == DELIVER and row.id in pasts:
                    missing = self.needed(row.id, pasts[row.id], member, relation) - delivered
                    if missing:
                        found.append(Early(row.id, member, frozenset(missing)))
                    delivered.add(row.id)
        return found

    def faults(self, relation: str) -> list[Fault]:
        """Return doubled and unsent deliveries, unnecessary waits and stuck messages.

        A wait is unnecessary when, after all that an arrival caused has happened, a message is
        still held whose whole past addressed to that member is delivered. A message is stuck
        when it has arrived, is addressed to the member, and is not delivered at the end.
        """
        pasts = self.pasts(relation)
        found: list[Fault] = []
        for member in self.by_member:
            found += self._doubled_or_unsent(member)
            found += self._unnecessary(member, pasts, relation)
            found += self._stuck(member)
        return found

    def needed(self, message: str, past: Iterable[str], member: str, relation: str) -> set[str]:
        """Return what of a message's past the member must have delivered before it."""
        needed = self._owed(past, member)
        if relation == "total":
            return needed | {cause for cause in past if self.sends[cause].member == member}
        if relation != "topic":
            return needed
        shared = set(self._topics.get(message, ())) & set(self._subscriptions.get(member, ()))
        return {cause for cause in needed if shared & set(self._topics.get(cause, ()))}

    def _owed(self, messages: Iterable[str], member: str) -> set[str]:
        return {message for message in messages if member in self.receivers(message)}

    def _doubled_or_unsent(self, member: str) -> list[Fault]:
        found = []
        delivered: set[str] = set()
        for row in self.by_member[member]:
            if row.kind == DELIVER:
                if row.id in delivered:
                    found.append(Fault(row.id, member, TWICE))
                if row.id not in self.sends:
                    found.append(Fault(row.id, member, UNSENT))
                delivered.add(row.id)
        return found

    def _unnecessary(
        self, member: str, pasts: Mapping[str, frozenset[str]], relation: str
    ) -> list[Fault]:
        rows = self.by_member[member]
        arrived: set[str] = set()
        delivered: set[str] = set()
        unnecessary: dict[str, None] = {}
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            if row.kind == RECEIVE:
                arrived.add(row.id)
            elif row.kind == DELIVER:
                delivered.add(row.id)
            if following is None or following.kind != DELIVER:
                held = self._owed(arrived & pasts.keys(), member) - delivered
                for message in sorted(held):
                    if self.needed(message, pasts[message], member, relation) <= delivered:
                        unnecessary[message] = None
        return [Fault(message, member, UNNECESSARY) for message in unnecessary]

    def _stuck(self, member: str) -> list[Fault]:
        rows = self.by_member[member]
        arrived = {row.id for row in rows if row.kind == RECEIVE and row.id in self.sends}
        delivered = {row.id for row in rows if row.kind == DELIVER}
        stuck = self._owed(arrived, member) - delivered
        return [Fault(message, member, STUCK) for message in sorted(stuck)]
