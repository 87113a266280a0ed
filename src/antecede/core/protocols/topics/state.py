"""State of a member of a topic-based group: options, times, membership, snapshot and sizes.

Source: Nakayama 2017; joins, leaves and changed subscriptions are extensions.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.core.clocks import (
    MAX_GAPS,
    MAX_MEMBER,
    NODE_BYTES,
    Bounds,
    MonotonicClock,
    get,
    guards,
    intervals,
    items,
    pack,
    put,
    unit,
)
from antecede.core.protocols.base import (
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
from antecede.core.protocols.clock_based.clock_lead import MAX_CLOCK_LEAD, ClockLeadLimits
from antecede.core.protocols.clock_based.hold_back_queue import HoldBackQueue
from antecede.core.protocols.membership import changes
from antecede.core.protocols.membership.newcomer_wait import JoinWait
from antecede.core.protocols.options.checks import reject_old_name
from antecede.core.protocols.topics import messages
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.topics.messages import CarriedTimes, TopicMessage, normalize_topics
from antecede.core.protocols.topics.published_relations import PrintedTopicRelation
from antecede.core.protocols.topics.relations import ALL, TopicRelation, TopicTimestamp
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError

NOT_SUBSCRIBED = "about no topic to which this member subscribes"
INTEGER_BYTES = 4
TIME_BYTES = 8


class HeldEvent(NamedTuple):
    """Held event."""

    message: TopicMessage
    timestamp: TopicTimestamp
    arrived_ns: int
    """Clock reading at its arrival."""


class TopicState(JoinWait, Protocol):
    """State of a member without the rules for events; `TopicProtocol` documents the options."""

    control_power: ClassVar[int | None] = 1

    carried_times: ClassVar[CarriedTimes] = CarriedTimes()
    """Times that the messages carry and the relation reads, besides the topic vector."""
    guarantee: Guarantee = Guarantee(
        Relation.BY_TOPIC, no_unnecessary_wait=False, joins=True, leaves=True, needs_time=True
    )
    addressing: ClassVar[Addressing] = Addressing.TOPICS
    own_options: ClassVar[frozenset[str]] = frozenset({"max_clock_lead", "max_gaps"})

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        subscriptions: Subscriptions[int] | None = None,
        bounds: Bounds[int] | None = None,
        reading: str = ALL,
        as_published: bool = False,
        max_clock_lead: int | None = MAX_CLOCK_LEAD,
        max_gaps: int | None = MAX_GAPS,
    ) -> None:
        super().__init__(me, members)
        self.limits = ClockLeadLimits.from_options(max_clock_lead)
        self.max_gaps = max_gaps = intervals.gap_limit(max_gaps)
        if max_gaps is not None and max_gaps < MAX_GAPS:
            remark = f"an event followed by more than {max_gaps} gaps is not delivered"
            self.guarantee = self.guarantee._replace(live=False, remark=remark)
        if as_published and not any(self.carried_times):
            raise LocalError(
                f"as_published has no effect for {type(self).__name__}, whose messages "
                "carry neither linear, physical nor vector time; leave it out"
            )
        if bounds is None:
            raise LocalError(
                "topic-based order needs bounds; give bounds=Bounds(accuracy_s=..., "
                "least_s=..., most_s=...)"
            )
        changes.check_numbers(self.members, MAX_MEMBER)
        self.subscriptions = subscriptions or Subscriptions()
        self.bounds, self.reading, self.as_published = bounds, reading, as_published
        self.own_clock = MonotonicClock()
        self.sent = 0
        self.tv: dict[str, int] = {}
        self.lt = 0
        self.vt = 0
        """Vector time without the own entry, which is `sent`."""
        self.arrived: dict[int, list[int]] = {member: [] for member in self.others()}
        """Half-open ranges of the numbers that arrived, for all other members ever known."""
        self.closed: dict[int, int] = {}
        self.last: dict[int, int] = {}
        """Number of the last message of each member that left."""
        self.held: dict[MessageId, HeldEvent] = {}
        self._set_up()

    def select_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        found = dict(super().select_options(options))
        subscriptions = found.get("subscriptions")
        if subscriptions is not None and not subscriptions.all_topics():
            del found["subscriptions"]
        return found

    def _set_up(self) -> None:
        reject_old_name(self, "due_s", "due_ns")
        delays = Delays(self.bounds, (*self.arrived, self.me))
        relation: type[TopicRelation] = TopicRelation
        if self.as_published:
            relation = PrintedTopicRelation
        self.relation = relation(delays, **self.carried_times._asdict(), reading=self.reading)
        self._waits_ns: dict[int, tuple[int, int]] = {}
        """By source: waits after arrival and after publishing, ns."""
        self.subscription = self.subscriptions.of(self.me)
        self.guard = guards(max((*self.arrived, self.me)) + 1)
        self.rebuild_queue()

    def rebuild_queue(self) -> None:
        physical = self.carried_times.physical and not self.as_published
        self.queue = HoldBackQueue(
            self._precedes, self.bounds.least_apart_ns() if physical else None
        )
        self.due: list[tuple[int, MessageId]] = []
        for key in sorted(self.held):
            self.enqueue_held(key)

    def enqueue_held(self, key: MessageId) -> None:
        waiting = self.held[key]
        stamp = waiting.timestamp
        self.queue.add(key, waiting, self.relation.rank(stamp), stamp.pt_ns)
        heapq.heappush(self.due, (self.due_ns(waiting), key))

    def _precedes(self, first: HeldEvent, second: HeldEvent) -> bool:
        rank = self.relation.rank
        if rank(first.timestamp) > rank(second.timestamp):
            return False
        return self.relation.precedes(first.timestamp, second.timestamp, self.subscription)

    def record_arrival(self, sender: int, seq: int) -> bool:
        """Record an arrived number and fill old gaps; return whether the number is new."""
        bounds, most = self.arrived[sender], self.max_gaps
        if not intervals.insert(bounds, seq):
            return False
        intervals.limit_gaps(bounds, most, self.closed, sender)
        return True

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        """Return overlapping subscriptions, inaccurate clocks, and channels that differ."""
        choices = (("x", "y"), ("x",), ("x", "y"))
        topics = {member: choices[member % 3] for member in members}
        unlike = {(0, 2): (1, 3), (2, 0): (3, 3)}
        unlike |= {(3, other): (3, 5) for other in range(3)}
        unlike |= {(other, 3): (1, 4) for other in range(3)}
        bounds: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=1, channels=unlike)
        return {"subscriptions": Subscriptions(topics), "bounds": bounds}

    def due_ns(self, waiting: HeldEvent) -> int:
        """Return the reading above which no predecessor of a held event can still arrive."""
        stamp = waiting.timestamp
        after = self._waits_ns.get(stamp.source)
        if after is None:
            delays, source = self.relation.delays, stamp.source
            after = self._waits_ns[source] = (
                delays.wait_after_arrival_ns(source, self.me),
                delays.wait_after_publishing_ns(source, self.me),
            )
        due_ns = waiting.arrived_ns + after[0]
        return min(due_ns, stamp.pt_ns + after[1]) if self.carried_times.physical else due_ns

    def read_clock(self, now: int | None) -> tuple[int, MonotonicClock]:
        onward = self.own_clock.onward(now)
        if onward is not None:
            assert now is not None
            return now, onward
        error_ns, whose = (
            self.bounds.error_ns(self.me),
            f"{type(self).__name__}, an order by clocks,",
        )
        return self.own_clock.at(
            now, whose, error_ns=error_ns, physical=self.carried_times.physical
        )

    def list_held(self) -> tuple[Held, ...]:
        """Return held events by (sender, number), with earliest release or predecessors."""
        return tuple(self._explain_held(self.held[key]) for key in sorted(self.held))

    def _explain_held(self, waiting: HeldEvent) -> Held:
        until_ns = self.due_ns(waiting) + 1  # it waits at the due reading itself
        clock = self.own_clock
        if clock.read_ns is not None and until_ns <= clock.read_ns:
            held = (key for key in sorted(self.held) if self.held[key] is not waiting)
            return Held(
                waiting.message, tuple(k for k in held if self._precedes(self.held[k], waiting))
            )
        return Held(waiting.message, (), until_ns=until_ns - clock.shift_ns)

    def correct_clock(self, now: int) -> None:
        if not self.carried_times.physical:
            super().correct_clock(now)
        self.own_clock = clock = self.own_clock.reset_to(now)
        assert clock.read_ns is not None
        for key, waiting in self.held.items():
            self.held[key] = waiting._replace(arrived_ns=min(waiting.arrived_ns, clock.read_ns))
        self.rebuild_queue()

    def count_held(self) -> int:
        return len(self.held)

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        """Return the numbers that arrived and are not held, and those of filled gaps."""
        runs: dict[int, Sequence[int]] = {
            member: _remove_numbers(bounds, [key.seq for key in self.held if key.sender == member])
            for member, bounds in self.arrived.items()
        }
        return {**runs, self.me: intervals.Intervals.up_to(self.sent).bounds}

    def carry_in_lanes(self) -> None:
        """Send events without subscribers, too: a subscriber may become known later."""
        self.in_lanes = True

    # -- membership -------------------------------------------------------------------------

    def subscribe(self, member: int, topics: Collection[str]) -> Sequence[Effect]:
        """Replace the subscription of a member, which may be a future one.

        Raises LocalError for invalid names and for a departed member.
        """
        if member in self.last:
            raise LocalError(f"member {member} has left")
        self.subscriptions = self.subscriptions.replace_member(member, normalize_topics(topics))
        self.subscription = self.subscriptions.of(self.me)
        lost = [k for k in self.held if self.subscription.isdisjoint(self.held[k].message.topics)]
        discarded = [Discard(self.held.pop(key).message, NOT_SUBSCRIBED) for key in sorted(lost)]
        self.rebuild_queue()
        return tuple(discarded)

    def join_state(self) -> Hashable:
        vt = put(self.vt, self.me, self.sent) if self.carried_times.vector else 0
        times = tuple(sorted(self.tv.items())), self.lt, vt
        rows = tuple(sorted(self.get_delivered_ranges().items())), tuple(sorted(self.last.items()))
        return *rows, times, self._list_subscriptions()

    def install_join_state(self, state: Any) -> None:
        """Start with the sponsor's times; keep the own subscription if the sponsor knew none."""
        delivered, last, (tv, lt, vt), subscribed = state
        changes.check_unused(self.sent, *self.arrived.values())
        self.arrived = {member: list(bounds) for member, bounds in delivered if member != self.me}
        self.last, self.closed = dict(last), {}
        self.members = changes.select_current((*self.arrived, self.me), self.last)
        self.tv, self.lt, self.vt = dict(tv), lt, vt
        self.subscriptions = Subscriptions({**self.subscriptions.topics, **dict(subscribed)})
        self._set_up()

    def join_wait_ns(self) -> int:
        delays = self.relation.delays
        least_ns = max(delays.least_ns(member, self.me) for member in delays.members)
        return least_ns + 2 * self.bounds.error_ns(self.me) if least_ns else 0

    def start_from(self, newest: Mapping[int, int]) -> None:
        for member, number in newest.items():
            self.arrived[member] = intervals.with_all_up_to(self.arrived[member], number)

    def join(self, member: int) -> Sequence[Effect]:
        known = self.arrived.keys() | {self.me}
        self.members = changes.add_members(self.members, known, (member,), MAX_MEMBER)
        self.arrived[member] = []
        self._set_up()
        return NOTHING

    def list_departed(self) -> Mapping[int, int]:
        return self.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        late = [key for key in self.held if key.sender == member and key.seq > last]
        delivered = _remove_numbers(self.arrived[member], [key.seq for key in late])
        changes.check_last_number(member, last, delivered[-1] - 1 if delivered else 0)
        self.members = changes.remove_members(self.members, (member,))
        self.last[member] = last
        discarded = [Discard(self.held.pop(key).message, AFTER_LEAVE) for key in sorted(late)]
        self.rebuild_queue()
        return tuple(discarded)

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        closed = self.closed
        arrived = tuple(
            (k, tuple(bounds), closed[k]) if k in closed else (k, tuple(bounds))
            for k, bounds in sorted(self.arrived.items())
        )
        held = tuple((self.held[k].message, self.held[k].arrived_ns) for k in sorted(self.held))
        times = tuple(sorted(self.tv.items())), self.lt, self.vt
        numbers = self.me, self.members, self.sent, tuple(sorted(self.last.items()))
        return (
            *numbers,
            times,
            arrived,
            held,
            self._list_subscriptions(),
            self.own_clock,
            *self.join_wait,
        )

    def restore(self, state: Any) -> None:
        self.me, self.members, self.sent, last, times, arrived, held, to, *rest = state
        self.own_clock = rest[0]
        self.restore_join_wait(tuple(rest[1:]))
        tv, self.lt, self.vt = times
        self.last, self.tv = dict(last), dict(tv)
        self.arrived = {member: list(bounds) for member, bounds, *_ in arrived}
        self.closed = {member: closed[0] for member, _, *closed in arrived if closed}
        self.subscriptions = Subscriptions(dict(to))
        self.held = {
            MessageId(message.sender, message.seq): HeldEvent(
                message,
                messages.make_timestamp(message, vector=self.carried_times.vector),
                arrived_ns,
            )
            for message, arrived_ns in held
        }
        self._set_up()

    def check_whole(self) -> None:
        some = {"closed": self.closed}
        changes.check_consistency(self.me, self.members, self.arrived, self.last, {}, some)
        known = {*self.arrived, self.me}
        for vector in (self.vt, *(waiting.message.vt for waiting in self.held.values())):
            if unknown := {member for member, _ in items(vector)} - known:
                raise ValueError(f"vector time: unknown member {min(unknown)}")
        for sender, seq in self.held:
            if sender not in self.arrived or not intervals.contains(self.arrived[sender], seq):
                raise ValueError(
                    f"held: event {seq} of member {sender} is not among the arrived ones"
                )

    def _list_subscriptions(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        known = self.subscriptions.topics
        return tuple((member, tuple(sorted(known[member]))) for member in sorted(known))

    # -- size, wire, description ------------------------------------------------------------

    def encode(self, message: TopicMessage) -> bytes:
        return messages.encode(message, self.carried_times)

    def decode(self, control: bytes, payload: Any) -> TopicMessage:
        return messages.decode(control, payload, self.carried_times)

    def control_bytes(self, message: TopicMessage) -> int:
        """Return 4 per topic of TV, 4 for LT, 8 for PT, 4 per member for VT (our accounting)."""
        times = INTEGER_BYTES * self.carried_times.linear + TIME_BYTES * self.carried_times.physical
        members = (len(self.arrived) + 1) * self.carried_times.vector
        return INTEGER_BYTES * (len(message.tv) + members) + times

    def storage_bytes(self) -> int:
        """Return 4 per topic of TV, 4 for LT, 4 per member for VT, 8 per node of the arrivals."""
        members = (len(self.arrived) + 1) * self.carried_times.vector
        in_lists = NODE_BYTES * sum(map(intervals.nodes, self.arrived.values()))
        return INTEGER_BYTES * (len(self.tv) + self.carried_times.linear + members) + in_lists

    def control_texts(self) -> Iterable[str]:
        return self.tv

    def causes(self, message: TopicMessage) -> tuple[MessageId, ...]:
        return ()

    def find_highest_number(self, message: TopicMessage, member: int) -> int:
        return 0 if self.as_published else get(message.vt, member)

    def mentions(self, message: TopicMessage) -> tuple[int, ...]:
        return tuple(sorted({message.sender, *(member for member, _ in items(message.vt))}))

    def renumber(self, message: TopicMessage, numbers: Mapping[int, int]) -> TopicMessage:
        vt = pack((numbers[member], number) for member, number in items(message.vt))
        return message._replace(sender=numbers[message.sender], vt=vt)

    def describe(self) -> dict[str, str]:
        counts = ", ".join(f"{topic} {count}" for topic, count in sorted(self.tv.items()))
        found = {"S": ", ".join(sorted(self.subscription)) or "Ø", "TV": f"<{counts}>"}
        if self.carried_times.linear:
            found["LT"] = str(self.lt)
        if self.carried_times.vector:
            own = self.vt + unit(self.me, self.sent)
            entries = (get(own, member) for member in sorted((*self.arrived, self.me)))
            found["VT"] = f"<{', '.join(map(str, entries))}>"
        return found


def _remove_numbers(bounds: Iterable[int], numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the ranges of a set of intervals without some of its numbers."""
    rest = list(bounds)
    for number in sorted(numbers):
        at = next(i for i in range(0, len(rest), 2) if rest[i] <= number < rest[i + 1])
        low, stop = rest[at : at + 2]
        parts = (low, number), (number + 1, stop)
        rest[at : at + 2] = [bound for part in parts if part[0] < part[1] for bound in part]
    return tuple(rest)
