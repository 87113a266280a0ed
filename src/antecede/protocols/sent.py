"""SENT (Raynal, Schiper, Toueg): causal order for messages to some members, by a matrix.

Source: the matrix that 001's matrix time lacks (errata: its rules R1 and R2 do not say to whom
an event was sent); Raynal, Schiper and Toueg. Member i keeps SENT_i[k, l], how many messages
of k to l it knows of, and DELIV_i[k], how many of k it has delivered. A message to the members
D carries D and SENT_i as it was before SENT_i[i, d] += 1 for every d in D. Member j delivers it
when DELIV_j[k] >= SENT_m[k, j] for all k; then DELIV_j[i] += 1, SENT_j := max(SENT_j, SENT_m),
and SENT_j[i, d] += 1 for every d in D.

Theory of operation
-------------------
The matrix is ONE Python integer of lanes (`clocks.lanes`). Entry [k, l] has the lane
`lane(k, l)`: the members 0 .. n - 1 fill the lanes below n * n, whatever n is, so a join moves
nothing and matrices of different sizes meet without a new layout.

DELIV_j is column j of SENT_j: what j does not know of was not delivered there. So one subtraction
SENT_j - SENT_m judges a message. A guard bit that falls in column j marks a cause that is
missing; in row j, a message of mine that I never sent; in a lane of strangers, a stranger;
anywhere else, news.

A message's name at j is (sender, its number in the channel to j), SENT_m[sender, j] + 1: so
causes can be named. `seq` is the sender's number of all its messages. A held message is filed
under one missing cause and looked at again when that one is delivered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isqrt
from typing import Any, ClassVar, NamedTuple

from antecede.clocks.compact import encode_compact, nonzero, read_compact
from antecede.clocks.lanes import LANE_BITS, MAX_VALUE, VALUE_BITS, get, guards, merge, pack
from antecede.clocks.wire import Reader
from antecede.errors import SequenceError, UnknownMemberError
from antecede.protocols.addressed import (
    INTEGER_BYTES,
    AddressedProtocol,
    encode_head,
    read_head,
)
from antecede.protocols.base import Effect, Guarantee, MessageId, Relation, Transmit

MAX_SIDE = 1 << 10
"""Most rows of a matrix: 1,048,576 lanes, 5 MB."""
FEW = 8
"""Up to so many destinations are counted one by one, which is cheaper than laying out all lanes."""


class SentMessage(NamedTuple):
    """A message, its sender's number for it from 1, for whom it is, and SENT, packed."""

    sender: int
    seq: int
    payload: Any
    to: tuple[int, ...]
    matrix: int


def lane(sender: int, target: int) -> int:
    """Return the lane of entry [sender, target]: shell by shell around entry [0, 0].

    Shell m has the 2m + 1 entries whose larger index is m: its column first, then its row.
    """
    if sender <= target:
        return target * target + sender
    return sender * sender + sender + 1 + target


def entry(number: int) -> tuple[int, int]:
    """Return (sender, target) of a lane."""
    shell = isqrt(number)
    place = number - shell * shell
    return (place, shell) if place <= shell else (shell, place - shell - 1)


