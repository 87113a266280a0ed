"""Base of protocols whose messages carry only the sender's number.

The numbers that arrived from each member are intervals (`core.clocks.intervals`): one node while
nothing is missing. They detect duplicates, also of departed members.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.core.clocks import MAX_NUMBER, intervals
from antecede.core.clocks.encoding import ByteReader, varint
from antecede.core.protocols.base import NOTHING, Effect, MessageId, Protocol, Transmit
from antecede.core.protocols.membership import changes
from antecede.errors import SequenceError, UnknownMemberError

INTEGER_BYTES = 4


class NumberedMessage(NamedTuple):
    """Message with its sender's number for it, from 1."""

    sender: int
    seq: int
    payload: Any


class NumberedProtocol(Protocol):
    """Base class; subclasses implement `receive`, `newest`, `frontier` and `causes`."""

    control_power: ClassVar[int | None] = 0

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.arrived: dict[int, list[int]] = {member: [] for member in self.others()}
        """Half-open ranges of the numbers that arrived, for all other members ever known."""
        self.last: dict[int, int] = {}

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        self.sent += 1
        return (Transmit(self.others(), NumberedMessage(self.me, self.sent, payload)),)

    def check(self, sender: int, seq: int) -> None:
        if sender not in self.arrived:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        last = self.last.get(sender, MAX_NUMBER)
        if not 1 <= seq <= last:
            raise SequenceError(f"message {seq} from member {sender}: numbers are 1 to {last}")

    @abstractmethod
    def newest(self, member: int) -> int:
        """Return the greatest number delivered from a member; 0: none."""

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        newest = {member: self.newest(member) for member in self.arrived}
        return changes.counts_to_ranges({**newest, self.me: self.sent})

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:

        def runs(bounds: Sequence[int]) -> str:
            pairs = zip(bounds[::2], bounds[1::2], strict=True)
            found = [f"{low}" if stop - low == 1 else f"{low}-{stop - 1}" for low, stop in pairs]
            return ", ".join(found) or "none"

        there = (f"{names[k]}: {runs(self.arrived[k])}" for k in sorted(self.arrived))
        fields = {"sent": str(self.sent), "arrived": "; ".join(there)}
        if self.last:
            left = (f"{names[k]} after {self.last[k]}" for k in sorted(self.last))
            fields["left"] = "; ".join(left)
        return fields

    # -- membership -------------------------------------------------------------------------

    def install_join_state(self, state: Any) -> None:
        arrived, last = state
        changes.check_unused(self.sent, *self.arrived.values())
        self.arrived = {member: list(bounds) for member, bounds in arrived if member != self.me}
        self.last = dict(last)
        self.members = changes.select_current((*self.arrived, self.me), self.last)

    def start_from(self, newest: Mapping[int, int]) -> None:
        for member, number in newest.items():
            self.arrived[member] = intervals.with_all_up_to(self.arrived[member], number)

    def check_listening(self) -> None:
        """Do nothing: only earlier messages of the sender precede a message."""

    def join(self, member: int) -> Sequence[Effect]:
        known = self.arrived.keys() | {self.me}
        self.members = changes.add_members(self.members, known, (member,))
        self.arrived[member] = []
        return NOTHING

    def unjoin(self, members: Sequence[int]) -> None:
        for member in members:
            del self.arrived[member]
        self.members = changes.remove_members(self.members, members)

    def list_departed(self) -> Mapping[int, int]:
        return self.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        changes.check_last_number(member, last, self.newest(member))
        self.members = changes.remove_members(self.members, (member,))
        self.last[member] = last
        return NOTHING

    def check_whole(self) -> None:
        changes.check_consistency(self.me, self.members, self.arrived, self.last, {}, {})

    def forget(self, member: int) -> None:
        bounds = self.arrived[member]
        whole = len(bounds) == 2 and bounds[0] == 1
        changes.check_all_delivered(member, self.last, bounds[1] - 1 if whole else 0)
        del self.arrived[member], self.last[member]

    # -- size and wire ----------------------------------------------------------------------

    def mentions(self, message: NumberedMessage) -> tuple[int, ...]:
        return (message.sender,)

    def renumber(self, message: NumberedMessage, numbers: Mapping[int, int]) -> NumberedMessage:
        return message._replace(sender=numbers[message.sender])

    def encode(self, message: NumberedMessage) -> bytes:
        return varint(message.sender) + varint(message.seq)

    def decode(self, control: bytes, payload: Any) -> NumberedMessage:
        reader = ByteReader(control)
        message = NumberedMessage(reader.varint(), reader.varint(), payload)
        reader.finish()
        return message

    def control_bytes(self, message: NumberedMessage) -> int:
        return INTEGER_BYTES
