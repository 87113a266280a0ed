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

Own messages count as delivered when they are sent, and `receive` does not return them. Only a total
order ("total", "total-agreed") returns them too, in their turn: from `receive`, `tick` and the
other calls that return messages, or from `delivered()` where that turn has come with the sending.

Time: orders by clocks ("linear", "physical", "tv", ...) need what one's own clock shows: `now=` in
seconds, or `now_ns=` as `time.time_ns()` gives it, and `tick` with one of them now and then. They
refuse to go without.

Open and closed groups
----------------------
Without `members` the group is open: whoever speaks is a member, names travel with the
messages, and every member starts from the first message of every other. With `members` it
is closed: all agree on the list, control information names members by number, and a change goes
through `invite`, `join` and `leave`, one change after the other.

Whom one speaks with
--------------------
Every frame says of which room, order, options and list of members it is, and in which life its
sender speaks (`antecede.identity`). What is of another group, or of a member that was restored from
too old a snapshot, is refused by name: `MismatchError`, `IncarnationError`, `ConflictError`.

What a group holds is bounded: `max_held`, `max_members`, `max_packet`. A message that would exceed
a limit is refused with `LimitError` and was not taken in; nothing is given up for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from antecede import frame, journal
from antecede.clocks.intervals import MAX_NUMBER
from antecede.clocks.nanoseconds import Seconds, group_reading, reading_of
from antecede.clocks.wire import Reader, block, varint
from antecede.errors import (
    ConflictError,
    DecodeError,
    LimitError,
    LocalError,
    MismatchError,
    ProtocolError,
    RemoteError,
    UnknownMemberError,
)
from antecede.frame import Frame, Incarnation
from antecede.group_parts import (
    ALIASES,
    GROUP,
    SNAPSHOT,
    Limits,
    can_be_open,
    checked,
    is_id,
    limits_of,
    list_of,
    made,
    options_code,
    resolved,
    room_code,
    roster_of,
    with_names,
)
from antecede.identity import Lives, Roster, Told, agreeing, canonical, checked_nonce
from antecede.message import Blocked, Envelope, Id, Message, Missing, Packet, Sent, Stats, Thread
from antecede.protocols.base import (
    Addressing,
    Deliver,
    Effect,
    Hold,
    MessageId,
    Protocol,
    Relation,
    Release,
    Transmit,
)
from antecede.protocols.given import check_flags
from antecede.protocols.registry import ENTRIES, flat_class
from antecede.protocols.shapes import (
    misfit,
)
from antecede.protocols.storage import pack_state, unpack_state
from antecede.protocols.stored_shapes import check_frontier, check_state
from antecede.tallies import Tallies
from antecede.threads import Threads

RECENT = 4096
"""Messages whose content is remembered, to tell a copy from another message with its number."""
SUPERSEDED = "of a life of its sender that is over"


class _Documented(type):
    # Puts the options of every order behind the text of `help(Group)`, from their signatures:
    # when it is asked for, since every protocol is loaded for it.
    @property
    def __doc__(cls) -> str:  # type: ignore[override]
        lines = ["Options of each order (see docs/protocols):", ""]
        for name in (*ALIASES, *(name for name, one in ENTRIES.items() if one.flat)):
            options = ", ".join(f"{k}={v}" for k, v in Group.options(name).items())
            lines.append(f"{name}: {options or 'none'}")
        return inspect.cleandoc(vars(cls)["__doc__"]) + "\n\n" + "\n".join(lines)


