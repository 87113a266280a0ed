"""Ordering protocol: a state machine without clock, socket or randomness.

Theory of operation
-------------------
A protocol object is the state of ONE member. Its host owns the network and the clock, calls

    send(payload, now=, after=)   the application sends     -> effects
    receive(message, now=)        a message has arrived     -> effects
    tick(now)                     time has passed           -> effects

and carries out the effects, in their order:

    Transmit(to, message)         put this message on the network
    Deliver(message)              hand it to the application
    Hold(message, missing)        it arrived and waits; `missing` are the causes it waits for
    Discard(message, reason)      it will never be delivered (a duplicate, set aside, ...)

Members are small numbers, given once and never reused. A member's own messages count as delivered
to itself when it sends them, without a `Deliver`; copies of them are discarded as duplicates. Only
in total order (`Relation.TOTAL`) a `Deliver` delivers them in their turn, at the earliest from
`send`.

A malformed or impossible message raises a `RemoteError`, a wrong call a `LocalError`. Neither
changes anything.

An own protocol needs `__init__(me, members)`, `send` and `receive`; everything else has a default.
`antecede check FILE.py:CLASS` judges it.

`addressing` says what `send` takes. ALL: no choice, every other member. MEMBERS:
`send(..., to=members)`, None meaning all. TOPICS: `send(..., topics=names)`, for who subscribes to
one of them.

`now` is the reading of the member's own clock in whole nanoseconds; it never goes back. Protocols
with `needs_time` hold messages until `tick` tells them that enough time has passed. They raise
LocalError for `now=None`.

The reliable transport below owes every member each message once or more, in any order, and a
newcomer every message that its frontier does not cover. Where messages get lost, a protocol with
`survives_loss` is needed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from antecede.core.protocols.options.checks import Excludes, Needs, check_given, effective
from antecede.core.protocols.serialization.state_tuples import freeze, thaw
from antecede.errors import LocalError


class Relation(enum.Enum):
    """Which messages must come before a message: the meaning of "causal past"."""

    NONE = "none"
    FIFO = "fifo"
    """Earlier messages of the same sender."""
    BY_DELIVERY = "delivery"
    """What the sender had sent or had delivered (Evropeytsev et al. 2016, Sahai et al. 2020)."""
    BY_RECEIPT = "receipt"
    """What the sender had sent or what had arrived at it (Tsuneizumi et al., Nakayama 2017)."""
    BY_REPLY = "reply"
    """What the message answers, and what that answers (Bhavanasi and Iyer)."""
    BY_TOPIC = "topic"
    """What had arrived, where both have a topic in common that the receiver subscribes to (Nakayama
    2017).
    """
    TOTAL = "total"
    """What the sender had sent or had delivered; and all members deliver all messages, their own
    too, in one and the same order.
    """


class Addressing(enum.Enum):
    """Whom a message can be for (see the module text)."""

    ALL = "all"
    MEMBERS = "members"
    TOPICS = "topics"


class Guarantee(NamedTuple):
    """What a protocol promises, given a transport that keeps its side (see module text)."""

    relation: Relation
    safe: bool = True
    """No message is delivered before a message of its causal past addressed to that member."""
    live: bool = True
    """When everything has arrived, everything has been delivered."""
    no_unnecessary_wait: bool = True
    """A message whose whole causal past is delivered is delivered at once."""
    survives_loss: bool = False
    """Lost messages are recovered, or given up in the stated way, without outside help."""
    joins: bool = False
    leaves: bool = False
    needs_time: bool = False
    """Messages may wait for `tick`: for heartbeats, or until a bound of the delay has passed."""
    remark: str = ""
    """What else must hold, or why a promise is withdrawn under these options, in a few words."""


class MessageId(NamedTuple):
    """Names a message: who sent it (member number), and the sender's number for it, from 1."""

    sender: int
    seq: int


class Transmit(NamedTuple):
    """Put `message` on the network to these members (numbers), never to oneself."""

    to: tuple[int, ...]
    message: Any


class Deliver(NamedTuple):
    """Hand `message` to the application now."""

    message: Any


