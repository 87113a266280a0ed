"""Total order by a fixed sequencer: one member gives every message its global sequence number.

Source: the fixed sequencer of Defago, Schiper and Urban 2004, "Total order broadcast and multicast
algorithms: taxonomy and survey" (cited by Bhavanasi and Iyer). This is the variant in which the
sender broadcasts the message and the sequencer broadcasts its global number.

Theory of operation
-------------------
A sender broadcasts its message with its own number for it. The sequencer is the member with the
lowest number, or `sequencer`. It assigns global numbers to the messages of each sender in the order
of the sender's numbers. It broadcasts them at once as `SequenceAssignment`, a range of numbers of
one sender. Its own messages carry their global number. All members deliver global numbers 1, 2, 3,
... as soon as number and message are here.

The order respects causality: a reply is sent after its question is delivered, hence numbered.
`counts[k]` is the number of k's last delivered message, which detects duplicates. `arrived` makes
the nearest gap at the sequencer one lookup.

The sequencer is trusted to give every message one number; a contradicting number is rejected. One
case is undetected: a sequencer without messages of its own that was restored from a stale state.
When the sequencer stops, the group stops. Members cannot join or leave.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from antecede.core.clocks import MAX_NUMBER, Intervals, intervals, plain
from antecede.core.clocks.encoding import ByteReader, varint
from antecede.core.protocols.base import (
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
from antecede.formatting import quote

INTEGER_BYTES = 4


class SequencedMessage(NamedTuple):
    """Message with its sender's number for it, from 1."""

    sender: int
    seq: int
    payload: Any
    global_seq: int = 0
    """Global sequence number, from 1, in messages of the sequencer; 0: assigned separately."""


class SequenceAssignment(NamedTuple):
    """Control message: `first` .. `first + length - 1` of `origin` get numbers from `global_seq`
    on.
    """

    sender: int
    seq: int
    """0, as in all control messages."""
    payload: Any
    global_seq: int
    origin: int
    first: int
    length: int


AnyMessage: TypeAlias = SequencedMessage | SequenceAssignment


