"""`Group`: an ordering protocol for people who build on a transport of their own.

    group = Group("alice", order="causal")
    wire = group.send(b"hi")                    # bytes, for every other member
    for message in group.receive(wire_from_bob):
        print(message.sender, message.payload)  # in causal order; maybe none, maybe several
    group.blocked_on()                          # what is held back, and what it waits for

A group opens no socket and reads no clock. The transport owes every member each message once
or more, in any order; duplicates are dropped here.

Receivers: every other member, unless the order lets them be chosen. `send(..., to=["bob"])` with
"ses", "sent" and the clock orders, `send(..., topics=["news"])` with the topic orders. The
transport carries the bytes to the members that the packet names.

Own messages count as delivered when they are sent, and `receive` does not return them. Only a total
order ("total", "total-agreed") returns them, in their turn: from the calls that return messages, or
from `delivered()` where that turn has come with the sending.

Time: orders by clocks ("linear", "physical", "tv", ...) need the own clock's reading, `now=` in
seconds or `now_ns=` as `time.time_ns()`, and `tick` with one of them now and then.

Open and closed groups
----------------------
Without `members` the group is open: whoever speaks is a member, names travel with the messages, and
every member starts from the first message of every other. With `members` it is closed: all agree on
the list, control information names members by number, and a change goes through `invite`, `join`
and `leave`, one change after the other.

Identity and limits
-------------------
Every frame names its room, order, options, list of members, and the life in which its sender speaks
(`antecede.core.group.incarnations`). Frames of another group, or of a member that was restored from
too old a snapshot, are refused by name: `MismatchError`, `IncarnationError`, `ConflictError`.

A message of others that would exceed `max_held`, `max_members` or `max_packet` is refused with
`LimitError` and not taken in. `send` refuses an own one above `max_packet` before it has a number.
Each member goes by its own limits, so give all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from antecede.core.group.clock import Time
from antecede.core.group.effects import Effects
from antecede.core.group.frames.codec import Frames
from antecede.core.group.frames.format import Incarnation
from antecede.core.group.incarnations import Roster, agreeing, canonical, checked_nonce
from antecede.core.group.membership import Membership, accepted
from antecede.core.group.message import Envelope, GroupEffect, Message, Packet, Said
from antecede.core.group.options import (
    ALIASES,
    by_number,
    can_be_open,
    checked,
    limits_of,
    list_of,
    made,
    options_code,
    resolved,
    room_code,
)
from antecede.core.group.queries import Questions
from antecede.core.group.sender import Sending
from antecede.core.group.state import NO_CALL, GroupState
from antecede.core.group.state_store import Storing
from antecede.core.protocols import ENTRIES, Addressing, Guarantee, Protocol, flat_class
from antecede.core.protocols.options import check_flags
from antecede.errors import LocalError
from antecede.formatting import shown


class _Documented(type):
    # Puts the options of every order behind the text of `help(Group)`, from their signatures:
    # when it is asked for, since every protocol is loaded for it.
    @property
    def __doc__(cls) -> str:  # type: ignore[override]
        lines = ["Options of each order (see docs/protocols):", ""]
        for name in (*ALIASES, *(name for name, one in ENTRIES.items() if one.flat)):
            options = ", ".join(f"{k}={v}" for k, v in Group.options(name).items())
            lines.append(f"{name}: {options or 'none'}")
        import inspect

        return inspect.cleandoc(vars(cls)["__doc__"]) + "\n\n" + "\n".join(lines)


class Group(Sending, Membership, Time, Questions, Storing, metaclass=_Documented):
    """One member's end of a group: names and bytes around one protocol.

    `order` is "causal", "fifo", "reply", "none" or a protocol's name ("bss", "idr", "sb", ...);
    further options go to the protocol; `bounds` and `subscriptions` speak of members by name, and
    `sequencer` (order "total") names one.
    `room` tells groups apart that share a transport. `max_members` (open groups), `max_held`,
    `max_packet` and `threads` (order "reply") are the fields of `Limits`. `keep_log`: keep the
    inputs since the last snapshot for `log`. `incarnation`: a number for this life of the member,
    drawn from the system when it is not given. `lanes`: for hosts that carry what each member sends
    as one lane, every message in its order, to everybody from a frontier on (`begin_at`). Raises
    LocalError for an unknown order, an option that is wrong, missing or never used, a name that is
    empty, too long or there twice, or a closed list that lacks oneself.
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
        lanes: bool = False,
        **options: Any,
    ) -> None:
        check_flags(keep_log=keep_log, lanes=lanes)
        names = list_of(name, members)
        protocol_name = resolved(order)
        numbers = {member: number for number, member in enumerate(names)}
        limits, options = limits_of(options, protocol_name, members is None)
        options = by_number(protocol_name, options, numbers)
        protocol = made(protocol_name, numbers[name], numbers, options)
        if lanes:
            protocol.carry_in_lanes()
        if members is None and not can_be_open(protocol):
            raise LocalError(f"{protocol_name} needs a closed group: give members=")
        common, by_member = agreeing(protocol, options)
        roster = Roster(dict(enumerate(names)), extra=canonical(by_member))
        state = GroupState(
            *(protocol_name, protocol, roster, members is None),
            room=room_code(room),
            options=options_code(protocol_name, common),
            limits=limits,
            keep_log=keep_log,
        )
        self._set_up(state, incarnation)

    def _set_up(self, state: GroupState, incarnation: int | None) -> None:
        self._state = state
        self._frames = Frames(state)
        self._effects = Effects(state, self._frames)
        state.begin(Incarnation(0, checked_nonce(incarnation)))

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
        if not isinstance(protocol, Protocol):
            raise LocalError(f"a group is around a protocol object, not {shown(protocol)}")
        if not isinstance(names, Mapping):
            raise LocalError(f"names are a table from addresses to names, not {shown(names)}")
        if not isinstance(order, str):
            raise LocalError(f"order= is the name of an order, not {shown(order)}")
        unnamed = sorted(set(protocol.members) - names.keys())
        if unnamed or len(set(map(checked, names.values()))) < len(names):
            raise LocalError(f"every address has a name of its own; without one: {unnamed}")
        codes = room_code(room), options_code(order, {})
        texts = {number: checked(name) for number, name in names.items()}
        state = GroupState(order, protocol, Roster(texts), False, room=codes[0], options=codes[1])
        group = cls.__new__(cls)
        group._set_up(state, incarnation)
        return group

    @staticmethod
    def options(order: str) -> dict[str, str]:
        """Return the options of an order, with their defaults as Python writes them.

        Where an option is a member, its default is followed by words that say so.
        """
        import inspect

        kind = flat_class(resolved(order))
        parameters = inspect.signature(kind.__init__).parameters
        found = {
            name: "(needed)" if one.default is one.empty else repr(one.default)
            for name, one in parameters.items()
            if one.kind is one.KEYWORD_ONLY
        }
        for name in kind.member_options:
            found[name] += " (or a member: its name or number)"
        return found

    def __repr__(self) -> str:
        kind, held = "open" if self.open else "closed", self._state.held
        return (
            f"<Group of {self.name!r}: {self.order}, {kind}, {len(self.members)} members"
            f"{f', {held} held' if held else ''}>"
        )

    # -- what it is ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """One's own name."""
        return self._state.name

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the current members, oneself included, by member number."""
        names = self._state.roster.names
        return tuple([names[number] for number in self._state.protocol.members])

    @property
    def order(self) -> str:
        """Name of the protocol."""
        return self._state.order

    @property
    def open(self) -> bool:
        """Whether whoever speaks is a member."""
        return self._state.open

    @property
    def guarantee(self) -> Guarantee:
        """What the protocol promises under the options of this group."""
        return self._state.protocol.guarantee

    @property
    def addressing(self) -> Addressing:
        """What `send` takes to say whom a message is for: nothing, `to=` or `topics=`."""
        return self._state.protocol.addressing

    @property
    def has_notes(self) -> bool:
        """Whether the protocol sends notes of its own accord beside the application's messages."""
        return self._state.has_notes

    @property
    def application(self) -> bool:
        """False for roles that only forward (super peers): they neither send nor deliver."""
        return self._state.protocol.application

    @property
    def heeds_time(self) -> bool:
        """Whether the passing of time alone may change something: then `tick` is to be called."""
        return type(self._state.protocol).tick is not Protocol.tick

    # -- sending and receiving --------------------------------------------------------------

    def inspect(self, wire: bytes) -> Envelope:
        """Return what the bytes of a message contain, without taking it in.

        Causes where the control information names them. Raises RemoteError for bytes that are none.
        """
        return self._frames.inspect(wire)

    def effects(self) -> list[GroupEffect]:
        """Return what the last call brought about, message by message, in order.

        That is the last `receive`, `post`, `send`, `tick`, `pass_time`, `join`, `leave`,
        `subscribe`, `release` or `invite`; nothing when it was refused. Beside what it delivered:
        what it holds, and discards, and for what reason.
        """
        return self._effects.told()

    def outgoing(self) -> list[Packet]:
        """Return, once, what the protocol wants sent beside the application's messages."""
        state = self._state
        packets, state.outbox = state.outbox, []
        if packets:
            state.record("outgoing")
        return packets

    def delivered(self) -> list[Message]:
        """Return, once, own messages whose turn has come with their sending (total order).

        Whoever does not ask gets them from the next call that returns messages, in front.
        """
        state = self._state
        messages, state.inbox = state.inbox, []
        if messages:
            state.record("delivered")
        return messages

    # -- replaying what was logged -------------------------------------------------------------

    def said(self, wire: bytes) -> Said | None:
        """Return what was given to `post` for these bytes of one's own, as far as they tell.

        None for what the protocol sends by itself. Raises DecodeError or another RemoteError for
        bytes that this member cannot have sent.
        """
        return self._frames.said(wire)

    def speak_as(self, wire: bytes) -> None:
        """Go on in the life of these own bytes, to replay a log. Raises DecodeError."""
        state, life = self._state, self._frames.unpack(wire)[0].by
        if life != state.life:
            if not state.sent:
                state.lives.chains.pop(state.name)
            state.begin(life)

    # -- what is here, what is not -----------------------------------------------------------

    # -- membership -------------------------------------------------------------------------

    @classmethod
    def accept(
        cls,
        name: str,
        invitation: bytes,
        *,
        room: str | None = None,
        incarnation: int | None = None,
        keep_log: bool = False,
        lanes: bool = False,
        by_channel: bool = False,
        **options: Any,
    ) -> Group:
        """As newcomer: begin from a sponsor's invitation, with the options of the group.

        `bounds` are those that the group began with, beside the newcomer's own; `subscriptions`
        too, or the newcomer's own alone where no first member's were changed since. `by_channel`:
        the invitation came over the channels that the bounds are of. Otherwise, in orders that go
        by times of the network (physical time, delivery "bound", topics), `send` raises EarlyError
        until the least delay has passed since the first reading: call `tick` after `accept`. With
        `lanes` the host sees to that.

        Raises DecodeError for bytes that are no invitation, MismatchError for one to another room
        or to a group with other options, and LocalError for options that cannot be.
        """
        check_flags(keep_log=keep_log, lanes=lanes, by_channel=by_channel)
        group = cls.__new__(cls)
        state = accepted(name, invitation, room, keep_log, options, lanes=lanes)
        if not (lanes or by_channel):
            state.protocol.enter()
        group._set_up(state, incarnation)
        return group

    # -- snapshot ---------------------------------------------------------------------------

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
        From here on a new life of the member begins (see the module text), whose nonce is
        `incarnation`. `resume=True` goes on with the old one, which is safe only where nothing was
        sent, nor could be, since state and log were written. Raises DecodeError for bytes that are
        no snapshot or a record that is no input (its number is named, from 1), LocalError for one
        of another group or member, or made with other options.
        """
        check_flags(resume=resume)
        doors: dict[str, Callable[..., Any]] = {
            "receive": lambda wire, now: self.receive(wire, now_ns=now),
            "post": lambda payload, to, topics, parents, now: self.post(
                payload, to=to, topics=topics, reply_to=parents, now_ns=now
            ),
            "tick": lambda now: self.tick(now_ns=now),
            "correct_clock": lambda now: self.correct_clock(now_ns=now),
            "forget": self.forget,
            "begin_at": self._begin_at_pairs,
            "join": self.join,
            "leave": lambda member, last, force=False: self.leave(member, last, force=force),
            "subscribe": self.subscribe,
            "release": self.release,
            "outgoing": self.outgoing,
            "delivered": self.delivered,
        }
        self._restore(state, log, doors, resume, incarnation)
        self._state.call = NO_CALL
