"""Delivery of the clock orders: a message is held until no earlier one can arrive.

Source: Tsuneizumi et al., sections 5 and 6 (receipt buffer RBF, DelCond, Deliver), with the repairs
of the errata.

Theory of operation
-------------------
A message names no causes. Its timestamp determines which messages may precede it. It is delivered
when no held message precedes it, and none can still arrive that does:

    delivery "null"    every other member has sent a message or null message after which none of
                       its messages can precede this one (DelCond). Needs no delay bound. A silent
                       member blocks all others.
    delivery "bound"   enough time has passed that all predecessors have arrived, and no known gap
                       may hide one. Needs true bounds.

`lower_bounds[j]` has the least LT and PT of all later messages of j. It rises with accepted
messages of j, so never past a gap. LT follows arrivals, also of messages after a gap and of
discarded ones: all of them are in the causal past of later messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import LONGEST_NS, MAX_NUMBER, Bounds, MonotonicClock, seconds_text
from antecede.core.protocols.base import (
    DUPLICATE,
    NOTHING,
    OWN,
    Addressing,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Held,
    Hold,
    MessageId,
    Protocol,
)
from antecede.core.protocols.clock_based.channel import (
    ABANDONED,
    BUFFER_FULL,
    AcceptedMessage,
    SenderChannels,
)
from antecede.core.protocols.clock_based.clock_lead import ClockLeadLimits
from antecede.core.protocols.clock_based.hold_back_queue import take_deliverable
from antecede.core.protocols.clock_based.index import HeldIndex, can_index
from antecede.core.protocols.clock_based.messages import (
    AnyMessage,
    ControlMessage,
    Gone,
    NullMessage,
    RetransmissionRequest,
    StampedMessage,
)
from antecede.core.protocols.clock_based.receive_buffer import ReceiveBuffer
from antecede.core.protocols.clock_based.relations import ClockRelation, LowerBound, Separation
from antecede.core.protocols.membership.newcomer_wait import JoinWait
from antecede.errors import LocalError

NO_WAIT_NS = -LONGEST_NS // 2
"""Wait without a third member: none."""
HOOKS = (
    *(
        "_precedes",
        "_rank",
        "_is_clear",
        "_find_blocking_member",
        "_is_due",
        "_has_waited",
        "_since_ns",
    ),
    *("_sort_unchecked", "_deliver_by_definition", "_find_newest_hiding", "_list_hiding"),
)
"""Methods that define which messages are deliverable, and their order."""
DROPPED_AT_GAP = "reveals a gap: dropped as published"


class ClockDelivery(JoinWait, Protocol):
    """Sending, acceptance and delivery; `clock_based.base` completes the protocol.

    A subclass may override `wait_ns` (the wait with delivery "bound"), `relate` (the
    relation), and the methods in `HOOKS`. Then no index is used and every message is checked by the
    subclass's methods, which is slower.
    """

    carries_lt: ClassVar[bool] = True
    carries_pt: ClassVar[bool] = True
    addressing: ClassVar[Addressing] = Addressing.MEMBERS
    own_state: ClassVar[tuple[str, ...]] = (
        *("linear_time", "held", "lower_bounds", "null_messages"),
        *("arrived_ns", "left_ns", "delivered", "own_clock"),
    )
    state: ClassVar[tuple[str, ...]] = ("members", *SenderChannels.state, *own_state)
    channel: SenderChannels
    buffer: ReceiveBuffer
    as_published: frozenset[str]
    bounds: Bounds[int] | None
    delivery: str
    recovery_ns: int
    limits: ClockLeadLimits
    relation: ClockRelation
    separation: Separation
    _waits_ns: dict[int, int]
    index: HeldIndex | None
    """Index of held messages by what they wait for; None: rebuild from the state."""

    def reset(self) -> None:
        self.own_clock = MonotonicClock()
        self.linear_time = 0
        self.held: dict[MessageId, AcceptedMessage] = {}
        self.lower_bounds = dict.fromkeys(self.others(), LowerBound())
        self.null_messages: dict[int, NullMessage] = {}
        """By member: the newest null message, while an earlier message is missing."""
        self.arrived_ns: dict[MessageId, int] = {}
        """Arrival times of undelivered messages, for delivery "bound" without PT only."""
        self.left_ns: dict[int, int | None] = {}
        """Departed members with messages in transit, and the first reading after they left."""
        self.delivered = dict.fromkeys(self.others(), 0)
        """DSEQ: number of the last delivered message of each member."""
        self.reset_index()

    def reset_index(self) -> None:
        """Mark every held message as unchecked and derive the rest from the state."""
        self.unchecked = set(self.held)
        """Held messages that the next delivery must check."""
        self.waits_for: dict[int, set[MessageId]] = {}
        """Held messages by one member whose later messages may precede them."""
        self.clear: set[MessageId] = set()
        """Held messages that no later message can precede."""
        gaps = {member: self.channel.find_first_gap(member) for member in self.channel.newest}
        self.gapped = {member: gap for member, gap in gaps.items() if gap}
        """First gaps of the members with known missing numbers, the newest gap last."""
        self.index = None
        self.channel.next_heartbeat_ns = -LONGEST_NS

    # -- sending ----------------------------------------------------------------------------

    def send(
        self,
        payload: Any,
        *,
        now: int | None = None,
        after: Sequence[MessageId] = (),
        to: Iterable[int] | None = None,
    ) -> Sequence[Effect]:
        """Transmit a message to the members in `to`, once per previous number; None: all."""
        reading, clock = self.read_clock(now)
        targets = self.channel.resolve_targets(to)
        if self.join_wait:
            self.check_join_wait(reading)
        effects = self.channel.number_message(payload, targets, self.take_times(reading), reading)
        self.own_clock = clock
        return effects

    def take_times(self, now: int) -> tuple[int, int]:
        times = self.read_times(now)
        self.linear_time += self.carries_lt
        return times

    def read_times(self, now: int) -> tuple[int, int]:
        return (self.linear_time, now if self.carries_pt else 0)  # LT stays 0 if not carried

    # -- receiving --------------------------------------------------------------------------

    def receive(self, message: AnyMessage, *, now: int | None = None) -> Sequence[Effect]:
        now, clock = self.read_clock(now)
        if isinstance(message, StampedMessage) and self._is_next_in_order(message):
            self._check_times(message, now)
            self.own_clock = clock
            if self.join_wait:
                self.record_first_reading(now)
            return self._receive_next(message, now)
        if message.sender == self.me:
            return NOTHING if self.is_control(message) else (Discard(message, OWN),)
        channel, sender = self.channel, message.sender
        channel.check(message)
        self._check_times(message, now)
        self.own_clock = clock
        if not isinstance(message, StampedMessage):
            return self._receive_control(message, now)
        if channel.is_old(message):
            given_up = message.seq <= channel.abandoned.get(sender, 0)
            return (Discard(message, ABANDONED if given_up else DUPLICATE),)
        self._advance(message.lt)
        effects: list[Effect] = []
        if self.buffer.limit is not None:
            if self.buffer.is_full(message):
                return self._discard_overrun(message, now)
            effects = self.buffer.make_room(message)
            for discarded in effects:
                self._update_gap(discarded.message.sender)
        self._record_arrival(message, now)
        channel.ahead[sender][message.before] = message
        if message.before <= channel.find_last_accepted(sender):
            run = channel.accept_in_sequence(sender)
            self._update_gap(sender)
            effects += self._hold_accepted(run, now)
        else:
            effects += self._request_gap(sender, message.before, now)
            if "dropped" in self.as_published:
                del channel.ahead[sender][message.before]
                self._update_gap(sender)
                return (*effects, Discard(message, DROPPED_AT_GAP))
            channel.high[sender] = max(channel.high[sender], message.seq)
            self._update_gap(sender)
        if self._is_waiting(message):
            effects.append(Hold(message, self.list_missing(message)))
        return effects

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        reading, _ = self.read_clock(now)
        if self.is_control(message) or message.sender == self.me or self.as_published:
            return False
        self.channel.check(message)
        self._check_times(message, reading)
        if self.channel.is_old(message) or self.buffer.limit is not None:
            return False
        return bool(message.before > self.channel.find_last_accepted(message.sender))

    def comes_first(self, message: Any) -> bool:
        known = not self.is_control(message) and message.sender in self.channel.newest
        return known and not self.channel.is_old(message) and self.buffer.is_first(message)

    def _is_next_in_order(self, message: StampedMessage) -> bool:
        """Return whether a message is valid, new and its sender's next, without a buffer limit."""
        sender, channel = message.sender, self.channel
        return (
            channel.newest.get(sender) == message.before < message.seq <= MAX_NUMBER
            and sender not in self.gapped
            and sender not in channel.abandoned
            and sender not in channel.last
            and self.buffer.limit is None
        )

    def _receive_next(self, message: StampedMessage, now: int) -> list[Effect]:
        sender, seq = message.sender, message.seq
        self._advance(message.lt)
        self._record_arrival(message, now)
        channel = self.channel
        channel.newest[sender] = channel.high[sender] = seq
        effects = self._hold_accepted((AcceptedMessage(message, ()),), now)
        if (sender, seq) in self.held:
            effects.append(Hold(message, self.list_missing(message)))
        return effects

    def _check_times(self, message: AnyMessage, now: int) -> None:
        if not isinstance(message, StampedMessage | NullMessage):
            return
        if self.carries_lt and message.lt > self.linear_time:
            self.limits.check_number(message, "linear time", message.lt, self.linear_time)
        if self.carries_pt and message.pt_ns > now:
            assert self.bounds is not None
            error_ns = self.bounds.error_ns(self.me) + self.bounds.error_ns(message.sender)
            self.limits.check_reading(message, message.pt_ns, now, error_ns)

    def _update_gap(self, member: int) -> None:
        gap = self.channel.find_first_gap(member)
        if gap is not None:
            self.gapped[member] = gap
        elif member in self.gapped:
            del self.gapped[member]

    def _advance(self, lt: int) -> None:
        if "equal-times" in self.as_published:
            self.linear_time = max(self.linear_time, lt)
        elif self.carries_lt:
            self.linear_time = max(self.linear_time, lt + 1)

    def _record_arrival(self, message: StampedMessage, now: int) -> None:
        if self.delivery == "bound" and not self.carries_pt:
            self.arrived_ns[self.identity(message)] = now

    def _is_waiting(self, message: StampedMessage) -> bool:
        return self._is_ahead(message) or self.identity(message) in self.held

    def _is_ahead(self, message: StampedMessage) -> bool:
        return message.before in self.channel.ahead[message.sender]

    def _request_gap(self, sender: int, number: int, now: int) -> list[Effect]:
        """Record that a number is for this member; request the numbers of a new gap up to it."""
        channel = self.channel
        high = max(channel.high[sender], channel.find_last_accepted(sender))
        if number <= high:
            return []
        channel.high[sender] = number
        self._update_gap(sender)
        return channel.request_gaps(sender, [(high + 1, number)], now)

    def _receive_control(self, note: ControlMessage, now: int) -> Sequence[Effect]:
        sender = note.sender
        if isinstance(note, RetransmissionRequest):
            return self.channel.answer(note)
        if isinstance(note, Gone):
            return self._abandon_gap(sender, note.last, now)
        self.linear_time = max(self.linear_time, note.lt)
        if note.last > self.channel.find_last_accepted(sender):
            before = self.null_messages.get(sender, note)
            self.null_messages[sender] = max(
                before, note, key=lambda one: (one.last, one.lt, one.pt_ns)
            )
            return self._request_gap(sender, note.last, now)
        self._raise_lower_bound(sender, note.lt, note.pt_ns)
        return self._deliver(now)

    def _abandon_gap(self, member: int, last: int, now: int) -> list[Effect]:
        run = self.channel.abandon_gap(member, last)
        self.reset_index()
        return self._hold_accepted(run, now)

    def _hold_accepted(self, run: Iterable[AcceptedMessage], now: int) -> list[Effect]:
        for taken in run:
            message = taken.message
            key = self.identity(message)
            self.held[key] = taken
            if self.index is None:
                self.unchecked.add(key)
            else:
                self.index.add(key, message)
            self._raise_lower_bound(message.sender, message.lt + 1, message.pt_ns)
        for sender, note in list(self.null_messages.items()) if self.null_messages else ():
            if note.last <= self.channel.find_last_accepted(sender):
                del self.null_messages[sender]
                self._raise_lower_bound(sender, note.lt, note.pt_ns)
        return self._deliver(now)

    def _raise_lower_bound(self, member: int, lt: int, pt_ns: int) -> None:
        lower_bound = self.lower_bounds[member]
        if lt < lower_bound.lt:
            lt = lower_bound.lt
        if pt_ns < lower_bound.pt_ns:
            pt_ns = lower_bound.pt_ns
        self.lower_bounds[member] = LowerBound(lt, pt_ns)
        if self.index is None:
            self.unchecked |= self.waits_for.pop(member, set())
        else:
            self.index.raise_bound(member, lt, pt_ns)

    def _discard_overrun(self, message: StampedMessage, now: int) -> Sequence[Effect]:
        """Discard a message because the buffer is full; it is requested again after `retry_s`."""
        sender = message.sender
        effects: list[Effect] = [Discard(message, BUFFER_FULL)]
        effects += self._request_gap(sender, message.before, now)
        channel = self.channel
        channel.high[sender] = max(channel.high[sender], message.seq)
        self._update_gap(sender)
        channel.last_request_ns.setdefault(sender, now)
        if message.before <= channel.find_last_accepted(sender):
            # Its sender sends nothing earlier: this may unblock others, which makes room.
            self._raise_lower_bound(sender, message.lt, message.pt_ns)
            effects += self._deliver(now)
        return effects

    # -- delivery -----------------------------------------------------------------------------

    def _deliver(self, now: int) -> list[Effect]:
        """Deliver the deliverable messages in order (DelCond, Deliver)."""
        if self.index is None:
            if not can_index(self):
                return self._deliver_by_definition(now)
            self.index = HeldIndex(self)
        free = self.index.take_deliverable(now)
        return self._make_deliveries([self.held.pop(key) for key in free]) if free else []

    def _deliver_by_definition(self, now: int) -> list[Effect]:
        """Deliver by the definition: the reference, and for relations without an index."""
        self._sort_unchecked()
        due = {key for key in self.clear if self._is_due(key, now)}
        if not due:
            return []
        free = take_deliverable(
            self.held,
            lambda one: self.identity(one.message) in due,
            lambda a, b: self._precedes(a.message, b.message),
            lambda one: self._rank(one.message),
        )
        return self._make_deliveries(free)

    def _make_deliveries(self, free: Iterable[AcceptedMessage]) -> list[Effect]:
        effects: list[Effect] = []
        for message, missing in free:
            if self.index is None:
                self.clear.discard(self.identity(message))
                self.unchecked.discard(self.identity(message))
            if self.arrived_ns:
                self.arrived_ns.pop(self.identity(message), None)
            self.delivered[message.sender] = message.seq + ("dseq" in self.as_published)
            effects.append(DeliverIncomplete(message, missing) if missing else Deliver(message))
        return effects

    def _sort_unchecked(self) -> None:
        """Sort each unchecked message under a member for which it waits, or as clear."""
        for key in self.unchecked:
            member = self._find_blocking_member(key)
            if member is None:
                self.clear.add(key)
            else:
                self.waits_for.setdefault(member, set()).add(key)
        self.unchecked = set()

    def _find_blocking_member(self, key: MessageId) -> int | None:
        """Return a member whose later messages may precede a held message, or None."""
        message = self.held[key].message
        others = (member for member in self.lower_bounds if member != message.sender)
        return next((k for k in others if not self._is_clear(k, message)), None)

    def _is_due(self, key: MessageId, now: int) -> bool:
        message = self.held[key].message
        if "dseq" in self.as_published and self.delivered[message.sender] != message.seq - 1:
            return False
        if self.delivery == "null":
            return True
        return self._has_waited(message, now) and self._find_blocking_member(key) is None

    def _rank(self, message: StampedMessage) -> tuple[int, int, int, int]:
        return message.lt, message.pt_ns, message.sender, message.seq

    def _precedes(self, a: StampedMessage, b: StampedMessage) -> bool:
        if a.sender == b.sender:
            return a.seq < b.seq
        return self.relation.precedes(a, b)

    def _is_clear(self, member: int, message: StampedMessage) -> bool:
        """Return whether no later message of a member can precede this message."""
        channel = self.channel
        if self.delivery == "bound" and channel.find_first_gap(member) is None:
            return True
        if channel.find_last_accepted(member) >= channel.last.get(
            member, channel.find_last_accepted(member) + 1
        ):
            return True
        return self.relation.excludes(self.lower_bounds[member], member, message)

    def _find_newest_hiding(self, message: StampedMessage) -> int | None:
        """Return the member of `_list_hiding` with the newest gap, which will close last."""
        sender, excludes, lower_bounds = message.sender, self.relation.excludes, self.lower_bounds
        for member in reversed(self.gapped):
            if member != sender and not excludes(lower_bounds[member], member, message):
                return member
        return None

    def _list_hiding(self, message: StampedMessage) -> list[int]:
        """Return the members, departed ones included, with a gap that may hide a predecessor."""
        sender, excludes, lower_bounds = message.sender, self.relation.excludes, self.lower_bounds
        return [k for k in self.gapped if k != sender and not excludes(lower_bounds[k], k, message)]

    @property
    def uses_default_hooks(self) -> bool:
        """True if neither the class nor the instance overrides a method of `HOOKS`."""
        # Not `vars`: after that call CPython 3.11 reads attributes slowly.
        return all(
            getattr(getattr(self, name), "__func__", None) is getattr(ClockDelivery, name)
            for name in HOOKS
        )

    def _has_waited(self, message: StampedMessage, now: int) -> bool:
        """Return whether all predecessors of a message must have arrived, if none is lost."""
        return now - self._since_ns(message) > self.wait_ns(message.sender)

    def _since_ns(self, message: StampedMessage) -> int:
        """Return the start of the wait with delivery "bound"."""
        return message.pt_ns if self.carries_pt else self.arrived_ns[self.identity(message)]

    def wait_ns(self, sender: int) -> int:
        """Return the wait of a message with delivery "bound" on this member's clock.

        It counts from PT, or without PT from the arrival. A cause of a third member k was sent
        before the message, by at least the least delay of a path from k to the sender. The readings
        differ from true time by the accuracies. Raises LocalError for a wait above 146 years.
        """
        if sender not in self._waits_ns:
            self._waits_ns[sender] = self._derive_wait_ns(sender)
        return self._waits_ns[sender]

    def _derive_wait_ns(self, sender: int) -> int:
        assert self.bounds is not None
        stretch_ns = self.separation.stretch_ns(sender, self.me)
        if stretch_ns is None and self.in_lanes:  # a third member may be unknown here
            stretch_ns = self.bounds.most_ns - self.bounds.least_ns
        if stretch_ns is None:
            return NO_WAIT_NS
        mine_ns = self.bounds.error_ns(self.me)
        if self.carries_pt:
            wait_ns = stretch_ns + self.bounds.error_ns(sender) + mine_ns
        else:
            wait_ns = stretch_ns - self.bounds.least_delay_ns(sender, self.me) + 2 * mine_ns
        wait_ns += self.recovery_ns
        if wait_ns > LONGEST_NS:
            raise LocalError(
                f"the wait is {seconds_text(wait_ns)} s; the limit is 146 years (bounds, "
                "recovery_s)"
            )
        return wait_ns

    # -- time ---------------------------------------------------------------------------------

    def read_clock(self, now: int | None) -> tuple[int, MonotonicClock]:
        onward = self.own_clock.onward(now)
        if onward is not None:
            assert now is not None
            return now, onward
        error_ns = None if self.bounds is None else self.bounds.error_ns(self.me)
        whose = f"{type(self).__name__}, an order by clocks,"
        return self.own_clock.at(now, whose, error_ns=error_ns, physical=self.carries_pt)

    def tick(self, now: int) -> Sequence[Effect]:
        now, self.own_clock = self.read_clock(now)
        if self.join_wait:
            self.record_first_reading(now)
        effects = self._close_departed(now) if self.left_ns else []
        if self.delivery == "bound":
            effects += self._deliver(now)
        if self.channel.last_request_ns:
            effects += self.channel.repeat_requests(now)
        if self.channel.heartbeat_ns is not None and now >= self.channel.next_heartbeat_ns:
            effects += self.channel.make_null_messages(self.read_times(now), now)
        return tuple(effects)

    def _close_departed(self, now: int) -> list[Effect]:
        """Stop waiting for departed members once their messages can no longer be in transit."""
        effects: list[Effect] = []
        for member, left_ns in sorted(self.left_ns.items()):
            if left_ns is None:
                self.left_ns[member] = now
            elif now - left_ns > self.under_way_ns(member):
                del self.left_ns[member]
                effects += self._abandon_gap(member, self.channel.last[member], now)
        return effects

    def under_way_ns(self, member: int) -> int:
        """Return the longest transit time of a member's messages on this member's clock."""
        assert self.bounds is not None
        return self.bounds.most_delay_ns(member, self.me) + 2 * self.bounds.error_ns(self.me)

    # -- held messages ------------------------------------------------------------------------

    def list_missing(self, message: StampedMessage) -> tuple[MessageId, ...]:
        """Return the last messages of the first gaps for which a held message waits."""
        if not self.gapped:
            return ()
        if self._is_ahead(message):
            gap = self.channel.find_first_gap(message.sender)
            return (gap,) if gap else ()
        return tuple([self.gapped[member] for member in sorted(self._list_hiding(message))])

    def explain(self, message: StampedMessage) -> Held:
        """Return what a held message waits for: messages, silent members, or the clock."""
        missing = self.list_missing(message)
        if self._is_ahead(message):
            return Held(message, missing)
        if self.delivery == "bound":
            until_ns = self._since_ns(message) + self.wait_ns(message.sender) + 1
            read_ns, shift_ns = self.own_clock
            if read_ns is not None and until_ns <= read_ns:
                return Held(message, missing or self._list_held_before(message))
            return Held(message, missing, until_ns=until_ns - shift_ns)
        named = {message.sender, *(gap.sender for gap in missing)}
        others = (member for member in sorted(self.lower_bounds) if member not in named)
        silent = tuple(k for k in others if not self._is_clear(k, message))
        before = () if missing or silent else self._list_held_before(message)
        return Held(message, missing or before, silent=silent)

    def _list_held_before(self, message: StampedMessage) -> tuple[MessageId, ...]:
        own, held = self.identity(message), self.held
        others = (key for key in sorted(held) if key != own)
        return tuple(key for key in others if self._precedes(held[key].message, message))