class Hold(NamedTuple):
    """`message` arrived and is held back; it waits for `missing` (the ids known to be missing)."""

    message: Any
    missing: tuple[MessageId, ...]
    reason: str = ""
    """What it waits for in words, where the causes cannot be named (plausible clocks, where entries
    stand for several members): `Hold(message, (), "an entry of the clock")`."""


class DeliverIncomplete(NamedTuple):
    """Hand `message` to the application although `missing` never came: marked as such."""

    message: Any
    missing: tuple[MessageId, ...]


class Discard(NamedTuple):
    """`message` will not be delivered: `reason` is one of the constants below or the protocol's."""

    message: Any
    reason: str


DUPLICATE = "duplicate"
OWN = "own message"
FORGOTTEN = "duplicate, or too late: older than the gaps that are remembered (max_gaps)"
AFTER_LEAVE = "numbered after its sender's last message"

Effect: TypeAlias = Transmit | Deliver | Hold | DeliverIncomplete | Discard
NOTHING: tuple[Effect, ...] = ()


class Held(NamedTuple):
    """One line of the answer to "what are you waiting for?"."""

    message: Any
    missing: tuple[MessageId, ...]
    """Messages that must come before; they may be held themselves."""
    reason: str = ""
    """What it waits for in words, where the causes cannot be named (as in `Hold`)."""
    silent: tuple[int, ...] = ()
    """Members from whom something must still be heard, whatever it is."""
    until_ns: int | None = None
    """Reading of the own clock at which it may go at the earliest, where it waits for time."""


