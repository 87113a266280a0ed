"""The part of a peer that its inputs alone decide: lanes through the ordering group to deliveries.

Given the same batches in the same order it delivers the same messages in the same order, so a
store that keeps the batches keeps everything (`antecede.live.store`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from antecede.core.group import message as group_message
from antecede.errors import (
    BufferFullError,
    DecodeError,
    LimitError,
    LocalError,
    RemoteError,
    SequenceError,
    UnknownMemberError,
)
from antecede.live import batches, heads, ordering_state, orphans
from antecede.live.batches import Batch
from antecede.live.events import (
    Change,
    ChangeKind,
    Delivery,
    GivenUp,
    Id,
    Message,
    Said,
    View,
    member_of,
    new_id,
)
from antecede.live.flow import Backlog
from antecede.live.heads import GROUP_TOPIC
from antecede.live.lanes import Lane, Lanes, Sealed
from antecede.live.ordering_state import State
from antecede.live.settings import FULL, HOLD, NS, Settings

Seal = Callable[[int, bytes], bytes]
"""Seals a batch of one's own: (number, wire) -> seal."""
MOST_LIVES = 1000
"""Lives of one member that are let in here, as long as the group lasts: names are not used again,
so each takes room for good."""
STRANGERS = 1000
"""Lanes that are not here, at most, that one lane may say are gone."""


MOST_REASONS = 4096
"""Members that were put out, at most, of which the reason is remembered."""
INVITED, CUT = 0, -1
"""In place of a batch's number: the lane is a newcomer's that was let in; or it ends here, behind
the batch whose number stands in place of the bytes."""
CLOCK = ""
"""In place of a lane: the number is what the clock showed from here on (orders by clocks)."""


class Row(NamedTuple):
    """One input, for the store."""

    lane: str
    number: int
    """Of the batch, or INVITED, or CUT."""
    batch: Sealed


class Guest(NamedTuple):
    """What a newcomer starts from."""

    invitation: bytes
    frontier: dict[str, int]
    """Up to where the invitation covers each lane."""
    history: tuple[Message, ...] = ()
    """The newest messages that it covers; none where the sponsor was restarted meanwhile."""


class Clock:
    """What orders by clocks and topics go by, beside the lanes. A part of `Ordering`, whose every
    attribute would else be read more slowly (CPython keeps thirty together).
    """

    __slots__ = ("about", "accuracy_ns", "mine", "noted", "reading", "topics")

    def __init__(self) -> None:
        self.reading: int | None = None
        """What the clock shows, in orders by clocks: all inputs go by it."""
        self.noted = False
        """Whether a row says so."""
        self.accuracy_ns: int | None = None
        """What one's own batches say of the clock; None: it is not known."""
        self.about: tuple[str, ...] = ()
        """Topics of what was said since the last batch."""
        self.topics: dict[tuple[str, int], tuple[str, ...]] = {}
        """Of the batches that the group holds."""
        self.mine = frozenset[str]()
        """What one subscribes to, the group's own topic too."""


