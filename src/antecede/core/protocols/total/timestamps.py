"""Total order by linear timestamps that all members acknowledge.

Source: Lamport 1978, "Time, clocks, and the ordering of events in a distributed system". Events are
ordered by linear time, ties by the member number. A request is granted when something later has
arrived from every other member. Channels there are FIFO; here message numbers replace that.

Theory of operation
-------------------
A message carries its sender's number for it and its linear time LT, greater than all that its
sender had sent or received. Messages are delivered by (LT, sender), each when every other member's
lower bound has reached its LT. All later messages of k exceed `lower_bounds[k]`. It rises with
every message and acknowledgement of k that is accepted without a gap before it.

An acknowledgement carries its sender's last number and an LT that all its later messages exceed. A
member broadcasts one when a message arrives whose LT exceeds its own announcements
(`announced_time`). So a message costs up to n - 1 broadcasts when the others are silent, and none
when they send anyway.

The order respects causality, since LT grows along it. A member's own message is delivered in its
turn. Messages wait for a departed member until its last message is here. Members cannot join: a
joining member would need an LT, agreed by all, above all deliveries without it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from antecede.core.clocks import MAX_NUMBER
from antecede.core.clocks.encoding import ByteReader, varint
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    Held,
    Hold,
    MessageId,
    Protocol,
    Relation,
    Transmit,
)
from antecede.core.protocols.membership import changes
from antecede.core.protocols.membership.lost_messages import skip_lost_messages
from antecede.errors import LocalError, SequenceError, UnknownMemberError

INTEGER_BYTES = 4
MAX_PROMISES = 16
"""Limit of the acknowledgements kept of a member while messages before them are missing."""
MAX_LEAD = 1 << 40
"""Limit of a message's time above the one here: more than honest members can send."""


class TimedMessage(NamedTuple):
    """Message with its sender's number for it, from 1, and its linear time."""

    sender: int
    seq: int
    payload: Any
    lt: int


class TimeAcknowledgement(NamedTuple):
    """Control message: the sender has sent `last` messages; later ones have a time above `lt`."""

    sender: int
    seq: int
    """0, as in all control messages."""
    payload: Any
    last: int
    lt: int


AnyMessage: TypeAlias = TimedMessage | TimeAcknowledgement