class Protocol:
    """Base of all protocols; one object is the state of one member.

    Subclasses set `guarantee` and implement `send` and `receive`. Messages are immutable
    tuples with at least `sender`, `seq` and `payload`.
    """

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY)
    """What all objects of the class promise; an object sets its own where options change it."""
    addressing: ClassVar[Addressing] = Addressing.ALL
    own_options: ClassVar[frozenset[str]] = frozenset()
    """Options that each member may choose for itself; all others must agree in a group."""
    member_options: ClassVar[frozenset[str]] = frozenset()
    """Options that are a member, by number; a `Group` takes its name too."""
    dependent_options: ClassVar[tuple[Needs | Excludes, ...]] = ()
    """Options that do nothing without another one, or beside one: refused there."""
    application: ClassVar[bool] = True
    """False for roles that only forward (super peers): they neither send nor deliver."""
    control_power: ClassVar[int | None] = None
    """Control information has so many numbers at most as there are members, to this power (and a
    few): a host knows by it when a message cannot be too large. None: not known."""
    needs_lanes: ClassVar[bool] = False
    """Whether an open group needs a host that carries lanes (`carry_in_lanes`)."""
    in_lanes: bool = False
    """Whether the host carries lanes; set on an object."""
    note_payload: Any = b""
    """What the protocol's own messages (heartbeats, requests) carry in place of a payload."""

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Refuse options of a wrong type, or without an effect, before a constructor sees them."""
        if options:
            check_given(cls, options)
        return super().__new__(cls)

    def __init__(self, me: int, members: Iterable[int]) -> None:
        self.me = me
        self.members = tuple(sorted(set(members)))
        if me not in self.members:
            raise LocalError(f"member {me} is not in its own group {self.members}")

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Send `payload` to the group.

        `after` names the messages this one answers; protocols that keep another relation than
        replies ignore it. `now` is what the own clock shows (see the module text). Returns
        effects, at least one `Transmit` unless nobody else is there.
        """
        raise NotImplementedError

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        """Take in a message that arrived.

        Raises UnknownMemberError, SequenceError or another RemoteError when it cannot be right.
        """
        raise NotImplementedError

    def tick(self, now: int) -> Sequence[Effect]:
        """Let time pass: protocols with time-outs act on them here."""
        return NOTHING

    @property
    def wants_ticks(self) -> bool:
        """Whether `tick` can do anything under these options: hosts call it now and then."""
        return self.guarantee.needs_time

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        """Return options under which a group of these members can be judged.

        For protocols that cannot be made without: bounds of clocks and delays (`Bounds`, from
        which the checker makes clocks and a network that keep them), subscriptions.
        """
        return {}

    def settled(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return those of the options that this new object was made with which say something.

        Naming a default says nothing: members with and without it are of one group.
        """
        return effective(type(self), options)

    def blocked_on(self) -> tuple[Held, ...]:
        """Return every held-back message with the ids known to be missing for it."""
        return ()

    def held_count(self) -> int:
        """Return how many messages are held back; O(1) in the protocols of the registry."""
        return len(self.blocked_on())

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        """Tell, changing nothing, that a message would be held and nothing be delivered.

        False where only `receive` can tell. Raises what `receive` would raise.
        """
        return False

    def comes_first(self, message: Any) -> bool:
        """Tell whether a message is held, if at all, before all that is held now.

        Where something must be heard of others before anything goes (orders by clocks, total
        order), all that is held waits for such a message too: a host without room must take it.
        True of one message of each member at most, until something is delivered.
        """
        return False

    def delivered_runs(self) -> Mapping[int, Sequence[int]]:
        """Return the numbers delivered here by member, as bounds (first, past the last, ...).

        One's own are those sent (in total order: delivered in their turn). Everybody who ever was
        a member; see `Group.frontier`.
        """
        raise LocalError(f"{type(self).__name__} does not tell what it has delivered")

    def carry_in_lanes(self) -> None:
        """From now on the host carries what each member sends as one lane: every message in its
        order, to everybody from a frontier on, to who comes later too. Only when new.

        So `send` has one `Transmit` and no more, to nobody as well; whoever numbers by receiver
        numbers all alike. Where that changes nothing, nothing is to be done.
        """

    def begin_at(self, newest: Mapping[int, int]) -> None:
        """Count the messages of other members up to these numbers as delivered.

        Nothing of these members has come before, nor waits for anything of theirs. A number that
        is not above what counts as delivered here changes nothing. Raises LocalError in orders in
        which numbers of senders do not tell what is delivered.
        """
        raise LocalError(
            f"{type(self).__name__} cannot begin at a frontier: the numbers of the senders do not "
            "tell what is delivered"
        )

    def check_listening(self) -> None:
        """Raise LocalError unless `causes` names all that must come before a message.

        Only then a member without a frontier can begin at the first message that it hears.
        """
        raise LocalError(
            f"messages of {type(self).__name__} do not name all that comes before them, so no "
            "member can begin at the first message that it hears: use an invitation (accept), or "
            "restore a snapshot"
        )

    # -- membership -------------------------------------------------------------------------

    def departed(self) -> Mapping[int, int]:
        """Return the number of the last message of each member that left, as `leave` was told."""
        return {}

    def frontier(self) -> Hashable:
        """As sponsor of a newcomer: what it may regard as delivered. Plain nested tuples."""
        raise LocalError(f"{type(self).__name__} does not let members join")

    def adopt(self, frontier: Any) -> None:
        """As newcomer, before anything else: begin from the sponsor's frontier."""
        raise LocalError(f"{type(self).__name__} does not let members join")

    def enter(self) -> None:
        """As newcomer, after `adopt`: the invitation may have taken no time.

        Orders that go by times of the network then wait before the first message.
        """

    def correct_clock(self, now: int) -> None:
        """The own clock was ahead and shows `now` rightly. Raises LocalError if it was not."""
        raise LocalError(f"{type(self).__name__} goes by no clock that could have been ahead")

    def join(self, member: int) -> Sequence[Effect]:
        """A new member with this new number is in the group from now on."""
        raise LocalError(f"{type(self).__name__} does not let members join")

    def join_all(self, members: Sequence[int]) -> Sequence[Effect]:
        """Let several new members in at once: `join` of each."""
        return tuple(effect for member in members for effect in self.join(member))

    def unjoin(self, members: Sequence[int]) -> None:
        """Take back the newest `join_all` of these, of whom nothing has come: a message of an
        open group that named them was refused. Where it is not defined, a snapshot serves.
        """
        raise LocalError(f"{type(self).__name__} does not take a join back")

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        """The member left; `last` is the number of its last message (0: it sent none).

        Held messages of it numbered above `last` are discarded (`AFTER_LEAVE`).
        """
        raise LocalError(f"{type(self).__name__} does not let members leave")

    def undelivered(self) -> Iterable[Any]:
        """Return what is here and waits: messages, and notes that the protocol holds."""
        return (held.message for held in self.blocked_on())

    def number_named(self, message: Any, member: int) -> int:
        """Return the highest number of a member that another's message names; 0: none."""
        if type(self).causes is Protocol.causes:
            return 0
        return max((seq for sender, seq in self.causes(message) if sender == member), default=0)

    def never_come(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        """Go on without messages that nobody has any more; return what waited for them alone.

        Late copies of them are duplicates. Raises LocalError, and changes nothing, where nothing
        waits for messages, for one that is here, and for one that cannot be passed over yet.
        """
        raise LocalError(
            f"nothing that {type(self).__name__} holds waits for a message, so none is passed over"
        )

    def forget(self, member: int) -> None:
        """Drop a member that left and is delivered. Raises LocalError where it is needed."""
        raise LocalError(f"{type(self).__name__} needs what it knows of members that left")

    def without(self, message: Any, is_forgotten: Callable[[int], bool]) -> Any:
        """Return a message without what its control information says of forgotten members."""
        return message

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        """Return the whole state as nested tuples of plain values: hashable, comparable."""
        return freeze(vars(self))

    def restore(self, state: Hashable) -> None:
        """Become what `snapshot` returned."""
        vars(self).clear()
        vars(self).update(thaw(state))

    def check_whole(self) -> None:
        """Raise ValueError or a ProtocolError unless the state fits together as a whole.

        For hosts, after `restore` of bytes from outside; explorers call `restore` often.
        """

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: Any) -> bytes:
        """Return the control information of `message` as bytes, without its payload."""
        raise LocalError(f"{type(self).__name__} has no wire encoding")

    def decode(self, control: bytes, payload: Any) -> Any:
        """Return the message that `encode` wrote. Raises DecodeError or another RemoteError."""
        raise LocalError(f"{type(self).__name__} has no wire encoding")

    def control_bytes(self, message: Any) -> int:
        """Return the size of the control information by the source's own accounting."""
        raise LocalError(f"{type(self).__name__} has no byte accounting")

    def storage_bytes(self) -> int:
        """Return the size of the state kept for ordering, by the source's own accounting.

        Vectors, lists and counters; no messages held or kept (see `memory_bytes`).
        """
        raise LocalError(f"{type(self).__name__} has no byte accounting")

    def memory_bytes(self) -> int:
        """Return `storage_bytes` and, of every message held or kept, control bytes and payload.

        Payloads that are no bytes count as none. As costly as `blocked_on`.
        """
        messages = [*(held.message for held in self.blocked_on()), *self.kept_messages()]
        return self.storage_bytes() + sum(
            self.control_bytes(message) + _payload_bytes(message.payload) for message in messages
        )

    def kept_messages(self) -> Iterable[Any]:
        """Return the messages that are kept to be sent again to who lacks them."""
        return ()

    renumbers: ClassVar[bool] = False
    """True when others may see another sender and number than the origin gave."""

    def is_note(self, message: Any) -> bool:
        """Tell whether a message is between protocols only and carries nothing to deliver."""
        return False

    def control_texts(self) -> Iterable[str]:
        """Return the topics that the control information of a message sent now may carry."""
        return ()

    def causes(self, message: Any) -> tuple[MessageId, ...]:
        """Return the ids that the control information says must be delivered before."""
        raise LocalError(f"{type(self).__name__} does not name causes")

    def mentions(self, message: Any) -> tuple[int, ...]:
        """Return the numbers of all members that the control information speaks of."""
        raise LocalError(f"{type(self).__name__} needs a closed group")

    def renumber(self, message: Any, numbers: Mapping[int, int]) -> Any:
        """Return the message with every member's number replaced, for open groups."""
        raise LocalError(f"{type(self).__name__} needs a closed group")

    # -- helpers ----------------------------------------------------------------------------

    def identity(self, message: Any) -> MessageId:
        """Return the id by which this member names that message in `missing`."""
        return MessageId(message.sender, message.seq)

    def others(self) -> tuple[int, ...]:
        """Return every current member but oneself."""
        if self.me not in self.members:
            return self.members
        place = self.members.index(self.me)
        return self.members[:place] + self.members[place + 1 :]


def _payload_bytes(payload: Any) -> int:
    return len(payload) if isinstance(payload, bytes | bytearray | memoryview) else 0
