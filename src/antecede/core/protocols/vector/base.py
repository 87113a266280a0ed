"""Base of BSS and IDR: packed counters by member, and messages held back by missing cause.

Theory of operation
-------------------
`clock` holds the number of the last delivered message of every member. It is packed (see
`core.clocks.lanes`), with all guard bits SET. The lane of this member counts the sent messages. A
message carries `causes`, packed too: for some members, the newest number to be delivered first. The
previous message of the sender is always a cause. So one subtraction checks all causes: a cleared
guard bit marks a member with a missing message.

A held message is indexed under ONE missing cause, `waiting[member, number]`. It is checked again
only when that message is delivered.

Order of release: a message, then the held ones that are deliverable after it, by (sender, number),
then those that are deliverable after these (breadth first). The state alone determines it, so a
snapshot contains no index.

A lane stays after a member left, so that messages that depend on it can still be checked. A cause
in an unused lane raises UnknownMemberError, also for a member whose join is not yet known here. The
host then calls `join`, or offers the message again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.core.clocks import (
    LANE_BITS,
    MAX_MEMBER,
    MAX_VALUE,
    VALUE_BITS,
    get,
    guards,
    items,
    pack,
    unit,
)
from antecede.core.clocks.encoding import counters, read_varints, varints
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Held,
    Hold,
    MessageId,
    Protocol,
)
from antecede.core.protocols.membership import changes
from antecede.core.protocols.membership.lost_messages import skip_lost_messages
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

INTEGER_BYTES = 4
PAIR_BYTES = 8
"""Sizes in the accounting of Evropeytsev et al. 2016: an integer, and a (member, number) pair."""


class CausesMessage(NamedTuple):
    """Message with its sender's number for it, from 1, and its causes by member, packed."""

    sender: int
    seq: int
    payload: Any
    causes: int


def encode_with_pairs(message: CausesMessage) -> bytes:
    """Return sender, number, and the causes as encoded by `core.clocks.encoding.counters`."""
    return varints(message.sender, message.seq) + counters.encode_lanes(message.causes)


