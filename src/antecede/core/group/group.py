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
sender speaks (`antecede.core.group.incarnations`). What is of another group, or of a member that
was restored from too old a snapshot, is refused by name: `MismatchError`, `IncarnationError`,
`ConflictError`.

What a group holds is bounded: `max_held`, `max_members`, `max_packet`. A message that would exceed
a limit is refused with `LimitError` and was not taken in; nothing is given up for it. One of one's
own that would exceed `max_packet` is refused by `send`, before it has a number. Each member goes by
its own limits: a smaller `max_packet` at another one refuses what was sent here, so give all the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from antecede.core.clocks import Seconds
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.clock import Time
from antecede.core.group.effects import Effects
from antecede.core.group.frames.codec import Frames
from antecede.core.group.frames.format import Incarnation
from antecede.core.group.incarnations import Roster, agreeing, canonical, checked_nonce
from antecede.core.group.membership import Membership, accepted
from antecede.core.group.message import (
    Blocked,
    Envelope,
    GroupEffect,
    Id,
    Message,
    Missing,
    Packet,
    Said,
    Sent,
    Stats,
    Thread,
)
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
from antecede.core.group.receiver import Receiving
from antecede.core.group.sender import Sending
from antecede.core.group.state import NO_CALL, GroupState
from antecede.core.group.state_store import Storing
from antecede.core.protocols import ENTRIES, Addressing, Guarantee, MessageId, Protocol, flat_class
from antecede.core.protocols.options import check_flags
from antecede.errors import LocalError
from antecede.formatting import shown


class Releasing:
    """Tells the protocol what never comes."""

    def __init__(self, state: GroupState, effects: Effects) -> None:
        self._state, self._effects = state, effects

    def release(self, lost: Iterable[Id]) -> list[Message]:
        """See `Group.release`."""
        state, protocol = self._state, self._state.protocol
        state.call = NO_CALL
        if state.renumbers:
            raise LocalError(
                f"order {state.order!r} numbers messages anew on their way, so none can be named "
                "as lost here"
            )
        named = state.ids(lost, "lost")
        numbers = [MessageId(state.number(sender), seq) for sender, seq in named]
        assumptions = None
        if not state.by_reply and numbers:  # there the protocol marks what it releases
            assumptions = state.assumptions or Assumptions()
            before = dict(assumptions.marks)
            assumptions.lose(protocol, numbers)
        try:
            with state.named_errors():
                effects = protocol.never_come(numbers)
        except LocalError:
            if assumptions is not None:
                assumptions.marks = before
            raise
        if assumptions is not None and assumptions.marks:
            state.assumptions = assumptions
        state.record("release", named)
        return self._effects.carry_out(effects, None)


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


