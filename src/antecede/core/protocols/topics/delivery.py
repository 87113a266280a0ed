"""Topic-based delivery of the five protocols of Nakayama 2017 (`topics.protocols`).

Source: Nakayama 2017, section 2 and errata. The source gives relations between events, but no
delivery rule.

Theory of operation
-------------------
The state has the topic vector TV (a count per topic), and linear time LT and vector time VT if they
are carried. For each member it has the numbers that arrived, which detect duplicates. Events are
held back with the clock reading at their arrival.

Publishing adds one to every topic of the publication e.P, to LT and to the own entry of VT. The
event carries the result and goes to the subscribers of a topic of e.P. An arrival takes the
component-wise maximum before anything is held or delivered: the relation is by RECEIPT.

An event is deliverable when no predecessor can still arrive (`topics.delays`) and none is held
(`topics.relations`). Without physical time the wait counts from its arrival. With physical time it
counts from e.PT or from the arrival, whichever ends first. So a source whose clock is far ahead
delays no event for ever. Counting cannot replace the wait, since VT does not show whether a past
event is addressed to this member.

The relation can be cyclic, so it cannot be used for sorting. An event waits for a held one that
precedes it AND has the lesser rank: LT, or the sum of TV, then source and number. A pair against
the rank is not causal.

Lost and late events are not recovered. Dependents are delivered without an event that exceeds the
bounds. When it arrives it is delivered, late.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import Any

from antecede.core.clocks import MAX_VALUE, get, items, merge, put
from antecede.core.protocols.base import (
    CLOSED_GAP,
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
from antecede.core.protocols.membership import changes
from antecede.core.protocols.topics import messages
from antecede.core.protocols.topics.messages import TopicMessage, check_times, normalize_topics
from antecede.core.protocols.topics.published_relations import merge_vector_as_published
from antecede.core.protocols.topics.state import NOT_SUBSCRIBED, HeldEvent, TopicState
from antecede.errors import LocalError, SequenceError, UnknownMemberError


class TopicProtocol(TopicState):
    """Member of a group in which events go to the subscribers of one of their topics.

    `subscriptions`: topics by member, joining members included. `bounds`: accuracy of clocks and
    delays of channels, on which the order relies. `reading`: "all", "some" or "no-greater", see
    `topics.relations`. `as_published`: LT and PT precede, and VT counts, as printed. All members
    must agree on these.

    `max_clock_lead`: limit of an event's counts, LT and VT above the known ones (None: no limit).
    `max_gaps`: remembered gaps per source (None: no limit); an event in an older gap is discarded.
    Raises LocalError without bounds.
    """

    # -- publishing -------------------------------------------------------------------------

    def send(
        self,
        payload: Any,
        *,
        now: int | None = None,
        after: Sequence[MessageId] = (),
        topics: Collection[str] = (),
    ) -> Sequence[Effect]:
        """Publish an event about `topics` to all other members that subscribe to one of them.

        An event without subscribers is counted, but only sent with sender logs. Raises LocalError
        for invalid topics.
        """
        now, clock = self.read_clock(now)
        publication = normalize_topics(topics)
        if not publication:
            raise LocalError("an event without topics; name them: send(..., topics=[...])")
        if self.join_wait:
            self.check_join_wait(now)
        self.own_clock = clock
        self.sent += 1
        self.lt += self.carried_times.linear
        for topic in publication:
            self.tv[topic] = self.tv.get(topic, 0) + 1
        tv = tuple(sorted(self.tv.items()))
        pt_ns = now if self.carried_times.physical else 0
        message = TopicMessage(
            self.me, self.sent, payload, publication, tv, self.lt, pt_ns, self.vt
        )
        targets = self.subscriptions.targets(publication, self.others())
        if not targets and not self.in_lanes:
            return NOTHING
        return (Transmit(targets, message),)

    # -- arrival and delivery ---------------------------------------------------------------

    def receive(self, message: TopicMessage, *, now: int | None = None) -> Sequence[Effect]:
        now, clock = self.read_clock(now)
        key = MessageId(message.sender, message.seq)
        if message.sender == self.me:
            return (Discard(message, OWN),)
        self._check(message)
        self._check_leads(message)
        self.own_clock = clock
        if self.join_wait:
            self.record_first_reading(now)
        if not self.record_arrival(*key):
            if message.seq > self.closed.get(message.sender, 0):
                return (Discard(message, DUPLICATE),)
            self.take_over(message)  # may be its first copy
            return (Discard(message, CLOSED_GAP),)
        self.take_over(message)
        if self.subscription.isdisjoint(message.topics):
            return (Discard(message, NOT_SUBSCRIBED), *self._deliver(now))
        self.held[key] = HeldEvent(
            message, messages.make_timestamp(message, vector=self.carried_times.vector), now
        )
        self.enqueue_held(key)
        delivered = self._deliver(now)
        return (Hold(message, ()), *delivered) if key in self.held else delivered

    def take_over(self, message: TopicMessage) -> None:
        tv = self.tv
        for topic, count in message.tv:
            if count > tv.get(topic, 0):
                tv[topic] = count
        if message.lt > self.lt:
            self.lt = message.lt
        if self.carried_times.vector and self.as_published:
            self.vt = merge_vector_as_published(self.vt, self.arrived)
            return
        if self.carried_times.vector:
            received = put(message.vt, message.sender, message.seq)
            self.vt = put(merge(self.vt, received, self.guard), self.me, 0)

    def _check(self, message: TopicMessage) -> None:
        sender, seq = message.sender, message.seq
        if sender not in self.arrived:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        last = self.last.get(sender, MAX_VALUE)
        if not 1 <= seq <= last:
            raise SequenceError(f"message {seq} from member {sender}: numbers are 1 to {last}")
        check_times(message, self.carried_times)
        if message.vt:
            self._check_vector(message)

    def _check_vector(self, message: TopicMessage) -> None:
        sender, seq = message.sender, message.seq
        for member, number in items(message.vt):
            if member != self.me and member not in self.arrived:
                raise UnknownMemberError(
                    f"message {seq} from member {sender} follows one of member {member}, "
                    "who is not in the group"
                )
            if self.as_published:
                continue  # these entries are not event numbers
            most = self.sent if member == self.me else self.last.get(member, number)
            if number > most:
                what = f"message {seq} from member {sender} follows"
                raise changes.make_number_error(what, number, member, most, self.me)

    def _check_leads(self, message: TopicMessage) -> None:
        """Raise LimitError for times that lead too far. PT is not merged and is not limited."""
        limits = self.limits
        for topic, count in message.tv:
            if count > (here := self.tv.get(topic, 0)):
                limits.check_number(message, "a topic count of", count, here)
        if message.lt > self.lt:
            limits.check_number(message, "linear time", message.lt, self.lt)
        for member, number in items(message.vt) if message.vt else ():
            if member != self.me:
                known = get(self.vt, member)
                limits.check_number(message, "a vector entry of", number, known)

    def tick(self, now: int) -> Sequence[Effect]:
        reading, self.own_clock = self.read_clock(now)
        if self.join_wait:
            self.record_first_reading(reading)
        return self._deliver(reading)

    def _deliver(self, now: int) -> tuple[Effect, ...]:
        keys = []
        while self.due and self.due[0][0] < now:
            keys.append(heapq.heappop(self.due)[1])
        if not keys:
            return ()
        free = self.queue.release(keys)
        return tuple(Deliver(self.held.pop(key).message) for key in free)
