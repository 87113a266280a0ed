"""Deterministic part of a peer: sender logs, ordering group, deliveries.

The same batches in the same order lead to the same deliveries. So a store of the batches is
complete (`antecede.live.store`).
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
    Id,
    Message,
    MessagesAbandoned,
    SentBatch,
    View,
    member_of,
    new_id,
)
from antecede.live.flow import Backlog
from antecede.live.heads import GROUP_TOPIC
from antecede.live.lanes import SenderLog, SenderLogs, SignedBatch
from antecede.live.ordering_state import State
from antecede.live.settings import FULL, HOLD, NS, Settings

Seal = Callable[[int, bytes], bytes]
"""Signer of own batches: (number, wire) -> signature."""
MAX_INCARNATIONS = 1000
"""Incarnations of one member in the lifetime of a group. Ids are not reused, so each takes memory
for good."""
STRANGERS = 1000
"""Unknown senders that one sender may declare departed, at most."""


MOST_REASONS = 4096
"""Evicted members whose reason is kept, at most."""
INVITED, CUT = 0, -1
"""Replaces a batch number. INVITED: the sender was invited. CUT: its log ends here; the bytes
contain its last number."""
CLOCK = ""
"""Replaces a sender id: the number is the clock reading from here on (orders by clocks)."""


class StoredInput(NamedTuple):
    """Input for the store."""

    lane: str
    number: int
    """Batch number, INVITED or CUT."""
    batch: SignedBatch


class JoinState(NamedTuple):
    """State for a joining member."""

    invitation: bytes
    frontier: dict[str, int]
    """Numbers up to which the invitation covers each sender."""
    history: tuple[Message, ...] = ()
    """Newest messages that it covers. Empty after a restart of the sponsor."""


class Clock:
    """State of orders by clocks and topics. A part of `Ordering`, whose attributes would be slower
    beyond thirty (CPython).
    """

    __slots__ = ("about", "accuracy_ns", "mine", "noted", "reading", "topics")

    def __init__(self) -> None:
        self.reading: int | None = None
        self.noted = False
        """True if a row contains the reading."""
        self.accuracy_ns: int | None = None
        """Accuracy of the clock in own batches. None: unknown."""
        self.about: tuple[str, ...] = ()
        """Topics of the messages since the last batch."""
        self.topics: dict[tuple[str, int], tuple[str, ...]] = {}
        """Topics of the batches that the group holds."""
        self.mine = frozenset[str]()


class Ordering:
    """Sender logs, ordering group, members and deliveries of one member."""

    def __init__(self, lane: str, settings: Settings, seal: Seal, invitation: bytes = b"") -> None:
        """Start a group, or accept an invitation. Raises DecodeError for an invalid one."""
        self.group = settings.group(lane, invitation)
        self.settings, self._seal, self._invitation = settings, seal, invitation
        self.me = lane
        self.lanes = SenderLogs()
        self.lanes.by_name[self.me] = SenderLog()
        self.members: dict[str, str] = {}
        """Sender id of each member -> address ("": unknown)."""
        self.gone: set[str] = set()
        """Sender ids of departed members, which never return."""
        self.had_by_departed = 0
        """Newest own batch that a departed member acknowledged."""
        self.put_out_by: dict[str, str] = {}
        """Sender id of a member evicted in this run -> evicting member and reason."""
        self.guests: dict[str, JoinState] = {}
        """Invited members that have not announced their join yet."""
        self.delivered: list[Delivery] = []
        self.backlog = Backlog()
        self.place = 0
        self.said = 0
        """Number of messages that the application sent. Their numbers, except with order "reply".
        """
        self.given_up = 0
        """Number of abandoned batches, whose causes are lost."""
        self.cuts: dict[str, int] = {}
        """Sender id -> last number of its log, where that was truncated or ended."""
        self.spoiled: dict[str, str] = {}
        """Sender id -> reason to ignore its invalid payloads. The batches are still ordered:
        members detect the fault at different times, and other batches may depend on these."""
        self.broken: dict[str, str] = {}
        """Sender id -> reason to accept nothing more: the group rejects a batch, as all members do.
        """
        self._strangers: dict[str, int] = {}
        """Sender id -> number of unknown senders that it declared departed."""
        self.rows: list[StoredInput] = []
        self.urgent_rows = False
        """True if one of these is an own batch, which is sent once the store has it."""
        self.keep_rows = False
        self.history: deque[Message] = deque(maxlen=settings.history)
        self._one_a_batch, self._largest = settings.by_reply, settings.max_message_bytes
        self._orphans = orphans.LostCauses(settings.on_missing_parent)
        self._pending: list[bytes] = []
        self._changes: list[Change] = []
        self._bytes = 0
        self._timed, self._by_topics = settings.timed, settings.by_topics
        self._apart = self._one_a_batch or self._by_topics
        """True if consecutive messages may need separate batches."""
        self.clock = Clock()
        self._stalled: set[str] = set()
        """Senders whose next batch the group cannot take yet: no capacity, or an unknown reference.
        """
        self._met = 0
        """Number of senders met."""
        self._tried: tuple[int, ...] = ()
        """State at the last vain attempt for the stalled senders."""

    # -- sending -----------------------------------------------------------------------------------

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """Send a message of the application; return its id. Raises LocalError for an invalid
        message or an unknown parent.
        """
        if type(payload) is not bytes:
            raise LocalError(f"payload is a {type(payload).__name__}; expected bytes")
        size = len(payload)
        if size > self._largest:
            raise LocalError(
                f"payload of {size} bytes exceeds "
                f"max_message_bytes={self.settings.max_message_bytes}"
            )
        if topics or self._apart:
            if self._one_a_batch and not topics:
                self.flush()
                self.said += 1
                return Id(self.me, self._send(Batch(self._next, [payload]), reply_to))
            self._begin_about(topics)
        if reply_to:
            raise LocalError(
                f'reply_to= is not supported by order {self.settings.order!r}; use order="reply"'
            )
        self.said = number = self.said + 1
        self._pending.append(payload)
        self._bytes = size = self._bytes + size
        if size >= FULL:
            self.flush()
        return new_id((self.me, number))

    def _begin_about(self, topics: Collection[str]) -> None:
        """Start a new batch if the topics change."""
        if not self._by_topics:
            raise LocalError(f"topics= is not supported by order {self.settings.order!r}")
        about = heads.own_topics(topics)
        if not about:
            raise LocalError("the message has no topics; give topics=[...]")
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
        """Announce a change of the group."""
        self._changes.append(change)

    @property
    def unsent(self) -> int:
        """Number of batches that the messages since the last one will need."""
        if self._by_topics:
            return bool(self._pending) + bool(self._changes)
        return bool(self._pending or self._changes)

    @property
    def pending_bytes(self) -> int:
        """Bytes of messages that are in no batch yet."""
        return self._bytes

    @property
    def memory_in_use(self) -> int:
        """Bytes of own messages in memory: in no batch yet, or kept for others."""
        return self._bytes + self.lanes.by_name[self.me].bytes

    def buffer_full(self) -> BufferFullError:
        """Return the error for a message beyond `max_memory_bytes`."""
        return BufferFullError(
            f"{member_of(self.me)}: {self.memory_in_use:,} bytes wait for other members or the "
            f"store; max_memory_bytes={self.settings.max_memory_bytes:,} is the limit; use `await "
            "peer.send(...)`, or `await peer.drain()` first"
        )

    @property
    def waiting_bytes(self) -> int:
        """Bytes of unsent messages."""
        return self._bytes

    @property
    def _next(self) -> int:
        return self.lanes.by_name[self.me].newest + 1

    def flush(self) -> None:
        """Make a batch of the messages since the last one."""
        if not (self._pending or self._changes):
            return
        first = self._next if self._one_a_batch else self.said - len(self._pending) + 1
        if self._by_topics and self._changes:  # they concern all members
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
            sent = self.group.send(
                payload, reply_to=[(one.sender_id, one.number) for one in reply_to]
            )
            wire = bytes(sent)
        self._keep_own(sent.seq, SignedBatch(self._seal(sent.seq, wire), wire))
        self._own(batch, reply_to, topics)
        self._deliver(())
        return sent.seq

    def _post(self, payload: bytes, topics: tuple[str, ...]) -> group_message.Sent:
        """Send a batch in an order by clocks."""
        (packet,) = self.group.send_packets(payload, topics=topics, now_ns=self._now())
        assert isinstance(packet.wire, group_message.Sent)
        return packet.wire

    def _keep_own(self, number: int, batch: SignedBatch) -> None:
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
            self._apply_change(self.me, change)

    # -- receiving ---------------------------------------------------------------------------------

    def take(self, name: str, number: int, batch: SignedBatch) -> bool:
        """Accept the next batch of another sender. False: it is known. Raises SequenceError for a
        gap before it, another RemoteError for an invalid one, without effect.
        """
        if name in self.cuts:
            return False
        if name in self.broken:
            raise DecodeError(f"log of {name} ended after an invalid batch: {self.broken[name]}")
        lane = self.lanes.by_name.get(name)
        if lane is None:
            if number != 1:
                raise SequenceError(f"batch {number} of {name} before batch 1")
            self._check_lives(name)
            lane = self.lanes.by_name[name] = SenderLog()
        messages: list[group_message.Message] = []
        if lane.fed == lane.newest == number - 1:  # the usual case: nothing before it is stalled
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
            self._deliver(orphans.release_lost(self.group, self.cuts))
        return True

    def _row(self, lane: str, number: int, batch: SignedBatch) -> None:
        if self._timed and not self.clock.noted:
            self.clock.noted = True
            self.rows.append(StoredInput(CLOCK, self._now(), SignedBatch(b"", b"")))
        self.rows.append(StoredInput(lane, number, batch))

    def _check_lives(self, name: str) -> None:
        """Raise LimitError for a member with too many incarnations."""
        member = member_of(name)
        if sum(member_of(lane) == member for lane in self.lanes.by_name) >= MAX_INCARNATIONS:
            raise LimitError(
                f"{member} has had {MAX_INCARNATIONS} incarnations in this group, the limit"
            )

    def takes(self, name: str) -> bool:
        """Return whether further batches of a sender are accepted."""
        return name not in self.broken and name not in self.cuts

    def end_lane(self, name: str, why: str) -> None:
        """Accept nothing more of a sender."""
        self.broken.setdefault(name, why)

    def forget(self, lane: str) -> None:
        """Forget a disconnected member that is neither in the group nor invited."""
        if lane not in self.members and lane not in self.guests:
            self.lanes.heard.pop(lane, None)

    def _receive(self, name: str, number: int, wire: bytes) -> list[group_message.Message]:
        meet = (name,) if number == 1 else ()
        # no member waits for these, so later batches may refer to them
        if self.cuts and self._one_a_batch:
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

    def take_run(self, name: str, upto: int, batch: SignedBatch) -> bool:
        """Accept a skip marker for the next batches of another sender, up to a number. False: they
        are known. Raises SequenceError for a gap before it, DecodeError for an ended log.
        """
        if name in self.cuts:
            return False
        if name in self.broken:
            raise DecodeError(f"log of {name} ended after an invalid batch: {self.broken[name]}")
        lane, run = self.lanes.by_name.get(name), heads.read_run(batch.wire)
        before = 0 if lane is None else lane.newest
        if upto <= before:
            return False
        if run.first > before + 1 or lane is None:
            raise SequenceError(
                f"skipped batches {run.first} to {run.last} of {name} after {before}"
            )
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
        """Report batches of a sender that never arrive."""
        self.given_up += count
        self.delivered.append(MessagesAbandoned(name, count, ()))

    def _deliver(self, messages: Iterable[group_message.Message]) -> None:
        """Deliver messages, and feed the senders that waited for them or for capacity."""
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
        """Return the state whose change makes another attempt for stalled senders worthwhile."""
        own, second = self.lanes.newest(self.me), (self.clock.reading or 0) // NS
        return self.group.stats().held, self._met, own, len(self.cuts), second

    def _feed(self, name: str) -> list[group_message.Message]:
        """Feed the batches of a sender to the group; return the deliveries."""
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
        if self.gone and message.sender in self.lanes.left:  # behind its leave
            return
        try:
            batch = batches.unpack(message.payload)
        except DecodeError as error:
            self.spoiled.setdefault(message.sender, f"batch {message.seq}: {error}")
            return
        first, said = batch.first, batch.said
        if self._one_a_batch:
            first, said = message.seq, said[:1]
            if (given_up := self._orphans.drop(message)) is not None:
                self.given_up += 1
                self.delivered.append(given_up)
                return
        if said:
            self.place += len(said)
            answers = tuple([Id(*one) for one in message.reply_to])
            missing = tuple([Id(*one) for one in message.missing])
            run = SentBatch(message.sender, first, said, answers, missing, topics)
            self.delivered.append(run)
            size = len(message.payload)
            self.backlog.add(message.sender, message.seq, self.place, size, len(said))
            if self.history.maxlen:
                self.history.extend(run.messages())
        for change in batch.changes:
            self._apply_change(message.sender, change)

    def list_stalled(self) -> dict[str, int]:
        """Return stalled sender -> its next batch number. The batch waits for capacity, or refers
        to an unknown sender.
        """
        return {name: self.lanes.by_name[name].fed + 1 for name in sorted(self._stalled)}

    # -- time and topics ---------------------------------------------------------------------------

    def shows(self, reading: int) -> None:
        """Take a clock reading, which never falls; deliver what waited for it."""
        if not self._timed or reading == self.clock.reading:
            return
        before, self.clock.reading, self.clock.noted = self.clock.reading, reading, False
        messages = self.group.tick(now_ns=reading)
        # A batch far ahead of the clock may be acceptable now. Retry once a second.
        again = self._stalled and (before or 0) // NS != reading // NS
        if messages or again:
            if self.keep_rows:
                self.clock.noted = True
                self.rows.append(StoredInput(CLOCK, reading, SignedBatch(b"", b"")))
            self._deliver(messages)

    def _now(self) -> int:
        if self.clock.reading is None:
            raise LocalError(f"order {self.settings.order!r} needs a clock reading first")
        return self.clock.reading

    @property
    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Member -> topics; empty in orders without topics."""
        if not self._by_topics:
            return {}
        known = self.group.subscriptions()
        return {
            lane: tuple(topic for topic in known.get(lane, ()) if topic != GROUP_TOPIC)
            for lane in self.members
        }

    def _apply_subscription(self, by: str, change: Change) -> None:
        if not self._by_topics or by in self.gone:
            return
        try:
            topics = heads.own_topics(change.topics)
        except LocalError as error:
            self.spoiled.setdefault(by, str(error))
            return
        self.group.subscribe(by, (*topics, GROUP_TOPIC))
        if by == self.me:  # held batches on other topics are gone
            self.clock.mine = frozenset((*topics, GROUP_TOPIC))
            held = {one.message.id for one in self.group.list_held()}
            self.clock.topics = {key: one for key, one in self.clock.topics.items() if key in held}
        self.delivered.append(View(tuple(sorted(self.members)), change))

    # -- membership --------------------------------------------------------------------------------

    def _apply_change(self, by: str, change: Change) -> None:
        """Apply a change of the group. Changes commute: departed members never return."""
        if not _may_say(by, change):
            self.spoiled.setdefault(by, f"it announces that {change}; only {change.member} may")
            return
        before = set(self.members)
        if change.kind is ChangeKind.SUBSCRIBED:
            self._apply_subscription(by, change)
        elif change.kind is ChangeKind.JOINED:
            if change.sender_id not in self.gone:
                if change.sender_id not in self.members:  # else a restart, which announces it again
                    self._forget_guests(change.member, change.sender_id)
                self.members[change.sender_id] = change.detail
        elif self._may_be_gone(by, change.sender_id):
            if by == change.sender_id:
                self.lanes.left.add(by)
            if change.kind is ChangeKind.EVICTED and len(self.put_out_by) < MOST_REASONS:
                why = f"by {member_of(by)}" + (f": {change.detail}" if change.detail else "")
                self.put_out_by.setdefault(change.sender_id, why)
            self._remove(change.sender_id)
        if set(self.members) != before:
            self.delivered.append(View(tuple(sorted(self.members)), change))

    def _may_be_gone(self, by: str, lane: str) -> bool:
        """Return whether a sender may be recorded as departed. Unknown ones are limited by
        reporter.
        """
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

    def invite(self, lane: str) -> JoinState:
        """Invite a joining member, and keep from now on what it lacks. Repeated calls before its
        join return the same. If another member invited it before this one joined, the group knows
        it, and it is invited again. Raises LocalError for a sender that is or was in the group.
        """
        guest = self.guests.get(lane)
        if guest is None:
            self._check_invited(member_of(lane))
            self._forget_guests(member_of(lane))
            invitation = self._invite(lane)
            guest = self.guests[lane] = JoinState(invitation, self.find_done(), tuple(self.history))
            self.lanes.acknowledge(lane, guest.frontier)
            if self.keep_rows:
                self._row(lane, INVITED, SignedBatch(b"", b""))
        return guest

    def _invite(self, lane: str) -> bytes:
        is_invited = lane in self.group.members and lane not in self.members
        return self.group.invite(lane, again=is_invited)

    def _check_invited(self, member: str) -> None:
        """Raise LocalError for a member that was invited too often."""
        if sum(member_of(lane) == member for lane in self.group.frontier()) >= MAX_INCARNATIONS:
            raise LocalError(
                f"{member} has had {MAX_INCARNATIONS} incarnations in this group, the limit"
            )

    def _forget_guests(self, member: str, but: str = "") -> None:
        """Forget the earlier invitations of a member: it has one incarnation at a time."""
        for lane in [one for one in self.guests if member_of(one) == member]:
            del self.guests[lane]
            if lane != but:
                self.lanes.heard.pop(lane, None)

    def others(self) -> list[str]:
        """Return the sender ids of the other members."""
        return [lane for lane in self.members if lane != self.me]

    def find_done(self) -> dict[str, int]:
        """Return sender -> number up to which all is delivered, where a joining member starts."""
        found = dict.fromkeys(self.lanes.by_name, 0)
        if self._by_topics:  # some numbers never arrive
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
        """Return sender -> oldest row that a store keeps for others after a snapshot."""
        found = {name: lane.oldest for name, lane in self.lanes.by_name.items()}
        if self.clock.reading is not None:
            found[CLOCK] = self.clock.reading + 1
        return found

    def free(self, connected: Iterable[str]) -> None:
        """Free the batches that all members, invited ones and connections have."""
        lanes = {*self.others(), *self.guests, *connected} - self.gone
        stable = self.lanes.stable(lanes)
        if stable:
            done = self.find_done()
            self.lanes.free({name: min(number, done[name]) for name, number in stable.items()})

    # -- lost causes -------------------------------------------------------------------------------

    def hopeless(self) -> orphans.Ends:
        """Return the ends of departed senders' logs, and the senders with missing batches. Nothing
        behind these ends can be delivered if no member has more than this one. With order "reply"
        only replies wait: see `antecede.live.orphans`.
        """
        if not self._one_a_batch:
            return orphans.find_hopeless(self.group, self.gone, self.lanes.newest)
        if self.settings.on_missing_parent == HOLD:
            return {}
        have = self.lanes.frontier()
        known = {*have, *self.members, *self.gone, *self.guests, *self.cuts}.union(
            *self.lanes.heard.values()
        )
        waiting = (
            self.lanes.by_name[name].get(number).wire
            for name, number in self.list_stalled().items()
            if name in self.gone
        )
        found = orphans.find_unknown_senders(self.group, waiting, known)
        return found | orphans.find_ended(self.group, self.gone, have, self.cuts)

    def cut(self, lane: str, last: int, lacking: tuple[str, ...]) -> None:
        """Truncate a departed sender's log behind a batch. Order "reply": nothing was received
        behind it, and replies to later batches lose their parent.
        """
        if self.keep_rows:
            self._row(lane, CUT, SignedBatch(b"", str(last).encode()))
        self.cuts[lane] = last
        if self._one_a_batch:
            if lane not in self.lanes.by_name:  # an unknown sender, evicted if it appears later
                self.gone.add(lane)
            self._deliver(())
            self._deliver(orphans.release_lost(self.group, self.cuts))
            return
        self._deliver(self.group.leave(lane, last, force=True))
        lost = self.lanes.newest(lane) - last
        self.given_up += lost
        self.delivered.append(MessagesAbandoned(lane, lost, lacking))

    # -- store -------------------------------------------------------------------------------------

    def state(self, unacknowledged: Iterable[Message]) -> bytes:
        """Return the state without batches, with the unacknowledged messages."""
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
    def from_state(
        cls,
        stored: bytes,
        settings: Settings,
        seal: Seal,
        batch_of: Callable[[str, int], SignedBatch],
    ) -> tuple[Ordering, list[SentBatch]]:
        """Return the ordering of a `state`, and the messages that were unacknowledged then.
        `batch_of` returns batches that the group had not taken yet. Raises DecodeError.
        """
        was = ordering_state.unpack(stored)
        ordering = cls(was.me, settings, seal, was.invitation)
        ordering.group.restore(was.group, resume=True)
        for name, oldest, newest, fed in was.lanes:
            lane = ordering.lanes.by_name[name] = SenderLog(fed + 1)
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
            ordering.guests[name] = JoinState(given, dict(frontier))
            ordering.lanes.acknowledge(name, dict(frontier))
        return ordering, [ordering_state.as_said(one) for one in was.open]

    def replay(self, row: StoredInput) -> None:
        """Repeat an input. Raises DecodeError for an inconsistent store."""
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
            raise DecodeError(f"own batch {number} in the store is empty; restore an intact copy")
        self.group.resume_incarnation(wire)
        if self._timed:
            sent = self._post(said.payload, said.topics)
        else:
            sent = self.group.send(said.payload, reply_to=said.reply_to)
        if bytes(sent) != wire or sent.seq != number:
            raise DecodeError(
                f"own batch {number} differs from its replay; restore an intact copy of the store"
            )
        own = batches.unpack(said.payload)
        self._keep_own(number, batch)
        self.said += len(own.said)
        self._own(own, [Id(*one) for one in said.reply_to], said.topics)
        self._deliver(())

    def begin_again(self) -> None:
        """Continue after a replay in a new incarnation of the ordering group."""
        self.group.restore(self.group.snapshot())


def _may_come_right(error: RemoteError) -> bool:
    """Return whether the group may accept a rejected batch later. It may lack capacity, or a sender
    or own message that the batch refers to. A final rejection must be common to all members;
    otherwise some wait for batches that others took.
    """
    return isinstance(error, LimitError | UnknownMemberError) or type(error) is SequenceError


def _may_say(by: str, change: Change) -> bool:
    """Return whether a member may announce a change. A member speaks for itself, and an incarnation
    ends earlier ones. Any member may evict another.
    """
    if change.kind in (ChangeKind.JOINED, ChangeKind.SUBSCRIBED):
        return change.sender_id == by
    return change.kind is ChangeKind.EVICTED or change.member == member_of(by)
