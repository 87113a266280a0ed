"""Topic-based delivery: what the five protocols of 004 share. They are in `topics`.

Source: 004, section 2 and errata; the text gives relations between events, no delivery rule.

Theory of operation
-------------------
State: the topic vector TV (a count a topic) and whichever of linear time LT and vector time VT
the protocol carries; for each member the numbers that arrived, as intervals, which tell
duplicates; the events held back, each with the reading of the clock at its arrival.

Publishing adds one to every topic of the publication e.P, to LT and to the own entry of VT, and
then stamps; the event goes to the members that subscribe to a topic of e.P. Arrival takes the
component-wise maximum, LT and VT alike, before anything is held or delivered: the relation is by
RECEIPT. The sum of TV, LT and VT all grow along causality.

An event may go when nothing that precedes it can still be on its way (`topic_delays`) and
nothing that precedes it is held (`topic_relations`). Without physical time the wait counts from
its arrival; with it, from e.PT or from its arrival, whichever ends first, so that a source whose
clock is far ahead delays nobody for ever. Counting cannot replace the wait, not even with vector
time: it names events of the causal past, but not whether they are for this member, and those that
are not never come.

No order is ever sorted by the relation, which can be cyclic. An event waits for a held one that
precedes it AND has the lesser rank: LT, or the sum of TV where no LT is carried, then source and
number. A pair against the rank is not causal, so nothing is lost by leaving it out, and what
is free goes in the order of the ranks.

Loss and late arrival are not recovered: what depends on an event that comes later than the
bounds say goes without it; when it comes it is delivered, late.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from antecede.clocks import intervals
from antecede.clocks.lanes import MAX_VALUE, items, merge, put
from antecede.errors import LocalError, SequenceError, UnknownMemberError
from antecede.protocols import topic_message
from antecede.protocols.base import (
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Hold,
    MessageId,
    Transmit,
)
from antecede.protocols.held_back import released
from antecede.protocols.topic_message import TopicMessage, check_times, checked_topics
from antecede.protocols.topic_state import NOT_SUBSCRIBED, TopicState, Waiting


class TopicProtocol(TopicState):
    """One peer of a group in which events go to those who subscribe to one of their topics.

    `subscriptions`: topics by member, of members to come too. `bounds`: accuracy of clocks and
    delays of channels, which the order rests on. `reading`: "all" or "some", see
    `topic_relations`. `as_published`: LT and PT precede as printed. All members choose alike.
    Raises LocalError without bounds.
    """

    # -- publishing -------------------------------------------------------------------------

    def send(
        self,
        payload: Any,
        *,
        now: float = 0.0,
        after: Sequence[MessageId] = (),
        topics: Collection[str] = (),
    ) -> Sequence[Effect]:
        """Publish an event about `topics` to all others that subscribe to one of them.

        Raises LocalError when no topic is named or a name is empty or too long. No effect
        when nobody subscribes; the event counts all the same.
        """
        publication = checked_topics(topics)
        if not publication:
            raise LocalError("name the topics that the event is about: send(..., topics=[...])")
        self.sent += 1
        self.lt += self.parts.linear
        for topic in publication:
            self.tv[topic] = self.tv.get(topic, 0) + 1
        tv = tuple(sorted(self.tv.items()))
        pt_s = now if self.parts.physical else 0.0
        message = TopicMessage(self.me, self.sent, payload, publication, tv, self.lt, pt_s, self.vt)
        targets = self.subscriptions.targets(publication, self.others())
        return (Transmit(targets, message),) if targets else NOTHING

    # -- arrival and delivery ---------------------------------------------------------------

    def receive(self, message: TopicMessage, *, now: float = 0.0) -> Sequence[Effect]:
        """Take over the event's times, hold it, and deliver what may go.

        Raises UnknownMemberError, SequenceError or RemoteError for what cannot be right.
        """
        key = MessageId(message.sender, message.seq)
        if message.sender == self.me:
            return (Discard(message, OWN),)
        self._check(message)
        if not intervals.insert(self.arrived[message.sender], message.seq):
            return (Discard(message, DUPLICATE),)
        self.take_over(message)
        if self.subscription.isdisjoint(message.topics):
            return (Discard(message, NOT_SUBSCRIBED), *self._deliver(now))
        self.held[key] = waiting = Waiting(message, topic_message.stamp(message), now)
        self.next_s = min(self.next_s, self.due_s(waiting))
        delivered = self._deliver(now)
        return (Hold(message, ()), *delivered) if key in self.held else delivered

    def take_over(self, message: TopicMessage) -> None:
        """Take the component-wise maximum of all times."""
        for topic, count in message.tv:
            self.tv[topic] = max(count, self.tv.get(topic, 0))
        self.lt = max(self.lt, message.lt)
        if self.parts.vector:
            theirs = put(message.vt, message.sender, message.seq)
            self.vt = put(merge(self.vt, theirs, self.guard), self.me, 0)

    def _check(self, message: TopicMessage) -> None:
        sender, seq = message.sender, message.seq
        if sender not in self.arrived:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        last = self.last.get(sender, MAX_VALUE)
        if not 1 <= seq <= last:
            raise SequenceError(f"message {seq} from member {sender}: numbers are 1 to {last}")
        check_times(message, self.parts)
        for member, number in items(message.vt):
            if member != self.me and member not in self.arrived:
                raise UnknownMemberError(
                    f"message {seq} from member {sender} follows one of member {member}, "
                    "who is not in the group"
                )
            most = self.sent if member == self.me else self.last.get(member, number)
            if number > most:
                raise SequenceError(
                    f"message {seq} from member {sender} follows message {number} of member "
                    f"{member}, whose last is {most}"
                )

    def tick(self, now: float) -> Sequence[Effect]:
        """Deliver what may go now that the own clock shows `now` seconds."""
        return self._deliver(now)

    def _deliver(self, now: float) -> tuple[Effect, ...]:
        if now <= self.next_s:
            return ()
        free = released(
            self.held, lambda waiting: now > self.due_s(waiting), self._precedes, self._rank
        )
        self.note_next()
        return tuple(Deliver(waiting.message) for waiting in free)

    def _rank(self, waiting: Waiting) -> tuple[int, int, int]:
        return self.relation.rank(waiting.stamp)

    def _precedes(self, one: Waiting, other: Waiting) -> bool:
        if self._rank(one) > self._rank(other):
            return False
        return self.relation.precedes(one.stamp, other.stamp, self.subscription)