class AgreedTimestamps(Protocol):
    """Member of a group with total order; needs a reliable channel."""

    control_power: ClassVar[int | None] = 0

    guarantee: Guarantee = Guarantee(Relation.TOTAL, no_unnecessary_wait=False, leaves=True)

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = self.lt = self.announced_time = 0
        self.newest = dict.fromkeys(self.others(), 0)
        """Number of the last message accepted without a gap, for all members ever known."""
        self.floors = dict.fromkeys(self.others(), 0)
        """Lower bounds by member, without departed members whose messages are all accepted."""
        self.last: dict[int, int] = {}
        self.ahead: dict[int, dict[int, TimedMessage]] = {k: {} for k in self.others()}
        """By member and number: messages after a gap."""
        self.ahead_count = 0
        self.promised: dict[int, dict[int, int]] = {k: {} for k in self.others()}
        """By member and number of its last message: LT of acknowledgements after a gap."""
        self.queue: list[tuple[int, int, TimedMessage]] = []
        """Heap of (LT, sender, message): accepted and not delivered, own ones included."""

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        self.sent += 1
        self.lt += 1
        self.announced_time = self.lt
        message = TimedMessage(self.me, self.sent, payload, self.lt)
        heapq.heappush(self.queue, (message.lt, self.me, message))
        return (Transmit(self.others(), message), *self._deliver())

    def receive(self, message: AnyMessage, *, now: int | None = None) -> Sequence[Effect]:
        if message.sender == self.me:
            return (Discard(message, OWN),)
        self._check(message)
        if isinstance(message, TimeAcknowledgement):
            self._promise(message)
            return self._deliver()
        sender, seq, _, lt = message
        if seq <= self.newest[sender] or seq in self.ahead[sender]:
            return (Discard(message, DUPLICATE),)
        self.ahead[sender][seq] = message
        self.ahead_count += 1
        self._accept_in_sequence(sender)
        self.lt = max(self.lt, lt)
        effects = (*self._acknowledge(lt), *self._deliver())
        if any(isinstance(effect, Deliver) and effect.message == message for effect in effects):
            return effects
        return (Hold(message, self._find_missing(message)), *effects)

    def would_hold(self, message: AnyMessage, now: int | None = None) -> bool:
        if message.sender == self.me or isinstance(message, TimeAcknowledgement):
            return False
        self._check(message)
        sender, seq = message.sender, message.seq
        return seq > self.newest[sender] + 1 and seq not in self.ahead[sender]

    def comes_first(self, message: AnyMessage) -> bool:
        if isinstance(message, TimeAcknowledgement):
            return False
        here = self.newest.get(message.sender, message.seq)
        return message.seq == here + 1 and (
            not self.queue or (message.lt, message.sender) < self.queue[0][:2]
        )

    # -- times ------------------------------------------------------------------------------

    def _acknowledge(self, lt: int) -> tuple[Effect, ...]:
        """Return an acknowledgement unless this time is already announced."""
        if self.announced_time >= lt or not self.others():
            return ()
        self.announced_time = self.lt
        note = TimeAcknowledgement(self.me, 0, self.note_payload, self.sent, self.lt)
        return (Transmit(self.others(), note),)

    def _promise(self, note: TimeAcknowledgement) -> None:
        sender, last = note.sender, note.last
        if sender not in self.floors:
            return
        if last <= self.newest[sender]:
            self.floors[sender] = max(self.floors[sender], note.lt)
            return
        promised = self.promised[sender]
        promised[last] = max(promised.get(last, 0), note.lt)
        if len(promised) > MAX_PROMISES:
            # The newest one includes all others once the gap is filled.
            del promised[min(promised)]

    def _accept_in_sequence(self, member: int) -> None:
        ahead, promised = self.ahead[member], self.promised[member]
        while (message := ahead.pop(self.newest[member] + 1, None)) is not None:
            self.ahead_count -= 1
            self.newest[member] = message.seq
            heapq.heappush(self.queue, (message.lt, member, message))
            lower_bound = max(message.lt, promised.pop(message.seq, 0), self.floors[member])
            self.floors[member] = lower_bound
        self._drop_departed(member)

    def _drop_departed(self, member: int) -> None:
        """Stop waiting for a departed member once all its messages are accepted."""
        if self.newest[member] == self.last.get(member):
            self.floors.pop(member, None)

    def _deliver(self) -> tuple[Effect, ...]:
        effects: list[Effect] = []
        sure = min(self.floors.values(), default=MAX_NUMBER)
        while self.queue and self.queue[0][0] <= sure:
            effects.append(Deliver(heapq.heappop(self.queue)[2]))
        return tuple(effects)

    # -- checks -----------------------------------------------------------------------------

    def _check(self, message: AnyMessage) -> None:
        sender = message.sender
        if sender not in self.newest:
            raise UnknownMemberError(f"a message from member {sender}, who is not in the group")
        most = self.last.get(sender, MAX_NUMBER)
        number = message.last if isinstance(message, TimeAcknowledgement) else message.seq
        if not (0 if isinstance(message, TimeAcknowledgement) else 1) <= number <= most:
            raise SequenceError(f"message {number} from member {sender}: numbers are 1 to {most}")
        if not 0 < message.lt <= min(self.lt + MAX_LEAD, MAX_NUMBER):
            raise SequenceError(
                f"time {message.lt} from member {sender}; expected above 0 and at most "
                f"{MAX_LEAD} above {self.lt}, the time here"
            )
        further = number - self.newest[sender]
        if isinstance(message, TimedMessage) and further > 0:
            least = self.floors.get(sender, 0) + further
            if message.lt < least:
                raise SequenceError(
                    f"message {number} from member {sender} has time {message.lt}; after "
                    f"its previous messages it must be at least {least}"
                )

    # -- held messages ----------------------------------------------------------------------

    def count_held(self) -> int:
        return len(self.queue) + self.ahead_count

    def list_held(self) -> tuple[Held, ...]:
        """Return the messages that are not delivered, own ones included, by (sender, number)."""
        ahead = [message for here in self.ahead.values() for message in here.values()]
        every = [message for _, _, message in self.queue] + ahead
        return tuple(self._explain_held(one) for one in sorted(every, key=self.identity))

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        counts = {**self.newest, self.me: self.sent}
        for _, sender, message in self.queue:
            counts[sender] = min(counts[sender], message.seq - 1)
        return changes.counts_to_ranges(counts)

    def _explain_held(self, message: TimedMessage) -> Held:
        missing = self._find_missing(message)
        silent = [k for k, lower_bound in sorted(self.floors.items()) if lower_bound < message.lt]
        return Held(message, missing, silent=() if missing else tuple(silent))

    def _find_missing(self, message: TimedMessage) -> tuple[MessageId, ...]:
        here = self.newest.get(message.sender, message.seq)
        return (MessageId(message.sender, here + 1),) if message.seq > here else ()

    # -- membership -------------------------------------------------------------------------

    def list_departed(self) -> Mapping[int, int]:
        return self.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        changes.check_last_number(member, last, self.newest[member])
        self.members = changes.remove_members(self.members, (member,))
        self.last[member] = last
        ahead = self.ahead[member]
        late = sorted(seq for seq in ahead if seq > last)
        effects = tuple(Discard(ahead.pop(seq), AFTER_LEAVE) for seq in late)
        self.ahead_count -= len(late)
        self._drop_departed(member)
        return effects + self._deliver()

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:

        def is_here(one: MessageId) -> bool:
            return one.seq in self.ahead[one.sender]

        return skip_lost_messages(self, lost, self.newest.__getitem__, is_here, self._skip)

    def _skip(self, lost: MessageId) -> Sequence[Effect]:
        member, seq = lost
        self.newest[member] = seq
        if promised := self.promised[member].pop(seq, 0):
            self.floors[member] = max(self.floors[member], promised)
        self._accept_in_sequence(member)
        return self._deliver()

    def start_from(self, newest: Mapping[int, int]) -> None:
        raise LocalError(
            "order 'total-agreed' waits for acknowledgements of every member, also of "
            "this one, and message numbers do not determine them: restore a snapshot "
            "instead of starting from numbers"
        )

    # -- snapshot ---------------------------------------------------------------------------

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        """Return the state as text.

        `queue`: (LT, sender) of the accepted messages in
        delivery order. `after gap`: messages after a gap, if any.
        """
        heard = ", ".join(f"{names[known]}: {lt}" for known, lt in sorted(self.floors.items()))
        queue = (f"{one.payload} ({lt}, {names[k]})" for lt, k, one in sorted(self.queue))
        fields = {
            "LT": str(self.lt),
            "lower bounds": heard or "none",
            "queue": ", ".join(queue) or "Ø",
        }
        ahead = [f"{here[seq].payload}" for here in self.ahead.values() for seq in sorted(here)]
        return fields | ({"after gap": ", ".join(ahead)} if ahead else {})

    def snapshot(self) -> Hashable:
        tables = self.newest, self.floors, self.last
        ahead = ((k, tuple(sorted(here.items()))) for k, here in sorted(self.ahead.items()))
        promised = ((k, tuple(sorted(here.items()))) for k, here in sorted(self.promised.items()))
        queue = tuple(message for _, _, message in sorted(self.queue, key=lambda row: row[:2]))
        counts = self.sent, self.lt, self.announced_time
        sorted_tables = tuple(tuple(sorted(table.items())) for table in tables)
        return self.me, self.members, *counts, *sorted_tables, *map(tuple, (ahead, promised)), queue

    def restore(self, state: Any) -> None:
        self.me, self.members, self.sent, self.lt, self.announced_time, *tables, queue = state
        self.newest, self.floors, self.last, ahead, promised = map(dict, tables)
        self.ahead = {member: dict(here) for member, here in ahead.items()}
        self.ahead_count = sum(map(len, self.ahead.values()))
        self.promised = {member: dict(here) for member, here in promised.items()}
        self.queue = [(message.lt, message.sender, message) for message in queue]

    def check_whole(self) -> None:
        whole: dict[str, Collection[int]] = {"ahead": self.ahead, "promised": self.promised}
        some = {"lower bounds": self.floors}
        changes.check_consistency(self.me, self.members, self.newest, self.last, whole, some)
        for member, newest in self.newest.items():
            if (member not in self.floors) is not (newest == self.last.get(member)):
                raise ValueError(f"lower bounds: member {member} is missing or superfluous")
            for seq, message in self.ahead[member].items():
                if self.identity(message) != (member, seq) or seq <= newest + 1:
                    raise ValueError(f"ahead: message {seq} of member {member}")
                self._check(message)
            if any(last <= newest for last in self.promised[member]):
                raise ValueError(f"promised: an accepted number of member {member}")
        counts = {**self.newest, self.me: self.sent}
        for lt, sender, message in self.queue:
            if not 0 < message.seq <= counts.get(sender, 0) or not 0 < lt <= self.lt:
                raise ValueError(f"queue: message {message.seq} of member {sender}")

    # -- control information ----------------------------------------------------------------

    def is_control(self, message: AnyMessage) -> bool:
        return isinstance(message, TimeAcknowledgement)

    def causes(self, message: AnyMessage) -> tuple[MessageId, ...]:
        return (MessageId(message.sender, message.seq - 1),) if message.seq > 1 else ()

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: AnyMessage) -> bytes:
        numbers = [message.sender, message.seq, message.lt]
        if isinstance(message, TimeAcknowledgement):
            numbers.append(message.last)
        return b"".join(map(varint, numbers))

    def decode(self, control: bytes, payload: Any) -> AnyMessage:
        reader = ByteReader(control)
        sender, seq, lt = reader.varint(), reader.varint(), reader.varint()
        message: AnyMessage = TimedMessage(sender, seq, payload, lt)
        if seq == 0:
            message = TimeAcknowledgement(sender, 0, payload, reader.varint(), lt)
        reader.finish()
        return message

    def control_bytes(self, message: AnyMessage) -> int:
        return 2 * INTEGER_BYTES

    def storage_bytes(self) -> int:
        promises = sum(map(len, self.promised.values()))
        numbers = 3 + len(self.newest) + len(self.floors) + 2 * promises
        return numbers * INTEGER_BYTES
