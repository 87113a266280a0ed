"""The state of a peer in a topic-based group: options, times, membership; its size and copies.

Source: 004; joins, leaves and changed subscriptions are ours. The exchange of events is in
`topic_delivery`, the theory of operation too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.clocks import intervals
from antecede.clocks.bounds import Bounds
from antecede.clocks.intervals import NODE_BYTES
from antecede.clocks.lanes import MAX_MEMBER, get, guards, items, pack, put, unit
from antecede.errors import LocalError
from antecede.protocols import topic_message
from antecede.protocols.base import (
    AFTER_LEAVE,
    NOTHING,
    Addressing,
    Discard,
    Effect,
    Guarantee,
    Held,
    MessageId,
    Protocol,
    Relation,
)
from antecede.protocols.subscriptions import Subscriptions
from antecede.protocols.topic_delays import Delays
from antecede.protocols.topic_message import Parts, TopicMessage, checked_topics
from antecede.protocols.topic_relations import ALL, Stamp, TopicRelation

NOT_SUBSCRIBED = "about no topic that this member subscribes to"
INTEGER_BYTES = 4
TIME_BYTES = 8


class Waiting(NamedTuple):
    """A held event."""

    message: TopicMessage
    stamp: Stamp
    arrived_s: float
    """What the own clock showed when it arrived."""


class TopicState(Protocol):
    """Everything of a peer but the rules for events; see `TopicProtocol` for the options."""

    parts: ClassVar[Parts] = Parts()
    """Which times the messages carry and the relation reads, beside the topic vector."""
    guarantee: Guarantee = Guarantee(
        Relation.BY_TOPIC, never_idle=False, joins=True, leaves=True, needs_time=True
    )
    addressing: ClassVar[Addressing] = Addressing.TOPICS

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        subscriptions: Subscriptions[int] | None = None,
        bounds: Bounds[int] | None = None,
        reading: str = ALL,
        as_published: bool = False,
    ) -> None:
        super().__init__(me, members)
        if bounds is None:
            raise LocalError(
                "topic-based order waits by the clock: give bounds=Bounds(accuracy_s=..., "
                "least_s=..., most_s=...)"
            )
        if not 0 <= self.members[0] <= self.members[-1] <= MAX_MEMBER:
            raise LocalError(f"member numbers are 0 to {MAX_MEMBER}")
        self.subscriptions = subscriptions or Subscriptions()
        self.bounds, self.reading, self.as_published = bounds, reading, as_published
        self.sent = 0
        self.tv: dict[str, int] = {}
        self.lt = 0
        self.vt = 0
        """Vector time without the own entry, which is `sent`."""
        self.arrived: dict[int, list[int]] = {member: [] for member in self.others()}
        """Bounds of the numbers that arrived, for everybody who ever was a member, but me."""
        self.last: dict[int, int] = {}
        """Number of the last message of each member that left."""
        self.held: dict[MessageId, Waiting] = {}
        self._set_up()

    def _set_up(self) -> None:
        """Derive what follows from members, subscriptions and options."""
        delays = Delays(self.bounds, (*self.arrived, self.me))
        self.relation = TopicRelation(
            delays,
            **self.parts._asdict(),
            reading=self.reading,
            as_published=self.as_published,
        )
        self.subscription = self.subscriptions.of(self.me)
        self.guard = guards(max((*self.arrived, self.me)) + 1)
        self.note_next()

    def note_next(self) -> None:
        """Note the reading above which the first of the held events is due."""
        self.next_s = min(map(self.due_s, self.held.values()), default=math.inf)

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        """Return overlapping subscriptions, clocks off by a delay, and channels that differ.

        One channel is slow at its most, so that the wait is not that of the publisher's own; one
        at its least, so that a path is faster; a fourth member is further off than clocks err.
        """
        choices = (("x", "y"), ("x",), ("x", "y"))
        topics = {member: choices[member % 3] for member in members}
        unlike = {(0, 2): (1, 3), (2, 0): (3, 3)}
        unlike |= {(3, other): (3, 5) for other in range(3)}
        unlike |= {(other, 3): (1, 4) for other in range(3)}
        bounds: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=1, channels=unlike)
        return {"subscriptions": Subscriptions(topics), "bounds": bounds}

    def due_s(self, waiting: Waiting) -> float:
        """Return the reading above which nothing that precedes a held event can still come."""
        source, delays = waiting.stamp.source, self.relation.delays
        due_s = waiting.arrived_s + delays.after_arrival_s(source, self.me)
        if self.parts.physical:
            due_s = min(due_s, waiting.stamp.pt_s + delays.after_publishing_s(source, self.me))
        return due_s

    def blocked_on(self) -> tuple[Held, ...]:
        """Return held events by (sender, number). They wait for time: no cause is known."""
        return tuple(Held(self.held[key].message, ()) for key in sorted(self.held))

    # -- membership -------------------------------------------------------------------------

    def subscribe(self, member: int, topics: Collection[str]) -> Sequence[Effect]:
        """A member, maybe one to come, subscribes to these topics from now on, and no others.

        Every member is told. Held events about no topic of one's own any more are discarded.
        Raises LocalError for a bad name and for a member that left.
        """
        if member in self.last:
            raise LocalError(f"member {member} has left")
        self.subscriptions = self.subscriptions.with_member(member, checked_topics(topics))
        self.subscription = self.subscriptions.of(self.me)
        lost = [k for k in self.held if self.subscription.isdisjoint(self.held[k].message.topics)]
        return tuple(Discard(self.held.pop(key).message, NOT_SUBSCRIBED) for key in sorted(lost))

    def frontier(self) -> Hashable:
        """Return numbers delivered here and last numbers by member, times, and subscriptions."""
        delivered = {
            member: _without(bounds, [key.seq for key in self.held if key.sender == member])
            for member, bounds in self.arrived.items()
        }
        delivered[self.me] = intervals.Intervals.up_to(self.sent).bounds
        vt = put(self.vt, self.me, self.sent) if self.parts.vector else 0
        times = tuple(sorted(self.tv.items())), self.lt, vt
        rows = tuple(sorted(delivered.items())), tuple(sorted(self.last.items()))
        return *rows, times, self._subscribed()

    def adopt(self, frontier: Any) -> None:
        """Begin with the sponsor's times; know what it had as duplicates. Only as a newcomer.

        One's own subscription stays where the sponsor knew of none. Events published before
        the join are not owed: a subscription begins when the publishers are told of it.
        """
        delivered, last, (tv, lt, vt), subscribed = frontier
        if self.sent or any(self.arrived.values()):
            raise LocalError("a frontier is adopted before anything is sent or delivered")
        self.arrived = {member: list(bounds) for member, bounds in delivered if member != self.me}
        self.last = dict(last)
        self.members = tuple(sorted({*self.arrived, self.me} - self.last.keys()))
        self.tv, self.lt, self.vt = dict(tv), lt, vt
        self.subscriptions = Subscriptions({**self.subscriptions.topics, **dict(subscribed)})
        self._set_up()

    def join(self, member: int) -> Sequence[Effect]:
        """Expect the newcomer's events, and send it those that it subscribes to."""
        if member == self.me or member in self.arrived:
            raise LocalError(f"member number {member} has been given out before")
        if not 0 <= member <= MAX_MEMBER:
            raise LocalError(f"member {member} is not in 0 to {MAX_MEMBER}")
        self.members = tuple(sorted((*self.members, member)))
        self.arrived[member] = []
        self._set_up()
        return NOTHING

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        """Stop sending to the member; its events up to `last` are still delivered.

        Held events of it numbered above `last` can not be right and are discarded.
        """
        if member not in self.arrived or member in self.last:
            raise LocalError(f"member {member} is not in the group")
        late = [key for key in self.held if key.sender == member and key.seq > last]
        delivered = _without(self.arrived[member], [key.seq for key in late])
        if delivered and delivered[-1] - 1 > last:
            raise LocalError(
                f"member {member} left after {last}, but {delivered[-1] - 1} is delivered"
            )
        self.members = tuple(other for other in self.members if other != member)
        self.last[member] = last
        return tuple(Discard(self.held.pop(key).message, AFTER_LEAVE) for key in sorted(late))

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        """Return the state without the options; held events by (sender, number)."""
        arrived = tuple((member, tuple(self.arrived[member])) for member in sorted(self.arrived))
        held = tuple((self.held[k].message, self.held[k].arrived_s) for k in sorted(self.held))
        times = tuple(sorted(self.tv.items())), self.lt, self.vt
        numbers = self.me, self.members, self.sent, tuple(sorted(self.last.items()))
        return *numbers, times, arrived, held, self._subscribed()

    def restore(self, state: Any) -> None:
        """Become what `snapshot` returned, in an object made with the same options."""
        self.me, self.members, self.sent, last, (tv, self.lt, self.vt), arrived, held, to = state
        self.last, self.tv = dict(last), dict(tv)
        self.arrived = {member: list(bounds) for member, bounds in arrived}
        self.subscriptions = Subscriptions(dict(to))
        self.held = {
            MessageId(message.sender, message.seq): Waiting(
                message, topic_message.stamp(message), arrived_s
            )
            for message, arrived_s in held
        }
        self._set_up()

    def _subscribed(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        known = self.subscriptions.topics
        return tuple((member, tuple(sorted(known[member]))) for member in sorted(known))

    # -- size, wire, view -------------------------------------------------------------------

    def encode(self, message: TopicMessage) -> bytes:
        """Return sender, number, topics with their counts, and the times of the protocol."""
        return topic_message.encode(message, self.parts)

    def decode(self, control: bytes, payload: Any) -> TopicMessage:
        """Return the message; raises DecodeError, UnknownMemberError and SequenceError."""
        return topic_message.decode(control, payload, self.parts)

    def control_bytes(self, message: TopicMessage) -> int:
        """Return 4 a topic of TV, 4 for LT, 8 for PT, 4 a member for VT; 004 gives no count."""
        times = INTEGER_BYTES * self.parts.linear + TIME_BYTES * self.parts.physical
        members = (len(self.arrived) + 1) * self.parts.vector
        return INTEGER_BYTES * (len(message.tv) + members) + times

    def storage_bytes(self) -> int:
        """Return 4 a topic of TV, 4 for LT, 4 a member for VT, and 8 a node of what arrived."""
        members = (len(self.arrived) + 1) * self.parts.vector
        in_lists = NODE_BYTES * sum(map(intervals.nodes, self.arrived.values()))
        return INTEGER_BYTES * (len(self.tv) + self.parts.linear + members) + in_lists

    def causes(self, message: TopicMessage) -> tuple[MessageId, ...]:
        """Return nothing: the times name no event that must come before."""
        return ()

    def mentions(self, message: TopicMessage) -> tuple[int, ...]:
        """Return the sender and the members of the vector time."""
        return tuple(sorted({message.sender, *(member for member, _ in items(message.vt))}))

    def renumber(self, message: TopicMessage, numbers: Mapping[int, int]) -> TopicMessage:
        """Return the message with every member's number replaced."""
        vt = pack((numbers[member], number) for member, number in items(message.vt))
        return message._replace(sender=numbers[message.sender], vt=vt)

    def describe(self) -> dict[str, str]:
        """Return S, TV, LT and VT as 004 writes them."""
        counts = ", ".join(f"{topic} {count}" for topic, count in sorted(self.tv.items()))
        found = {"S": ", ".join(sorted(self.subscription)) or "Ø", "TV": f"<{counts}>"}
        if self.parts.linear:
            found["LT"] = str(self.lt)
        if self.parts.vector:
            own = self.vt + unit(self.me, self.sent)
            entries = (get(own, member) for member in sorted((*self.arrived, self.me)))
            found["VT"] = f"<{', '.join(map(str, entries))}>"
        return found


def _without(bounds: Iterable[int], numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the bounds of a set of intervals without some of its numbers."""
    rest = list(bounds)
    for number in sorted(numbers):
        at = next(i for i in range(0, len(rest), 2) if rest[i] <= number < rest[i + 1])
        low, stop = rest[at : at + 2]
        parts = (low, number), (number + 1, stop)
        rest[at : at + 2] = [bound for part in parts if part[0] < part[1] for bound in part]
    return tuple(rest)