class CountingProtocol(Protocol):
    """Base of protocols whose messages have the fields sender, seq, payload and causes.

    Subclasses implement `send`, `receive` (with the check for causes inlined for speed) and
    `record`.
    """

    control_power: ClassVar[int | None] = 1
    message_type: ClassVar[type[CausesMessage]] = CausesMessage
    """Type that `decode` returns. Stored states identify the messages of each protocol by their
    class.
    """

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.counts = dict.fromkeys(self.others(), 0)
        """Number of the last delivered message, for all other members ever known."""
        self.last: dict[int, int] = {}
        self.held: dict[tuple[int, int], Any] = {}
        self.waiting: dict[tuple[int, int], list[Any]] = {}
        self._lay_out()

    def _lay_out(self) -> None:
        """Derive the packed state from `counts` and `sent`."""
        self.to = self.others()
        known = {**self.counts, self.me: self.sent}
        changes.check_numbers(known, MAX_MEMBER)
        self.lanes = max(known) + 1
        self.width = self.lanes * LANE_BITS
        self.guard = guards(self.lanes)
        self.ones = self.guard >> VALUE_BITS
        self.marks = {member: unit(member) << VALUE_BITS for member in known}
        self.unknown_lanes = ((1 << self.width) - 1) - sum(
            unit(k, (1 << LANE_BITS) - 1) for k in known
        )
        """All bits of the lanes below `width` that never belonged to a member."""
        self.clock = self.guard + sum(unit(k, count) for k, count in known.items())

    # -- missing causes -----------------------------------------------------------------------

    @abstractmethod
    def record(self, message: Any) -> None:
        """Update the state for the delivery of `message`."""

    def find_missing_cause(self, message: Any) -> tuple[int, int] | None:
        """Return a missing cause under which to index the message; None: deliverable."""
        sender, seq = message.sender, message.seq
        if seq != self.counts[sender] + 1:
            return sender, seq - 1
        behind = self.guard & ~(self.clock - message.causes)
        if not behind:
            return None
        member = behind.bit_length() // LANE_BITS - 1
        return member, (message.causes >> (member * LANE_BITS)) & MAX_VALUE

    def list_missing(self, message: Any) -> tuple[MessageId, ...]:
        sender, seq, causes = message.sender, message.seq, message.causes
        found = []
        behind = self.guard & ~(self.clock - causes)
        while behind:
            member = behind.bit_length() // LANE_BITS - 1
            behind ^= 1 << (member * LANE_BITS + VALUE_BITS)
            found.append(MessageId(member, (causes >> (member * LANE_BITS)) & MAX_VALUE))
        if seq > self.counts[sender] + 1:
            found.append(MessageId(sender, seq - 1))
        return tuple(sorted(found))

    def receive_slowly(self, message: Any) -> Sequence[Effect]:
        """Process a message that the fast path of `receive` does not handle."""
        if self.counts.get(message.sender) == message.seq - 1:
            self.check(message)
            if self.find_missing_cause(message) is None:
                return self.release(message)
        return self.discard_or_hold(message)

    def discard_or_hold(self, message: Any) -> Sequence[Effect]:
        """Discard or hold a message that is not deliverable, after all checks."""
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return (Discard(message, OWN),)
        self.check(message)
        if seq <= self.counts[sender] or (sender, seq) in self.held:
            return (Discard(message, DUPLICATE),)
        missing = self.list_missing(message)
        self._index_held(message)
        return (Hold(message, missing),)

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return False
        self.check(message)
        if seq <= self.counts[sender] or (sender, seq) in self.held:
            return False
        return self.find_missing_cause(message) is not None

    def check(self, message: Any) -> None:
        sender, seq, causes = message.sender, message.seq, message.causes
        if sender not in self.counts:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        if causes.bit_length() > self.width or causes & self.unknown_lanes:
            raise UnknownMemberError(
                f"message {seq} from member {sender} depends on a member not in the group"
            )
        if seq < 1:
            raise SequenceError(f"message number {seq} from member {sender}; numbers start at 1")
        for member, last in ((self.me, self.sent), (sender, seq - 1), *self.last.items()):
            cause = (causes >> (member * LANE_BITS)) & MAX_VALUE
            if cause > last:
                what = f"message {seq} from member {sender} depends on"
                raise changes.make_number_error(what, cause, member, last, self.me)
        if seq > self.last.get(sender, seq):
            raise SequenceError(
                f"message {seq} from member {sender}, who left after message {self.last[sender]}"
            )

    def _index_held(self, message: Any) -> None:
        self.held[message.sender, message.seq] = message
        cause = self.find_missing_cause(message)
        if cause is None:  # only in an invalid stored state
            raise DecodeError(
                f"message {message.seq} of member {message.sender} is held without a missing cause"
            )
        self.waiting.setdefault(cause, []).append(message)

    def release(self, message: Any) -> Sequence[Effect]:
        return self._deliver_all([message])

    def _deliver_all(self, ready: list[Any]) -> Sequence[Effect]:
        effects: list[Effect] = []
        for done in ready:
            self.record(done)
            effects.append(Deliver(done))
            ready += self._take_deliverable(done.sender, done.seq)
        return effects

    def _take_deliverable(self, sender: int, seq: int) -> list[Any]:
        waiters = self.waiting.pop((sender, seq), None)
        if waiters is None:
            return []
        free = []
        waiters.sort(key=lambda waiter: (waiter.sender, waiter.seq))
        for waiter in waiters:
            cause = self.find_missing_cause(waiter)
            if cause is None:
                del self.held[waiter.sender, waiter.seq]
                free.append(waiter)
            else:
                self.waiting.setdefault(cause, []).append(waiter)
        return free

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        here = self.held.__contains__
        return skip_lost_messages(self, lost, self.counts.__getitem__, here, self._skip)

    def _skip(self, lost: MessageId) -> Sequence[Effect]:
        self.counts[lost.sender] = lost.seq
        self.clock += unit(lost.sender)
        return self._deliver_all(self._take_deliverable(*lost))

    def find_highest_number(self, message: Any, member: int) -> int:
        return get(message.causes, member)

    def list_held(self) -> tuple[Held, ...]:
        """Return held messages by (sender, number), each with its undelivered causes.

        Messages that wait only for earlier messages of their own sender take a fast path: after a
        gap they are the majority.
        """
        found, clock, guard = [], self.clock, self.guard
        for key in sorted(self.held):
            message = self.held[key]
            gap = key[1] > self.counts[key[0]] + 1
            if gap and (clock - message.causes) & guard == guard:
                found.append(Held(message, (MessageId(key[0], key[1] - 1),)))
            else:
                found.append(Held(message, self.list_missing(message)))
        return tuple(found)

    def count_held(self) -> int:
        return len(self.held)

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        return changes.counts_to_ranges({**self.counts, self.me: self.sent})

    # -- membership -------------------------------------------------------------------------

    def join_state(self) -> Hashable:
        """Return (member, count) of all members ever, and (member, last) of departed ones."""
        counts = sorted({**self.counts, self.me: self.sent}.items())
        return tuple(counts), tuple(sorted(self.last.items()))

    def install_join_state(self, state: Any) -> None:
        counts, last = state
        changes.check_unused(self.sent, self.held, any(self.counts.values()))
        self.counts = {member: count for member, count in counts if member != self.me}
        self.last = dict(last)
        self.members = changes.select_current((*self.counts, self.me), self.last)
        self._lay_out()

    def start_from(self, newest: Mapping[int, int]) -> None:
        changes.check_start_numbers(newest, MAX_VALUE)
        for member, number in newest.items():
            self.counts[member] = max(self.counts[member], number)
        self._lay_out()

    def join(self, member: int) -> Sequence[Effect]:
        return self.join_all((member,))

    def join_all(self, members: Sequence[int]) -> Sequence[Effect]:
        known = self.counts.keys() | {self.me}
        self.members = changes.add_members(self.members, known, members, MAX_MEMBER)
        self.counts.update(dict.fromkeys(members, 0))
        if type(self)._lay_out is CountingProtocol._lay_out and min(members) >= self.lanes:
            self._extend(sorted(members))
        else:
            self._lay_out()
        return NOTHING

    def _extend(self, members: Sequence[int]) -> None:
        """Extend the packed state by members above all others."""
        self.to = self.others()
        for member in members:
            below = self.lanes * LANE_BITS
            added = guards(member + 1 - self.lanes) << below
            self.guard |= added
            self.clock += added
            self.unknown_lanes |= ((1 << ((member - self.lanes) * LANE_BITS)) - 1) << below
            self.marks[member] = unit(member) << VALUE_BITS
            self.lanes = member + 1
        self.width = self.lanes * LANE_BITS
        self.ones = self.guard >> VALUE_BITS

    def unjoin(self, members: Sequence[int]) -> None:
        for member in members:
            del self.counts[member]
        self.members = changes.remove_members(self.members, members)
        self._lay_out()

    def list_departed(self) -> Mapping[int, int]:
        return self.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        changes.check_last_number(member, last, self.counts[member])
        self.members = changes.remove_members(self.members, (member,))
        self.to = self.others()
        self.last[member] = last
        late = sorted(key for key in self.held if key[0] == member and key[1] > last)
        effects = tuple(Discard(self.held.pop(key), AFTER_LEAVE) for key in late)
        if effects:
            self._rebuild_index()
        return effects

    def forget(self, member: int) -> None:
        changes.check_all_delivered(member, self.last, self.counts[member])
        del self.counts[member], self.last[member]
        self._lay_out()

    def without(self, message: Any, is_forgotten: Callable[[int], bool]) -> Any:
        forgotten = [member for member, _ in items(message.causes) if is_forgotten(member)]
        lanes = sum(unit(member, MAX_VALUE) for member in forgotten)
        return message._replace(causes=message.causes & ~lanes) if forgotten else message

    # -- control information ------------------------------------------------------------------

    def causes(self, message: Any) -> tuple[MessageId, ...]:
        found = [MessageId(member, number) for member, number in items(message.causes)]
        if message.seq > 1:
            found.append(MessageId(message.sender, message.seq - 1))
        return tuple(sorted(found))

    def pair_bytes(self, message: Any) -> int:
        """Return 8 bytes per member that the causes name, as Evropeytsev et al. 2016 count."""
        causes: int = message.causes
        named = ((causes | self.guard) - self.ones) & self.guard
        return PAIR_BYTES * named.bit_count()

    def mentions(self, message: Any) -> tuple[int, ...]:
        return tuple(sorted({message.sender, *(member for member, _ in items(message.causes))}))

    def renumber(self, message: Any, numbers: Mapping[int, int]) -> Any:
        causes = pack((numbers[member], number) for member, number in items(message.causes))
        return message._replace(sender=numbers[message.sender], causes=causes)

    def encode(self, message: Any) -> bytes:
        return encode_with_pairs(message)

    def decode(self, control: bytes, payload: Any) -> Any:
        (sender, seq), causes = read_varints(control, 2)
        return self.message_type(sender, seq, payload, counters.decode_lanes(causes))

    # -- snapshot ---------------------------------------------------------------------------

    def extra_state(self) -> Hashable:
        return ()

    def set_extra_state(self, extra: Any) -> None:
        """Restore what `extra_state` returned."""

    def snapshot(self) -> Hashable:
        held = tuple([self.held[key] for key in sorted(self.held)])
        counts = tuple(sorted(self.counts.items()))
        last = tuple(sorted(self.last.items()))
        return self.me, self.members, self.sent, counts, last, held, self.extra_state()

    def restore(self, state: Any) -> None:
        self.me, self.members, self.sent, counts, last, held, extra = state
        self.counts, self.last = dict(counts), dict(last)
        self.held = {(message.sender, message.seq): message for message in held}
        self._lay_out()
        self.set_extra_state(extra)
        self._rebuild_index()

    def check_whole(self) -> None:
        changes.check_consistency(self.me, self.members, self.counts, self.last, {}, {})
        if late := [k for k, last in self.last.items() if self.counts[k] > last]:
            raise ValueError(f"counts: more messages of member {late[0]} than it sent")
        for sender, seq in self.held:
            self.check(self.held[sender, seq])
            if seq <= self.counts[sender]:
                raise ValueError(f"held: message {seq} of member {sender} is delivered")

    def _rebuild_index(self) -> None:
        self.waiting = {}
        for message in self.held.values():
            self._index_held(message)
