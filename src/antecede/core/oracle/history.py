"""Causal pasts of messages, and violations of a finished execution.

Theory of operation
-------------------
An execution is a list of rows of kind send, receive and deliver. Only the order of the rows of one
member matters. The causal past of a message is the least set that contains its direct causes and,
for each message in it, theirs. Direct causes depend on the relation:

    fifo       earlier messages of the sender
    delivery   fifo, and all messages delivered at the sender        (Evropeytsev et al. 2016,
               Sahai et al. 2020, Bhavanasi and Iyer's comparison)
    receipt    delivery, and all messages received at the sender     (Tsuneizumi et al.);
               state transfer delivers without a receive, and counts
    topic      as receipt; a receiver needs only causes that share a topic of its subscriptions
               with the message                                      (Nakayama 2017)
    reply      the declared causes                                   (Bhavanasi and Iyer)
    total      as delivery; all members deliver in one order, own messages too
    none       nothing

Names are the values of `protocols.base.Relation`. By default a message is addressed to every other
member. Members need their own messages only in total order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from antecede.core.oracle.events import DELIVER, RECEIVE, SEND, EventLike
from antecede.errors import CycleError, InputError

RELATIONS = ("none", "fifo", "delivery", "receipt", "topic", "reply", "total")


class CausalViolation(NamedTuple):
    """Causal violation: `message` was delivered at `member` before its causes `missing`."""

    message: str
    member: str
    missing: frozenset[str]


class Fault(NamedTuple):
    """Broken rule `what`, one of the constants below, for `message` at `member`."""

    message: str
    member: str
    what: str


TWICE = "delivered twice"
UNSENT = "delivered but never sent"
STUCK = "arrived but never delivered"
UNNECESSARY = "held although its whole causal past was delivered"


class History:
    """Index of one execution. Raises InputError for unusable rows.

    `recipients`: recipients by message (default: all other members), without joining members whose
    join state covers it. `topics` by message and `subscriptions` by member are for the relation
    "topic".
    """

    def __init__(
        self,
        rows: Iterable[EventLike],
        recipients: Mapping[str, Collection[str]] | None = None,
        topics: Mapping[str, Collection[str]] | None = None,
        subscriptions: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.by_member: dict[str, list[EventLike]] = {}
        self.sends: dict[str, EventLike] = {}
        for row in rows:
            if row.member is None:
                raise InputError("row has no member", record_id=row.id)
            self.by_member.setdefault(row.member, []).append(row)
            if row.kind == SEND:
                if row.id in self.sends:
                    raise InputError("message is sent twice", record_id=row.id)
                self.sends[row.id] = row
        self._recipients = recipients
        self._topics = topics or {}
        self._subscriptions = subscriptions or {}

    def find_recipients(self, message: str) -> set[str]:
        """Return the recipients of a message, without its sender."""
        everyone = set(self.by_member)
        if self._recipients is not None and message in self._recipients:
            everyone = set(self._recipients[message])
        return everyone - {self.sends[message].member or ""}

    # -- causal past ------------------------------------------------------------------------

    def find_direct_past(self, message: str, relation: str) -> set[str]:
        """Return the direct causes of a message."""
        send = self.sends[message]
        if relation == "reply":
            return {cause for cause in send.causes if cause in self.sends}
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
        """Return the causal past of every message sent. Raise CycleError."""
        pasts: dict[str, frozenset[str]] = {}
        direct = {message: self.find_direct_past(message, relation) for message in self.sends}
        while len(pasts) < len(direct):
            ready = [m for m, known in direct.items() if m not in pasts and known <= pasts.keys()]
            if not ready:
                stuck = sorted(direct.keys() - pasts.keys())
                raise CycleError(f"causes form a cycle; affected messages: {', '.join(stuck)}")
            for message in ready:
                pasts[message] = frozenset().union(
                    direct[message], *(pasts[known] for known in direct[message])
                )
        return pasts

    # -- checks -----------------------------------------------------------------------------

    def early(self, relation: str) -> list[CausalViolation]:
        """Return all deliveries before a cause that is addressed to the same member."""
        pasts = self.pasts(relation)
        faults = []
        for member, rows in self.by_member.items():
            delivered: set[str] = set()
            for row in rows:
                if row.kind == DELIVER and row.id in pasts:
                    missing = self.find_needed(row.id, pasts[row.id], member, relation) - delivered
                    if missing:
                        faults.append(CausalViolation(row.id, member, frozenset(missing)))
                    delivered.add(row.id)
        return faults

    def faults(self, relation: str) -> list[Fault]:
        """Return duplicate and unsent deliveries, unnecessary waits and stuck messages.

        A wait is unnecessary if a message stays held after all effects of an arrival although its
        whole causal past for the member is delivered. A stuck message arrived and is never
        delivered.
        """
        pasts = self.pasts(relation)
        faults: list[Fault] = []
        for member in self.by_member:
            faults += self.find_double_or_unsent(member)
            faults += self._find_unnecessary_holds(member, pasts, relation)
            faults += self._find_stuck(member)
        return faults

    def find_needed(
        self, message: str, past: Iterable[str], member: str, relation: str
    ) -> set[str]:
        """Return the messages of a causal past that the member must deliver first."""
        needed = self._select_addressed(past, member)
        if relation == "total":
            return needed | {cause for cause in past if self.sends[cause].member == member}
        if relation != "topic":
            return needed
        shared = set(self._topics.get(message, ())) & set(self._subscriptions.get(member, ()))
        return {cause for cause in needed if shared & set(self._topics.get(cause, ()))}

    def _select_addressed(self, messages: Iterable[str], member: str) -> set[str]:
        return {message for message in messages if member in self.find_recipients(message)}

    def find_double_or_unsent(self, member: str) -> list[Fault]:
        """Return the messages that a member delivered twice, or that no member sent."""
        faults = []
        delivered: set[str] = set()
        for row in self.by_member[member]:
            if row.kind == DELIVER:
                if row.id in delivered:
                    faults.append(Fault(row.id, member, TWICE))
                if row.id not in self.sends:
                    faults.append(Fault(row.id, member, UNSENT))
                delivered.add(row.id)
        return faults

    def _find_unnecessary_holds(
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
                held = self._select_addressed(arrived & pasts.keys(), member) - delivered
                for message in sorted(held):
                    if self.find_needed(message, pasts[message], member, relation) <= delivered:
                        unnecessary[message] = None
        return [Fault(message, member, UNNECESSARY) for message in unnecessary]

    def _find_stuck(self, member: str) -> list[Fault]:
        rows = self.by_member[member]
        arrived = {row.id for row in rows if row.kind == RECEIVE and row.id in self.sends}
        delivered = {row.id for row in rows if row.kind == DELIVER}
        stuck = self._select_addressed(arrived, member) - delivered
        return [Fault(message, member, STUCK) for message in sorted(stuck)]
