"""State machine of a live peer, without socket, clock and thread.

A driver reports events (`link_up`, `receive`, `link_down`, `send`, `tick`, `stored`) and ends each
step with `turn`. Then it asks for bytes to write (`pull`), members to dial (`dials`), rows to store
(`take_rows`), messages for the application (`take_delivered`), and connections to close
(`closing`). All times are nanoseconds of a monotonic clock.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from antecede.core.clocks import seconds_text
from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.serialization import BYTES, NUMBER, misfit, pack_state, unpack_state
from antecede.errors import (
    ConflictError,
    DecodeError,
    IncarnationError,
    LimitError,
    LocalError,
    MismatchError,
    RemoteError,
    SequenceError,
)
from antecede.live import audience, wire
from antecede.live.audience import TopicFilter
from antecede.live.charges import BEGIN_ANEW, EVICTED, OLD_COPY, EvictionVotes, describe_replacement
from antecede.live.conflicts import EquivocationProof, find_proof
from antecede.live.events import Change, ChangeKind, Delivery, Id, SentBatch, lane_of, member_of
from antecede.live.flow import Flow
from antecede.live.greeting import Handshake
from antecede.live.heads import own_topics, read_head
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.ordering import Ordering, StoredInput
from antecede.live.outflow import Outbound
from antecede.live.rejections import Rejections, rejection
from antecede.live.sealing import NoSignatures, Signatures
from antecede.live.settings import MAJORITY, Settings
from antecede.live.upkeep import Timers

if TYPE_CHECKING:
    from antecede.live.timekeeping import ClockMonitor

UNREAD = 4096
"""Control frames queued on a connection beyond which it is closed."""
TLS = b"\x16\x03"
"""First bytes of a TLS handshake, which no HELLO has."""
OF_ANOTHER = "room", "order", "options", "group"
"""Settings in which members of different groups differ."""
UNGREETED = 64
"""Connections of one name, or without a name, at most that have sent no HELLO."""


class Saved(NamedTuple):
    """State from a store."""

    snapshot: bytes
    rows: Iterable[StoredInput]
    batch_of: Callable[[str, int], SignedBatch]
    done: int
    """Delivered messages that the application has finished."""
    owners: Mapping[str, bytes] = MappingProxyType({})
    """Sender id -> proof of its owner, of other members."""


class Node:
    """State machine of one peer. `life`: its incarnation; `address`: its listener."""

    ordering_class = Ordering

    def __init__(
        self,
        name: str,
        settings: Settings,
        life: str,
        address: str = "",
        *,
        seals: Signatures | None = None,
        durable: bool = False,
    ) -> None:
        self.name, self.settings, self.address = name, settings, address
        self.lane = lane_of(name, life)
        self.seals = seals or NoSignatures()
        self.durable = durable
        """True if a store decides what other members may learn."""
        self.ordering: Ordering | None = None
        """None: not in a group."""
        self._majority = settings.partition == MAJORITY
        self._check_all = settings.verify_all_signatures
        self.group_tag = b""
        """Random tag of the group. It separates groups of one name."""
        self.links: dict[int, Link] = {}
        self.greeted: dict[str, Link] = {}
        """Sender id -> connection to that member."""
        self.rejected: Counter[str] = Counter()
        """Rejections by error class."""
        self.last_rejection = ""
        self.refusal = ""
        """Reason of a member that rejected this joining one."""
        self.out = ""
        """Reason why this incarnation is out of the group. Empty: it has not."""
        self.left = False
        """True once this member has announced its leave. It sends nothing more."""
        self._closed_to: set[str] = set()
        """Members that accept nothing more from this one, which has left."""
        self.parted = False
        """True once this member has left and dials no member any more."""
        self.bytes_in = self.bytes_out = 0
        self._stored: dict[str, int] = {}
        self._learnt: dict[str, bytes] = {}
        """Sender id -> proof that the store does not have yet."""
        self.news = False
        """True if received batches were not acknowledged to all."""
        self._told: dict[str, int] = {}
        """Sender id -> number last acknowledged to all."""
        self.done = self.taken = 0
        """Delivered messages that the application has finished, and has taken."""
        self._open: deque[SentBatch] = deque()
        """Taken messages that are not acknowledged; only with a store."""
        self._before_open = 0
        """Messages delivered before the first of these."""
        self.eviction_votes = EvictionVotes(name)
        self.rejections = Rejections()
        self.proofs: dict[str, EquivocationProof] = {}
        """Sender id -> proof of its equivocation."""
        self.handshake = Handshake(self)
        self.flow = Flow(self)
        self.inbox_limit = settings.max_memory_bytes // 4
        """Size of the inbox beyond which batches are not acknowledged."""
        self.is_reading = True
        self._withholds = False
        """True if some batches are not acknowledged since the inbox is full."""
        self.timers = Timers(self)
        self.outbound = Outbound(self)
        topics = own_topics(settings.topics or ())
        self.topic_filter = TopicFilter(self, topics) if settings.by_topics else None

    @property
    def clock_monitor(self) -> ClockMonitor | None:
        """Monitor of clocks and delays. None: an order without clocks. With a monitor the driver
        reports the system clock (`shows`).
        """
        return self.timers.clock_monitor

    # -- start and end -----------------------------------------------------------------------------

    def bootstrap(self, tag: bytes) -> None:
        """Start a group of one; `tag`: eight random bytes."""
        self.handshake.begin(self.ordering_class(self.lane, self.settings, self.seals.seal))
        self.group_tag = tag
        self.active.change(Change(ChangeKind.JOINED, self.lane, self.address))
        self.say_subscription()
        self.active.flush()

    def say_subscription(self) -> None:
        """Announce the subscription with the next batch (orders by topics)."""
        if self.topic_filter is not None:
            topics = "\n".join(self.topic_filter.mine)
            self.active.change(Change(ChangeKind.SUBSCRIBED, self.lane, topics))

    def subscribe(self, topics: Collection[str]) -> None:
        """Replace the subscription. Raises LocalError."""
        chosen = own_topics(topics)
        ordering, audience = self.active, self.topic_filter
        if audience is None:
            raise LocalError(f"order {self.settings.order!r} has no topics to subscribe to")
        if chosen != ordering.subscriptions[self.lane]:
            audience.subscribe(chosen)
            self.say_subscription()

    @property
    def active(self) -> Ordering:
        """Ordering of the group. Raises LocalError without a group."""
        if self.out:
            raise LocalError(f"{self.name} is out of the group: {self.out}")
        if self.ordering is None:
            raise LocalError(f"{self.name} is not in a group; call `join` or `bootstrap` first")
        return self.ordering

    def leave(self) -> None:
        """Announce the leave, once. `unacknowledged_members` tells when all members know."""
        if self.left:
            return
        self.acknowledge()  # control frames precede batches; leaving members may wait for this one
        # by topics changes come first, and members ignore everything behind this one
        self.active.flush()
        self.active.change(Change(ChangeKind.LEFT, self.lane))
        self.left = True
        self.active.flush()

    def go_out(self, why: str) -> None:
        """Leave the group for good: send and accept nothing more in this incarnation."""
        self.out = self.out or why
        for link in self.links.values():
            if not link.closing:
                self.end(link, "not in the group any more")

    def evict(self, lane: str, why: str) -> None:
        """Announce the eviction of a member. Raises LocalError for other names."""
        if lane == self.lane or lane not in self.active.members:
            raise LocalError(f"unknown member {lane}; choose from {', '.join(self.others())}")
        self.active.change(Change(ChangeKind.EVICTED, lane, why))

    def others(self) -> list[str]:
        """Return the sender ids of all other members."""
        return self.active.others()

    def list_unacknowledged(self) -> list[str]:
        """Return the members that have not acknowledged all own batches."""
        ordering = self.active
        newest, heard = ordering.lanes.newest(self.lane), ordering.lanes.heard
        others = (m for m in ordering.others() if m not in self._closed_to)
        return [m for m in others if heard.get(m, {}).get(self.lane, 0) < newest]

    def find_acknowledged(self) -> int:
        """Return the newest own batch that some other member has, with all before it. In a group of
        one, and without a group, the newest own batch.
        """
        ordering = self.ordering
        if ordering is None:
            return 0
        heard, newest = ordering.lanes.heard, ordering.lanes.newest(self.lane)
        had = max((heard.get(m, {}).get(self.lane, 0) for m in ordering.others()), default=newest)
        return max(had, ordering.had_by_departed)

    # -- the application ---------------------------------------------------------------------------

    def send(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """Send a message to the group with this step. Raises LocalError if it is not possible."""
        if self.in_minority:
            raise LocalError(f"{self.name} is in a minority part: it sends nothing")
        if self.left:
            raise LocalError(f"{self.name} has left: it sends nothing")
        if why := self.why_nothing_is_heard():
            raise LocalError(why)
        self.flow.is_pressed = self.flow.is_pressed or self.flow.is_full
        return self.active.say(payload, reply_to, topics)

    def why_nothing_is_heard(self) -> str:
        """Return why other members accept no message of this one now (orders by clocks), or ""."""
        if self.clock_monitor is None or not self.settings.waits_for_clocks:
            return ""
        if not (by_ns := self.clock_monitor.find_lead_ns()):
            return ""
        return (
            f"messages of {self.name} are {seconds_text(by_ns)} s ahead of the clocks of the "
            "others, which hold them until then; correct the clock, acknowledge all messages, and "
            "start with a new store"
        )

    @property
    def in_minority(self) -> bool:
        """True if this member is cut off from the majority that its group needs."""
        if not self._majority or self.ordering is None:
            return False
        heard = 1 + sum(lane in self.greeted for lane in self.ordering.others())
        return 2 * heard <= len(self.ordering.members)

    def take_delivered(self) -> list[Delivery]:
        """Return the delivered events, once each."""
        if self.ordering is None or self.in_minority or not self.ordering.delivered:
            return []
        events, self.ordering.delivered = self.ordering.delivered, []
        fresh = [one for one in events if isinstance(one, SentBatch) and not one.is_history]
        self.taken += sum(one.live_count for one in fresh)
        if self.durable:
            self._open.extend(fresh)
        return events

    # -- connections -------------------------------------------------------------------------------

    def link_up(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        """Handle a new connection; `name`: name in the certificate."""
        self._make_room(name)
        link = self.links[number] = Link(number, name, now, dialed=dialed)
        link.control.append(wire.pack_hello(self.handshake.hello()))
        if self.topic_filter is not None:
            self.topic_filter.announce(link)

    def _make_room(self, name: str) -> None:
        """Close the oldest connection of a name without HELLO, if there are too many."""
        silent = [x for x in self.links.values() if not (x.lane or x.closing) and x.name == name]
        if len(silent) >= UNGREETED:
            self.refuse(
                silent[0],
                LimitError(f"more than {UNGREETED} connections of one name without HELLO"),
            )

    def link_down(self, number: int, now: int) -> None:
        """Handle the end of a connection."""
        link = self.links.pop(number, None)
        if link is not None:
            self.rejections.handle_close(link, now)
        if link is not None and self.greeted.get(link.lane) is link:
            del self.greeted[link.lane]
            if self.clock_monitor is not None:
                self.clock_monitor.check.forget(link.lane)
            if self.ordering is not None:
                self.ordering.forget(link.lane)
            self.timers.handle_close(link, now)

    def receive(self, number: int, data: bytes, now: int) -> None:
        """Handle received bytes. Invalid ones close the connection with a reason."""
        link = self.links.get(number)
        if link is None or link.closing:
            return
        link.heard_ns = now
        self.bytes_in += len(data)
        try:
            if not link.bytes_in and data.startswith(TLS):
                raise DecodeError(
                    "TLS handshake received, but this group has no certificates (insecure)"
                )
            for kind, body in link.read(data):
                self._frame(link, kind, body, now)
                if link.closing:
                    return
            if len(link.control) > UNREAD:
                raise LimitError(f"{len(link.control)} frames are queued and not read")
        except RemoteError as error:
            self.refuse(link, error)

    def refuse(self, link: Link, error: RemoteError) -> None:
        """Close a connection with a reason, and count the rejection."""
        self.count(link, error)
        link.is_rejected = True
        if isinstance(error, MismatchError) and error.differs in OF_ANOTHER:
            self.rejections.note(link, str(error))  # both ends reject each other
        self.end(link, rejection(str(error)))

    def count(self, link: Link, error: RemoteError) -> None:
        """Count a rejection without closing the connection."""
        self.rejected[type(error).__name__] += 1
        self.last_rejection = f"{link.name or 'an unknown client'}: {error}"

    def why_out(self, lane: str) -> str:
        """Return the BYE text for a departed member."""
        member = member_of(lane)
        known = self.ordering.members if self.ordering is not None else ()
        if any(member_of(one) == member for one in known):
            return f"{EVICTED}: {describe_replacement(member)}"
        return f"{self._put_out(lane)}; join again"

    def _put_out(self, lane: str) -> str:
        """Return the evicting member and the reason, as far as known."""
        why = self.ordering.put_out_by.get(lane) if self.ordering is not None else None
        return f"{EVICTED} {why}" if why else f"{EVICTED}: {lane} has departed"

    def _another_life(self) -> str:
        """Return the text on a later incarnation of this member in the group. Empty: none."""
        same = (lane for lane in self.active.others() if member_of(lane) == self.name)
        return describe_replacement(self.name) if any(same) else ""

    def add_vote(self, link: Link, what: str, words: str) -> None:
        """Add another member's vote that this incarnation must end."""
        self.eviction_votes.add(what, link.name, words)
        self.count_votes(link.heard_ns)

    def count_votes(self, now: int) -> None:
        """Leave for good if enough other members vote for it."""
        if self.ordering is not None and not self.out:
            words = self.eviction_votes.outcome(self.ordering.members, self.greeted, now)
            if words:
                begun = describe_replacement(self.name)
                self.go_out(begun if words == f"{EVICTED}: {begun}" else words)

    def end(self, link: Link, why: str) -> None:
        """Close a connection."""
        link.control.append(wire.pack_frame(wire.BYE, why.encode()[: wire.MAX_TEXT]))
        link.closing = why or "closed"

    def list_closing(self) -> list[int]:
        """Return the connections to close once the bytes of `pull` are written."""
        return [number for number, link in self.links.items() if link.closing]

    # -- receiving ---------------------------------------------------------------------------------

    def _frame(self, link: Link, kind: int, body: bytes, now: int) -> None:
        if kind == wire.BATCH:
            self._batch(link, body)
        elif len(body) > wire.MAX_CONTROL and kind not in (wire.JOIN_REPLY, wire.SENDER_IDS):
            raise LimitError(f"frame of kind {kind} has {len(body)} bytes")
        elif kind == wire.HELLO:
            self.handshake.handle_hello(link, wire.unpack_hello(body), now)
        elif kind == wire.BYE:
            self._bye(link, body)
        elif not link.lane:
            raise DecodeError(f"frame of kind {kind} before HELLO")
        elif kind == wire.JOIN_REPLY:
            self.handshake.handle_join_reply(link, wire.unpack_join_reply(body), now)
        elif kind == wire.PING:
            self._ping(link, body)
        elif kind == wire.PONG:
            self._pong(link, ByteReader(body), now)
        elif kind == wire.SENDER_IDS:
            link.names += wire.read_names(body, wire.MAX_LANES - len(link.names))
        elif kind == audience.TOPICS and self.topic_filter is not None:
            self.topic_filter.handle_subscription(link, body)
        elif self.out:
            self.end(link, "not in the group any more")
        elif self.ordering is None:
            raise DecodeError(f"frame of kind {kind} from a member of no common group")
        else:
            self._news(link, kind, body)

    def _news(self, link: Link, kind: int, body: bytes) -> None:
        ordering = self.active
        if kind == wire.SIGNER:
            self._owner(link, ByteReader(body))
        elif kind == wire.ACK:
            rows = wire.read_rows(body, link.names)
            ordering.lanes.acknowledge(link.lane, rows)
            if link.lane in ordering.gone:  # it left and had received this before
                ordering.had_by_departed = max(ordering.had_by_departed, rows.get(self.lane, 0))
        elif kind == wire.NAK:
            self.relay(link, wire.read_rows(body, link.names))
        elif kind == wire.BUDGET:
            self.flow.budgets[link.lane] = ByteReader(body).varint()
            self.flow.update()
        elif kind == wire.TRUNCATED:
            link.given_up.update(wire.read_rows(body, link.names))
        elif self.topic_filter is not None and kind in audience.KINDS:
            self.topic_filter.frame(link, kind, body)
        else:
            raise DecodeError(f"unknown frame kind {kind}")

    def _owner(self, link: Link, reader: ByteReader) -> None:
        """Learn the proof of a sender id. A second key is not the fault of the relaying member."""
        self.learn(link, wire.lane(reader), reader.rest())

    def learn(self, link: Link, lane: str, owner: bytes) -> None:
        """Learn the proof of a sender id, or distrust the relaying member on it."""
        try:
            self.learn_owner(lane, owner)
        except DecodeError as error:
            self._distrust(link, lane, error)

    def learn_owner(self, lane: str, owner: bytes) -> None:
        """Verify and keep the proof of a sender id, for relays after a restart too. Raises
        DecodeError for an invalid one.
        """
        before = self.seals.owner(lane)
        self.seals.learn(lane, owner)
        if self.durable and owner != before:
            self._learnt[lane] = owner

    def can_show(self, lane: str) -> bool:
        """Return whether this member can prove a sender id to others. Groups without certificates
        need no proof.
        """
        return not self.seals.owner(self.lane) or bool(self.seals.owner(lane))

    def _distrust(self, link: Link, lane: str, error: RemoteError) -> None:
        """Accept nothing more of a sender from this relaying member."""
        self.count(link, error)
        link.distrusted.add(lane)

    def _batch(self, link: Link, body: bytes) -> None:
        if self.out:
            return
        if self.ordering is None or not link.member:
            raise DecodeError("batch before HELLO of both ends")
        reader = ByteReader(body)
        name, number = wire.lookup_sender_id(reader.varint(), link.names), reader.varint()
        seal, data = reader.block(), reader.rest()
        if name != link.lane:
            self._take_relayed(link, name, number, SignedBatch(seal, data))
            return
        if self._check_all and number > self.ordering.lanes.newest(name):
            self.seals.check(name, number, data, seal)
        try:
            is_new = self.ordering.take(name, number, SignedBatch(seal, data))
        except IncarnationError as error:
            self._two_lives(link, name, error)
            raise
        if is_new:
            self.news = True
            if self.clock_monitor is not None:
                self.clock_monitor.check_batch(name, number, read_head(data), direct=True)
        elif not self._compare(link, name, number, SignedBatch(seal, data)):
            # Perhaps the sender runs from an old copy of its store. Show it the difference.
            self._hand_back(link, name, number)

    def _compare(self, link: Link, name: str, number: int, batch: SignedBatch) -> bool:
        """Compare a repeated batch with the known one; return whether they agree. A sender that
        signed two batches under one number is proven faulty. Its eviction is left to members with
        that knowledge, since batches only it has would be lost.
        """
        try:
            proof = find_proof(self.seals, self.active.lanes, name, number, batch)
        except ConflictError as error:
            self._distrust(link, name, error)
            return False
        if proof is not None and name not in self.proofs:
            self.proofs[name] = proof
            why = f"{name} is proven faulty: it signed two batches under number {number}"
            self.count(link, ConflictError(why))
        return proof is None

    def _old_copy(self, by: str, number: int) -> str:
        """Return the text on a store that is older than other members' knowledge of it."""
        return f"{OLD_COPY}: {by} has another batch {number} of {self.lane}. {BEGIN_ANEW}"

    def _hand_back(self, link: Link, name: str, number: int) -> None:
        """Send the other end a batch of its own log as it is here."""
        lane = self.active.lanes.by_name[name]
        if lane.first <= number <= lane.newest:
            link.control.append(self.outbound.batch_frame(name, number, lane.get(number)))

    def _two_lives(self, link: Link, name: str, error: IncarnationError) -> None:
        """Handle a batch that proves an old copy of a store, the own one or the sender's. The
        sender gets the newest batch of its log that is here. The own signature under a reused
        number is a proof for it.
        """
        if error.member == self.lane:
            words = self._old_copy(name, self.active.lanes.newest(self.lane))
            self.eviction_votes.add(OLD_COPY, member_of(name), words)
            self.count_votes(link.heard_ns)
        elif error.member == name == link.lane:
            newest = self.active.lanes.newest(name)
            self._hand_back(link, name, newest)
            words = f"{OLD_COPY}: {self.name} has another batch {newest} of {name}. {BEGIN_ANEW}"
            raise IncarnationError(words, name) from error

    def _take_relayed(self, link: Link, name: str, number: int, batch: SignedBatch) -> None:
        """Accept a relayed batch. A fault may be the sender's or the relaying member's. So the
        connection stays, and another member is asked for the log.
        """
        ordering = self.active
        if name in link.distrusted:
            return
        skips = link.reader.skips
        if skips and self.topic_filter is not None and self.topic_filter.skips(link, name, number):
            return
        is_known = number <= ordering.lanes.newest(name)
        if is_known and name != self.lane:
            self._compare(link, name, number, batch)
            return
        try:
            self.seals.check(name, number, batch.wire, batch.seal)
        except DecodeError as error:
            self._distrust(link, name, error)
            return
        if name == self.lane:
            if not is_known:
                self.go_out(f"{OLD_COPY}: {link.name} has batch {number} of {name}. {BEGIN_ANEW}")
            elif not ordering.lanes.by_name[name].agrees(number, batch):
                self.go_out(self._old_copy(link.name, number))
            return
        try:
            if ordering.take(name, number, batch):
                self.news = True
                if self.clock_monitor is not None:
                    self.clock_monitor.check_batch(
                        name, number, read_head(batch.wire), direct=False
                    )
        except SequenceError as error:
            if isinstance(error, IncarnationError):
                self._two_lives(link, name, error)
            self._distrust(link, name, error)
        except RemoteError as error:
            self.count(link, error)
            ordering.end_lane(name, str(error))

    def _ping(self, link: Link, body: bytes) -> None:
        reader = ByteReader(body)
        clock = reader.varint()
        link.unheard = frozenset(wire.read_places(reader, link.names))
        shown = (
            ()
            if self.clock_monitor is None
            else (varint(max(0, self.clock_monitor.system_clock_ns)),)
        )
        link.control.append(wire.pack_frame(wire.PONG, varint(clock), *shown))

    def _pong(self, link: Link, reader: ByteReader, now: int) -> None:
        link.round_trip_ns = max(0, now - reader.varint())
        if self.clock_monitor is not None and link.member:
            clock_ns = reader.varint() + link.round_trip_ns // 2
            self.clock_monitor.check.hear(link.lane, clock_ns, now)

    def _bye(self, link: Link, body: bytes) -> None:
        words = self.rejections.read_bye(link, body.decode(errors="replace"))
        link.said_bye, link.closing = True, words or "closed by the other end"
        if self.ordering is None:
            if link.dialed:
                self.refusal = link.closing
        elif self.left and link.closing.startswith(EVICTED):
            if link.lane:  # its ACK came before
                self._closed_to.add(link.lane)
        elif link.closing.startswith(OLD_COPY):
            self.add_vote(link, OLD_COPY, link.closing)
        elif not link.closing.startswith(EVICTED):
            return
        elif link.name == self.name:
            self.go_out(
                describe_replacement(self.name)
            )  # no other member has a certificate with this name
        else:
            self.add_vote(link, EVICTED, link.closing)

    def relay(self, link: Link, rows: dict[str, int]) -> None:
        """Relay the requested batches of third members from now on."""
        for name, number in rows.items():
            lane = self.active.lanes.by_name.get(name)
            if number >= wire.NO_MORE:
                link.cursors.pop(name, None)
                link.staged.pop(name, None)
                link.loading.discard(name)
            elif lane is not None and not self.can_show(name):
                # the other end then asks another member
                self.outbound.say_gone(link, name, lane.newest + 1)
            elif lane is not None:
                link.cursors[name] = number
                link.reader.told_lacking.pop(name, None)
                link.reader.runs_do.discard(name)
                self._show_owner(link, name)

    def _show_owner(self, link: Link, name: str) -> None:
        owner = self.seals.owner(name)
        if owner and name not in link.owners and name != self.lane:
            link.owners.add(name)
            link.control.append(wire.pack_frame(wire.SIGNER, block(name.encode()), owner))

    # -- end of a step -----------------------------------------------------------------------------

    def turn(self) -> None:
        """End a step: make a batch of the sent messages."""
        ordering = self.ordering
        if ordering is None or self.out:
            return
        waits = self.clock_monitor is not None and self.clock_monitor.check.is_pending
        if ordering.unsent and not (self.in_minority or waits):
            ordering.flush()
        if self.lane in ordering.gone and not self.left:
            self.go_out(self._another_life() or self._put_out(self.lane))

    def shows(self, wall_ns: int, now: int) -> None:
        """Take the time of the system clock (orders by clocks), before anything that uses it."""
        if self.clock_monitor is not None:
            others: Collection[str] = () if self.ordering is None else self.ordering.members
            reading = self.clock_monitor.shows(wall_ns, now, alone=len(others) < 2)
            if self.ordering is not None and not self.out:
                self.ordering.clock.accuracy_ns = self.clock_monitor.accuracy_ns
                self.ordering.shows(reading)

    def tick(self, now: int) -> None:
        """Run the timers."""
        self.timers.tick(now)

    # -- the store ---------------------------------------------------------------------------------

    def take_rows(self) -> tuple[list[StoredInput], dict[str, int]]:
        """Return the inputs to store, and the argument of `stored` afterwards, once each."""
        if self.ordering is None:
            return [], {}
        rows, self.ordering.rows = self.ordering.rows, []
        self.ordering.urgent_rows = False
        return rows, self.ordering.lanes.frontier() if rows else {}

    def take_owners(self) -> dict[str, bytes]:
        """Return the proofs to store with the next rows, once each."""
        learnt, self._learnt = self._learnt, {}
        return learnt

    def handle_stored(self, frontier: dict[str, int]) -> None:
        """Handle written rows: other members may learn of them now."""
        self._stored.update(frontier)
        self.news = True
        if self.ordering is not None and not self.out:
            self.handshake.handle_stored()

    def safe(self) -> dict[str, int]:
        """Return sender id -> newest number that survives a crash of this member."""
        if self.durable:
            return self._stored
        return self.ordering.lanes.frontier() if self.ordering is not None else {}

    def safe_number(self, name: str) -> int:
        """Return the newest number of a sender that survives a crash of this member."""
        if self.durable:
            return self._stored.get(name, 0)
        return self.ordering.lanes.newest(name) if self.ordering is not None else 0

    def loads(self) -> list[tuple[int, str, int]]:
        """Return (connection, sender id, number) of reads from the store behind that number, once
        each.
        """
        found = []
        for link in self.links.values():
            found += [(link.number, name, link.cursors[name]) for name in link.loading]
            link.asked |= link.loading
            link.loading.clear()
        return found

    def handle_loaded(
        self, number: int, lane: str, batches: Iterable[tuple[int, SignedBatch]]
    ) -> None:
        """Take batches from the store."""
        link = self.links.get(number)
        if link is not None:
            link.asked.discard(lane)
            link.staged.setdefault(lane, deque()).extend(batches)

    def finish(self, count: int) -> None:
        """Finish the first `count` messages for the application."""
        self.done = max(self.done, count)
        while self._open and self._before_open + self._open[0].live_count <= self.done:
            self._before_open += self._open.popleft().live_count

    def snapshot(self) -> bytes:
        """Return the state for `restore` without the batches. The log of rows starts anew."""
        ordering = self.active
        waiting = (one for one in ordering.delivered if isinstance(one, SentBatch))
        runs = deque(one for one in (*self._open, *waiting) if not one.is_history)
        _drop_first(runs, self.done - self._before_open)
        state = ordering.state(message for run in runs for message in run.messages())
        return pack_state((self.group_tag, self.done, state))

    def restore(self, saved: Saved, now: int) -> None:
        """Restore a stored state. Raises DecodeError."""
        fields = unpack_state(saved.snapshot, 3)
        if where := misfit(fields, (BYTES, NUMBER, BYTES)):
            raise DecodeError(f"invalid snapshot: {where}")
        self.group_tag, done, state = fields
        ordering, waiting = self.ordering_class.from_state(
            state, self.settings, self.seals.seal, saved.batch_of
        )
        self.lane = ordering.me
        for lane, owner in saved.owners.items():
            self.seals.recall(lane, owner)
        for row in saved.rows:
            ordering.replay(row)
        if self.clock_monitor is not None and ordering.clock.reading is not None:
            self.clock_monitor.resume(ordering.clock.reading, now)
        ordering.begin_again()
        self.done = max(done, saved.done)
        fresh = deque(
            [*waiting, *(one for one in ordering.delivered if isinstance(one, SentBatch))]
        )
        _drop_first(fresh, self.done - done)
        ordering.delivered = list(fresh)
        ordering.backlog.restore(fresh, self.done)
        self.taken = self._before_open = self.done
        self._stored = ordering.lanes.frontier()
        self.outbound.begin(ordering.lanes.newest(self.lane))
        self.handshake.begin(ordering)
        if self.lane in ordering.lanes.left:  # some members may not know yet
            self.left = True
            self.timers.call_all(now)
            return
        if ordering.members.get(self.lane) != self.address:
            ordering.change(Change(ChangeKind.JOINED, self.lane, self.address))
        if self.topic_filter is not None:
            known = ordering.subscriptions.get(self.lane, ())
            if self.settings.topics is None:
                self.topic_filter.mine = known
            elif known != self.topic_filter.mine:
                self.say_subscription()
        self.timers.call_all(now)

    # -- sending -----------------------------------------------------------------------------------

    def place(self, lane: str) -> int:
        """Return the index of a sender id on the connections."""
        return self.outbound.place(lane)

    @property
    def acknowledge_every_ns(self) -> int:
        """Delay of acknowledgements."""
        members = len(self.ordering.members) if self.ordering is not None else 0
        return self.settings.ack_period_ns(members)

    def acknowledge(self) -> None:
        """Acknowledge to all members the batches since the last time."""
        if not self.news or self.out:
            return
        self.news = False
        withheld = self._withheld()
        safe = ((n, min(c, withheld.get(n, c))) for n, c in self.safe().items())
        news = {n: c for n, c in safe if c > self._told.get(n, 0)}
        if news and self.greeted:
            self._told.update(news)
            frame = wire.pack_rows(wire.ACK, [(self.place(n), c) for n, c in news.items()])
            for link in self.greeted.values():
                if link.member:  # else the join reply acknowledges
                    link.control.append(frame)

    def _withheld(self) -> dict[str, int]:
        """Return sender id -> last batch to acknowledge, where the inbox is full. Batches of
        departed members are acknowledged, since they send nothing more.
        """
        ordering = self.ordering
        found = {} if ordering is None else ordering.backlog.withheld(self.inbox_limit)
        self._withholds = bool(found)
        gone = () if ordering is None else ordering.gone
        return {lane: number for lane, number in found.items() if lane not in gone}

    def consume(self, count: int) -> bool:
        """Free the inbox space of the first `count` messages. Returns whether batches can be
        acknowledged now that were withheld.
        """
        if self.ordering is not None:
            self.ordering.backlog.consume(count)
            self.news = self.news or self._withholds
        return self._withholds

    def writable(self) -> list[int]:
        """Return the connections with bytes to write, or to close. Runs in every step: asking each
        of a hundred connections would cost more than a message.
        """
        own, upto = self.lane, self.safe_number(self.lane)
        return [
            number
            for number, link in self.links.items()
            if link.control
            or link.closing
            or len(link.cursors) > (own in link.cursors)
            or link.cursors.get(own, upto) < upto
        ]

    def pull(self, number: int, budget: int, now: int) -> list[bytes]:
        """Return the bytes to write on a connection now, about `budget` bytes of batches."""
        link = self.links[number]
        batches: list[bytes] = []
        if link.member and not link.closing and not self.out and self.ordering is not None:
            batches = self.outbound.batches(link, budget)
        return self.outbound.collect(link, batches, now)


def _drop_first(runs: deque[SentBatch], count: int) -> None:
    while runs and count >= runs[0].live_count:
        count -= runs.popleft().live_count
    if runs and count > 0:
        runs[0] = runs[0].tail(runs[0].live_count - count)