class Sent(AddressedProtocol):
    """One member of a group with causal order; needs channels that lose nothing."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    highest: ClassVar[int] = MAX_SIDE - 1

    def __init__(self, me: int, members: Iterable[int]) -> None:
        self.matrix = 0
        """SENT, packed."""
        super().__init__(me, members)
        self.clear_index()

    def lay_out(self) -> None:
        """Derive the masks for the members there are or were, and DELIV."""
        lanes = (max(self.known) + 1) ** 2
        self.width = lanes * LANE_BITS
        self.guard = guards(lanes)
        others = self.known - {self.me}
        self.column = pack((lane(k, self.me), 1) for k in others) << VALUE_BITS
        """Guard bits of the entries of messages to me."""
        self.judged = self.guard ^ (
            pack((lane(k, d), 1) for k in others for d in others if k != d) << VALUE_BITS
        )
        """Guard bits of all entries in which nobody can know more than I do."""
        self.delivered = {k: get(self.matrix, lane(k, self.me)) for k in others}
        """DELIV."""
        full = self.guard - (self.guard >> VALUE_BITS)
        gone = ((lane(k, d), MAX_VALUE - last) for k, last in self.last.items() for d in self.known)
        self.ceiling = full - pack(gone) if self.last else 0
        """Once somebody left: the most that each entry can be."""

    def send(
        self,
        payload: Any,
        *,
        now: float = 0.0,
        after: Sequence[MessageId] = (),
        to: Iterable[int] | None = None,
    ) -> Sequence[Effect]:
        """Let the message carry the matrix, count it there, and transmit it to `to` (None: all).

        Raises LocalError for a destination that is not another current member.
        """
        targets = self.targets(to)
        self.sent += 1
        message = SentMessage(self.me, self.sent, payload, targets, self.matrix)
        self.matrix = _counted(message)
        return (Transmit(targets, message),)

    # -- what a message lacks -----------------------------------------------------------------

    def behind(self, message: SentMessage) -> int:
        """Return the guard bits of the entries in which SENT_m says more than can be or is here."""
        kept = ((self.matrix | self.guard) - message.matrix) & self.judged
        return self.judged ^ kept

    def check(self, message: SentMessage, behind: int) -> None:
        """Raise a RemoteError when the message can not be."""
        self.check_head(message)
        sender, seq, matrix = message.sender, message.seq, message.matrix
        what = f"message {seq} from member {sender}"
        if matrix.bit_length() > self.width:
            raise UnknownMemberError(f"{what} knows of a member not in the group")
        for number, _ in nonzero(behind & ~self.column) if behind else ():
            k, d = entry(number)
            if k == d or not self.known.issuperset((k, d)):
                raise UnknownMemberError(f"{what} knows of a channel from member {k} to {d}")
            raise SequenceError(
                f"{what} knows of {get(matrix, number)} messages of mine to member {d}, to whom I"
                f" have sent {get(self.matrix, number)}"
            )
        if get(matrix, lane(sender, self.me)) >= seq:
            raise SequenceError(f"{what} counts itself or a later message among its causes")
        if self.ceiling and ((self.ceiling | self.guard) - matrix) & self.guard != self.guard:
            raise SequenceError(f"{what} knows of more messages of a departed member than it sent")

    def needed(self, message: SentMessage) -> tuple[MessageId, ...]:
        """Return (k, SENT_m[k, me]) for every k of whom less is delivered here."""
        matrix = message.matrix
        raw = matrix.to_bytes(self.width // 8, "little")
        found = []
        for member, count in self.delivered.items():
            at = lane(member, self.me) * (LANE_BITS // 8)
            needed = int.from_bytes(raw[at : at + LANE_BITS // 8], "little")
            if needed > count:
                found.append(MessageId(member, needed))
        return tuple(sorted(found))

    def missing(self, message: SentMessage) -> tuple[MessageId, ...]:
        """Return for each member the newest message to me that this one needs, if it is not here.

        The numbers are those of the channels.
        """
        needs = self.needs[self.identity(message)]
        return tuple(cause for cause in needs if cause.seq > self.delivered[cause.sender])

    def lacks(self, message: SentMessage) -> bool:
        """Tell whether a held message must wait on."""
        return bool(self.missing(message))

    def identity(self, message: SentMessage) -> MessageId:
        """Return the sender and its number in the channel to me, by which I name the message."""
        return MessageId(message.sender, get(message.matrix, lane(message.sender, self.me)) + 1)

    def is_duplicate(self, message: SentMessage) -> bool:
        """Tell whether a message for me has been delivered."""
        sender, number = self.identity(message)
        return number <= self.delivered[sender]

    # -- delivery -------------------------------------------------------------------------------

    def record(self, message: SentMessage) -> MessageId:
        """Count the delivery, take over the matrix, and return the message's name."""
        self.delivered[message.sender] += 1
        self.matrix = merge(self.matrix, _counted(message), self.guard)
        return MessageId(message.sender, self.delivered[message.sender])

    def clear_index(self) -> None:
        """Empty the index."""
        self.needs: dict[MessageId, tuple[MessageId, ...]] = {}
        """Held message -> what it needed when it was filed."""
        self.waiting: dict[MessageId, list[MessageId]] = {}
        """Missing message -> held messages that are filed under it."""

    def file(self, message: SentMessage) -> None:
        """File a held message under the first cause that it lacks."""
        key = self.identity(message)
        self.needs[key] = needs = self.needed(message)
        self.waiting.setdefault(needs[0], []).append(key)

    def woken(self, news: MessageId) -> list[SentMessage]:
        """Take out of the index what waited for a message that is delivered now."""
        return [self.held[key] for key in self.waiting.pop(news, ())]

    # -- membership and snapshot --------------------------------------------------------------

    def newest(self, member: int) -> int:
        """Return how many messages of the member to one destination are known at most."""
        return max(get(self.matrix, lane(member, target)) for target in self.known)

    def frontier(self) -> Hashable:
        """Return who was, who left, and SENT."""
        return tuple(sorted(self.known)), tuple(sorted(self.last.items())), self.matrix

    def adopt(self, frontier: Any) -> None:
        """Take over the sponsor's SENT, in which nothing was sent to a newcomer.

        Only as a newcomer; raises LocalError later.
        """
        known, last, matrix = frontier
        self.adopt_members(known, last)
        self.matrix = int(matrix)
        self.lay_out()

    def snapshot(self) -> Hashable:
        """Return the state without what follows from it."""
        return self.common_state(), self.matrix

    def restore(self, state: Any) -> None:
        """Become what `snapshot` returned."""
        common, self.matrix = state
        self.set_common_state(common)
        self.index()

    # -- what a message says ------------------------------------------------------------------

    def causes(self, message: SentMessage) -> tuple[MessageId, ...]:
        """Return for each member the newest message to me that this one needs."""
        named = ((k, get(message.matrix, lane(k, self.me))) for k in sorted(self.delivered))
        return tuple(MessageId(k, number) for k, number in named if number)

    def mentions(self, message: SentMessage) -> tuple[int, ...]:
        """Return the sender, the destinations, and all who have an entry in the matrix."""
        named = {member for number, _ in nonzero(message.matrix) for member in entry(number)}
        return tuple(sorted(named.union(message.to, (message.sender,))))

    def renumber(self, message: SentMessage, numbers: Mapping[int, int]) -> SentMessage:
        """Return the message with every member's number replaced."""
        moved = []
        for number, count in nonzero(message.matrix):
            sender, target = entry(number)
            moved.append((lane(numbers[sender], numbers[target]), count))
        to = tuple(sorted(numbers[member] for member in message.to))
        sender = numbers[message.sender]
        return SentMessage(sender, message.seq, message.payload, to, pack(moved))

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: SentMessage) -> bytes:
        """Return head and matrix, which is dense or only what is not 0, the shorter."""
        return encode_head(message) + encode_compact(message.matrix)

    def decode(self, control: bytes, payload: Any) -> SentMessage:
        """Return the message; raises DecodeError, UnknownMemberError and SequenceError."""
        reader = Reader(control)
        sender, seq, to = read_head(reader)
        matrix = read_compact(reader, MAX_SIDE * MAX_SIDE)
        reader.finish()
        return SentMessage(sender, seq, payload, to, matrix)

    def control_bytes(self, message: SentMessage) -> int:
        """Return 4 bytes an integer: the matrix, and the destinations."""
        return INTEGER_BYTES * (len(self.known) ** 2 + len(message.to))

    def storage_bytes(self) -> int:
        """Return 4 bytes an integer: SENT and DELIV."""
        members = len(self.known)
        return INTEGER_BYTES * (members * members + members)

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        """Return SENT row by row (what each member has sent to each), and DELIV."""
        known = sorted(self.known)
        fields = {}
        for k in known:
            row = ", ".join(str(get(self.matrix, lane(k, d))) for d in known)
            fields[f"SENT[{names[k]}]"] = f"({row})"
        counts = ", ".join(str(self.delivered.get(k, 0)) for k in known)
        return {**fields, "DELIV": f"({counts})"}


def _counted(message: SentMessage) -> int:
    """Return the message's matrix with the message itself counted."""
    lanes = [lane(message.sender, target) for target in message.to]
    if len(lanes) > FEW:
        ones = pack((number, 1) for number in lanes)
    else:
        ones = sum(1 << (number * LANE_BITS) for number in lanes)
    return message.matrix + ones