class Group(metaclass=_Documented):
    """One member's end of a group: names and bytes around one protocol.

    `order` is "causal", "fifo", "reply", "none" or a protocol's name ("bss", "idr", "sb", ...);
    further options go to the protocol; `bounds` and `subscriptions` speak of members by name.
    `room` tells groups apart that share a transport. `max_members` (open groups), `max_held`,
    `max_packet` and `threads` (order "reply") are the fields of `Limits`. `keep_log`: keep the
    inputs since the last snapshot for `log`. `incarnation`: a number for this life of the member,
    drawn from the system when it is not given. Raises LocalError for an unknown order, an option
    that is wrong, missing or never used, a name that is empty, too long or there twice, or a
    closed list that lacks oneself.
    """

    def __init__(
        self,
        name: str,
        members: Iterable[str] | None = None,
        *,
        order: str = "causal",
        room: str = "",
        incarnation: int | None = None,
        keep_log: bool = False,
        **options: Any,
    ) -> None:
        check_flags(keep_log=keep_log)
        names = list_of(name, members)
        protocol_name = resolved(order)
        numbers = {member: number for number, member in enumerate(names)}
        limits, options = limits_of(options, protocol_name, members is None)
        protocol = made(protocol_name, numbers[name], numbers, options)
        if members is None and not can_be_open(protocol):
            raise LocalError(f"{protocol_name} needs a closed group: give members=")
        common, by_member = agreeing(type(protocol), options)
        roster = Roster(dict(enumerate(names)), extra=canonical(by_member))
        self._set_up(protocol_name, protocol, roster, members is None)
        self._room, self._options = room_code(room), options_code(protocol_name, common)
        self._limits, self._keep_log = limits, keep_log
        self._threads = Threads(limits.threads)
        self._begin(Incarnation(0, checked_nonce(incarnation)))

    @classmethod
    def around(
        cls,
        protocol: Protocol,
        names: Mapping[int, str],
        *,
        order: str,
        room: str = "",
        incarnation: int | None = None,
    ) -> Group:
        """Return a closed group around a protocol object made by hand.

        `names` maps every address to a name. This is how the roles of the hierarchical
        protocol become groups; a super peer's group delivers nothing and forwards through
        `outgoing`. Raises LocalError when a member has no name, or two have the same.
        """
        unnamed = sorted(set(protocol.members) - names.keys())
        if unnamed or len(set(map(checked, names.values()))) < len(names):
            raise LocalError(f"every address has a name of its own; without one: {unnamed}")
        group = cls.__new__(cls)
        group._set_up(order, protocol, Roster(names), False)
        group._room, group._options = room_code(room), options_code(order, {})
        group._begin(Incarnation(0, checked_nonce(incarnation)))
        return group

    @staticmethod
    def options(order: str) -> dict[str, str]:
        """Return the options of an order, with their defaults as Python writes them."""
        parameters = inspect.signature(flat_class(resolved(order)).__init__).parameters
        return {
            name: "(needed)" if one.default is one.empty else repr(one.default)
            for name, one in parameters.items()
            if one.kind is one.KEYWORD_ONLY
        }

    def _set_up(self, order: str, protocol: Protocol, roster: Roster, is_open: bool) -> None:
        self.order = order
        self.open = is_open
        self._protocol = protocol
        self._roster = roster
        self._room = self._options = 0
        self._limits = Limits()
        self._keep_log = False
        self._records: list[bytes] = []
        self._lives = Lives()
        self._tally = Tallies()
        self._threads = Threads(self._limits.threads)
        self._recent: dict[tuple[str, int], int] = {}
        self._heads: dict[bytes, Frame] = {}
        """First bytes of frames that were found to be of this group, read already."""
        self._ahead: dict[bytes, tuple[Message, int, int | None]] = {}
        """Frames of later views -> what they hold, the joins they need, the reading then."""
        self._sent = 0
        self._outbox: list[Packet] = []
        self._inbox: list[Message] = []
        """Own messages whose turn came when they were sent (total order)."""

    def _begin(self, life: Incarnation) -> None:
        """Speak as this incarnation from now on."""
        self._life = life
        self._lives.learn(self.name, life)

    def speak_as(self, wire: bytes) -> None:
        """As one who replays a log: go on in the life in which these own bytes were sent.

        Raises DecodeError for bytes that are none of this group's.
        """
        life = self._unpack(wire).by
        if life != self._life:
            if not self._sent:
                self._lives.chains.pop(self.name)
            self._begin(life)

    def __repr__(self) -> str:
        kind = "open" if self.open else "closed"
        held = self._protocol.held_count() + len(self._ahead)
        return (
            f"<Group of {self.name!r}: {self.order}, {kind}, {len(self._protocol.members)} members"
            f"{f', {held} held' if held else ''}>"
        )

    @property
    def name(self) -> str:
        """One's own name."""
        return self._names[self._protocol.me]

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the current members, oneself included, by member number."""
        return tuple(self._names[number] for number in self._protocol.members)

    @property
    def _names(self) -> dict[int, str]:
        return self._roster.names

    @property
    def _numbers(self) -> dict[str, int]:
        return self._roster.numbers

    # -- sending and receiving --------------------------------------------------------------

    def send(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: Message | Sent | Id | Sequence[Message | Sent | Id] = (),
        now: Seconds | None = None,
        now_ns: int | None = None,
    ) -> Sent:
        """Return the bytes that carry `payload`; the same bytes go to all whom it is for.

        That is every other member, unless the order lets it be chosen by `to` (names) or by
        `topics`; the result's `to` tells who they are, its `id` names the message. `reply_to`
        names the message(s) this one answers (order "reply"): a delivered `Message`, what `send`
        returned, or (sender, number). `now` (seconds) or `now_ns` is what one's own clock shows;
        orders by clocks need it. Raises LocalError when the payload is not bytes or is too large,
        when a message in `reply_to` was never here, when the order does not let the receivers be
        chosen in this way, keeps no answers or needs the time, or when the protocol has different
        bytes for different members: then use `post`.
        """
        packets = self.post(
            payload, to=to, topics=topics, reply_to=reply_to, now=now, now_ns=now_ns
        )
        if not packets and topics:
            read = ", ".join(map(repr, topics))
            raise LocalError(
                f"{self.name}'s message {self._sent} is for nobody: no other member subscribes to "
                f"{read}; there is nothing to transmit (post() returns an empty list)"
            )
        if len(packets) != 1:
            self._outbox = packets + self._outbox
            raise LocalError(
                f"{self.order} has {len(packets)} packets for different members: "
                "they wait in outgoing(); use post() instead of send()"
            )
        wire = packets[0].wire
        assert isinstance(wire, Sent)
        return wire

    def post(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: Message | Sent | Id | Sequence[Message | Sent | Id] = (),
        now: Seconds | None = None,
        now_ns: int | None = None,
    ) -> list[Packet]:
        """Return the packets that carry `payload`, each with the members that it is for.

        The bytes of each are `Sent`. Raises LocalError as `send` does, and when the order does not
        let the receivers be chosen in this way.
        """
        # A number that was given out for nothing would be waited for by everybody for ever.
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise LocalError(f"a payload is bytes, not {type(payload).__name__}: encode it first")
        if len(payload) > self._limits.max_packet // 2:
            raise LocalError(
                f"a payload of {len(payload)} bytes; {self._limits.max_packet // 2} can be "
                "(half of max_packet=)"
            )
        parents = self._answered(reply_to)
        after = tuple(MessageId(self._number(sender), seq) for sender, seq in parents)
        audience = self._audience(to, topics)
        reading = group_reading(now, now_ns)
        wrapped = self._wrapped(bytes(payload))
        with self._named_errors():
            effects = self._protocol.send(wrapped, now=reading, after=after, **audience)
        self._tally.sent += 1
        self._sent += 1
        self._tally.count(self._protocol, effects, reading)
        self._inbox += self._messages(effects)
        packets = [self._own(effect, parents) for effect in effects if isinstance(effect, Transmit)]
        if self._replies:
            self._threads.add((self.name, self._sent), parents)
        if self._keep_log:
            chosen = None if to is None else tuple(to), tuple(topics)
            self._record("post", bytes(payload), *chosen, parents, reading)
        return packets

    def _own(self, effect: Transmit, parents: tuple[Id, ...]) -> Packet:
        """Return the packet of one's own message, with its bytes as `Sent`."""
        packet = self._packet(effect)
        inner = effect.message
        self._lives.hear(self.name, self._life, inner.seq)
        if self._protocol.renumbers:
            message = Message(self.name, self._sent, self._message(inner).payload)
        else:
            message = Message(self.name, inner.seq, inner.payload, (), parents)
        return packet._replace(wire=Sent(packet.wire, message, packet.to))

    def _answered(self, reply_to: Any) -> tuple[Id, ...]:
        """Return the ids in `reply_to`; raises LocalError for what names no message."""
        if type(reply_to) is tuple and not reply_to:
            return ()
        if isinstance(reply_to, Message | Sent) or is_id(reply_to):
            reply_to = (reply_to,)
        if isinstance(reply_to, str | bytes) or not isinstance(reply_to, Iterable):
            raise LocalError(
                f"reply_to is a delivered Message, what send returned, (sender, number), "
                f"or a list of these, not {type(reply_to).__name__}"
            )
        parents = []
        for one in reply_to:
            if not isinstance(one, Message | Sent) and not is_id(one):
                raise LocalError(f"reply_to has {one!r:.60}, which names no message")
            parents.append((one[0], one[1]) if type(one) is tuple else one.id)
        if parents and self._protocol.guarantee.relation is not Relation.BY_REPLY:
            raise LocalError(f"order {self.order!r} keeps no answers: leave out reply_to=")
        return tuple(dict.fromkeys(parents))

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

    def receive(
        self, wire: bytes, *, now: Seconds | None = None, now_ns: int | None = None
    ) -> list[Message]:
        """Take in bytes from another member; return what can be delivered now, in order.

        `now` (seconds) or `now_ns` is what one's own clock shows. Raises DecodeError or another
        RemoteError for bytes that no member of this group can have sent, MismatchError for those
        of another group, IncarnationError and ConflictError where numbers of two lives of a member
        meet, LimitError at a limit, and LocalError where an order by clocks is not told the time;
        the group is then as it was, but for the counters of `stats`.
        """
        reading = group_reading(now, now_ns)
        try:
            delivered = self._take_in(wire, reading)
        except RemoteError as error:
            self._tally.refuse(error)
            raise
        if self._keep_log:
            self._record("receive", bytes(wire), reading)
        return delivered

    def _take_in(self, wire: bytes, now: int | None) -> list[Message]:
        if not isinstance(wire, bytes):
            wire = frame.as_bytes(wire)
        if len(wire) > self._limits.max_packet:
            raise LimitError(
                f"a message of {len(wire)} bytes; max_packet={self._limits.max_packet} is the most"
            )
        parts = self._unpack(wire)
        if self.open:
            return self._receive_open(parts, now)
        assert parts.view is not None
        if lacking := self._roster.check(parts.view):
            return self._keep_ahead(bytes(wire), parts, lacking, now)
        with self._named_errors():
            return self._receive_named(self._decoded(parts), parts, now)

    def _receive_open(self, parts: Frame, now: int | None) -> list[Message]:
        with self._named_errors(parts.names):
            message = self._protocol.decode(parts.control, parts.payload)
        mentioned = set(self._protocol.mentions(message))
        if unnamed := mentioned - parts.names.keys():
            raise DecodeError(f"control information speaks of member {min(unnamed)} without a name")
        if idle := parts.names.keys() - mentioned:
            raise DecodeError(f"a name for {parts.names[min(idle)]!r}, of whom nothing is said")
        new = [name for name in parts.names.values() if name not in self._numbers]
        if not new:
            return self._renumbered(message, parts, now)
        if getattr(type(self._protocol), "unjoin", Protocol.unjoin) is Protocol.unjoin:
            with self._unchanged_by_errors():
                return self._meet(new) + self._renumbered(message, parts, now)
        first = self._roster.next_number
        met = self._meet(new)
        try:
            return met + self._renumbered(message, parts, now)
        except Exception:
            numbers = range(first, first + len(new))
            self._protocol.unjoin(numbers)
            for number in reversed(numbers):
                self._roster.drop(number)
            raise

    def _renumbered(self, message: Any, parts: Frame, now: int | None) -> list[Message]:
        numbers = {theirs: self._numbers[name] for theirs, name in parts.names.items()}
        message = self._protocol.renumber(message, numbers)
        with self._named_errors():
            return self._receive_named(message, parts, now)

    def _receive_named(self, message: Any, parts: Frame, now: int | None) -> list[Message]:
        """Take in a message of this group: judge whose it is, then give it to the protocol."""
        protocol = self._protocol
        if protocol.renumbers or message.sender not in self._names:
            return self._carry_out(self._within_limits(message, now), now)
        name, note = self._names[message.sender], protocol.is_note(message)
        seq = None if note else message.seq
        # Total orders go by every note, and refuse one that contradicts what they know.
        needed = protocol.guarantee.relation is Relation.TOTAL
        if not self._lives.check(name, parts.by, seq) and not needed:
            self._tally.drop(SUPERSEDED)
            return []
        self._check_told(parts.known, name)
        if not note and (self._lives.restarted or parts.known):
            self._lives.check_causes(self._causes(message), parts.known, name)
        digest = hash(message)
        if not note and self._recent.get((name, message.seq), digest) != digest:
            raise ConflictError(
                f"message {message.seq} of {name} is known with other content: its number was "
                "given out twice, or somebody speaks in its name"
            )
        effects = self._within_limits(message, now)
        for other, life in parts.known:
            self._lives.learn(other, life)
        self._lives.hear(name, parts.by, seq or 0)
        for effect in effects:
            if isinstance(effect, Hold):
                self._lives.hear_of(self._causes(effect.message), parts.known)
        if not note:
            self._remember((name, message.seq), digest)
        return self._carry_out(effects, now)

    def _check_told(self, known: Told, said_by: str) -> None:
        """Refuse lives that cannot be, and those of strangers: each is kept and handed on."""
        if not known:
            return
        told = {name for name, _ in known}
        strangers = told - self._numbers.keys()
        if strangers and not self.open:
            raise UnknownMemberError(
                f"{said_by} speaks of a life of {min(strangers)!r}, who is not in the group"
            )
        most = self._limits.max_members
        if strangers and len(self._lives.chains.keys() | self._numbers.keys() | told) > most:
            raise LimitError(
                f"{said_by} speaks of lives of {len(strangers)} members that are not met here; "
                f"max_members={most}"
            )
        self._lives.check_told(known, said_by, self.name)

    def _causes(self, message: Any) -> tuple[Id, ...]:
        """Return what a message says it needs, by name; nothing where it names no causes."""
        try:
            causes = self._protocol.causes(message)
        except LocalError:
            return ()
        return self._named(causes)

    def _within_limits(self, message: Any, now: int | None) -> Sequence[Effect]:
        """Give a message to the protocol. At the limit, undo it when one more would be held."""
        protocol, most = self._protocol, self._limits.max_held
        if protocol.held_count() + len(self._ahead) < most:
            return protocol.receive(message, now=now)
        before = protocol.snapshot()
        effects = protocol.receive(message, now=now)
        if protocol.held_count() + len(self._ahead) > most:
            protocol.restore(before)
            raise LimitError(
                f"{most} messages are held back, and max_held={most}: offer this one again when "
                "what they wait for has come (missing() names it)"
            )
        return effects

    def _remember(self, key: tuple[str, int], digest: int) -> None:
        self._recent[key] = digest
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]

    def _keep_ahead(
        self, wire: bytes, parts: Frame, lacking: int, now: int | None
    ) -> list[Message]:
        """Keep a frame whose sender knows of joins that were not told here."""
        if wire in self._ahead:
            self._tally.duplicates += 1
            return []
        most = self._limits.max_held
        if self._protocol.held_count() + len(self._ahead) >= most:
            raise LimitError(f"{most} messages are held back, and max_held={most}")
        message = self._protocol.decode(parts.control, parts.payload)
        if self._protocol.renumbers:
            shown = Message(f"#{getattr(message, 'sender', 0)}", 0, parts.payload)
        else:
            shown = Message(self._roster.name(message.sender), message.seq, parts.payload)
        self._ahead[wire] = shown, len(self._roster.joined) + lacking, now
        return []

    def _take_in_ahead(self) -> list[Message]:
        """Take in the frames that waited for a join which has been told."""
        delivered: list[Message] = []
        told = len(self._roster.joined)
        for wire in [wire for wire, (_, joins, _) in self._ahead.items() if joins <= told]:
            now = self._ahead.pop(wire)[2]
            try:
                delivered += self._take_in(wire, now)
            except RemoteError as error:
                self._tally.refuse(error)
        return delivered

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Become what the group was before, when what follows raises anything."""
        protocol, roster = self._protocol.snapshot(), self._roster
        tally, outbox, inbox = self._tally.copy(), list(self._outbox), list(self._inbox)
        self._roster = roster.copy()
        try:
            yield
        except Exception:
            self._protocol.restore(protocol)
            self._roster, self._outbox, self._inbox = roster, outbox, inbox
            self._tally = tally
            raise

    @contextmanager
    def _named_errors(self, names: Mapping[int, str] | None = None) -> Iterator[None]:
        """Let errors of the protocol say names instead of members' numbers."""
        try:
            yield
        except ProtocolError as error:
            if error.args and isinstance(error.args[0], str):
                table = self._names if names is None else names
                error.args = (with_names(error.args[0], table), *error.args[1:])
            raise

    def inspect(self, wire: bytes) -> Envelope:
        """Return what the bytes of a message say, without taking it in.

        In every order; where the control information names no causes, there are none. Raises
        RemoteError for bytes that say nothing, or of another group.
        """
        parts = self._unpack(wire)
        if parts.view is not None and self._roster.check(parts.view):
            raise UnknownMemberError("a message whose sender knows of joins not told here")
        names = parts.names if self.open else self._names
        with self._named_errors(names):
            message = self._decoded(parts)
        try:
            causes = tuple(self._protocol.causes(message))
        except (LocalError, NotImplementedError, AttributeError):
            causes = ()
        for number in (message.sender, *(cause.sender for cause in causes)):
            if number not in names:
                raise UnknownMemberError(f"a message that speaks of member {number}, a stranger")
        named = tuple((names[cause.sender], cause.seq) for cause in causes)
        replies = named if self._protocol.guarantee.relation is Relation.BY_REPLY else ()
        sizes = frame.sizes(bytes(wire))
        shown = names[message.sender], message.seq, parts.payload
        if self._protocol.renumbers and not self._protocol.is_note(message):
            shown = self._message(message)[:3]
        return Envelope(
            *(shown[0], shown[1], named, shown[2], replies),
            control_bytes=sizes.control,
            identity_bytes=sizes.identity + sizes.names,
        )

    def tick(self, now: Seconds | None = None, *, now_ns: int | None = None) -> list[Message]:
        """Let time pass; return what is released by it.

        `now` (seconds) or `now_ns` is what the clock shows that `send` and `receive` go by. Raises
        LocalError without.
        """
        reading = reading_of(group_reading(now, now_ns), "tick")
        with self._named_errors():
            effects = self._protocol.tick(reading)
        if self._keep_log:
            self._record("tick", reading)
        return self._carry_out(effects, reading)

    def outgoing(self) -> list[Packet]:
        """Return, once, what the protocol wants sent beside the application's messages."""
        packets, self._outbox = self._outbox, []
        if packets and self._keep_log:
            self._record("outgoing")
        return packets

    def delivered(self) -> list[Message]:
        """Return, once, own messages whose turn has come with their sending (total order).

        Whoever does not ask gets them from the next call that returns messages, in front.
        """
        messages, self._inbox = self._inbox, []
        if messages and self._keep_log:
            self._record("delivered")
        return messages

    # -- what is here, what is not -----------------------------------------------------------

    def blocked_on(self) -> list[Blocked]:
        """Return every held-back message with what it waits for."""
        held = [
            Blocked(
                self._message(one.message),
                self._named(one.missing),
                tuple(self._roster.name(k) for k in one.silent),
                one.until_ns,
                reason=one.reason,
            )
            for one in self._protocol.blocked_on()
        ]
        joins = len(self._roster.joined)
        return held + [Blocked(m, (), (), None, at - joins) for m, at, _ in self._ahead.values()]

    def missing(self) -> list[Missing]:
        """Return what is not here at all and is waited for: the root causes, by sender.

        A held message that others wait for is no root; members from whom anything new would help
        are (orders by clocks). O(held messages).
        """
        blocked = self._protocol.blocked_on()
        here = {self._protocol.identity(one.message) for one in blocked}
        counts: dict[tuple[str, int | None], int] = {}
        for one in blocked:
            roots: list[tuple[int, int | None]] = [(k, None) for k in one.silent]
            roots += [key for key in one.missing if key not in here]
            for sender, seq in roots:
                named = self._roster.name(sender), seq
                counts[named] = counts.get(named, 0) + 1
        return [
            Missing(sender, seq, count)
            for (sender, seq), count in sorted(
                counts.items(), key=lambda item: (item[0][0], item[0][1] or 0)
            )
        ]

    def stats(self) -> Stats:
        """Return the counters, in O(1)."""
        tally = self._tally
        oldest = next(iter(tally.since), None)
        return Stats(
            members=len(self._protocol.members),
            sent=tally.sent,
            delivered=tally.delivered,
            released=tally.released,
            held=self._protocol.held_count(),
            ahead=len(self._ahead),
            oldest=None if oldest is None else (self._roster.name(oldest.sender), oldest.seq),
            held_since_ns=None if oldest is None else tally.since[oldest],
            duplicates=tally.duplicates,
            discarded=dict(tally.discarded),
            refused=dict(tally.refused),
        )

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return the numbers delivered here of each member that ever was, as (first, last) runs.

        One's own are those sent. After `accept` this is what the sponsor had: the transport owes
        the newcomer every other message. Where messages are for chosen receivers, a run goes up to
        the newest and says nothing of those that were not for this member.
        """
        runs: dict[str, tuple[tuple[int, int], ...]] = {}
        for member, bounds in sorted(self._protocol.delivered_runs().items()):
            pairs = zip(bounds[::2], bounds[1::2], strict=True)
            runs[self._roster.name(member)] = tuple((first, stop - 1) for first, stop in pairs)
        return runs

    def last(self, member: str | None = None) -> int:
        """Return the highest number that is known of a member, held or delivered; 0: none.

        Of oneself (or of nobody named): how many one has sent, which is what the others give to
        `leave` when one goes. Raises LocalError for a name that never was in the group.
        """
        name = self.name if member is None else member
        self._number(name)
        return self._lives.heard(name)

    def held(self) -> list[Packet]:
        """Return the held messages as packets for nobody yet.

        As sponsor: what a newcomer needs beside its invitation, and the transport may have dropped
        because it arrived here.
        """
        packets = [self._packet(Transmit((), one.message)) for one in self._protocol.blocked_on()]
        return packets + [Packet((), wire) for wire in self._ahead]

    def thread(self, message: Message | Sent | Id) -> Thread:
        """Return the thread of a message as a tree, from where it begins (order "reply").

        Delivered and own messages are remembered, at most `threads` of them. Raises LocalError in
        other orders, and for a message that is not (or no longer) known.
        """
        if self._protocol.guarantee.relation is not Relation.BY_REPLY:
            raise LocalError(f"order {self.order!r} keeps no answers, so it has no threads")
        (one,) = self._answered(message) or ((self.name, 0),)
        if one not in self._threads:
            raise LocalError(f"{one[0]}'s message {one[1]} is not (or no longer) known here")
        return self._threads.tree(self._threads.root(one))

    def knows(self, member: str, of: str) -> int:
        """Return the number of `of`'s last message that `member` is known to have.

        Orders with matrix clocks ("matrix"). Raises LocalError in others.
        """
        return int(self._matrix("knows")(self._number(member), self._number(of)))

    def stable(self) -> dict[str, int]:
        """Return for each member the number of its last message that all are known to have.

        Orders with matrix clocks ("matrix"). Raises LocalError in others.
        """
        found = self._matrix("stable")()
        return {self._roster.name(number): count for number, count in sorted(found.items())}

    def _matrix(self, method: str) -> Any:
        found = getattr(self._protocol, method, None)
        if found is None:
            raise LocalError(f"order {self.order!r} does not know what others have: use 'matrix'")
        return found

    # -- membership -------------------------------------------------------------------------

    def invite(self, newcomer: str) -> bytes:
        """As sponsor: take a newcomer in and return the invitation that it starts from.

        Tell every other member to `join(newcomer)` too. From then on the transport owes the
        newcomer every message that the invitation's frontier does not cover: `frontier` says
        which, and `held` hands over those that wait here.
        """
        checked(newcomer)
        if newcomer in self._numbers:
            raise LocalError(f"{newcomer!r} is or was in the group; a name is never reused")
        flat_class(self.order)  # what `accept` cannot make, nobody is invited to
        frontier = self._protocol.frontier()
        self.join(newcomer)
        roster = self._roster
        return pack_state(
            (
                (self.order, self.open, self._room, self._options),
                (tuple(roster.names.items()), roster.digests[0], tuple(roster.joined)),
                self._lives.state(),
                frontier,
            )
        )

    @classmethod
    def accept(
        cls,
        name: str,
        invitation: bytes,
        *,
        room: str | None = None,
        incarnation: int | None = None,
        keep_log: bool = False,
        **options: Any,
    ) -> Group:
        """As newcomer: begin from a sponsor's invitation, with the options of the group.

        Raises DecodeError for bytes that are no invitation, MismatchError for one to another room
        or to a group with other options, and LocalError for options that cannot be.
        """
        check_flags(keep_log=keep_log)
        head, table, lives, frontier = unpack_state(invitation, 4)
        if misfit((head, lives), (GROUP, Lives.SHAPE)):
            raise DecodeError("an invitation that does not say of what group")
        order, is_open, told_room, told_options = head
        if order not in ENTRIES or not ENTRIES[order].flat:
            raise DecodeError(f"an invitation to a group of {order!r:.40}, which is no order here")
        roster = roster_of(table)
        if name not in roster.numbers:
            raise MismatchError("members", f"this invitation is not for {name!r}")
        limits, options = limits_of(options, order, is_open)
        protocol = made(order, roster.numbers[name], roster.numbers, options)
        common = agreeing(type(protocol), options)[0]
        if told_options != options_code(order, common):
            raise MismatchError(
                "options", f"an invitation to a group of {order} made with other options: {common}"
            )
        if room is not None and told_room != room_code(room):
            raise MismatchError("room", f"an invitation to another room than {room!r}")
        check_frontier(protocol, frontier, roster.names)
        if is_open and not can_be_open(protocol):
            raise DecodeError(f"an invitation to an open group of {order}, which is always closed")
        try:
            protocol.adopt(frontier)
        except (TypeError, ValueError, LookupError, LocalError) as error:
            raise DecodeError(f"an invitation whose frontier is none of {order}") from error
        if not set(protocol.members) <= roster.names.keys():
            raise DecodeError("an invitation whose frontier speaks of members without a name")
        group = cls.__new__(cls)
        group._set_up(order, protocol, roster, is_open)
        group._room, group._options = told_room, told_options
        group._limits, group._keep_log = limits, keep_log
        group._threads = Threads(limits.threads)
        group._lives = Lives.of_state(lives)
        group._begin(Incarnation(0, checked_nonce(incarnation)))
        return group

    def subscribe(self, member: str, topics: Iterable[str]) -> list[Message]:
        """A member subscribes to these topics from now on, and to no others.

        Every member is told, the newcomer's subscriptions too. Raises LocalError when the
        order knows no topics.
        """
        change = getattr(self._protocol, "subscribe", None)
        if change is None:
            raise LocalError(f"with order {self.order!r} nobody subscribes to topics")
        chosen = tuple(topics)
        with self._named_errors():
            effects = change(self._number(member), chosen)
        if self._keep_log:
            self._record("subscribe", member, chosen)
        return self._carry_out(effects, None)

    def join(self, newcomer: str) -> list[Message]:
        """A newcomer, invited by somebody else, is in the group from now on.

        Returns what can be delivered now: messages whose senders knew of it before.
        """
        if checked(newcomer) in self._numbers:
            raise LocalError(f"{newcomer!r} is or was in the group; a name is never reused")
        number = self._roster.next_number
        with self._named_errors():
            delivered = self._carry_out(self._protocol.join(number), None)
        self._roster.add(number, newcomer)
        if self._keep_log:
            self._record("join", newcomer)
        return delivered + self._take_in_ahead()

    def leave(self, member: str, last: int) -> list[Message]:
        """A member left; `last` is the number of its last message (0: it sent none).

        That is `last()` in its own group. In an open group it may be a member of which nothing has
        arrived here yet. Raises LocalError for a name that is not in the group, and for a `last`
        that cannot be its last.
        """
        if type(last) is not int or not 0 <= last <= MAX_NUMBER:
            raise LocalError(
                f"{member!r} left after message {last!r}: the number of its last message is a "
                "whole number (0: it sent none), as last() in its own group tells"
            )
        if not self.open or checked(member) in self._numbers:
            with self._named_errors():
                effects = self._protocol.leave(self._number(member), last)
            delivered = self._carry_out(effects, None)
        else:
            with self._unchanged_by_errors(), self._named_errors():
                number = self._roster.next_number
                delivered = self._carry_out(self._protocol.join(number), None)
                self._roster.add(number, member)
                delivered += self._carry_out(self._protocol.leave(number, last), None)
        if self._keep_log:
            self._record("leave", member, last)
        return delivered

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state as bytes, to go on after a restart. The log begins anew."""
        self._records = []
        roster = self._roster
        return pack_state(
            (
                (self.order, self.open, self._room, self._options),
                self.name,
                (tuple(roster.names.items()), roster.digests[0], tuple(roster.joined)),
                (self._sent, tuple(self._life), self._lives.state()),
                tuple((packet.to, bytes(packet.wire)) for packet in self._outbox),
                tuple(tuple(message) for message in self._inbox),
                tuple((w, *shown[:3], at, now) for w, (shown, at, now) in self._ahead.items()),
                self._tally.state(),
                self._threads.state(),
                self._protocol.snapshot(),
            )
        )

    def log(self) -> list[bytes]:
        """Return, once, the inputs since the last snapshot (or since `log` was asked before).

        Small records, to be appended to a file beside the snapshot; `restore` takes both. Raises
        LocalError unless the group was made with `keep_log=True`.
        """
        if not self._keep_log:
            raise LocalError("inputs are not kept: make the group with keep_log=True")
        records, self._records = self._records, []
        return records

    def restore(
        self,
        state: bytes,
        log: Iterable[bytes] = (),
        *,
        resume: bool = False,
        incarnation: int | None = None,
    ) -> None:
        """Become what `snapshot` returned, in a group made with the same arguments.

        `log`: the inputs since then, which are done again; what they deliver was delivered before.
        Who joined or left since the group was made comes back with the snapshot. From here on a
        new life of the member begins (see the module text), whose nonce is `incarnation`;
        `resume=True` goes on with the old one, which is safe only where nothing was sent, nor
        could be, since state and log were written. Raises DecodeError when the bytes are no
        snapshot or a record is no input (its number is named, from 1), LocalError when it is of
        another group or member, or made with other options.
        """
        check_flags(resume=resume)
        fields = unpack_state(state, len(SNAPSHOT))
        if where := misfit(fields, SNAPSHOT):
            raise DecodeError(f"a snapshot of no group: {where}")
        head, name, table, lives, outbox, inbox, ahead, tally, links, inner = fields
        self._check_head(head, name)
        roster = roster_of(table)
        self._check_list(roster)
        check_state(self._protocol, inner, roster.names)
        before = self._kept()
        try:
            self._take_over(roster, inner)
            self._sent, life, known = lives
            self._life, self._lives = Incarnation(*life), Lives.of_state(known)
            self._outbox = [Packet(*packet) for packet in outbox]
            self._inbox = [Message(*message) for message in inbox]
            self._ahead = {w: (Message(*shown), at, now) for w, *shown, at, now in ahead}
            self._tally, self._recent = Tallies.of(tally), {}
            self._threads = Threads(self._limits.threads, links)
        except (TypeError, ValueError, LookupError, ProtocolError, ArithmeticError) as error:
            self._go_back(before)
            raise DecodeError(f"a snapshot whose state is none of {self.order}: {error}") from error
        self._replay(log, before)
        if not resume:
            first = max(self._sent, self._lives.heard(self.name)) + 1
            self._begin(Incarnation(self._life.generation + 1, checked_nonce(incarnation), first))

    def _check_head(self, head: Any, name: str) -> None:
        order, is_open, room, options = head
        if (order, is_open) != (self.order, self.open):
            theirs, ours = ("open" if o else "closed" for o in (is_open, self.open))
            raise LocalError(
                f"a snapshot of a {order} group, {theirs}; this is {self.order}, {ours}"
            )
        if name != self.name:
            raise LocalError(f"a snapshot of {name!r}; this is the group of {self.name!r}")
        if room != self._room:
            raise LocalError("a snapshot of another room")
        if options != self._options:
            raise LocalError(f"a snapshot of a {order} group that was made with other options")

    def _check_list(self, roster: Roster) -> None:
        """Refuse a snapshot of a list that cannot have become this one, where that can be told."""
        ours = self._roster
        if self.open or ours.joined or roster.joined or ours.digests[0] == roster.digests[0]:
            return
        if ours.names == roster.names:
            raise LocalError("a snapshot of a group with other bounds or subscriptions of members")
        raise LocalError(
            f"a snapshot of a group with another list of members: {sorted(roster.numbers)}"
        )

    def _kept(self) -> tuple[Any, ...]:
        return self._protocol.snapshot(), dict(vars(self))

    def _go_back(self, before: tuple[Any, ...]) -> None:
        state, attributes = before
        self._protocol.restore(state)
        vars(self).update(attributes)

    def _take_over(self, roster: Roster, state: Any) -> None:
        """Become what was stored; raises ValueError and others when that cannot be."""
        protocol, me = self._protocol, self._protocol.me
        protocol.restore(state)
        self._roster = roster
        if protocol.snapshot() != state or protocol.me != me or me not in protocol.members:
            raise ValueError("it does not come back as it was stored")
        for held in protocol.blocked_on():
            written = protocol.encode(held.message)
            if protocol.decode(written, held.message.payload) != held.message:
                raise ValueError("a held message that nobody can have sent")
            self._message(held.message)

    def _replay(self, log: Iterable[bytes], before: tuple[Any, ...]) -> None:
        """Do again what the log of inputs says, or go back and raise DecodeError."""
        doors: dict[str, Callable[..., Any]] = {
            "receive": lambda wire, now: self.receive(wire, now_ns=now),
            "post": lambda payload, to, topics, parents, now: self.post(
                payload, to=to, topics=topics, reply_to=parents, now_ns=now
            ),
            "tick": lambda now: self.tick(now_ns=now),
            "join": self.join,
            "leave": self.leave,
            "subscribe": self.subscribe,
            "outgoing": self.outgoing,
            "delivered": self.delivered,
        }
        keep, self._keep_log = self._keep_log, False
        for number, record in enumerate(log, 1):
            try:
                journal.replay(record, doors)
            except (TypeError, ValueError, LookupError, ProtocolError, ArithmeticError) as error:
                self._go_back(before)
                raise DecodeError(f"record {number} of the log of inputs: {error}") from error
        self._keep_log = keep

    def _record(self, kind: str, *values: Any) -> None:
        self._records.append(journal.record(kind, *values))

    # -- helpers ----------------------------------------------------------------------------

    def _carry_out(self, effects: Sequence[Effect], now: int | None) -> list[Message]:
        self._tally.count(self._protocol, effects, now)
        packets = [self._packet(effect) for effect in effects if isinstance(effect, Transmit)]
        self._outbox += packets
        before, self._inbox = self._inbox, []
        return before + self._messages(effects)

    def _messages(self, effects: Sequence[Effect]) -> list[Message]:
        """Return what effects hand to the application, in order."""
        replies = self._replies
        found = []
        for effect in effects:
            if not isinstance(effect, Deliver | Release):
                continue
            message = self._message(effect.message)
            if isinstance(effect, Release):
                message = message._replace(missing=self._named(effect.missing))
            if replies:
                self._threads.add(message.id, message.reply_to)
            found.append(message)
        return found

    @property
    def _replies(self) -> bool:
        return self._protocol.guarantee.relation is Relation.BY_REPLY

    def _unpack(self, wire: bytes) -> Frame:
        known = self._heads.get(wire[: frame.PLAIN]) if type(wire) in (bytes, Sent) else None
        if known is not None:
            return frame.with_body(known, wire)
        parts = frame.unpack(self.order, wire)
        self._check_frame(parts)
        if frame.is_plain(wire):
            if len(self._heads) >= RECENT:
                self._heads.clear()
            self._heads[bytes(wire[: frame.PLAIN])] = parts._replace(control=b"", payload=b"")
        return parts

    def _check_frame(self, parts: Frame) -> None:
        """Raise MismatchError for a frame of another group than this one."""
        if self.open and parts.view is not None:
            raise MismatchError(
                "kind", "no table of names: the sender's group is closed, this one is open"
            )
        if parts.view is None and not self.open:
            raise MismatchError(
                "kind", "a table of names: the sender's group is open, this one is closed"
            )
        if parts.room != self._room:
            raise MismatchError("room", "a message of another room= than this group's")
        if parts.options != self._options:
            raise MismatchError(
                "options",
                f"a message of a group of {self.order} that was made with other options",
            )

    def _packet(self, effect: Transmit) -> Packet:
        protocol, message = self._protocol, effect.message
        names = {n: self._names[n] for n in protocol.mentions(message)} if self.open else {}
        note = protocol.renumbers or protocol.is_note(message)
        life = self._life
        told: Told = ()
        if not note and message.sender != protocol.me:  # a copy of somebody else's, handed on
            life = self._lives.of(self._names[message.sender], message.seq)
        if self._lives.restarted:
            causes = () if note else self._causes(message)
            chosen = not note and protocol.addressing is Addressing.MEMBERS
            told = self._lives.told(causes, all_lives=chosen)
        wire = frame.pack(
            Frame(
                order=self.order,
                room=self._room,
                options=self._options,
                view=None if self.open else self._roster.view,
                by=life,
                names=names,
                known=told,
                control=protocol.encode(message),
                payload=message.payload,
            )
        )
        return Packet(tuple(self._names[number] for number in effect.to), wire)

    def _decoded(self, parts: Frame) -> Any:
        """Return the protocol's message; its payload too is known to be sound from here on."""
        message = self._protocol.decode(parts.control, parts.payload)
        if self._protocol.renumbers and not self._protocol.is_note(message):
            origin = self._message(message)
            if not 0 < len(origin.sender.encode()) <= frame.MAX_NAME_BYTES or origin.seq < 1:
                raise DecodeError(f"message {origin.seq} of {origin.sender[:20]!r} cannot be")
        return message

    def _message(self, message: Any) -> Message:
        if not self._protocol.renumbers:
            shown = Message(self._roster.name(message.sender), message.seq, message.payload)
            if self._protocol.guarantee.relation is Relation.BY_REPLY:
                return shown._replace(reply_to=self._named(self._protocol.causes(message)))
            return shown
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

    def _named(self, ids: Iterable[MessageId]) -> tuple[Id, ...]:
        return tuple((self._roster.name(i.sender), i.seq) for i in ids)

    def _number(self, name: str) -> int:
        try:
            return self._numbers[name]
        except (KeyError, TypeError):
            raise LocalError(f"{name!r} is not in the group {list(self._numbers)}") from None

    def _meet(self, names: Sequence[str]) -> list[Message]:
        """Let all whom a message of an open group names for the first time in, with one change.

        Raises LimitError when these are more members than there can be.
        """
        most = self._limits.max_members
        left = most - len(self._numbers)
        if len(names) > left:
            raise LimitError(
                f"{names[max(left, 0)]!r} would be member {most + 1}, and max_members={most}"
            )
        first = self._roster.next_number
        new = dict(enumerate(names, start=first))
        try:
            effects = self._protocol.join_all(tuple(new))
        except LocalError as error:  # the protocol's own limit; the peer's doing all the same
            raise UnknownMemberError(f"a message that names {names[-1]!r}: {error}") from error
        met = self._carry_out(effects, None)
        for number, name in new.items():
            self._roster.add(number, name)
        return met