class Ordering:
    """One member's lanes, ordering group, list of members, and what it delivers."""

    def __init__(self, lane: str, settings: Settings, seal: Seal, invitation: bytes = b"") -> None:
        """Begin a group, or accept the invitation to one. Raises DecodeError for what is none."""
        self.group = settings.group(lane, invitation)
        self.settings, self._seal, self._invitation = settings, seal, invitation
        self.me = lane
        self.lanes = Lanes()
        self.lanes.by_name[self.me] = Lane()
        self.members: dict[str, str] = {}
        """Lane -> address ("": unknown), of everybody who is in."""
        self.gone: set[str] = set()
        """Lanes of those who left or were put out: they never come back."""
        self.had_by_departed = 0
        """Newest own batch that a member acknowledged that is gone now."""
        self.put_out_by: dict[str, str] = {}
        """Lane of a member that was put out in this run -> by whom and why."""
        self.guests: dict[str, Guest] = {}
        """Lanes of newcomers that were let in here and have not said so to all yet."""
        self.delivered: list[Delivery] = []
        self.backlog = Backlog()
        self.place = 0
        """How many messages were delivered."""
        self.said = 0
        """How many messages the application sent; their numbers, unless they answer each other."""
        self.given_up = 0
        """How many batches were given up, since what they depend on died with its sender."""
        self.cuts: dict[str, int] = {}
        """Lanes that were given up behind a batch, or end there: their last numbers."""
        self.spoiled: dict[str, str] = {}
        """Lanes whose batches carried what cannot be: why nothing of them is heeded any more. They
        are ordered all the same, since when it is found out differs from member to member, and what
        one took others may depend on."""
        self.broken: dict[str, str] = {}
        """Lanes with a batch that the ordering group refuses, as everybody's does: their ends."""
        self._strangers: dict[str, int] = {}
        """Lane -> how many lanes it said are gone that were never here."""
        self.rows: list[Row] = []
        """Inputs since the store was given some; filled where `keep_rows` says so."""
        self.urgent_rows = False
        """Whether one of these is said here: it goes out once the store has it."""
        self.keep_rows = False
        self.history: deque[Message] = deque(maxlen=settings.history)
        self._one_a_batch, self._largest = settings.by_reply, settings.largest
        self._orphans = orphans.Orphans(settings.missing_parent)
        self._pending: list[bytes] = []
        self._changes: list[Change] = []
        self._bytes = 0
        self._timed, self._by_topics = settings.timed, settings.by_topics
        self._apart = self._one_a_batch or self._by_topics
        """Whether not everything that is said in a row may go together."""
        self.clock = Clock()
        self._stalled: set[str] = set()
        """Lanes whose next batch the group has no room for, or speaks of who or what is not known
        here yet."""
        self._met = 0
        """How many lanes have begun."""
        self._tried: tuple[int, ...] = ()
        """How things stood when the stalled ones were tried in vain."""

    # -- what is said here -------------------------------------------------------------------------

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """Take a message of the application; returns what it is called from now on.

        Raises LocalError for what is no message, or answers one that was never here.
        """
        if type(payload) is not bytes:
            raise LocalError(f"a message is bytes, not {type(payload).__name__}")
        size = len(payload)
        if size > self._largest:
            raise LocalError(f"{size} bytes; largest={self.settings.largest} is the most")
        if topics or self._apart:
            if self._one_a_batch and not topics:
                self.flush()
                self.said += 1
                return Id(self.me, self._send(Batch(self._next, [payload]), reply_to))
            self._begin_about(topics)
        if reply_to:
            raise LocalError(
                f"with order {self.settings.order!r} messages answer no others: "
                'order="reply" is for answers'
            )
        self.said = number = self.said + 1
        self._pending.append(payload)
        self._bytes = size = self._bytes + size
        if size >= FULL:
            self.flush()
        return new_id((self.me, number))

    def _begin_about(self, topics: Collection[str]) -> None:
        """Say what comes next about these topics, in another batch than what is about others."""
        if not self._by_topics:
            raise LocalError(f"with order {self.settings.order!r} messages are about no topics")
        about = heads.own_topics(topics)
        if not about:
            raise LocalError("name the topics that the message is about: topics=[...]")
        if about != self.clock.about:
            self.flush()
            self.clock.about = about

    def ids_in(self, number: int, wire: bytes) -> list[Id]:
        """Return the ids of the messages in an own batch."""
        said = self.group.decode_own(wire[heads.read_head(wire).start :] if self._timed else wire)
        batch = batches.unpack(said.payload) if said is not None else Batch(1, [])
        first = number if self._one_a_batch else batch.first
        return [Id(self.me, first + k) for k in range(len(batch.said))]

    def newest_with_messages(self) -> int:
        """Return the newest own batch in memory with messages, or the one before those."""
        lane = self.lanes.by_name[self.me]
        number = lane.newest
        while number >= lane.first and not self.ids_in(number, lane.get(number).wire):
            number -= 1
        return number

    def change(self, change: Change) -> None:
        """Say that somebody came or went."""
        self._changes.append(change)

    @property
    def unsent(self) -> int:
        """How many batches will be made of what was said since the last; 0: nothing was."""
        if self._by_topics:
            return bool(self._pending) + bool(self._changes)
        return bool(self._pending or self._changes)

    @property
    def pending_bytes(self) -> int:
        """Bytes of messages that are in no batch yet."""
        return self._bytes

    @property
    def memory_in_use(self) -> int:
        """Bytes of this member's messages in memory: in no batch yet, or kept for others."""
        return self._bytes + self.lanes.by_name[self.me].bytes

    def buffer_full(self) -> BufferFullError:
        """Return the error for a message that `memory` has no room for."""
        return BufferFullError(
            f"{member_of(self.me)}: {self.memory_in_use:,} bytes of its messages wait for the "
            f"others or the store; memory={self.settings.memory:,} is the limit: `await "
            "peer.send(...)`, or `await peer.room()` first"
        )

    @property
    def waiting_bytes(self) -> int:
        """Bytes of messages that wait to be sent."""
        return self._bytes

    @property
    def _next(self) -> int:
        return self.lanes.by_name[self.me].newest + 1

    def flush(self) -> None:
        """Make a batch of what was said since the last one."""
        if not (self._pending or self._changes):
            return
        first = self._next if self._one_a_batch else self.said - len(self._pending) + 1
        if self._by_topics and self._changes:  # they are for all
            changes, self._changes = self._changes, []
            self._send(Batch(first, [], changes), (), (GROUP_TOPIC,))
            if not self._pending:
                return
        batch = Batch(first, self._pending, self._changes)
        self._pending, self._changes, self._bytes = [], [], 0
        self._send(batch, (), self.clock.about)

    def _send(self, batch: Batch, reply_to: Sequence[Id], topics: tuple[str, ...] = ()) -> int:
        payload = batches.pack(batch)
        if self._timed:
            sent = self._post(payload, topics)
            head = heads.pack_head(self.clock.accuracy_ns, self._now(), topics)
            wire = head + sent
        else:
            sent = self.group.send(payload, reply_to=[(one.lane, one.number) for one in reply_to])
            wire = bytes(sent)
        self._keep_own(sent.seq, Sealed(self._seal(sent.seq, wire), wire))
        self._own(batch, reply_to, topics)
        self._deliver(())
        return sent.seq

    def _post(self, payload: bytes, topics: tuple[str, ...]) -> group_message.Sent:
        """Give a batch to an order by clocks."""
        (packet,) = self.group.send_packets(payload, topics=topics, now_ns=self._now())
        assert isinstance(packet.wire, group_message.Sent)
        return packet.wire

    def _keep_own(self, number: int, batch: Sealed) -> None:
        lane = self.lanes.by_name[self.me]
        self.lanes.take(self.me, number, batch)
        lane.fed = number
        if self.keep_rows:
            self._row(self.me, number, batch)
            self.urgent_rows = True

    def _own(self, batch: Batch, reply_to: Sequence[Id], topics: tuple[str, ...] = ()) -> None:
        if self.settings.history:
            answers = tuple(Id(*one) for one in reply_to)
            for number, payload in enumerate(batch.said, batch.first):
                self.history.append(Message(self.me, number, payload, answers, (), topics))
        for change in batch.changes:
            self._changed(self.me, change)

    # -- what others said --------------------------------------------------------------------------

    def take(self, name: str, number: int, batch: Sealed) -> bool:
        """Take the next batch of another member's lane; False: it is known.

        Raises SequenceError for a gap before it, and another RemoteError when it cannot be: then
        nothing was taken.
        """
        if name in self.cuts:
            return False
        if name in self.broken:
            raise DecodeError(f"nothing more is taken of {name}: {self.broken[name]}")
        lane = self.lanes.by_name.get(name)
        if lane is None:
            if number != 1:
                raise SequenceError(f"batch {number} of {name}, of which there is none here")
            self._check_lives(name)
            lane = self.lanes.by_name[name] = Lane()
        messages: list[group_message.Message] = []
        if lane.fed == lane.newest == number - 1:  # as mostly: nothing of it waits for room
            try:
                messages = self._receive(name, number, batch.wire)
                lane.fed = number
            except RemoteError as error:
                if not _may_come_right(error):
                    raise
                self._stalled.add(name)
                self._tried = ()
        if not self.lanes.take(name, number, batch):
            return False
        if self.keep_rows:
            self._row(name, number, batch)
        self._deliver(messages)
        if self.cuts and self._one_a_batch:
            self._deliver(orphans.released(self.group, self.cuts))
        return True

    def _row(self, lane: str, number: int, batch: Sealed) -> None:
        if self._timed and not self.clock.noted:
            self.clock.noted = True
            self.rows.append(Row(CLOCK, self._now(), Sealed(b"", b"")))
        self.rows.append(Row(lane, number, batch))

    def _check_lives(self, name: str) -> None:
        """Raise LimitError where a member has begun too many lives."""
        member = member_of(name)
        if sum(member_of(lane) == member for lane in self.lanes.by_name) >= MOST_LIVES:
            raise LimitError(f"{member} has begun {MOST_LIVES} lives in this group")

    def takes(self, name: str) -> bool:
        """Whether anything more is taken of a lane."""
        return name not in self.broken and name not in self.cuts

    def end_lane(self, name: str, why: str) -> None:
        """Take nothing more of a lane."""
        self.broken.setdefault(name, why)

    def forget(self, lane: str) -> None:
        """Who was connected, and is neither a member nor let in, is gone without a trace."""
        if lane not in self.members and lane not in self.guests:
            self.lanes.heard.pop(lane, None)

    def _receive(self, name: str, number: int, wire: bytes) -> list[group_message.Message]:
        meet = (name,) if number == 1 else ()
        if self.cuts and self._one_a_batch:  # nobody waits for these, so they may be spoken of
            meet = *meet, *self.cuts
        if self._timed:
            messages = self._receive_timed(name, number, wire, meet)
        else:
            messages = self.group.receive(wire, said_by=(name, number), meet=meet)
        self._met += number == 1
        return messages

    def _receive_timed(
        self, name: str, number: int, wire: bytes, meet: tuple[str, ...]
    ) -> list[group_message.Message]:
        head = heads.read_head(wire)
        messages = self.group.receive(
            wire[head.start :], said_by=(name, number), meet=meet, now_ns=self._now()
        )
        if self._by_topics and not self.clock.mine.isdisjoint(head.topics):
            self.clock.topics[name, number] = head.topics
        return messages

    def take_run(self, name: str, upto: int, batch: Sealed) -> bool:
        """Take what stands for the next batches of another member's lane, up to a number.

        False: they are known. Raises SequenceError for a gap before it, DecodeError where nothing
        more is taken.
        """
        if name in self.cuts:
            return False
        if name in self.broken:
            raise DecodeError(f"nothing more is taken of {name}: {self.broken[name]}")
        lane, run = self.lanes.by_name.get(name), heads.read_run(batch.wire)
        before = 0 if lane is None else lane.newest
        if upto <= before:
            return False
        if run.first > before + 1 or lane is None:
            raise SequenceError(f"batches {run.first} to {run.last} of {name} behind {before}")
        was_fed = lane.fed == before
        for number in range(before + 1, upto + 1):
            self.lanes.take(name, number, batch)
        if was_fed:
            lane.fed = upto
        if self.keep_rows:
            self._row(name, upto, batch)
        if name in self.gone and not self.clock.mine.isdisjoint(run.topics):
            self.miss(name, upto - before)
        return True

    def miss(self, name: str, count: int) -> None:
        """Tell the application that so many batches of a lane never come."""
        self.given_up += count
        self.delivered.append(GivenUp(name, count, ()))

    def _deliver(self, messages: Iterable[group_message.Message]) -> None:
        """Hand messages over, and feed the lanes that waited for them or for room."""
        work = deque(messages)
        while True:
            while work:
                self._unpack(work.popleft())
            if not self._stalled or self._tried == (stands := self._stands()):
                return
            self._tried = stands
            for name in sorted(self._stalled):
                work.extend(self._feed(name))

    def _stands(self) -> tuple[int, ...]:
        """Return what has to change before a stalled lane is worth another try."""
        own, second = self.lanes.newest(self.me), (self.clock.reading or 0) // NS
        return self.group.stats().held, self._met, own, len(self.cuts), second

    def _feed(self, name: str) -> list[group_message.Message]:
        """Give the group what a lane has for it; returns what is delivered."""
        lane, delivered = self.lanes.by_name[name], list[group_message.Message]()
        while lane.fed < lane.newest and name not in self.broken:
            wire = lane.get(lane.fed + 1).wire
            if self._timed and heads.is_run(wire):
                lane.fed += 1
                continue
            try:
                delivered += self._receive(name, lane.fed + 1, wire)
            except RemoteError as error:
                if _may_come_right(error):
                    return delivered
                self.end_lane(name, str(error))
                break
            lane.fed += 1
        self._stalled.discard(name)
        return delivered

    def _unpack(self, message: group_message.Message) -> None:
        topics = self.clock.topics.pop(message.id, ()) if self._by_topics else ()
        if self.spoiled and message.sender in self.spoiled:
            return
        if self.gone and message.sender in self.lanes.left:  # behind its own word that it goes
            return
        try:
            batch = batches.unpack(message.payload)
        except DecodeError as error:
            self.spoiled.setdefault(message.sender, f"batch {message.seq}: {error}")
            return
        first, said = batch.first, batch.said
        if self._one_a_batch:
            first, said = message.seq, said[:1]
            if (given_up := self._orphans.set_aside(message)) is not None:
                self.given_up += 1
                self.delivered.append(given_up)
                return
        if said:
            self.place += len(said)
            answers = tuple([Id(*one) for one in message.reply_to])
            missing = tuple([Id(*one) for one in message.missing])
            run = Said(message.sender, first, said, answers, missing, topics)
            self.delivered.append(run)
            size = len(message.payload)
            self.backlog.add(message.sender, message.seq, self.place, size, len(said))
            if self.history.maxlen:
                self.history.extend(run.messages())
        for change in batch.changes:
            self._changed(message.sender, change)

    def stalled(self) -> dict[str, int]:
        """Return the lanes whose next batch waits for room, or speaks of somebody who is not known
        here yet, with that batch's number.
        """
        return {name: self.lanes.by_name[name].fed + 1 for name in sorted(self._stalled)}

    # -- time and topics ---------------------------------------------------------------------------

    def shows(self, reading: int) -> None:
        """The clock shows this from now on (never less than before); what waited for it goes."""
        if not self._timed or reading == self.clock.reading:
            return
        before, self.clock.reading, self.clock.noted = self.clock.reading, reading, False
        messages = self.group.tick(now_ns=reading)
        # What a stalled lane says of a time far ahead may be believed by now: once a second.
        again = self._stalled and (before or 0) // NS != reading // NS
        if messages or again:
            if self.keep_rows:
                self.clock.noted = True
                self.rows.append(Row(CLOCK, reading, Sealed(b"", b"")))
            self._deliver(messages)

    def _now(self) -> int:
        if self.clock.reading is None:
            raise LocalError(f"order {self.settings.order!r} goes by a clock, and none was shown")
        return self.clock.reading

    @property
    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Lane -> topics, of the members; nothing in orders without topics."""
        if not self._by_topics:
            return {}
        known = self.group.subscriptions()
        return {
            lane: tuple(topic for topic in known.get(lane, ()) if topic != GROUP_TOPIC)
            for lane in self.members
        }

    def _subscribed(self, by: str, change: Change) -> None:
        if not self._by_topics or by in self.gone:
            return
        try:
            topics = heads.own_topics(change.topics)
        except LocalError as error:
            self.spoiled.setdefault(by, str(error))
            return
        self.group.subscribe(by, (*topics, GROUP_TOPIC))
        if by == self.me:  # what was about others is not held any more
            self.clock.mine = frozenset((*topics, GROUP_TOPIC))
            held = {one.message.id for one in self.group.list_held()}
            self.clock.topics = {key: one for key, one in self.clock.topics.items() if key in held}
        self.delivered.append(View(tuple(sorted(self.members)), change))

    # -- who is in ---------------------------------------------------------------------------------

    def _changed(self, by: str, change: Change) -> None:
        """Heed a change of the group. Changes commute: who is gone never comes back."""
        if not _may_say(by, change):
            self.spoiled.setdefault(by, f"it says that {change}, which only {change.member} can")
            return
        before = set(self.members)
        if change.kind is ChangeKind.SUBSCRIBED:
            self._subscribed(by, change)
        elif change.kind is ChangeKind.JOINED:
            if change.lane not in self.gone:
                if change.lane not in self.members:  # else it was restarted, and says so again
                    self._forget_guests(change.member, change.lane)
                self.members[change.lane] = change.detail
        elif self._may_be_gone(by, change.lane):
            if by == change.lane:
                self.lanes.left.add(by)
            if change.kind is ChangeKind.PUT_OUT and len(self.put_out_by) < MOST_REASONS:
                why = f"by {member_of(by)}" + (f": {change.detail}" if change.detail else "")
                self.put_out_by.setdefault(change.lane, why)
            self._remove(change.lane)
        if set(self.members) != before:
            self.delivered.append(View(tuple(sorted(self.members)), change))

    def _may_be_gone(self, by: str, lane: str) -> bool:
        """Whether a lane may be noted as gone: of lanes that were never here so many by each."""
        if lane in self.lanes.by_name or lane in self.gone:
            return True
        count = self._strangers[by] = self._strangers.get(by, 0) + 1
        return count <= STRANGERS

    def _remove(self, lane: str) -> None:
        self.members.pop(lane, None)
        self.guests.pop(lane, None)
        self.gone.add(lane)
        table = self.lanes.heard.pop(lane, {})
        self.had_by_departed = max(self.had_by_departed, table.get(self.me, 0))

    def invite(self, lane: str) -> Guest:
        """Let a newcomer in: what it lacks is kept from now on.

        Asked again before the newcomer has begun, gives the same. A newcomer that another member
        invited before this one joined is in the group's state, and is invited again. Raises
        LocalError for a lane that is or was in the group.
        """
        guest = self.guests.get(lane)
        if guest is None:
            self._check_invited(member_of(lane))
            self._forget_guests(member_of(lane))
            invitation = self._invite(lane)
            guest = self.guests[lane] = Guest(invitation, self.done(), tuple(self.history))
            self.lanes.acknowledged(lane, guest.frontier)
            if self.keep_rows:
                self._row(lane, INVITED, Sealed(b"", b""))
        return guest

    def _invite(self, lane: str) -> bytes:
        is_invited = lane in self.group.members and lane not in self.members
        return self.group.invite(lane, again=is_invited)

    def _check_invited(self, member: str) -> None:
        """Raise LocalError where a member was let in too often."""
        if sum(member_of(lane) == member for lane in self.group.frontier()) >= MOST_LIVES:
            raise LocalError(f"{member} has begun {MOST_LIVES} lives in this group, which is all")

    def _forget_guests(self, member: str, but: str = "") -> None:
        """A member has one life at a time: earlier ones that never began will not."""
        for lane in [one for one in self.guests if member_of(one) == member]:
            del self.guests[lane]
            if lane != but:
                self.lanes.heard.pop(lane, None)

    def others(self) -> list[str]:
        """Return the lanes of all members but one's own."""
        return [lane for lane in self.members if lane != self.me]

    def done(self) -> dict[str, int]:
        """Return for each lane up to where all was delivered: where a newcomer's lanes begin."""
        found = dict.fromkeys(self.lanes.by_name, 0)
        if self._by_topics:  # some numbers never come
            found = {name: lane.fed for name, lane in self.lanes.by_name.items()}
            for one in self.group.list_held():
                sender, seq = one.message.id
                found[sender] = min(found[sender], seq - 1)
            return {**found, **{name: self.lanes.newest(name) for name in self.cuts}}
        for name, runs in self.group.frontier().items():
            if name in found:
                found[name] = runs[0][1] if runs and runs[0][0] == 1 else 0
        for name in () if self._one_a_batch else self.cuts:
            found[name] = self.lanes.newest(name)
        return found

    def oldest(self) -> dict[str, int]:
        """Return which rows a store keeps for others, once it has a snapshot: lane -> number."""
        found = {name: lane.oldest for name, lane in self.lanes.by_name.items()}
        if self.clock.reading is not None:
            found[CLOCK] = self.clock.reading + 1
        return found

    def free(self, connected: Iterable[str]) -> None:
        """Give up what all have, members, guests and who is connected, and no newcomer needs."""
        lanes = {*self.others(), *self.guests, *connected} - self.gone
        stable = self.lanes.stable(lanes)
        if stable:
            done = self.done()
            self.lanes.free({name: min(number, done[name]) for name, number in stable.items()})

    # -- what died with its sender -----------------------------------------------------------------

    def hopeless(self) -> orphans.Ends:
        """Return, for lanes of members that are gone, behind which batch nothing can be delivered,
        and the lanes of which something is missing, if nobody has more of these than is here.

        In orders by replies only answers to what is missing wait: see `antecede.live.orphans`.
        """
        if not self._one_a_batch:
            return orphans.hopeless(self.group, self.gone, self.lanes.newest)
        if self.settings.missing_parent == HOLD:
            return {}
        have = self.lanes.frontier()
        known = {*have, *self.members, *self.gone, *self.guests, *self.cuts}.union(
            *self.lanes.heard.values()
        )
        waiting = (
            self.lanes.by_name[name].get(number).wire
            for name, number in self.stalled().items()
            if name in self.gone
        )
        found = orphans.strangers(self.group, waiting, known)
        return found | orphans.ended(self.group, self.gone, have, self.cuts)

    def cut(self, lane: str, last: int, lacking: tuple[str, ...]) -> None:
        """Give up what has come of a gone member behind a batch. Its lane ends there.

        Order "reply": nothing came behind it, and what answers more than that is an orphan.
        """
        if self.keep_rows:
            self._row(lane, CUT, Sealed(b"", str(last).encode()))
        self.cuts[lane] = last
        if self._one_a_batch:
            if lane not in self.lanes.by_name:  # a stranger: should it come after all, it is told
                self.gone.add(lane)
            self._deliver(())
            self._deliver(orphans.released(self.group, self.cuts))
            return
        self._deliver(self.group.leave(lane, last, force=True))
        lost = self.lanes.newest(lane) - last
        self.given_up += lost
        self.delivered.append(GivenUp(lane, lost, lacking))

    # -- the way through a store -------------------------------------------------------------------

    def state(self, unacknowledged: Iterable[Message]) -> bytes:
        """Return everything but the batches, with what the application has not acknowledged."""
        self.clock.noted = False  # the rows begin anew
        lanes = ((n, one.oldest, one.newest, one.fed) for n, one in self.lanes.by_name.items())
        guests = ((n, g.invitation, tuple(g.frontier.items())) for n, g in self.guests.items())
        return ordering_state.pack(
            State(
                me=self.me,
                invitation=self._invitation,
                group=self.group.snapshot(),
                lanes=tuple(lanes),
                members=tuple(self.members.items()),
                gone=tuple(sorted(self.gone)),
                place=self.place,
                said=self.said,
                open=tuple(unacknowledged),
                spoiled=tuple(sorted(self.spoiled.items())),
                guests=tuple(guests),
                cuts=tuple(sorted(self.cuts.items())),
                history=tuple(self.history),
                aside=tuple(sorted(self._orphans.aside)),
                reading=self.clock.reading,
                left=tuple(sorted(self.lanes.left)),
            )
        )

    @classmethod
    def restored(
        cls,
        stored: bytes,
        settings: Settings,
        seal: Seal,
        batch_of: Callable[[str, int], Sealed],
    ) -> tuple[Ordering, list[Said]]:
        """Return what `state` was made of, and the messages that were not acknowledged then.

        `batch_of` gives batches that were taken and not yet given to the group. Raises DecodeError.
        """
        was = ordering_state.unpack(stored)
        ordering = cls(was.me, settings, seal, was.invitation)
        ordering.group.restore(was.group, resume=True)
        for name, oldest, newest, fed in was.lanes:
            lane = ordering.lanes.by_name[name] = Lane(fed + 1)
            lane.oldest, lane.fed = oldest, fed
            for number in range(fed + 1, newest + 1):
                ordering.lanes.take(name, number, batch_of(name, number))
                ordering._stalled.add(name)
        ordering.members, ordering.gone = dict(was.members), set(was.gone)
        ordering.lanes.left = set(was.left)
        ordering.place, ordering.said, ordering.spoiled = was.place, was.said, dict(was.spoiled)
        ordering.cuts, ordering.clock.reading = dict(was.cuts), was.reading
        ordering.history.extend(was.history)
        ordering._orphans.aside |= set(was.aside)
        if ordering._by_topics:
            ordering.clock.mine = frozenset(ordering.group.subscriptions().get(was.me, ()))
            held = [one.message.id for one in ordering.group.list_held()]
            wires = ((one, batch_of(*one).wire) for one in held)
            ordering.clock.topics = {one: heads.read_head(wire).topics for one, wire in wires}
        for name, given, frontier in was.guests:
            ordering.guests[name] = Guest(given, dict(frontier))
            ordering.lanes.acknowledged(name, dict(frontier))
        return ordering, [ordering_state.as_said(one) for one in was.open]

    def replay(self, row: Row) -> None:
        """Do again what an input did. Raises DecodeError where the store cannot be right."""
        name, number, batch = row
        if name == CLOCK:
            self.shows(number)
            return
        if number == INVITED:
            self.invite(name)
            return
        if number == CUT:
            self.cut(name, int(batch.wire), ())
            return
        if name != self.me:
            if self._timed and heads.is_run(batch.wire):
                self.take_run(name, number, batch)
            else:
                self.take(name, number, batch)
            return
        wire = batch.wire[heads.read_head(batch.wire).start :] if self._timed else batch.wire
        said = self.group.decode_own(wire)
        if said is None:
            raise DecodeError(f"batch {number} of one's own lane says nothing")
        self.group.resume_incarnation(wire)
        if self._timed:
            sent = self._post(said.payload, said.topics)
        else:
            sent = self.group.send(said.payload, reply_to=said.reply_to)
        if bytes(sent) != wire or sent.seq != number:
            raise DecodeError(f"batch {number} of one's own lane does not come out as it went in")
        own = batches.unpack(said.payload)
        self._keep_own(number, batch)
        self.said += len(own.said)
        self._own(own, [Id(*one) for one in said.reply_to], said.topics)
        self._deliver(())

    def begin_again(self) -> None:
        """After a replay: go on in a new life of the ordering group."""
        self.group.restore(self.group.snapshot())


def _may_come_right(error: RemoteError) -> bool:
    """Whether a batch that the ordering group does not take now may be one for later: there is no
    room, or it speaks of somebody, or of a message of one's own, that it cannot know yet. What is
    refused must be refused by all, or some wait for what others took.
    """
    return isinstance(error, LimitError | UnknownMemberError) or type(error) is SequenceError


def _may_say(by: str, change: Change) -> bool:
    """Everybody speaks for itself, and a life says that former ones are over; anybody puts out."""
    if change.kind in (ChangeKind.JOINED, ChangeKind.SUBSCRIBED):
        return change.lane == by
    return change.kind is ChangeKind.PUT_OUT or change.member == member_of(by)
