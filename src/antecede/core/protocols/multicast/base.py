"""Base of `ses` and `rst`: multicast to chosen members, each of which orders its own messages.

Theory of operation
-------------------
A message names its sender, the sender's number for it (of ALL its messages) and its destinations.
Of its causal past, a receiver waits only for messages addressed to that receiver. The two protocols
differ in how a member learns of them.

Destinations are members at the time of sending. A joining member does not receive earlier messages
and discards them (`NOT_ADDRESSED`). A message that names a member whose join is not yet known here
raises UnknownMemberError. The host then calls `join`, or offers the message again.

Order of release: a message, then the held ones that are deliverable after it, by (sender, number),
then those that are deliverable after these (breadth first). The state alone determines it, so a
snapshot contains no index.

On the wire, destinations are ranges of member numbers: three bytes for one, five for all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from antecede.core.clocks import MAX_MEMBER, MAX_VALUE, encode_bounds, insert, read_bounds
from antecede.core.clocks.encoding import ByteReader, varint
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    NOTHING,
    OWN,
    Addressing,
    Deliver,
    Discard,
    Effect,
    Held,
    Hold,
    MessageId,
    Protocol,
)
from antecede.core.protocols.membership import changes
from antecede.errors import DecodeError, LocalError, SequenceError, UnknownMemberError

INTEGER_BYTES = 4
NOT_ADDRESSED = "not addressed to this member"


class AddressedProtocol(Protocol):
    """Base of protocols whose messages have the fields sender, seq, payload and to."""

    control_power: ClassVar[int | None] = 2

    addressing: ClassVar[Addressing] = Addressing.MEMBERS
    highest: ClassVar[int] = MAX_MEMBER

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.last: dict[int, int] = {}
        self.held: dict[MessageId, Any] = {}
        changes.check_numbers(self.members, self.highest)
        self.set_known(self.members)

    # -- hooks of subclasses ------------------------------------------------------------------

    @abstractmethod
    def lay_out(self) -> None:
        """Derive the masks from the members in `known`; called whenever these change."""

    @abstractmethod
    def find_shortfall(self, message: Any) -> int:
        """Return a number that is 0 if an unchecked message lacks nothing here."""

    @abstractmethod
    def check(self, message: Any, behind: int) -> None:
        """Raise a RemoteError for an impossible message; includes `check_head`."""

    @abstractmethod
    def is_duplicate(self, message: Any) -> bool:
        """Return whether a message to this member has been delivered."""

    @abstractmethod
    def is_blocked(self, message: Any) -> bool:
        """Return whether a held message must wait."""

    @abstractmethod
    def list_missing(self, message: Any) -> tuple[MessageId, ...]:
        """Return the ids known to be missing for a held message."""

    @abstractmethod
    def record(self, message: Any) -> Any:
        """Update the state for the delivery of `message`; return `news` for `take_unblocked`."""

    @abstractmethod
    def take_unblocked(self, news: Any) -> list[Any]:
        """Take the held messages out of the index whose indexed cause arrived with `news`."""

    @abstractmethod
    def index_held(self, message: Any) -> None:
        """Add a held message to the index under one missing cause."""

    @abstractmethod
    def clear_index(self) -> None:
        """Clear the index of held messages."""

    # -- sending and receiving ----------------------------------------------------------------

    def resolve_targets(self, to: Iterable[int] | None) -> tuple[int, ...]:
        """Return the destinations, sorted; None: all others. Raises LocalError."""
        if to is None:
            return self.others()
        chosen = tuple(sorted(set(to)))
        if not chosen:
            raise LocalError("a message without recipients; name at least one other member")
        for member in chosen:
            if member == self.me or member not in self.members:
                raise LocalError(
                    f"member {member} is not another member; the others are {self.others()}"
                )
        return chosen

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        if message.sender == self.me:
            return (Discard(message, OWN),)
        behind = self.find_shortfall(message)
        self.check(message, behind)
        if self.me not in message.to:
            return (Discard(message, NOT_ADDRESSED),)
        if self.is_duplicate(message) or (self.held and self.identity(message) in self.held):
            return (Discard(message, DUPLICATE),)
        if behind:
            self.held[self.identity(message)] = message
            self.index_held(message)
            return (Hold(message, self.list_missing(message)),)
        return self.release(message)

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        if message.sender == self.me:
            return False
        behind = self.find_shortfall(message)
        self.check(message, behind)
        known = self.me not in message.to or self.is_duplicate(message)
        return not known and self.identity(message) not in self.held and bool(behind)

    def release(self, message: Any) -> Sequence[Effect]:
        return self._deliver_all([message])

    def _deliver_all(self, ready: list[Any]) -> Sequence[Effect]:
        effects: list[Effect] = []
        for done in ready:
            effects.append(Deliver(done))
            news = self.record(done)
            if self.held:
                ready += self._take_deliverable(self.take_unblocked(news))
        return effects

    def _take_deliverable(self, unblocked: Iterable[Any]) -> list[Any]:
        free = []
        for waiter in sorted(unblocked, key=lambda one: (one.sender, one.seq)):
            if self.is_blocked(waiter):
                self.index_held(waiter)
            else:
                del self.held[self.identity(waiter)]
                free.append(waiter)
        return free

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        """Skip lost messages that held ones name; see the base class.

        A number stands for all earlier ones of its sender that are not here, since these may be for
        other members. Raises LocalError if no held message waits for it, or an earlier one is held.
        """
        before, effects = self.snapshot(), list[Effect]()
        missing = {one for held in self.list_held() for one in held.missing}
        named = sorted(missing.intersection(lost))
        if unknown := sorted(set(lost).difference(missing)):
            sender, seq = unknown[0]
            raise LocalError(f"no held message waits for message {seq} of member {sender}")
        while named:
            ready = [one for one in named if self._find_held_before(one) is None]
            if not ready:
                one, first = named[0], self._find_held_before(named[0])
                self.restore(before)
                raise LocalError(
                    f"message {one.seq} of member {one.sender} can be skipped only after "
                    f"message {first} of member {one.sender}, which is held"
                )
            effects += self._deliver_all(self._take_deliverable(self.skip(ready[0])))
            missing = {one for held in self.list_held() for one in held.missing}
            named = [one for one in named if one in missing]
        return effects

    def _find_held_before(self, lost: MessageId) -> int | None:
        """Return the first held number of a sender up to this one, if there is one."""
        return min(
            (k.seq for k in self.held if k.sender == lost.sender and k.seq <= lost.seq),
            default=None,
        )

    @abstractmethod
    def skip(self, lost: MessageId) -> list[Any]:
        """Count a lost message as known here; take the held messages that it unblocks."""

    def check_head(self, message: Any) -> None:
        sender, seq, to = message.sender, message.seq, message.to
        if sender not in self.known:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        if not 1 <= seq <= MAX_VALUE:
            raise SequenceError(f"message number {seq} from member {sender}; numbers start at 1")
        if seq > self.last.get(sender, seq):
            raise SequenceError(
                f"message {seq} from member {sender}, who left after message {self.last[sender]}"
            )
        if any(a >= b for a, b in pairwise(to)) or sender in to:
            raise DecodeError(
                f"message {seq} from member {sender} with invalid destinations {to[:8]}"
            )
        if not self.known.issuperset(to):
            unknown = min(set(to) - self.known)
            raise UnknownMemberError(
                f"message {seq} from member {sender} for member {unknown}, who is not in the group"
            )

    def list_held(self) -> tuple[Held, ...]:
        return tuple(
            Held(self.held[key], self.list_missing(self.held[key])) for key in sorted(self.held)
        )

    def count_held(self) -> int:
        return len(self.held)

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        newest = {member: self.newest(member) for member in self.known}
        return changes.counts_to_ranges({**newest, self.me: self.sent})

    # -- membership -------------------------------------------------------------------------

    def set_known(self, known: Iterable[int]) -> None:
        self.known = frozenset(known)
        self.members = changes.select_current(self.known, self.last)
        self.lay_out()

    def install_members(self, known: Iterable[int], last: Iterable[tuple[int, int]]) -> None:
        """Install all known and departed members of a join state. Raises LocalError."""
        changes.check_unused(self.sent, self.held, any(map(self.newest, self.known)))
        # Check first: the size of all masks depends on the highest number.
        departed, all_members = dict(last), {*known, self.me}
        if not all(type(member) is int and 0 <= member <= self.highest for member in all_members):
            raise LocalError(f"join state: a member number outside 0 to {self.highest}")
        if not all_members.issuperset(departed) or self.me in departed:
            raise LocalError("join state: a departed member that is unknown, or this one")
        self.last = departed
        self.set_known(all_members)

    def join(self, member: int) -> Sequence[Effect]:
        return self.join_all((member,))

    def join_all(self, members: Sequence[int]) -> Sequence[Effect]:
        changes.add_members(self.members, self.known, members, self.highest)
        self.set_known(self.known.union(members))
        return NOTHING

    def newest(self, member: int) -> int:
        return 0

    def list_departed(self) -> Mapping[int, int]:
        return self.last

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        changes.check_last_number(member, last, self.newest(member))
        self.last[member] = last
        self.set_known(self.known)
        late = sorted(k for k, m in self.held.items() if m.sender == member and m.seq > last)
        effects = tuple(Discard(self.held.pop(key), AFTER_LEAVE) for key in late)
        self.rebuild_index()
        return effects

    def rebuild_index(self) -> None:
        self.clear_index()
        for message in self.held.values():
            self.index_held(message)

    def check_whole(self) -> None:
        known = self.known - {self.me}
        changes.check_consistency(self.me, self.members, known, self.last, {}, {})
        if self.me not in self.known:
            raise ValueError(f"member {self.me} is not in its own group")
        for message in self.held.values():
            behind = self.find_shortfall(message)
            self.check(message, behind)
            if message.sender == self.me or self.me not in message.to or not behind:
                raise ValueError(f"held: message {message.seq} of member {message.sender}")

    # -- snapshot and wire --------------------------------------------------------------------

    def common_state(self) -> Hashable:
        held = tuple([self.held[key] for key in sorted(self.held)])
        return self.me, tuple(sorted(self.known)), self.sent, tuple(sorted(self.last.items())), held

    def set_common_state(self, state: Any) -> None:
        """Restore what `common_state` returned; the subclass then calls `rebuild_index`."""
        self.me, known, self.sent, last, held = state
        self.last = dict(last)
        self.set_known(known)
        self.held = {self.identity(message): message for message in held}


def encode_head(message: Any) -> bytes:
    """Encode sender, number and destinations."""
    runs: list[int] = []
    for member in message.to:
        insert(runs, member + 1)
    return varint(message.sender) + varint(message.seq) + encode_bounds(runs)


def read_head(reader: ByteReader) -> tuple[int, int, tuple[int, ...]]:
    """Read what `encode_head` wrote. Raises DecodeError, SequenceError and UnknownMemberError."""
    sender, seq = reader.varint(), reader.varint()
    runs = read_bounds(reader)
    if not 1 <= seq <= MAX_VALUE:
        raise SequenceError(f"message number {seq} of member {sender}, not in 1 to {MAX_VALUE}")
    if max(runs[-1] - 2 if runs else 0, sender) > MAX_MEMBER:
        raise UnknownMemberError(f"a sender or destination above {MAX_MEMBER}")
    pairs = zip(runs[::2], runs[1::2], strict=True)
    to = tuple(number - 1 for low, stop in pairs for number in range(low, stop))
    return sender, seq, to
