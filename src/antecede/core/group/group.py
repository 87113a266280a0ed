"""`Group`: causal, FIFO or total order of messages over any transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from antecede.core.group.clock import TickHandler
from antecede.core.group.effects import Effects
from antecede.core.group.frames.codec import FrameCodec
from antecede.core.group.frames.format import Incarnation
from antecede.core.group.incarnations import (
    Roster,
    canonicalize,
    check_nonce,
    collect_shared_options,
)
from antecede.core.group.membership import GroupMembership, accept_invitation
from antecede.core.group.message import Envelope, GroupEffect, Message, Packet, SendArguments
from antecede.core.group.options import (
    ALIASES,
    can_be_open,
    check_members,
    check_name,
    make_protocol,
    number_member_options,
    options_code,
    resolve_order,
    room_code,
    split_limits,
)
from antecede.core.group.queries import Queries
from antecede.core.group.sender import Sender
from antecede.core.group.state import NO_CALL, GroupState
from antecede.core.group.state_store import StateStore
from antecede.core.protocols import ENTRIES, Addressing, Guarantee, Protocol, flat_class
from antecede.core.protocols.options import check_flags
from antecede.errors import LocalError
from antecede.formatting import quote


class _OptionDocs(type):
    # Appends the options of every order to `help(Group)`. Lazy, since it imports all protocols.
    @property
    def __doc__(cls) -> str:  # type: ignore[override]
        lines = ["Options of each order (see docs/protocols):", ""]
        for name in (*ALIASES, *(name for name, entry in ENTRIES.items() if entry.flat)):
            options = ", ".join(f"{k}={v}" for k, v in Group.options(name).items())
            lines.append(f"{name}: {options or 'none'}")
        import inspect

        return inspect.cleandoc(vars(cls)["__doc__"]) + "\n\n" + "\n".join(lines)


class Group(Sender, GroupMembership, TickHandler, Queries, StateStore, metaclass=_OptionDocs):
    """One member's endpoint of a group, over any transport.

        group = Group("alice", order="causal")
        wire = group.send(b"hi")                    # bytes for every other member
        for message in group.receive(wire_from_bob):
            print(message.sender, message.payload)  # in causal order; none, one or several
        group.blocked()                             # held messages and their missing causes

    A group opens no socket and reads no clock. The transport passes every message to each of its
    receivers at least once, in any order. Duplicates are dropped.

    **Parameters:**

    - `name`: name of this member.
    - `members`: names of all members, this one included. None: an open group, see below.
    - `order`: "causal", "fifo", "reply", "none" or a protocol name such as "bss" or "sb". (default:
      "causal")
    - `room`: distinguishes groups that share a transport.
    - `incarnation`: nonce of this incarnation, 0 to 2**32 - 1. (default: random)
    - `keep_log`: record inputs since the last snapshot for `log`. (default: False)
    - `sender_logs`: the host delivers the complete log of each sender in order, to every member,
      from the frontier of `start_from` on. (default: False)
    - `max_members`, `max_held`, `max_packet`, `threads`: limits, see `Limits`.
    - Other options belong to the order, see below. `bounds`, `subscriptions` and `sequencer` refer
      to members by name.

    **Receivers.** A message goes to every other member. The orders "ses", "sent" and those by
    clocks accept `send(..., to=["bob"])`, topic orders `send(..., topics=["news"])`.

    **Own messages** count as delivered when sent, and `receive` does not return them. Only total
    orders ("total", "total-agreed") return them in turn. If that turn comes with `send`,
    `delivered` or the next call returns them.

    **Time.** Orders by clocks ("linear", "physical", "tv", ...) need the local clock reading in
    each call: `now=` in seconds, or `now_ns=` as `time.time_ns()`. They also need a regular `tick`.

    **Membership.** An open group has no member list: every sender is a member, and messages contain
    names. A closed group has a list that all members share. It changes by `invite`, `join` and
    `leave`, one change at a time.

    **Identity.** Every message contains room, order, options, member list and the incarnation of
    its sender. Messages of another group raise `MismatchError`. Messages of a member that was
    restored from too old a snapshot raise `IncarnationError` or `ConflictError`.

    **Limits.** A received message beyond `max_held`, `max_members` or `max_packet` raises
    `LimitError` and changes nothing. `send` rejects a message above `max_packet`. Use the same
    limits at all members.

    Raises LocalError for an unknown order, an invalid, missing or unused option, an invalid or
    duplicate name, or a list without `name`.
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
        names = check_members(name, members)
        protocol_name = resolve_order(order)
        numbers = {member: number for number, member in enumerate(names)}
        limits, options = split_limits(options, protocol_name, members is None)
        options = number_member_options(protocol_name, options, numbers)
        protocol = make_protocol(protocol_name, numbers[name], numbers, options)
        if lanes:
            protocol.carry_in_lanes()
        if members is None and not can_be_open(protocol):
            raise LocalError(f"order {protocol_name!r} needs a closed group: pass members=")
        common, by_member = collect_shared_options(protocol, options)
        roster = Roster(dict(enumerate(names)), extra=canonicalize(by_member))
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
        self._codec = FrameCodec(state)
        self._effects = Effects(state, self._codec)
        state.start_incarnation(Incarnation(0, check_nonce(incarnation)))

    @classmethod
    def from_protocol(
        cls,
        protocol: Protocol,
        names: Mapping[int, str],
        *,
        order: str,
        room: str = "",
        incarnation: int | None = None,
    ) -> Group:
        """Return a closed group for an existing protocol object, such as a hierarchical role.

        `names`: address -> name. Raises LocalError for missing or duplicate names.
        """
        if not isinstance(protocol, Protocol):
            raise LocalError(f"protocol is {quote(protocol)}; expected a Protocol object")
        if not isinstance(names, Mapping):
            raise LocalError(f"names= is {quote(names)}; expected a mapping of address to name")
        if not isinstance(order, str):
            raise LocalError(f"order= is {quote(order)}; expected the name of an order")
        unnamed = sorted(set(protocol.members) - names.keys())
        if unnamed or len(set(map(check_name, names.values()))) < len(names):
            raise LocalError(
                f"names= must have a unique name for every address; missing addresses: {unnamed}"
            )
        codes = room_code(room), options_code(order, {})
        texts = {number: check_name(name) for number, name in names.items()}
        state = GroupState(order, protocol, Roster(texts), False, room=codes[0], options=codes[1])
        group = cls.__new__(cls)
        group._set_up(state, incarnation)
        return group

    @staticmethod
    def options(order: str) -> dict[str, str]:
        """Return the options of an order, with defaults as Python text."""
        import inspect

        kind = flat_class(resolve_order(order))
        parameters = inspect.signature(kind.__init__).parameters
        found = {
            name: "(needed)" if parameter.default is parameter.empty else repr(parameter.default)
            for name, parameter in parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        for name in kind.member_options:
            found[name] += " (or a member: its name or number)"
        return found

    def __repr__(self) -> str:
        kind, held = "open" if self.is_open else "closed", self._state.held
        return (
            f"<Group of {self.name!r}: {self.order}, {kind}, {len(self.members)} members"
            f"{f', {held} held' if held else ''}>"
        )

    # -- properties ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of this member."""
        return self._state.name

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the current members, this one included, by member number."""
        names = self._state.roster.names
        return tuple([names[number] for number in self._state.protocol.members])

    @property
    def order(self) -> str:
        """Name of the protocol."""
        return self._state.order

    @property
    def is_open(self) -> bool:
        """True if the group has no member list: every sender is a member."""
        return self._state.is_open

    @property
    def guarantee(self) -> Guarantee:
        """Guarantees of the protocol under the options of this group."""
        return self._state.protocol.guarantee

    @property
    def addressing(self) -> Addressing:
        """Argument of `send` that chooses receivers: none, `to=` or `topics=`."""
        return self._state.protocol.addressing

    @property
    def has_control_messages(self) -> bool:
        """True if the protocol sends control messages of its own."""
        return self._state.has_control

    @property
    def has_application(self) -> bool:
        """False for forwarding roles (super peers), which neither send nor deliver."""
        return self._state.protocol.application

    @property
    def needs_ticks(self) -> bool:
        """True if time alone can change something, so that `tick` must be called."""
        return type(self._state.protocol).tick is not Protocol.tick

    # -- sending and receiving --------------------------------------------------------------

    def inspect(self, wire: bytes) -> Envelope:
        """Return the content of a message without processing it. Raise RemoteError for invalid
        bytes.
        """
        return self._codec.inspect(wire)

    def effects(self) -> list[GroupEffect]:
        """Return the effects of the last call, by message, in order; none if it raised.

        They include messages held and discarded, with reasons. Calls with effects receive, send,
        advance time, or change membership.
        """
        return self._effects.list_effects()

    def take_control_packets(self) -> list[Packet]:
        """Return control messages to send, and clear the queue."""
        state = self._state
        packets, state.outbox = state.outbox, []
        if packets:
            state.record("outgoing")
        return packets

    def take_own_deliveries(self) -> list[Message]:
        """Return own messages delivered when they were sent (total order), and clear the queue."""
        state = self._state
        messages, state.inbox = state.inbox, []
        if messages:
            state.record("delivered")
        return messages

    # -- replay of a log ----------------------------------------------------------------------

    def decode_own(self, wire: bytes) -> SendArguments | None:
        """Return the `post` arguments in own bytes; None: a control message. Raise
        RemoteError.
        """
        return self._codec.decode_own(wire)

    def resume_incarnation(self, wire: bytes) -> None:
        """Continue the incarnation in which these own bytes were sent. Raise DecodeError."""
        state, incarnation = self._state, self._codec.unpack(wire)[0].by
        if incarnation != state.incarnation:
            if not state.sent:
                state.incarnations.by_member.pop(state.name)
            state.start_incarnation(incarnation)

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
        """Return the group of a joining member from its sponsor's invitation.

        **Parameters:**

        - `bounds`: those of the group's first members, and the joining member's own.
        - `subscriptions`: the same; its own alone if no first member changed its own since.
        - `by_channel`: True if the invitation arrived over a channel of `bounds`. Otherwise `send`
          raises EarlyError until the least delay has passed, in orders by network times (physical
          time, delivery "bound", topics); call `tick` after `accept`. With `sender_logs` the host
          ensures that.
        - Others as in `Group`.

        Raises DecodeError for an invalid invitation, MismatchError for another room or other
        options, and LocalError for invalid options.
        """
        check_flags(keep_log=keep_log, lanes=lanes, by_channel=by_channel)
        group = cls.__new__(cls)
        state = accept_invitation(name, invitation, room, keep_log, options, sender_logs=lanes)
        if not (lanes or by_channel):
            state.protocol.enter()
        group._set_up(state, incarnation)
        return group

    # -- restart ----------------------------------------------------------------------------

    def restore(
        self,
        state: bytes,
        log: Iterable[bytes] = (),
        *,
        resume: bool = False,
        incarnation: int | None = None,
    ) -> None:
        """Restore a `snapshot` into a group that was created with the same arguments.

        **Parameters:**

        - `state`: result of `snapshot`.
        - `log`: inputs since then, which are replayed. Their deliveries were returned before.
        - `resume`: continue the incarnation. Safe only if nothing was or could be sent since the
          last record. (default: False, a new incarnation)
        - `incarnation`: nonce of the new incarnation. (default: random)

        Raises DecodeError for an invalid snapshot or record (the error has its number, from 1), and
        LocalError for a snapshot of another group, member or other options.
        """
        check_flags(resume=resume)
        doors: dict[str, Callable[..., Any]] = {
            "receive": lambda wire, now: self.receive(wire, now_ns=now),
            "post": lambda payload, to, topics, parents, now: self.send_packets(
                payload, to=to, topics=topics, reply_to=parents, now_ns=now
            ),
            "tick": lambda now: self.tick(now_ns=now),
            "correct_clock": lambda now: self.correct_clock(now_ns=now),
            "forget": self.forget,
            "start_from": self._start_from_pairs,
            "join": self.join,
            "leave": lambda member, last, force=False: self.leave(member, last, force=force),
            "subscribe": self.subscribe,
            "release": self.declare_lost,
            "outgoing": self.take_control_packets,
            "delivered": self.take_own_deliveries,
        }
        self._restore(state, log, doors, resume, incarnation)
        self._state.last_call = NO_CALL