class Group(metaclass=_Documented):
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
        self._sending = Sending(state, self._frames, self._effects)
        self._receiving = Receiving(state, self._frames, self._effects)
        self._time = Time(state, self._effects)
        self._questions = Questions(state, self._frames)
        self._membership = Membership(state, self._effects, self._receiving)
        self._releasing = Releasing(state, self._effects)
        self._storing = Storing(state)
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
        orders by clocks need it. Raises LocalError when the payload is not bytes, when the message
        would exceed one's own `max_packet` (with all that is beside the payload but for what frames
        tell of restarts and joins; others go by theirs: give all the same), when a message in
        `reply_to` was never here, when the order does not let the receivers be chosen in this way,
        keeps no answers or needs the time, or when the protocol has different bytes for different
        members: then use `post` (the number is out then, and the packets wait in `outgoing`).
        Topics that no other member reads are refused before there is a number. Who is alone sends
        to nobody: the result's `to` is empty, and in orders by clocks it has no bytes.
        """
        return self._sending.send(payload, to, topics, reply_to, now, now_ns)

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
        return self._sending.post(payload, to, topics, reply_to, now, now_ns)

    def receive(
        self,
        wire: bytes,
        *,
        now: Seconds | None = None,
        now_ns: int | None = None,
        said_by: Id | None = None,
        meet: Collection[str] | None = None,
    ) -> list[Message]:
        """Take in bytes from another member; return what can be delivered now, in order.

        `now` (seconds) or `now_ns` is what one's own clock shows. For transports that know with
        whom they speak: `said_by`, the sender and number that it vouches for (0: a note between
        protocols); `meet`, in an open group, the only strangers of whom the message may speak.
        Raises DecodeError or another RemoteError for bytes that no member of this group can have
        sent, MismatchError for those of another group or sender, UnknownMemberError for those that
        speak of other strangers, IncarnationError and ConflictError where numbers of two lives of a
        member meet, LimitError at a limit, and LocalError where an order by clocks is not told the
        time; the group is then as it was, but for the counters of `stats`.
        """
        return self._receiving.receive(wire, now, now_ns, said_by, meet)

    def inspect(self, wire: bytes) -> Envelope:
        """Return what the bytes of a message say, without taking it in.

        In every order; where the control information names no causes, there are none. Raises
        RemoteError for bytes that say nothing, or of another group.
        """
        return self._frames.inspect(wire)

    def tick(self, now: Seconds | None = None, *, now_ns: int | None = None) -> list[Message]:
        """Let time pass; return what is released by it.

        `now` (seconds) or `now_ns` is what the clock shows that `send` and `receive` go by. Raises
        LocalError without.
        """
        return self._time.tick(now, now_ns)

    def pass_time(self, readings: range, *, notes: bool = True) -> tuple[int, list[Message]]:
        """As if `tick` were called at each of these readings (nanoseconds), up to and with the
        first at which something happens; return that reading, or the last, and what is released.

        The first reading is told to the order in any case: a group that was told no time yet counts
        to its first heartbeat from there. The others are searched by bisection, which is right
        where a tick at which nothing happens changes nothing later. `notes`: whether a heartbeat
        alone is something; where it is not, those between the first reading and the one that is
        returned are left out. A log of inputs holds the first reading and the one returned. Raises
        LocalError for what is no range, or one that is empty, falls, or holds no readings.
        """
        return self._time.pass_time(readings, notes)

    def correct_clock(self, now: Seconds | None = None, *, now_ns: int | None = None) -> None:
        """The own clock was ahead and is set right; everything goes on from this reading.

        In orders whose messages carry physical time, which raise LocalError at a reading that is
        less than before. The state is kept. `receive` and `tick` go on at once. `send` raises
        EarlyError until the clock is past all that others may have believed: their `max_ahead_s`
        (60 s), or the last reading before. Messages that were refused as too far ahead are sent
        again where recovery is on (`retry_s`). Otherwise their receivers are to `release` them.
        What was delivered here while the clock was ahead may have come too early. Raises LocalError
        in other orders, where the clock was not ahead, and with `max_ahead_s=None`.
        """
        self._time.correct_clock(now, now_ns)

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
        """As one who replays a log: go on in the life in which these own bytes were sent.

        Raises DecodeError for bytes that are none of this group's.
        """
        state, life = self._state, self._frames.unpack(wire)[0].by
        if life != state.life:
            if not state.sent:
                state.lives.chains.pop(state.name)
            state.begin(life)

    # -- what is here, what is not -----------------------------------------------------------

    def blocked_on(self) -> list[Blocked]:
        """Return every held-back message with what it waits for."""
        return self._questions.blocked_on()

    def blocked_by_id(self) -> dict[tuple[int, int], Blocked]:
        """Return what the protocol holds back, by the `id` that `effects` names it with."""
        return self._questions.blocked_by_id()

    def missing(self) -> list[Missing]:
        """Return what is not here at all and is waited for: the root causes, by sender.

        A held message that others wait for is no root; members from whom anything new would help
        are (orders by clocks). Where a sender's messages are for all and come by number, one entry
        has the whole gap (`first` to `seq`). O(held messages and members).
        """
        return self._questions.missing()

    def stats(self) -> Stats:
        """Return the counters, in O(1)."""
        return self._questions.stats()

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return the numbers delivered here of each member that ever was, as (first, last) runs.

        One's own are those sent, or delivered in their turn (total order). After `accept` this is
        what the sponsor had: the transport owes the newcomer every other message. Where messages
        are for chosen receivers, a run goes up to the newest and says nothing of those that were
        not for this member. Raises LocalError in the hierarchical roles, which number messages anew
        on their way.
        """
        return self._questions.frontier()

    def last(self, member: str | None = None) -> int:
        """Return the highest number that is known of a member, held or delivered; 0: none.

        Of oneself (or of nobody named): how many one has sent, which is what the others give to
        `leave` when one goes. Of a member that left: the number that `leave` was told. Raises
        LocalError for a name that never was in the group.
        """
        return self._questions.last(member)

    def held(self) -> list[Packet]:
        """Return the held messages as packets for nobody yet.

        As sponsor: what a newcomer needs beside its invitation, and the transport may have dropped
        because it arrived here.
        """
        return self._questions.held()

    def thread(self, message: Message | Sent | Id) -> Thread:
        """Return the thread of a message as a tree, from where it begins (order "reply").

        Delivered and own messages are remembered, at most `threads` of them. Raises LocalError in
        other orders, and for a message that is not (or no longer) known.
        """
        return self._questions.thread(message)

    def knows(self, member: str, of: str) -> int:
        """Return the number of `of`'s last message that `member` is known to have.

        Orders with matrix clocks ("matrix"). Raises LocalError in others.
        """
        return self._questions.knows(member, of)

    def stable(self) -> dict[str, int]:
        """Return for each member the number of its last message that all are known to have.

        Orders with matrix clocks ("matrix"). Raises LocalError in others.
        """
        return self._questions.stable()

    def topics(self) -> tuple[str, ...]:
        """Return every topic that anybody subscribes to, sorted. Raises LocalError without any."""
        return self._questions.topics()

    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Return who subscribes to what, topics sorted; of those who left too.

        Raises LocalError in orders without topics.
        """
        return self._questions.subscriptions()

    # -- membership -------------------------------------------------------------------------

    def invite(self, newcomer: str, *, again: bool = False) -> bytes:
        """As sponsor: take a newcomer in and return the invitation that it starts from.

        Tell every other member to `join(newcomer)` too. From then on the transport owes the
        newcomer every message that the invitation's frontier does not cover: `frontier` says
        which, and `held` hands over those that wait here.

        `again`: the newcomer was invited before, by this member or another, and its invitation was
        lost. Raises LocalError for a name that is or was in the group; with `again`, for one that
        is not in the group or has sent a message.
        """
        return self._membership.invite(newcomer, again)

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

        Raises DecodeError for bytes that are no invitation, MismatchError for one to another room
        or to a group with other options, and LocalError for options that cannot be. `bounds` are
        those that the group began with, beside the newcomer's own; `subscriptions` too, or the
        newcomer's own alone where no first member's were changed since.

        In orders that go by times of the network (physical time, delivery "bound", topics) `send`
        raises EarlyError until the least delay has passed since the first reading: call `tick`
        after `accept`. `by_channel`: the invitation came over the channels that the bounds are of,
        so it has taken that long. With `lanes` the host sees to that.
        """
        check_flags(keep_log=keep_log, lanes=lanes, by_channel=by_channel)
        group = cls.__new__(cls)
        state = accepted(name, invitation, room, keep_log, options, lanes=lanes)
        if not (lanes or by_channel):
            state.protocol.enter()
        group._set_up(state, incarnation)
        return group

    def begin_at(self, frontier: Mapping[str, int] | None = None) -> None:
        """Begin behind messages that never come here, before anything is sent or received.

        `frontier`: each member's messages up to its number count as delivered, late copies of them
        are duplicates, and `frontier()` and `last` say so. In an open group it may name members
        that are not met yet. Orders by clocks take it where the host carries lanes.

        Without it (None) each member begins at the first message that is heard of it: earlier ones
        count as delivered, and so do the causes that a message names of members that were not
        heard yet. Such a message names the assumed causes in `missing`. For members that listen to
        a gossip and have no sponsor.

        Raises LocalError for strangers, for own messages, behind the last message of a member that
        left, after something was sent or received, and, with the reason, in orders that cannot
        begin so.
        """
        self._membership.begin_at(frontier)

    def subscribe(self, member: str, topics: Iterable[str]) -> list[Message]:
        """A member subscribes to these topics from now on, and to no others.

        Every member is told, the newcomer's subscriptions too. Raises LocalError when the
        order knows no topics.
        """
        return self._membership.subscribe(member, topics)

    def join(self, newcomer: str) -> list[Message]:
        """A newcomer, invited by somebody else, is in the group from now on.

        Returns what can be delivered now: messages whose senders knew of it before.
        """
        return self._membership.join(newcomer)

    def leave(self, member: str, last: int, *, force: bool = False) -> list[Message]:
        """A member left; `last` is the number of its last message (0: it sent none).

        That is `last()` in its own group. In an open group it may be a member of which nothing has
        arrived here yet. What is held of it above `last` is discarded, counted in `stats` and told
        by `effects`: nobody delivers what others never will. Raises LocalError for a name that is
        not in the group, for one's own (it is the others who are told), for a `last` below what
        was delivered here, and for one that a message of another member contradicts, which waits
        here. When that message comes later, `receive` refuses it for the same reason. `force`:
        leave all the same. What needs more than `last` stays held then.
        """
        return self._membership.leave(member, last, force)

    def forget(self, member: str) -> None:
        """Drop the name, numbers and digests of a member that left, and its entry in messages.

        For hosts that know that every present member was told of the departure and has delivered
        what the departed sent: messages sent from here on do not name it. Members that have not
        forgotten it yet may still name it, which is passed over here; late copies of its messages
        are duplicates. The names of the newest 4,096 forgotten members are kept for that. Its name
        and number are never given out again. In orders "fifo", "causal" (idr), "bss", "ds" and
        "none". Raises LocalError in others, for a member that has not left, while a message of it
        is missing here, and while something waits that names it.
        """
        self._membership.forget(member)

    def release(self, lost: Iterable[Id]) -> list[Message]:
        """These messages never come: return what waits for nothing else, marked, and what follows.

        In every order in which messages wait for messages. For hosts that know that nobody has the
        messages any more: every member is to be told. Each `Message` that was held for one of them
        names it in `missing`. Late copies of them are duplicates. In order "reply" they are
        delivered late, and `missing_parent="release"` goes by patience instead.

        Where a sender's messages come by number, each is passed over in its turn: name all of a gap
        (`missing` gives `first` to `seq`). Where messages are for chosen receivers, a number stands
        for all before it that are not here. Where messages name only immediate causes ("causal",
        "reply"), what a lost message depended on is not known: it may come behind a message that is
        marked. One's own messages, and those that count as delivered already, change nothing where
        messages come by number. Raises LocalError, and changes nothing, in orders in which nothing
        waits for a message, for one that is held or whose turn does not come, and for members that
        never were in the group. Where messages are for chosen receivers, and in orders by clocks,
        it is raised for one that nothing waits for too.
        """
        return self._releasing.release(lost)

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state as bytes, to go on after a restart. The log begins anew."""
        return self._storing.snapshot()

    def log(self) -> list[bytes]:
        """Return, once, the inputs since the last snapshot (or since `log` was asked before).

        Small records, to be appended to a file beside the snapshot; `restore` takes both. Raises
        LocalError unless the group was made with `keep_log=True`.
        """
        return self._storing.log()

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
        doors: dict[str, Callable[..., Any]] = {
            "receive": lambda wire, now: self.receive(wire, now_ns=now),
            "post": lambda payload, to, topics, parents, now: self.post(
                payload, to=to, topics=topics, reply_to=parents, now_ns=now
            ),
            "tick": lambda now: self.tick(now_ns=now),
            "correct_clock": lambda now: self.correct_clock(now_ns=now),
            "forget": self.forget,
            "begin_at": self._membership.begin_at_pairs,
            "join": self.join,
            "leave": lambda member, last, force=False: self.leave(member, last, force=force),
            "subscribe": self.subscribe,
            "release": self.release,
            "outgoing": self.outgoing,
            "delivered": self.delivered,
        }
        self._storing.restore(state, log, doors, resume, incarnation)
        self._state.call = NO_CALL