class Sequencer(Protocol):
    """Member of a group with total order; needs a reliable channel."""

    control_power: ClassVar[int | None] = 0

    guarantee: Guarantee = Guarantee(Relation.TOTAL, no_unnecessary_wait=False)

    member_options: ClassVar[frozenset[str]] = frozenset({"sequencer"})

    def __init__(self, me: int, members: Iterable[int], *, sequencer: int | None = None) -> None:
        super().__init__(me, members)
        self.sequencer = self.members[0] if sequencer is None else plain(sequencer)
        if self.sequencer not in self.members:
            raise LocalError(
                f"the sequencer {quote(self.sequencer)} is not in the group {self.members}"
            )
        self.sent = 0
        self.delivered = 0
        """Last global number delivered here; at the sequencer also the last one assigned."""
        self.counts = dict.fromkeys(self.members, 0)
        self.held: dict[MessageId, SequencedMessage] = {}
        self.assignments: dict[int, tuple[int, int, int]] = {}
        """Global number -> (origin, first, length) of assigned ranges that are not delivered."""
        self.arrived: dict[int, list[int]] = {member: [] for member in self.members}
        """At the sequencer: half-open ranges of the numbers that have arrived."""

    def select_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        usual = self.sequencer == self.members[0]
        found = super().select_options(options)
        return {k: v for k, v in found.items() if k != "sequencer" or not usual}

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        self.sent += 1
        message = SequencedMessage(self.me, self.sent, payload)
        if self.me == self.sequencer:
            message = message._replace(global_seq=self.delivered + 1)
            self._count(message)
            return (Transmit(self.others(), message), Deliver(message))
        self.held[self.identity(message)] = message
        return (Transmit(self.others(), message),)

    def receive(self, message: AnyMessage, *, now: int | None = None) -> Sequence[Effect]:
        if message.sender == self.me:
            return (Discard(message, OWN),)
        if isinstance(message, SequenceAssignment):
            self._check_assignment(message)
            self._record_assignment(
                message.global_seq, (message.origin, message.first, message.length)
            )
            return self._deliver_next()
        self._check(message)
        identity = self.identity(message)
        if message.seq <= self.counts[message.sender] or identity in self.held:
            return (Discard(message, DUPLICATE),)
        if message.global_seq:
            self._check_agreement(message.global_seq, message.sender, message.seq, 1)
        self.held[identity] = message
        if self.me == self.sequencer:
            return self._place(message)
        if message.global_seq:
            self._record_assignment(message.global_seq, (message.sender, message.seq, 1))
        effects = self._deliver_next()
        return (
            effects
            if identity not in self.held
            else (Hold(message, self._list_missing()), *effects)
        )

    def would_hold(self, message: AnyMessage, now: int | None = None) -> bool:
        if message.sender == self.me or isinstance(message, SequenceAssignment):
            return False
        self._check(message)
        sender, seq = message.sender, message.seq
        if seq <= self.counts[sender] or self.identity(message) in self.held:
            return False
        if message.global_seq:
            self._check_agreement(message.global_seq, sender, seq, 1)
            return message.global_seq > self.delivered + 1
        if self.me == self.sequencer:
            return seq != self.counts[sender] + 1
        return self.assignments.get(self.delivered + 1, (None, 0))[:2] != (sender, seq)

    # -- global numbers ---------------------------------------------------------------------

    def _place(self, message: SequencedMessage) -> Sequence[Effect]:
        """Assign global numbers to the sender's next messages and deliver them (sequencer only)."""
        sender = message.sender
        first = self.counts[sender] + 1
        intervals.insert(self.arrived[sender], message.seq)
        if message.seq != first:
            return (Hold(message, self._find_gap(message)),)
        place = self.delivered + 1
        effects: list[Effect] = []
        while (here := self.held.pop(MessageId(sender, self.counts[sender] + 1), None)) is not None:
            self._count(here)
            effects.append(Deliver(here))
        note = SequenceAssignment(self.me, 0, self.note_payload, place, sender, first, len(effects))
        return (Transmit(self.others(), note), *effects)

    def _find_gap(self, message: SequencedMessage) -> tuple[MessageId, ...]:
        sender = message.sender
        return (MessageId(sender, intervals.nearest_gap(self.arrived[sender], message.seq)),)

    def _record_assignment(self, place: int, run: tuple[int, int, int]) -> None:
        if place > self.delivered:
            self.assignments.setdefault(place, run)

    def _deliver_next(self) -> tuple[Effect, ...]:
        effects: list[Effect] = []
        while (run := self.assignments.get(self.delivered + 1)) is not None:
            origin, first, length = run
            message = self.held.pop(MessageId(origin, first), None)
            if message is None:
                break
            del self.assignments[self.delivered + 1]
            self._count(message)
            if length > 1:
                self.assignments.setdefault(self.delivered + 1, (origin, first + 1, length - 1))
            effects.append(Deliver(message))
        return tuple(effects)

    def _count(self, message: SequencedMessage) -> None:
        self.delivered += 1
        self.counts[message.sender] = message.seq

    # -- checks -----------------------------------------------------------------------------

    def _check(self, message: SequencedMessage) -> None:
        sender, seq, _, place = message
        if sender not in self.counts:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        if not 1 <= seq <= MAX_NUMBER:
            raise SequenceError(f"message {seq} from member {sender}: numbers start at 1")
        if (place != 0) is not (sender == self.sequencer) or not 0 <= place <= MAX_NUMBER:
            raise SequenceError(
                f"message {seq} from member {sender} has the global number {place}; only "
                f"messages of member {self.sequencer} carry one, from 1"
            )

    def _check_assignment(self, note: SequenceAssignment) -> None:
        _, _, _, place, origin, first, length = note
        if note.sender != self.sequencer:
            raise SequenceError(
                f"member {note.sender} assigns global numbers; the sequencer is member "
                f"{self.sequencer}"
            )
        if origin not in self.counts or origin == self.sequencer:
            raise UnknownMemberError(f"assignment for messages of member {origin}, who has none")
        last = self.sent if origin == self.me else MAX_NUMBER
        if place < 1 or first < 1 or length < 1 or first + length - 1 > last:
            raise SequenceError(
                f"assignment of {place} to messages {first} to {first + length - 1} of "
                f"member {origin}, whose last message is at most {last}"
            )
        self._check_agreement(place, origin, first, length)

    def _check_agreement(self, place: int, origin: int, first: int, length: int) -> None:
        """Raise SequenceError if a global number or its message is already assigned otherwise."""
        done = min(length, self.delivered - place + 1)
        known = self.assignments.get(place, (origin, first))
        count = self.counts[origin]
        if (
            count >= first + done - 1
            if done > 0
            else first > count and known[:2] == (origin, first)
        ):
            return
        raise SequenceError(
            f"assignment of {place} to message {first} of member {origin} contradicts an "
            f"earlier one; if member {self.sequencer}, the sequencer, was restored from a "
            "stale state, restore a newer snapshot there"
        )

    # -- held messages ----------------------------------------------------------------------

    def count_held(self) -> int:
        return len(self.held)

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        return changes.counts_to_ranges(self.counts)

    def list_held(self) -> tuple[Held, ...]:
        """Return the messages that are not delivered, own ones included, by (sender, number)."""
        held = [message for _, message in sorted(self.held.items())]
        if self.me == self.sequencer:
            return tuple(Held(message, self._find_gap(message)) for message in held)
        lacks = self._list_missing()
        silent = () if lacks else (self.sequencer,)
        return tuple(Held(message, lacks, silent=silent) for message in held)

    def _list_missing(self) -> tuple[MessageId, ...]:
        """Return the message of the next global number, which is not here; empty: unknown."""
        run = self.assignments.get(self.delivered + 1)
        return () if run is None else (MessageId(run[0], run[1]),)

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        """Skip a lost message: the sequencer never numbers it, others skip its global number."""
        here, count_of = self.held.__contains__, self.counts.__getitem__
        if self.me == self.sequencer:
            return skip_lost_messages(self, lost, count_of, here, self._skip_unassigned)

        def is_next(one: MessageId) -> bool:
            return self.assignments.get(self.delivered + 1, (None, 0))[:2] == one

        return skip_lost_messages(self, lost, count_of, here, self._skip_assigned, is_next)

    def _skip_unassigned(self, lost: MessageId) -> Sequence[Effect]:
        sender, seq = lost
        self.counts[sender] = seq
        intervals.insert(self.arrived[sender], seq)
        following = self.held.get(MessageId(sender, seq + 1))
        return () if following is None else self._place(following)

    def _skip_assigned(self, lost: MessageId) -> Sequence[Effect]:
        origin, first, length = self.assignments.pop(self.delivered + 1)
        self.delivered += 1
        self.counts[origin] = lost.seq
        if length > 1:
            self.assignments.setdefault(self.delivered + 1, (origin, first + 1, length - 1))
        return self._deliver_next()

    def start_from(self, newest: Mapping[int, int]) -> None:
        """Count messages of others, and as many global numbers, as delivered."""
        if self.me == self.sequencer:
            raise LocalError(
                f"member {self.me} is the sequencer, and sender numbers do not determine "
                "its assignments: restore a snapshot instead of starting from numbers"
            )
        for member, number in newest.items():
            self.delivered += max(0, number - self.counts[member])
            self.counts[member] = max(number, self.counts[member])

    # -- snapshot ---------------------------------------------------------------------------

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        counts = ", ".join(str(self.counts[known]) for known in sorted(self.counts))
        fields = {"sequencer": names[self.sequencer], "global number": str(self.delivered)}
        fields["C"] = f"({counts})"
        runs = (
            f"{place}: {names[origin]} {first}{f'-{first + length - 1}' if length > 1 else ''}"
            for place, (origin, first, length) in sorted(self.assignments.items())
        )
        return fields | {"assigned": "; ".join(runs) or "Ø"}

    def snapshot(self) -> Hashable:
        held = tuple(message for _, message in sorted(self.held.items()))
        counts = tuple(sorted(self.counts.items()))
        return (
            self.me,
            self.sent,
            self.delivered,
            counts,
            held,
            tuple(sorted(self.assignments.items())),
        )

    def restore(self, state: Any) -> None:
        self.me, self.sent, self.delivered, counts, held, places = state
        self.counts, self.assignments = dict(counts), dict(places)
        self.held = {self.identity(message): message for message in held}
        self.arrived = {member: [] for member in self.members}
        if self.me == self.sequencer:
            self.arrived.update((k, list(Intervals.up_to(count).bounds)) for k, count in counts)
            for message in held:
                intervals.insert(self.arrived[message.sender], message.seq)

    def check_whole(self) -> None:
        if set(self.counts) != set(self.members):
            raise ValueError(f"counts: members {sorted(self.counts)}")
        if self.counts[self.me] > self.sent:
            raise ValueError(f"counts: more own messages delivered than the {self.sent} sent")
        for (sender, seq), message in self.held.items():
            if sender != self.me:
                self._check(message)
            if seq <= self.counts[sender] or (sender == self.me and seq > self.sent):
                raise ValueError(f"held: message {seq} of member {sender}")
        for place, (origin, first, length) in self.assignments.items():
            if place <= self.delivered or origin not in self.counts or not (first and length):
                raise ValueError(f"assignments: {place} of member {origin}")

    # -- control information ----------------------------------------------------------------

    def is_control(self, message: AnyMessage) -> bool:
        return isinstance(message, SequenceAssignment)

    def causes(self, message: AnyMessage) -> tuple[MessageId, ...]:
        return (MessageId(message.sender, message.seq - 1),) if message.seq > 1 else ()

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: AnyMessage) -> bytes:
        numbers = [message.sender, message.seq, message.global_seq]
        if isinstance(message, SequenceAssignment):
            numbers += [message.origin, message.first, message.length]
        return b"".join(map(varint, numbers))

    def decode(self, control: bytes, payload: Any) -> AnyMessage:
        reader = ByteReader(control)
        sender, seq, place = reader.varint(), reader.varint(), reader.varint()
        message: AnyMessage = SequencedMessage(sender, seq, payload, place)
        if seq == 0:
            run = reader.varint(), reader.varint(), reader.varint()
            message = SequenceAssignment(sender, 0, payload, place, *run)
        reader.finish()
        return message

    def control_bytes(self, message: AnyMessage) -> int:
        """Return 4 bytes per number: two of a message, four of an assignment."""
        if isinstance(message, SequenceAssignment):
            return 4 * INTEGER_BYTES
        return (1 + (message.global_seq > 0)) * INTEGER_BYTES

    def storage_bytes(self) -> int:
        return (len(self.counts) + 2 + 4 * len(self.assignments)) * INTEGER_BYTES
