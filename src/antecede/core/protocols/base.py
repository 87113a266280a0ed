"""Base class of ordering protocols: a state machine without clock, socket or randomness.

Theory of operation
-------------------
A protocol object is the state of ONE member. The host owns network and clock and calls:

    send(payload, now=, after=)   the application sends     -> effects
    receive(message, now=)        a message has arrived     -> effects
    tick(now)                     time has passed           -> effects

The host carries out the effects in their order:

    Transmit(to, message)         put this message on the network
    Deliver(message)              hand it to the application
    Hold(message, missing)        it is held back; `missing` are the causes it waits for
    Discard(message, reason)      it will never be delivered (a duplicate, dropped, ...)

Members are small integers that are assigned once and never reused. A member's own message counts as
delivered to that member when it is sent, without a `Deliver`. Only in total order
(`Relation.TOTAL`) own messages get a `Deliver` in their turn.

A malformed or impossible message raises a `RemoteError`, a wrong call a `LocalError`. The state is
unchanged after either.

A custom protocol defines `__init__(me, members)`, `send` and `receive`. All other methods have
defaults. `antecede check FILE.py:CLASS` checks it.

`addressing` selects the extra argument of `send`. ALL: none, a message is for every other member.
MEMBERS: `to=members`, None for all. TOPICS: `topics=names`, for their subscribers.

`now` is the reading of the member's monotonic clock in whole nanoseconds. Protocols with
`needs_time` hold messages until `tick` reports that enough time has passed. They raise LocalError
for `now=None`.

The transport must deliver each message at least once to each recipient, in any order. A joining
member must receive every message that its join state does not cover. On a transport that loses
messages, use a protocol with `survives_loss`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from antecede.core.protocols.options.checks import (
    Conflicts,
    Requires,
    check_options,
    select_effective,
)
from antecede.core.protocols.serialization.state_tuples import freeze, thaw
from antecede.errors import LocalError


class Relation(enum.Enum):
    """Relation that defines the causal past of a message."""

    NONE = "none"
    FIFO = "fifo"
    """Earlier messages of the same sender."""
    BY_DELIVERY = "delivery"
    """Causal order: messages that the sender had sent or delivered (Evropeytsev, Sahai et al.)."""
    BY_RECEIPT = "receipt"
    """Happened-before: messages that the sender had sent or received (Tsuneizumi, Nakayama)."""
    BY_REPLY = "reply"
    """Messages that this one replies to, transitively (Bhavanasi and Iyer)."""
    BY_TOPIC = "topic"
    """Received messages that share a topic to which the receiver subscribes (Nakayama 2017)."""
    TOTAL = "total"
    """Causal order, in which all members deliver all messages, their own too, in the same order."""


class Addressing(enum.Enum):
    """Recipients that `send` can select (see the module docstring)."""

    ALL = "all"
    MEMBERS = "members"
    TOPICS = "topics"


class Guarantee(NamedTuple):
    """Properties that a protocol guarantees on a correct transport (see the module docstring)."""

    relation: Relation
    safe: bool = True
    """No message is delivered before a message of its causal past addressed to that member."""
    live: bool = True
    """Every message is delivered once all messages have arrived."""
    no_unnecessary_wait: bool = True
    """A message is delivered as soon as its causal past is delivered."""
    survives_loss: bool = False
    """Lost messages are recovered, or abandoned as documented, without outside help."""
    joins: bool = False
    leaves: bool = False
    needs_time: bool = False
    """Messages may wait for `tick`: for heartbeats, or until a delay bound has passed."""
    remark: str = ""
    """Further conditions, or the reason for a withdrawn property, in a few words."""


class MessageId(NamedTuple):
    """Message id: the sender's member number, and the sender's number for it, from 1."""

    sender: int
    seq: int


class Transmit(NamedTuple):
    """Send `message` over the network to these members, never to this member."""

    to: tuple[int, ...]
    message: Any


class Deliver(NamedTuple):
    """Hand `message` to the application now."""

    message: Any


class Hold(NamedTuple):
    """Report that `message` is held back until the messages `missing` are delivered."""

    message: Any
    missing: tuple[MessageId, ...]
    reason: str = ""
    """Cause of the wait in words, if the missing messages cannot be named (plausible clocks)."""


class DeliverIncomplete(NamedTuple):
    """Hand `message` to the application without the messages `missing`, which are lost."""

    message: Any
    missing: tuple[MessageId, ...]


class Discard(NamedTuple):
    """Drop `message`. `reason` is a constant below or a text of the protocol."""

    message: Any
    reason: str


DUPLICATE = "duplicate"
OWN = "own message"
CLOSED_GAP = "duplicate, or too late: older than the gaps that are remembered (max_gaps)"
AFTER_LEAVE = "numbered after its sender's last message"

Effect: TypeAlias = Transmit | Deliver | Hold | DeliverIncomplete | Discard
NOTHING: tuple[Effect, ...] = ()


class Held(NamedTuple):
    """Held message and what it waits for."""

    message: Any
    missing: tuple[MessageId, ...]
    """Messages that must be delivered first; they may be held themselves."""
    reason: str = ""
    """Cause of the wait in words, if the missing messages cannot be named (as in `Hold`)."""
    silent: tuple[int, ...] = ()
    """Members from which any later message must arrive first."""
    until_ns: int | None = None
    """Earliest clock reading at which it can be delivered, for protocols that wait for time."""


class Protocol:
    """Base class of all protocols. An object is the state of one member.

    Subclasses set `guarantee` and implement `send` and `receive`. Messages are immutable tuples
    with at least `sender`, `seq` and `payload`.
    """

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY)
    """Guarantee of the class. An instance sets its own where options change it."""
    addressing: ClassVar[Addressing] = Addressing.ALL
    own_options: ClassVar[frozenset[str]] = frozenset()
    """Options that each member may choose for itself; all others must agree in a group."""
    member_options: ClassVar[frozenset[str]] = frozenset()
    """Options whose value is a member number; `Group` also accepts the member's name."""
    dependent_options: ClassVar[tuple[Requires | Conflicts, ...]] = ()
    """Options that need or exclude another option; rejected where they have no effect."""
    application: ClassVar[bool] = True
    """False for roles that only forward (super peers): they neither send nor deliver."""
    control_power: ClassVar[int | None] = None
    """Exponent k of the size of control information, about n^k numbers; None: unknown."""
    needs_lanes: ClassVar[bool] = False
    """True if an open group needs a host with sender logs (`carry_in_lanes`)."""
    in_lanes: bool = False
    """True if the host has sender logs; set on an instance."""
    note_payload: Any = b""
    """Payload of control messages (heartbeats, requests)."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Reject options of a wrong type or without an effect, before a constructor runs."""
        if options:
            check_options(cls, options)
        return super().__new__(cls)

    def __init__(self, me: int, members: Iterable[int]) -> None:
        self.me = me
        self.members = tuple(sorted(set(members)))
        if me not in self.members:
            raise LocalError(f"member {me} is not in its own group {self.members}")

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Send `payload` to the group and return the effects.

        `after` names the messages that this one replies to; only reply orders use it. `now` is the
        clock reading (see the module docstring). There is at least one `Transmit` unless the member
        is alone.
        """
        raise NotImplementedError

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        """Process a message that arrived and return the effects. Raises a RemoteError."""
        raise NotImplementedError

    def tick(self, now: int) -> Sequence[Effect]:
        """Process the passing of time, for example expired time-outs, and return the effects."""
        return NOTHING

    @property
    def needs_ticks(self) -> bool:
        """True if `tick` can have an effect under these options. Hosts then call it regularly."""
        return self.guarantee.needs_time

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        """Return options for the checker, for protocols with required options (bounds, ...)."""
        return {}

    def select_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the given options of this new instance that have an effect.

        Members that give the other options too are in the same group.
        """
        return select_effective(type(self), options)

    def list_held(self) -> tuple[Held, ...]:
        """Return every held message with the ids known to be missing for it."""
        return ()

    def count_held(self) -> int:
        """Return the number of held messages; O(1) in the built-in protocols."""
        return len(self.list_held())

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        """Return whether `receive` would hold the message and deliver none; False if unknown."""
        return False

    def comes_first(self, message: Any) -> bool:
        """Return whether the message, if held, precedes all messages that are held now.

        In orders by clocks and in total order all held messages may wait for such a message. So a
        host must accept it even without free capacity. It is true for at most one message of each
        member.
        """
        return False

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        """Return the numbers delivered here by member, as half-open ranges (first, stop, ...).

        All members ever known are included, this member too. See `Group.frontier`.
        """
        raise LocalError(f"{type(self).__name__} does not implement get_delivered_ranges()")

    def carry_in_lanes(self) -> None:
        """Switch a new instance to a host with sender logs; the default does nothing.

        A sender log brings all messages of a member in order to all members, also to later ones. So
        `send` must return exactly one `Transmit`, possibly without recipients.
        """

    def start_from(self, newest: Mapping[int, int]) -> None:
        """Count the messages of other members up to these numbers as delivered.

        No message of these members may have arrived before. Raises LocalError in orders where
        sender numbers do not determine what is delivered.
        """
        raise LocalError(
            f"{type(self).__name__} cannot start from sender numbers: they do not "
            "determine what is delivered; use an invitation (accept), or restore a "
            "snapshot"
        )

    def check_listening(self) -> None:
        """Raise LocalError unless `causes` names everything that must precede a message.

        Only then can a member start at the first message that it receives.
        """
        raise LocalError(
            f"messages of {type(self).__name__} do not name all their causes, so a member "
            "cannot start at the first message that it receives; use an invitation "
            "(accept), or restore a snapshot"
        )

    # -- membership -------------------------------------------------------------------------

    def list_departed(self) -> Mapping[int, int]:
        """Return the last message number of each departed member, as passed to `leave`."""
        return {}

    def join_state(self) -> Hashable:
        """Return the state from which a joining member starts, as plain nested tuples."""
        raise LocalError(f"{type(self).__name__} does not let members join")

    def install_join_state(self, state: Any) -> None:
        """Start from the sponsor's join state, before anything else."""
        raise LocalError(f"{type(self).__name__} does not let members join")

    def enter(self) -> None:
        """Start the wait of a joining member before its first message (see `membership`)."""

    def correct_clock(self, now: int) -> None:
        """Continue from `now` after the clock was ahead. Raises LocalError if it was not."""
        raise LocalError(
            f"{type(self).__name__} does not order by a clock, so there is none to correct"
        )

    def join(self, member: int) -> Sequence[Effect]:
        """Add a member with a new number to the group."""
        raise LocalError(f"{type(self).__name__} does not let members join")

    def join_all(self, members: Sequence[int]) -> Sequence[Effect]:
        """Add several new members at once: `join` for each."""
        return tuple(effect for member in members for effect in self.join(member))

    def unjoin(self, members: Sequence[int]) -> None:
        """Undo the newest `join_all` of these members, before any message of them arrived."""
        raise LocalError(f"{type(self).__name__} cannot undo a join")

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        """Remove a member; `last`: its last number (0: none). Held later messages are discarded."""
        raise LocalError(f"{type(self).__name__} does not let members leave")

    def list_undelivered(self) -> Iterable[Any]:
        """Return the messages that wait here, and the control messages that the protocol holds."""
        return (held.message for held in self.list_held())

    def find_highest_number(self, message: Any, member: int) -> int:
        """Return the highest number of a member that another member's message names; 0: none."""
        if type(self).causes is Protocol.causes:
            return 0
        return max((seq for sender, seq in self.causes(message) if sender == member), default=0)

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        """Skip messages that are lost for good. Return the effects for messages that waited only
        for them.

        Raises LocalError, without a change, for a message that is here or cannot be skipped yet.
        """
        raise LocalError(
            f"{type(self).__name__} never waits for a message, so there is no lost one to skip"
        )

    def forget(self, member: int) -> None:
        """Remove the state of a departed member. Raises LocalError while it is needed."""
        raise LocalError(f"{type(self).__name__} needs the state of departed members")

    def without(self, message: Any, is_forgotten: Callable[[int], bool]) -> Any:
        """Return a message without references to forgotten members in its control information."""
        return message

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        """Return the whole state as nested tuples of plain values: hashable and comparable."""
        return freeze(vars(self))

    def restore(self, state: Hashable) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).clear()
        vars(self).update(thaw(state))

    def check_whole(self) -> None:
        """Raise ValueError or a ProtocolError unless the restored state is consistent."""

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: Any) -> bytes:
        """Return the control information of `message` as bytes, without its payload."""
        raise LocalError(f"{type(self).__name__} has no wire encoding")

    def decode(self, control: bytes, payload: Any) -> Any:
        """Return the message that `encode` wrote. Raises DecodeError or another RemoteError."""
        raise LocalError(f"{type(self).__name__} has no wire encoding")

    def control_bytes(self, message: Any) -> int:
        """Return the size of the control information by the source's accounting, bytes."""
        raise LocalError(f"{type(self).__name__} has no byte accounting")

    def storage_bytes(self) -> int:
        """Return the size of the ordering state by the source's accounting, bytes, without
        messages.
        """
        raise LocalError(f"{type(self).__name__} has no byte accounting")

    def memory_bytes(self) -> int:
        """Return `storage_bytes` plus control information and payloads of all messages here."""
        messages = [*(held.message for held in self.list_held()), *self.list_kept_messages()]
        return self.storage_bytes() + sum(
            self.control_bytes(message) + _payload_bytes(message.payload) for message in messages
        )

    def list_kept_messages(self) -> Iterable[Any]:
        """Return the messages that are kept for retransmission."""
        return ()

    renumbers: ClassVar[bool] = False
    """True if other members may see a sender and number that differ from the origin's."""

    def is_control(self, message: Any) -> bool:
        """Return whether the message is a control message, with no payload to deliver."""
        return False

    def control_texts(self) -> Iterable[str]:
        """Return the topics that the control information of a message sent now may contain."""
        return ()

    def causes(self, message: Any) -> tuple[MessageId, ...]:
        """Return the ids that the control information names as causes."""
        raise LocalError(f"{type(self).__name__} does not name causes")

    def mentions(self, message: Any) -> tuple[int, ...]:
        """Return the numbers of all members that the control information names."""
        raise LocalError(f"{type(self).__name__} needs a closed group")

    def renumber(self, message: Any, numbers: Mapping[int, int]) -> Any:
        """Return the message with every member number replaced, for open groups."""
        raise LocalError(f"{type(self).__name__} needs a closed group")

    # -- helpers ----------------------------------------------------------------------------

    def identity(self, message: Any) -> MessageId:
        """Return the id under which this member names the message in `missing`."""
        return MessageId(message.sender, message.seq)

    def others(self) -> tuple[int, ...]:
        """Return every current member except this one."""
        if self.me not in self.members:
            return self.members
        place = self.members.index(self.me)
        return self.members[:place] + self.members[place + 1 :]


def _payload_bytes(payload: Any) -> int:
    return len(payload) if isinstance(payload, bytes | bytearray | memoryview) else 0
