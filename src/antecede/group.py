"""`Group`: an ordering protocol for people who build on a transport of their own.

    group = Group("alice", order="causal")
    wire = group.send(b"hi")                    # bytes, for every other member
    for message in group.receive(wire_from_bob):
        print(message.sender, message.payload)  # in causal order; maybe none, maybe several
    group.blocked_on()                          # what is held back, and what it waits for

A group opens no socket and reads no clock. The transport owes every member each message once
or more, in any order; duplicates are dropped here.

Whom a message is for: everybody, unless the order lets that be chosen. `send(..., to=["bob"])` with
"ses", "sent" and the clock orders, `send(..., topics=["news"])` with the topic orders, whose
`subscriptions` are given when the group is made. The transport carries the bytes to the members
that the packet names.

Time: orders by clocks ("linear", "physical", "tv", ...) need `now=`, what one's own clock shows,
in seconds, and `tick(now)` now and then.

Open and closed groups
----------------------
Without `members` the group is open: whoever speaks is a member, names travel with the
messages, and every member starts from the first message of every other. With `members` it
is closed: all agree on the list, control information names members by number, and a change goes
through `invite`, `join` and `leave`, one change after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from antecede import frame
from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError, LocalError, UnknownMemberError
from antecede.message import Blocked, Envelope, Message, Packet
from antecede.protocols.base import (
    Addressing,
    Deliver,
    Effect,
    MessageId,
    Protocol,
    Release,
    Transmit,
)
from antecede.protocols.registry import flat_class
from antecede.protocols.storage import pack_state, unpack_state

ALIASES = {"causal": "idr", "reply": "sb", "none": "unordered"}
"""Orders by what they mean; a protocol's own name works too."""

MAX_OPEN_MEMBERS = 10_000


