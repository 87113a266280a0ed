"""Complete protocol of the clock orders: options, guarantee, membership, sizes and encoding.

Source: Tsuneizumi et al., sections 2 (groups) and 6 (fields, variables), with the repairs of the
errata. `clock_based.delivery` has the delivery rules.

Theory of operation
-------------------
A joining member needs no earlier messages, since these name their receivers. It takes over the
sponsor's linear time, so that its messages come after everything that the sponsor knew. With
physical time the same holds, because an invitation takes the least delay of a channel like any
message. Each copy of a message names the previous number sent to its receivers. These differ after
a join, so one broadcast then takes two `Transmit` effects.

Messages wait for a departed member until its last number is here. With bounds the wait ends when
its messages can no longer be in transit. A selective group needs that, since the last number may
have been for other members.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import Bounds, exact, plain, seconds_text, up_ns
from antecede.core.protocols.base import AFTER_LEAVE, Discard, Effect, Guarantee, Held, MessageId
from antecede.core.protocols.base import Relation as CausalRelation
from antecede.core.protocols.clock_based import messages as wire
from antecede.core.protocols.clock_based.channel import DEFAULT_KEEP, SenderChannels
from antecede.core.protocols.clock_based.clock_lead import (
    MAX_AHEAD_S,
    MAX_CLOCK_LEAD,
    ClockLeadLimits,
)
from antecede.core.protocols.clock_based.delivery import ClockDelivery
from antecede.core.protocols.clock_based.messages import AnyMessage, StampedMessage
from antecede.core.protocols.clock_based.receive_buffer import ReceiveBuffer
from antecede.core.protocols.clock_based.relations import ClockRelation, LowerBound, Separation
from antecede.core.protocols.membership import changes
from antecede.core.protocols.options.checks import ANY_VALUE, Conflicts, Requires, reject_old_name
from antecede.core.protocols.serialization.state_tuples import freeze, thaw
from antecede.errors import LocalError

INTEGER_BYTES, CLOCK_BYTES = wire.INTEGER_BYTES, wire.CLOCK_BYTES
DEFAULT_GUARANTEE = Guarantee(
    CausalRelation.BY_RECEIPT, no_unnecessary_wait=False, joins=True, leaves=True, needs_time=True
)


class ClockOrdered(ClockDelivery):
    """Base of the three protocols; subclasses define the carried times and the relation.

    - `bounds`: accuracy of clocks and delays; required for physical time and for delivery "bound".
    - `heartbeat_s`: silence after which a null message is sent; None: never.
    - `retry_s`: turns recovery on; time between two requests.
    - `recovery_s`: time for recovery in the wait of delivery "bound".
    - `keep`: number of messages kept for retransmission; None: all.
    - `buffer_limit`: number of messages held or after a gap.
    - `max_clock_lead`: limit of a message's LT above the own one; None: no limit.
    - `max_ahead_s`: limit of its PT above the own clock, beyond the accuracies; None: no limit.
    - `as_published`: defects of Tsuneizumi et al. to reproduce.

    Raises LocalError.
    """

    control_power: ClassVar[int | None] = 0
    needs_lanes: ClassVar[bool] = True

    guarantee: Guarantee = DEFAULT_GUARANTEE
    misprints: ClassVar[frozenset[str]] = frozenset(
        {"dropped", "dseq", "exclusive-end", "no-null-messages"}
    )

    own_options: ClassVar[frozenset[str]] = frozenset(
        {"keep", "buffer_limit", "max_clock_lead", "max_ahead_s"}
    )

    dependent_options: ClassVar[tuple[Requires | Conflicts, ...]] = (
        Requires("keep", (("retry_s", ANY_VALUE),)),
        Requires("recovery_s", (("retry_s", ANY_VALUE),), off=0),
        Requires("recovery_s", (("delivery", "bound"),), off=0),
        Requires("heartbeat_s", (("delivery", "null"), ("retry_s", ANY_VALUE)), off=None),
        Conflicts("heartbeat_s", "as_published", "no-null-messages", off=None),
    )

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        bounds: Bounds[int] | None = None,
        delivery: str = "null",
        heartbeat_s: float | None = 1.0,
        retry_s: float | None = None,
        recovery_s: float = 0.0,
        keep: int | None = DEFAULT_KEEP,
        buffer_limit: int | None = None,
        max_clock_lead: int | None = MAX_CLOCK_LEAD,
        max_ahead_s: float | None = MAX_AHEAD_S,
        as_published: Collection[str] = (),
    ) -> None:
        super().__init__(me, members)
        self.as_published = frozenset(as_published)
        self.channel = SenderChannels(
            self,
            heartbeat_s=heartbeat_s,
            retry_s=retry_s,
            keep=keep,
            exclusive_end="exclusive-end" in self.as_published,
        )
        self.bounds, self.delivery = bounds, delivery
        if not exact(recovery_s, "recovery_s") >= 0:
            raise LocalError(f"recovery_s is {recovery_s}; expected 0 or more seconds")
        self.recovery_ns = up_ns(recovery_s, "recovery_s")
        self.buffer = ReceiveBuffer(self, plain(buffer_limit))
        self.limits = ClockLeadLimits.from_options(
            max_clock_lead, max_ahead_s, has_counts=self.carries_lt, has_clocks=self.carries_pt
        )
        self._check_options()
        self.reset()
        self._set_relation(self.members)
        self.guarantee = self._find_guarantee()

    @property
    def heartbeat_ns(self) -> int | None:
        return self.channel.heartbeat_ns

    @property
    def retry_ns(self) -> int | None:
        return self.channel.retry_ns

    def _check_options(self) -> None:
        name = type(self).__name__
        if self.delivery not in ("null", "bound"):
            raise LocalError(f"unknown delivery {self.delivery!r}; choose null or bound")
        if self.bounds is None and (self.delivery == "bound" or self.carries_pt):
            raise LocalError(
                f"{name} (delivery {self.delivery!r}) needs bounds of clocks and delays: give "
                "bounds=Bounds(accuracy_s=..., least_s=..., most_s=...)"
            )
        if unknown := sorted(self.as_published - self.misprints):
            known = ", ".join(sorted(self.misprints))
            raise LocalError(f"{name} has no published defect {unknown[0]!r}; choose from {known}")
        channel, limit = self.channel, self.buffer.limit
        if channel.exclusive_end and channel.retry_ns is None:
            raise LocalError(
                "exclusive-end (as_published) affects answers to requests; set retry_s too"
            )
        if limit is not None and (limit < 1 or channel.retry_ns is None):
            raise LocalError("buffer_limit must be 1 or more, and needs recovery; set retry_s")
        if self.delivery == "bound" and channel.retry_ns is None:
            channel.heartbeat_ns = None  # null messages have no effect then
        if "no-null-messages" in self.as_published:
            channel.heartbeat_ns = None

    def _find_guarantee(self) -> Guarantee:
        """Return the guarantee under these options; published variants keep the source's claims."""
        promise, keep = DEFAULT_GUARANTEE, self.channel.keep
        recovers, silent = self.channel.retry_ns is not None, self.channel.heartbeat_ns is None
        if recovers:
            remark = f"unless a message is missing that {keep} newer ones have followed (keep)"
            promise = promise._replace(survives_loss=True, leaves=False)
            promise = promise._replace(remark=remark if keep is not None else "")
        if self.bounds is None:
            promise = promise._replace(leaves=False)
        if self.as_published:
            return promise
        if recovers and keep is not None and keep < DEFAULT_KEEP:
            remark = f"a message that {keep} newer ones have followed can be lost for ever (keep)"
            return promise._replace(safe=False, live=False, remark=remark)
        if silent and self.delivery == "null":
            remark = "a silent member blocks all others: there are no null messages"
            return promise._replace(live=False, survives_loss=False, remark=remark)
        if silent and recovers:
            remark = "the loss of a last message is not detected: there are no null messages"
            return promise._replace(survives_loss=False, safe=False, remark=remark)
        if self.delivery == "bound" and recovers and not self.recovery_ns:
            remark = "the bound leaves no time for recovery (recovery_s): a recovered cause is late"
            return promise._replace(safe=False, remark=remark)
        if self.delivery == "bound" and recovers:
            late = seconds_text(self.recovery_ns)
            words = (
                f"in order if recovery delays no message by more than {late} s",
                promise.remark,
            )
            return promise._replace(remark="; ".join(filter(None, words)))
        return promise

    def _set_relation(self, known: Iterable[int]) -> None:
        reject_old_name(self, "wait_s", "wait_ns")
        separation = Separation(self.bounds or Bounds[int](), known)
        self.relation = self.relate(separation)
        reject_old_name(separation, "between_s", "between_ns")  # `relate` may have replaced it
        self.separation = separation
        self._waits_ns: dict[int, int] = {}

    @abstractmethod
    def relate(self, separation: Separation) -> ClockRelation:
        """Return the relation to order by. Raises LocalError if the bounds do not allow it."""

    def carry_in_lanes(self) -> None:
        """Number messages as if no member joined late; wait as if there were a third member."""
        self.in_lanes = self.channel.has_sender_logs = True

    def start_from(self, newest: Mapping[int, int]) -> None:
        channel = self.channel
        if not self.in_lanes:
            raise LocalError(
                "an order by clocks starts from numbers only on a host with sender logs; "
                "set sender_logs=True, or use an invitation (accept)"
            )
        others = {k: number for k, number in newest.items() if k in self.lower_bounds}
        here = {k: number for k, number in others.items() if k not in channel.last}
        changes.check_unused(
            channel.sent, *(channel.newest[k] for k in here), *channel.ahead.values()
        )
        for member, number in here.items():
            if member != self.me:
                self.channel.newest[member] = self.channel.high[member] = number
                self.delivered[member] = number

    def mentions(self, message: AnyMessage) -> tuple[int, ...]:
        if not self.in_lanes:
            return super().mentions(message)
        return (message.sender,)

    def renumber(self, message: AnyMessage, numbers: Mapping[int, int]) -> AnyMessage:
        if not self.in_lanes:
            return super().renumber(message, numbers)  # type: ignore[no-any-return]
        return message._replace(sender=numbers[message.sender])

    # -- membership -------------------------------------------------------------------------

    def join_state(self) -> Hashable:
        known = tuple(sorted((*self.channel.newest, self.me)))
        return self.linear_time, known, tuple(sorted(self.channel.last.items()))

    def install_join_state(self, state: Any) -> None:
        linear_time, known, last = state
        channel = self.channel
        changes.check_unused(channel.sent, *channel.newest.values(), *channel.ahead.values())
        others = [member for member in known if member != self.me]
        self._set_relation((*others, self.me))
        self.members = changes.select_current((*others, self.me), dict(last))
        self.linear_time = linear_time
        channel.adopt(others, dict(last))
        self.delivered = dict(channel.newest)
        self.lower_bounds = dict.fromkeys(others, LowerBound())
        self.reset_index()

    def join_wait_ns(self) -> int:
        if self.bounds is None or not (self.carries_pt or self.delivery == "bound"):
            return 0
        members = self.separation.members
        least_ns = max(self.separation.path_ns(member, self.me) for member in members)
        return least_ns + 2 * self.bounds.error_ns(self.me) if least_ns else 0

    def join(self, member: int) -> Sequence[Effect]:
        known = (*self.channel.newest, self.me)
        members = changes.add_members(self.members, known, (member,))
        self._set_relation((*known, member))
        self.members = members
        self.channel.join(member)
        self.delivered[member] = 0
        self.lower_bounds[member] = LowerBound()
        self.reset_index()
        return ()

    def list_departed(self) -> Mapping[int, int]:
        return self.channel.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        changes.check_last_number(member, last, self.channel.newest[member])
        self.members = changes.remove_members(self.members, (member,))
        effects: list[Effect] = [
            Discard(late, AFTER_LEAVE) for late in self.channel.leave(member, last)
        ]
        if self.bounds is not None and self.channel.find_last_accepted(member) < last:
            self.left_ns[member] = None
        self.reset_index()
        if self.delivery == "null":
            effects += self._deliver(0)  # the reading has no effect with "null"
        return effects

    def correct_clock(self, now: int) -> None:
        """Continue from `now`. Raises LocalError if messages carry no PT.

        Others reject a PT that leads by more than `max_ahead_s`, but may have accepted one below
        that. So sends are rejected until the clock is past it. Kept messages get a corrected PT.
        """
        if not self.carries_pt:
            super().correct_clock(now)
        assert self.bounds is not None
        if self.limits.ahead_ns is None:
            raise LocalError(
                "a clock that was ahead cannot be corrected with max_ahead_s=None, which "
                "accepts any physical time; leave, and join under another name"
            )
        clock, before = self.own_clock.reset_to(now), self.own_clock.read_ns
        assert clock.read_ns is not None
        assert before is not None
        error_ns = self.bounds.error_ns(self.me) + max(
            map(self.bounds.error_ns, self.lower_bounds), default=0
        )
        self.own_clock, reading = clock, clock.read_ns
        channel = self.channel
        channel.kept = deque(
            (group, message._replace(pt_ns=min(message.pt_ns, reading)))
            for group, message in channel.kept
        )
        for times in (channel.last_sent_ns, channel.last_request_ns, self.left_ns):
            times.update((k, min(at, reading)) for k, at in times.items() if at is not None)
        self.block_sends_until(min(before, reading + self.limits.ahead_ns + error_ns) + 1)
        self.reset_index()

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        """Abandon missing numbers and all before them, which may be for other members."""
        channel, effects = self.channel, list[Effect]()
        for sender, seq in sorted(lost):
            gaps = channel.list_gaps(sender) if sender in channel.newest else []
            if not any(first <= seq <= last for first, last in gaps):
                raise LocalError(
                    f"message {seq} of member {sender} is not known to be missing here"
                )
        for sender, seq in sorted(lost):
            effects += self._abandon_gap(sender, seq, self.own_clock.read_ns or 0)
            self._update_gap(sender)
        return effects

    def snapshot(self) -> Hashable:
        parts = ((self, ("members",)), (self.channel, SenderChannels.state), (self, self.own_state))
        values = (freeze(getattr(part, k)) for part, names in parts for k in names)
        return self.me, *values, *self.join_wait

    def restore(self, state: Any) -> None:
        self.me, self.members, *values = state
        parts = ((self.channel, SenderChannels.state), (self, self.own_state))
        names = [(part, name) for part, own in parts for name in own]
        self.restore_join_wait(tuple(values[len(names) :]))
        for (part, name), value in zip(names, values[: len(names)], strict=True):
            setattr(part, name, thaw(value))
        sent = self.channel.sent
        if max(self.channel.before.values(), default=0) > sent:
            raise ValueError(f"before: a number above {sent}, the last one sent")
        known = {*self.channel.newest, self.me}
        if known != set(self.separation.members):
            self._set_relation(known)
        self.reset_index()

    def check_whole(self) -> None:
        channel, present = self.channel, set(self.others())
        whole: dict[str, Collection[int]] = {
            "ahead": channel.ahead,
            "high": channel.high,
            "lower bounds": self.lower_bounds,
            "delivered": self.delivered,
        }
        some: dict[str, Collection[int]] = {
            "abandoned": channel.abandoned,
            "requests": channel.last_request_ns,
            "null messages": self.null_messages,
        }
        known = channel.newest
        changes.check_consistency(self.me, self.members, known, channel.last, whole, some)
        if set(channel.before) != present or not present.issuperset(channel.last_sent_ns):
            raise ValueError(f"before: members {sorted(channel.before)} in place of {present}")
        if not channel.last.keys() >= self.left_ns.keys():
            raise ValueError(f"left: members {sorted(self.left_ns)}")
        ahead = [(k, at, one) for k in known for at, one in channel.ahead[k].items()]
        if any(one.sender != k or not at == one.before < one.seq for k, at, one in ahead):
            raise ValueError("ahead: a message of another member or number")
        held = [(key, taken.message) for key, taken in self.held.items()]
        if any(key != self.identity(one) or key.sender not in known for key, one in held):
            raise ValueError("held: a message under another number, or of an unknown member")
        if any(one.seq > known[one.sender] for _, one in held):
            raise ValueError("held: a message above the last accepted number")
        if any(sender != note.sender for sender, note in self.null_messages.items()):
            raise ValueError("a null message of another member")
        if self.delivery == "bound" and not self.carries_pt:
            waiting = {key for key, _ in held} | {self.identity(one) for _, _, one in ahead}
            if not waiting <= self.arrived_ns.keys():
                raise ValueError("held: a message without an arrival time")

    # -- control information ------------------------------------------------------------------

    def is_control(self, message: AnyMessage) -> bool:
        return not isinstance(message, StampedMessage)

    def list_held(self) -> tuple[Held, ...]:
        """Return messages held or after a gap. O(held x members) with delivery "null"."""
        ahead = [one for member in self.channel.ahead.values() for one in member.values()]
        every = sorted([one.message for one in self.held.values()] + ahead, key=self.identity)
        return tuple(map(self.explain, every))

    def count_held(self) -> int:
        return len(self.held) + sum(len(self.channel.ahead[member]) for member in self.gapped)

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        return changes.counts_to_ranges({**self.delivered, self.me: self.channel.sent})

    def list_kept_messages(self) -> Iterator[StampedMessage]:
        return (message for _, message in self.channel.kept)

    def causes(self, message: AnyMessage) -> tuple[MessageId, ...]:
        if isinstance(message, StampedMessage) and message.before:
            return (MessageId(message.sender, message.before),)
        return ()

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        """Return the variables of section 6 as text: LT, SEQ, REQ, DSEQ and RBF."""

        def row(values: Mapping[int, int], more: int = 0) -> str:
            return ", ".join(f"{names[k]}: {value + more}" for k, value in sorted(values.items()))

        buffer = ", ".join(str(held.message.payload) for held in self.list_held())
        fields = {"LT": str(self.linear_time)} if self.carries_lt else {}
        taken = {member: self.channel.find_last_accepted(member) for member in self.channel.newest}
        return {
            **fields,
            "SEQ": str(self.channel.sent + 1),
            "REQ": row(taken, 1),
            "DSEQ": row(self.delivered),
            "RBF": buffer or "Ø",
        }

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: AnyMessage) -> bytes:
        return wire.encode(message, lt=self.carries_lt, pt=self.carries_pt)

    def decode(self, control: bytes, payload: Any) -> AnyMessage:
        return wire.decode(control, payload, lt=self.carries_lt, pt=self.carries_pt)

    def control_bytes(self, message: AnyMessage) -> int:
        """Return 4 bytes for SEQ, 4 for LT, 8 for PT; 4 more if numbers are skipped."""
        return wire.control_bytes(message, lt=self.carries_lt, pt=self.carries_pt)

    def storage_bytes(self) -> int:
        times = INTEGER_BYTES * self.carries_lt + CLOCK_BYTES * self.carries_pt
        own = INTEGER_BYTES * (1 + self.carries_lt)
        return own + len(self.channel.newest) * (2 * INTEGER_BYTES + times)