class Group:
    """One member's end of a group: names and bytes around one protocol.

    `order` is "causal", "fifo", "reply", "none" or a protocol's name ("bss", "idr", "sb", ...);
    `options` go to the protocol; `bounds` and `subscriptions` speak of members by name. Raises
    LocalError for an unknown order, an option that is wrong or missing, a name that is empty or
    too long, or a closed list that lacks oneself.
    """

    def __init__(
        self,
        name: str,
        members: Iterable[str] | None = None,
        *,
        order: str = "causal",
        **options: Any,
    ) -> None:
        names = sorted({_checked(member) for member in ((name,) if members is None else members)})
        if name not in names:
            raise LocalError(f"{name!r} is not in the list of members {names}")
        protocol_name = ALIASES.get(order, order)
        numbers = {member: number for number, member in enumerate(names)}
        protocol = _made(protocol_name, numbers[name], numbers, options)
        self._set_up(protocol_name, protocol, dict(enumerate(names)), members is None)

    @classmethod
    def around(cls, protocol: Protocol, names: Mapping[int, str], *, order: str) -> Group:
        """Return a closed group around a protocol object made by hand.

        `names` maps every address to a name. This is how the roles of the hierarchical
        protocol become groups; a super peer's group delivers nothing and forwards through
        `outgoing`. Raises LocalError when a member has no name, or two have the same.
        """
        unnamed = sorted(set(protocol.members) - names.keys())
        if unnamed or len(set(map(_checked, names.values()))) < len(names):
            raise LocalError(f"every address has a name of its own; without one: {unnamed}")
        group = cls.__new__(cls)
        group._set_up(order, protocol, dict(names), False)
        return group

    def _set_up(self, order: str, protocol: Protocol, names: dict[int, str], is_open: bool) -> None:
        self.order = order
        self.open = is_open
        self._protocol = protocol
        self._names = names
        self._numbers = {member: number for number, member in names.items()}
        self._sent = 0
        self._outbox: list[Packet] = []

    @property
    def name(self) -> str:
        """One's own name."""
        return self._names[self._protocol.me]

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the current members, oneself included, by member number."""
        return tuple(self._names[number] for number in self._protocol.members)

    # -- sending and receiving --------------------------------------------------------------

    def send(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: Message | Sequence[Message] = (),
        now: float = 0.0,
    ) -> bytes:
        """Return the bytes that carry `payload`; the same bytes go to all whom it is for.

        That is every other member, unless the order lets it be chosen by `to` (names) or by
        `topics`; `post` tells who they are. `reply_to` names the message(s) this one answers
        (order "reply"). `now` is what one's own clock shows, in seconds, for orders by clocks.
        Raises LocalError when the payload is not bytes, when a message in `reply_to` was never
        here, when the order does not let the receivers be chosen in this way, or when the
        protocol has different bytes for different members: then use `post`.
        """
        packets = self.post(payload, to=to, topics=topics, reply_to=reply_to, now=now)
        if len(packets) != 1:
            self._outbox = packets + self._outbox
            raise LocalError(
                f"{self.order} has {len(packets)} packets for different members: "
                "they wait in outgoing(); use post() instead of send()"
            )
        return packets[0].wire

    def post(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: Message | Sequence[Message] = (),
        now: float = 0.0,
    ) -> list[Packet]:
        """Return the packets that carry `payload`, each with the members that it is for.

        Raises LocalError as `send` does, and when the order does not let the receivers be
        chosen in this way.
        """
        # A number that was given out for nothing would be waited for by everybody for ever.
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise LocalError(f"a payload is bytes, not {type(payload).__name__}: encode it first")
        parents = (reply_to,) if isinstance(reply_to, Message) else reply_to
        after = tuple(MessageId(self._number(parent.sender), parent.seq) for parent in parents)
        audience = self._audience(to, topics)
        wrapped = self._wrapped(bytes(payload))
        effects = self._protocol.send(wrapped, now=now, after=after, **audience)
        self._sent += 1
        return [self._packet(effect) for effect in effects if isinstance(effect, Transmit)]

    def _audience(self, to: Sequence[str] | None, topics: Sequence[str]) -> dict[str, Any]:
        """Return what the protocol's `send` takes to say whom a message is for."""
        # A list that came out empty must not mean everybody.
        if to is not None and not to:
            raise LocalError("a message to nobody: name a member, or leave out to= for all")
        given: dict[str, Any] = {}
        if isinstance(to, str) or isinstance(topics, str):
            raise LocalError("to and topics are lists of names")
        for word, names, needed in (
            ("to", to, Addressing.MEMBERS),
            ("topics", topics, Addressing.TOPICS),
        ):
            if names and self._protocol.addressing is not needed:
                raise LocalError(f"with order {self.order!r} nobody is chosen by {word}=")
            if names:
                given[word] = tuple(names)
        if to:
            given["to"] = tuple(self._number(name) for name in to)
            if self._protocol.me in given["to"]:
                raise LocalError("a message to oneself needs no group")
        return given

    def receive(self, wire: bytes, *, now: float = 0.0) -> list[Message]:
        """Take in bytes from another member; return what can be delivered now, in order.

        Raises DecodeError or another RemoteError for bytes that no member can have sent; the
        group is then as it was.
        """
        parts = self._unpack(wire)
        if self.open:
            return self._receive_open(parts, now)
        message = self._decoded(parts)
        return self._carry_out(self._protocol.receive(message, now=now))

    def _receive_open(self, parts: frame.Frame, now: float) -> list[Message]:
        message = self._protocol.decode(parts.control, parts.payload)
        mentioned = set(self._protocol.mentions(message))
        if unnamed := mentioned - parts.names.keys():
            raise DecodeError(f"control information speaks of member {min(unnamed)} without a name")
        if idle := parts.names.keys() - mentioned:
            raise DecodeError(f"a name for member {min(idle)}, of whom nothing is said")
        new = [name for name in parts.names.values() if name not in self._numbers]
        if not new:
            return self._receive_named(message, parts.names, now)
        with self._unchanged_by_errors():
            met = self._meet(new)
            return met + self._receive_named(message, parts.names, now)

    def _receive_named(self, message: Any, names: dict[int, str], now: float) -> list[Message]:
        numbers = {theirs: self._numbers[name] for theirs, name in names.items()}
        message = self._protocol.renumber(message, numbers)
        return self._carry_out(self._protocol.receive(message, now=now))

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Become what the group was before, when what follows raises anything."""
        before = self._protocol.snapshot(), dict(self._names), dict(self._numbers)
        outbox = list(self._outbox)
        try:
            yield
        except Exception:
            self._protocol.restore(before[0])
            self._names, self._numbers = before[1:]
            self._outbox = outbox
            raise

    def inspect(self, wire: bytes) -> Envelope:
        """Return what the bytes of a message say, without taking it in.

        Raises RemoteError for bytes that say nothing, and LocalError where the protocol does not
        name causes (hierarchical).
        """
        parts = self._unpack(wire)
        message = self._decoded(parts)
        names = parts.names if self.open else self._names
        causes = self._protocol.causes(message)
        for number in (message.sender, *(cause.sender for cause in causes)):
            if number not in names:
                raise UnknownMemberError(f"a message that speaks of member {number}, a stranger")
        named = tuple((names[cause.sender], cause.seq) for cause in causes)
        return Envelope(names[message.sender], message.seq, named, parts.payload)

    def tick(self, now: float) -> list[Message]:
        """Let time pass (seconds, any steady clock); return what is released by it."""
        return self._carry_out(self._protocol.tick(now))

    def outgoing(self) -> list[Packet]:
        """Return, once, what the protocol wants sent beside the application's messages."""
        packets, self._outbox = self._outbox, []
        return packets

    def blocked_on(self) -> list[Blocked]:
        """Return every held-back message with what it waits for."""
        return [
            Blocked(self._message(held.message), self._named(held.missing))
            for held in self._protocol.blocked_on()
        ]

    # -- membership -------------------------------------------------------------------------

    def invite(self, newcomer: str) -> bytes:
        """As sponsor: take a newcomer in and return the invitation that it starts from.

        Tell every other member to `join(newcomer)` too. From then on the transport owes the
        newcomer every message that the invitation's frontier does not cover.
        """
        _checked(newcomer)
        if newcomer in self._numbers:
            raise LocalError(f"{newcomer!r} is or was in the group; a name is never reused")
        flat_class(self.order)  # what `accept` cannot make, nobody is invited to
        state = self.order, self.open, dict(self._names), self._protocol.frontier()
        self.join(newcomer)
        return pack_state((*state[:2], tuple(self._names.items()), state[3]))

    @classmethod
    def accept(cls, name: str, invitation: bytes, **options: Any) -> Group:
        """As newcomer: begin from a sponsor's invitation. Raises DecodeError."""
        order, is_open, names, frontier = unpack_state(invitation, 4)
        if not _is_table(names):
            raise DecodeError("an invitation without a table of names")
        names = dict(names)
        numbers = [number for number, member in names.items() if member == name]
        if not numbers:
            raise LocalError(f"this invitation is not for {name!r}")
        known = {member: number for number, member in names.items()}
        protocol = _made(order, numbers[0], known, options)
        try:
            protocol.adopt(frontier)
        except (TypeError, ValueError, LookupError, LocalError) as error:
            raise DecodeError(f"an invitation whose frontier is none of {order}") from error
        if not set(protocol.members) <= names.keys():
            raise DecodeError("an invitation whose frontier speaks of members without a name")
        group = cls.__new__(cls)
        group._set_up(order, protocol, names, is_open)
        return group

    def subscribe(self, member: str, topics: Iterable[str]) -> list[Message]:
        """A member subscribes to these topics from now on, and to no others.

        Every member is told, the newcomer's subscriptions too. Raises LocalError when the
        order knows no topics.
        """
        change = getattr(self._protocol, "subscribe", None)
        if change is None:
            raise LocalError(f"with order {self.order!r} nobody subscribes to topics")
        return self._carry_out(change(self._number(member), tuple(topics)))

    def join(self, newcomer: str) -> list[Message]:
        """A newcomer, invited by somebody else, is in the group from now on."""
        if _checked(newcomer) in self._numbers:
            raise LocalError(f"{newcomer!r} is or was in the group; a name is never reused")
        number = max(self._names) + 1
        delivered = self._carry_out(self._protocol.join(number))
        self._names[number] = newcomer
        self._numbers[newcomer] = number
        return delivered

    def leave(self, member: str, last: int) -> list[Message]:
        """A member left; `last` is the number of its last message (0: it sent none).

        In an open group that may be a member of which nothing has arrived here yet.
        """
        if not self.open or _checked(member) in self._numbers:
            return self._carry_out(self._protocol.leave(self._number(member), last))
        with self._unchanged_by_errors():
            met = self.join(member)
            return met + self._carry_out(self._protocol.leave(self._number(member), last))

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state as bytes, to go on after a restart."""
        protocol = self._protocol
        return pack_state(
            (
                self.order,
                self.open,
                self.name,
                tuple(self._names.items()),
                self._sent,
                tuple(tuple(packet) for packet in self._outbox),
                protocol.snapshot(),
            )
        )

    def restore(self, state: bytes) -> None:
        """Become what `snapshot` returned, in a group made with the same arguments.

        Who joined or left since it was made comes back with the snapshot. Raises DecodeError
        when the bytes are no snapshot, LocalError when it is of another group or member.
        """
        order, is_open, name, names, sent, outbox, inner = unpack_state(state, 7)
        if (order, is_open) != (self.order, self.open):
            theirs, ours = ("open" if o else "closed" for o in (is_open, self.open))
            raise LocalError(
                f"a snapshot of a {order} group, {theirs}; this is {self.order}, {ours}"
            )
        if name != self.name:
            raise LocalError(f"a snapshot of {name!r}; this is the group of {self.name!r}")
        try:
            with self._unchanged_by_errors():
                self._protocol.restore(inner)
                if self._protocol.snapshot() != inner:
                    raise ValueError("it does not come back as it was stored")
                self._names = dict(names)
                self._numbers = {member: number for number, member in self._names.items()}
                self._outbox = [Packet(*packet) for packet in outbox]
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise DecodeError(f"a snapshot whose state is none of {order}") from error
        self._sent = sent

    # -- helpers ----------------------------------------------------------------------------

    def _carry_out(self, effects: Sequence[Effect]) -> list[Message]:
        delivered = []
        for effect in effects:
            if isinstance(effect, Deliver):
                delivered.append(self._message(effect.message))
            elif isinstance(effect, Release):
                message = self._message(effect.message)
                delivered.append(message._replace(missing=self._named(effect.missing)))
            elif isinstance(effect, Transmit):
                self._outbox.append(self._packet(effect))
        return delivered

    def _unpack(self, wire: bytes) -> frame.Frame:
        parts = frame.unpack(self.order, wire)
        if self.open and not parts.names:
            raise DecodeError("no table of names: the sender's group is closed, this one is open")
        if parts.names and not self.open:
            raise DecodeError("a table of names: the sender's group is open, this one is closed")
        return parts

    def _packet(self, effect: Transmit) -> Packet:
        protocol, message = self._protocol, effect.message
        names = {n: self._names[n] for n in protocol.mentions(message)} if self.open else {}
        wire = frame.pack(self.order, names, protocol.encode(message), message.payload)
        return Packet(tuple(self._names[number] for number in effect.to), wire)

    def _decoded(self, parts: frame.Frame) -> Any:
        """Return the protocol's message; its payload too is known to be sound from here on."""
        message = self._protocol.decode(parts.control, parts.payload)
        if self._protocol.renumbers and not self._protocol.is_note(message):
            origin = self._message(message)
            if not 0 < len(origin.sender.encode()) <= frame.MAX_NAME_BYTES or origin.seq < 1:
                raise DecodeError(f"message {origin.seq} of {origin.sender[:20]!r} cannot be")
        return message

    def _message(self, message: Any) -> Message:
        if not self._protocol.renumbers:
            return Message(self._names[message.sender], message.seq, message.payload)
        reader = Reader(message.payload)
        try:
            sender, seq = reader.block().decode(), reader.varint()
        except UnicodeDecodeError as error:
            raise DecodeError("the name of the original sender is not UTF-8") from error
        return Message(sender, seq, reader.rest())

    def _wrapped(self, payload: bytes) -> bytes:
        """Put the original sender and number in front, where the protocol renumbers messages."""
        if not self._protocol.renumbers:
            return payload
        return block(self.name.encode()) + varint(self._sent + 1) + payload

    def _named(self, ids: Iterable[MessageId]) -> tuple[tuple[str, int], ...]:
        return tuple((self._names.get(i.sender, f"#{i.sender}"), i.seq) for i in ids)

    def _number(self, name: str) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise LocalError(f"{name!r} is not in the group {list(self._numbers)}") from None

    def _meet(self, names: Sequence[str]) -> list[Message]:
        """Let all whom a message of an open group names for the first time in, with one change.

        Raises UnknownMemberError when these are more members than there can be.
        """
        left = MAX_OPEN_MEMBERS - len(self._numbers)
        if len(names) > left:
            raise UnknownMemberError(f"{names[left]!r} would be member {MAX_OPEN_MEMBERS + 1}")
        first = max(self._names) + 1
        new = dict(enumerate(names, start=first))
        try:
            effects = self._protocol.join_all(tuple(new))
        except LocalError as error:  # the protocol's own limit; the peer's doing all the same
            raise UnknownMemberError(f"a message that names {names[-1]!r}: {error}") from error
        met = self._carry_out(effects)
        self._names.update(new)
        self._numbers.update((name, number) for number, name in new.items())
        return met


def _made(order: str, me: int, numbers: Mapping[str, int], options: Mapping[str, Any]) -> Protocol:
    """Return a protocol object; options that speak of members by name get their numbers."""
    protocol_class = flat_class(order)
    given = {
        name: value.numbered(numbers) if hasattr(value, "numbered") else value
        for name, value in options.items()
    }
    try:
        return protocol_class(me, numbers.values(), **given)
    except TypeError as error:  # Python's own words name the option
        raise LocalError(f"order {order!r}: {error}".replace(".__init__()", "")) from error


def _is_table(names: object) -> bool:
    """Tell whether these are pairs of a number and a name, as `invite` writes them."""
    return isinstance(names, tuple) and all(
        isinstance(row, tuple) and len(row) == 2 and type(row[0]) is int and type(row[1]) is str
        for row in names
    )


def _checked(name: str) -> str:
    if not 0 < len(name.encode()) <= frame.MAX_NAME_BYTES:
        raise LocalError(f"a member's name has 1 to {frame.MAX_NAME_BYTES} bytes, not {name!r}")
    return name
