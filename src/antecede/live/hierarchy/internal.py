"""Node of an internal peer, which knows its super peer and the addresses of others.

Theory of operation
-------------------

It sends all messages to its super peer, and keeps each until it returns numbered: then a crash of
the super peer cannot undo it. After a lost connection it dials its super peer, then the others in
turn. Its own super peer resumes. Another one admits it as a joining member of its group and first
sends what it lacks. Then the peer repeats its messages that have not returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, cast

from antecede.core.clocks.encoding import ByteReader, varint
from antecede.core.protocols import Deliver, Guarantee, Transmit
from antecede.core.protocols.hierarchical import Downward, InternalPeer, messages
from antecede.errors import BufferFullError, DecodeError, LocalError, MismatchError
from antecede.live import batches, differing, wire
from antecede.live.batches import Batch
from antecede.live.events import Change, ChangeKind, Id, SentBatch, View
from antecede.live.hierarchy import origin, star
from antecede.live.hierarchy.mesh_group import Blocked, HeldStats, TrafficCounter
from antecede.live.hierarchy.origin import Places
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.node import Node, Saved
from antecede.live.ordering import Ordering
from antecede.live.settings import Settings
from antecede.live.upkeep import FIRST_CALL_NS, LAST_CALL_NS, Timers


class _Protocol:
    """Protocol of an internal peer, with the interface of a group."""

    order = "hierarchical"

    def __init__(self) -> None:
        self.peer: InternalPeer | None = None

    @property
    def guarantee(self) -> Guarantee:
        return InternalPeer.guarantee

    def stats(self) -> HeldStats:
        return HeldStats(self.peer.count_held() if self.peer is not None else 0)

    def list_held(self) -> list[Blocked]:
        """Return an empty list: a super peer sends in an order without waits."""
        return []


class InsideOrdering(Ordering):
    """Own messages that are not durable, and deliveries."""

    def __init__(self, lane: str, settings: Settings) -> None:
        super().__init__(lane, settings, lambda number, data: b"")
        self.inner = _Protocol()
        self.group = cast(Any, self.inner)
        self.firsts: deque[int] = deque()
        """Numbers of the first messages of the kept batches."""

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """Send a message. Raises BufferFullError while too many are not durable."""
        if self.lanes.bytes > self.settings.max_memory_bytes:
            raise self.buffer_full()
        return super().say(payload, reply_to, topics)

    def buffer_full(self) -> BufferFullError:
        """Return the error for a message beyond `max_memory_bytes`."""
        return BufferFullError(
            f"{self.lanes.bytes} bytes of messages are not durable yet; "
            f"max_memory_bytes={self.settings.max_memory_bytes} is the limit; check the connection "
            "to a super peer"
        )

    @property
    def waiting_bytes(self) -> int:
        return super().waiting_bytes + self.lanes.bytes

    def _send(self, batch: Batch, reply_to: Sequence[Id], topics: tuple[str, ...] = ()) -> int:
        lane = self.lanes.by_name[self.me]
        payload = origin.pack(self.me, batches.pack(batch))
        number = lane.newest + 1
        self.lanes.take(self.me, number, SignedBatch(b"", payload))
        lane.fed = number
        self.firsts.append(batch.first)
        return number

    def ids_in(self, number: int, wire: bytes) -> list[Id]:
        batch = batches.unpack(origin.unpack(wire)[1])
        return [Id(self.me, batch.first + k) for k in range(len(batch.said))]

    def safe(self, number: int) -> None:
        lane = self.lanes.by_name[self.me]
        while self.firsts and lane.oldest <= number:
            self.firsts.popleft()
            self.lanes.free({self.me: lane.oldest})
        for other in self.others():
            self.lanes.acknowledge(other, {self.me: lane.oldest - 1})

    def came_back(self, first: int) -> None:
        """Free the batches up to the one that starts with this message, which has returned."""
        while self.firsts and self.firsts[0] <= first:
            self.safe(self.lanes.by_name[self.me].oldest)

    def hand_over(self, payload: bytes) -> None:
        """Deliver another member's message; ignore a second copy. Raises DecodeError."""
        if not payload:
            return
        who, data = origin.unpack(payload)
        if who.lane == self.me:
            self.came_back(who.first)
            return
        said = batches.unpack(data).said
        self.delivered.append(SentBatch(who.lane, who.first, said))
        self.place += len(said)
        self.backlog.add(who.lane, 0, self.place, len(data), len(said))


class InternalTimers(Timers):
    """Timers of an internal peer, which dials one super peer at a time."""

    def __init__(self, node: InternalNode) -> None:
        super().__init__(node)
        self._inner = node
        self._next_ns, self._wait_ns, self._turn = 0, FIRST_CALL_NS, 0

    def again(self, now: int) -> None:
        """Dial the same super peer first after a lost connection."""
        self._next_ns, self._wait_ns, self._turn = now, FIRST_CALL_NS, 0
        self.hurried = True

    def dials(self, now: int) -> list[tuple[str, str]]:
        self.hurried = False
        node = self._inner
        if node.ordering is None or node.out or node.links or node.parted or now < self._next_ns:
            return []
        supers = sorted(node.supers.items(), key=lambda one: (one[0] != node.super_lane, one))
        if not supers or (node.left and not node.list_unacknowledged()):
            return []
        called = supers[self._turn % len(supers)]
        self._turn += 1
        self._next_ns = now + self._wait_ns
        if self._turn % len(supers) == 0:
            self._wait_ns = min(2 * self._wait_ns, LAST_CALL_NS)
        return [called]

    def due(self, now: int) -> int:
        settings = self._inner.settings
        wait = settings.heartbeat_ns // 2 if self._inner.links else FIRST_CALL_NS
        return now + min(wait, settings.failure_timeout_ns // 2)

    def tick(self, now: int) -> None:
        self._forgive(now)
        node = self._inner
        self._keep_alive(now)
        for link in node.links.values():
            patience = node.settings.failure_timeout_ns
            if link.lane and link.lane not in node.greeted and now - link.up_ns > patience:
                node.end(link, "no join reply in time")
        if now - self._acknowledged_ns >= node.settings.ack_delay_ns:
            self._acknowledged_ns = now
            node.acknowledge()

    def unheard(self) -> list[str]:
        """Return an empty list: a PING of an internal peer lists no members."""
        return []


class InternalNode(Node):
    """Internal peer. Arguments of `Node`; no store and no listener."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if self.durable:
            raise LocalError('role "internal" has no store; leave out store=')
        self.timers: InternalTimers = InternalTimers(self)
        self.supers: dict[str, str] = {}
        self.super_lane = ""
        self.had = self._until = self._acknowledged = 0
        """Messages received from this super peer, and the number of those from before the join."""
        self._have = Places()
        self._address = self._times = 0
        self._said_up = self._returned = self._offset = 0
        """Batches sent to this super peer, batches that returned, and the number before these."""
        self._upward: dict[int, bytes] = {}
        self._refused_by: set[str] = set()
        self._leaving = False
        self.up = TrafficCounter()

    @property
    def _inner(self) -> InsideOrdering:
        return cast(InsideOrdering, self.active)

    # -- start and end -----------------------------------------------------------------------------

    def bootstrap(self, tag: bytes) -> None:
        """Raise LocalError: only super and external peers bootstrap a group."""
        raise LocalError(
            f"{self.name} is an internal peer; it cannot bootstrap a group, join a super peer"
        )

    def restore(self, saved: Saved, now: int) -> None:
        raise LocalError('role "internal" has no store')

    def evict(self, lane: str, why: str) -> None:
        """Raise LocalError: only its super peer evicts members."""
        raise LocalError("an internal peer cannot evict members; evict them at its super peer")

    def leave(self) -> None:
        """Leave once all messages have returned."""
        self._inner.flush()
        self.left = True

    def list_unacknowledged(self) -> list[str]:
        return [] if self._leaving and not self.greeted else [self.super_lane]

    def safe(self) -> dict[str, int]:
        if self.ordering is None:
            return {}
        return {self.lane: self.ordering.lanes.by_name[self.lane].oldest - 1}

    # -- connections -------------------------------------------------------------------------------

    def link_up(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        """Handle a new connection: send HELLO."""
        taken = any(not one.closing for one in self.links.values())
        link = self.links[number] = Link(number, name, now, dialed=dialed)
        if taken or not dialed:
            self.end(
                link, "duplicate connection" if dialed else "an internal peer admits no member"
            )
            return
        self._times += 1
        hello = star.InternalHello(
            room=self.settings.tags()[0],
            options=differing.pack(self.settings),
            group=self.group_tag,
            lane=self.lane,
            owner=self.seals.owner(self.lane),
            before=self.super_lane,
            address=self._address,
            had=self.had,
            times=self._times,
            places=self._have,
        )
        link.control.append(star.pack_hello(hello))

    def link_down(self, number: int, now: int) -> None:
        link = self.links.pop(number, None)
        if link is None:
            return
        if self.greeted.get(link.lane) is link:
            del self.greeted[link.lane]
            self.timers.again(now)

    def _frame(self, link: Link, kind: int, body: bytes, now: int) -> None:
        if kind == star.DOWN:
            self._came_down(link, body)
        elif kind == wire.BYE:
            self._bye(link, body)
        elif kind == star.WELCOME:
            self._handle_join_reply(link, star.unpack_join_reply(body))
        elif kind == star.WAIT:
            self._is(link, wire.lane(ByteReader(body)))
        elif kind == star.SUPERS:
            self.supers = star.unpack_supers(body)
        elif kind == wire.SENDER_IDS:
            link.names += wire.read_names(body, wire.MAX_LANES - len(link.names))
        elif kind == wire.PING:
            link.control.append(wire.pack_frame(wire.PONG, body))
        elif kind == wire.PONG:
            link.round_trip_ns = max(0, now - ByteReader(body).varint())
        elif kind == wire.HELLO:
            raise MismatchError("kind", f"{link.name or 'the dialed peer'} is not a super peer")
        else:
            raise DecodeError(f"unknown frame kind {kind} from a super peer")

    def _is(self, link: Link, lane: str) -> None:
        member = lane.rpartition("~")[0]
        if link.name and member != link.name:
            raise MismatchError("sender", f"{link.name} uses the sender id {lane}")
        link.lane, link.name = lane, member

    def _bye(self, link: Link, body: bytes) -> None:
        words = self.rejections.read_bye(link, body.decode(errors="replace"))
        link.said_bye, link.closing = True, words or "closed by the other end"
        if self.ordering is None:
            self.refusal = link.closing
        elif link.closing.startswith(star.OUT):
            self.go_out(link.closing)
        elif link.closing.startswith(star.ANEW):
            self._refused_by.add(link.lane)
            if self.supers.keys() <= self._refused_by:
                self.go_out(link.closing)

    # -- a super peer ------------------------------------------------------------------------------

    def _handle_join_reply(self, link: Link, welcome: star.InternalJoinReply) -> None:
        self._is(link, welcome.lane)
        if self.ordering is not None and self.group_tag != welcome.group:
            raise MismatchError("group", f"{link.name} is of another group")
        self.greeted = {welcome.lane: link}
        self._refused_by.clear()
        if welcome.resumed:
            self._resume(link, welcome)
            return
        self.group_tag = welcome.group
        if self.ordering is None:
            self.handshake.begin(InsideOrdering(self.lane, self.settings))
        peer = InternalPeer(welcome.address, (welcome.address, 0), 0)
        peer.install_join_state(((0,), welcome.number, welcome.heads))
        self._inner.inner.peer = peer
        self._address, self.super_lane = welcome.address, welcome.lane
        self.had, self._until = welcome.start, welcome.until
        self._have, self._acknowledged = welcome.places, 0
        self._upward.clear()
        self._said_up = self._returned = 0
        self._offset = -1
        self._show(welcome.lane)
        self._go_on()

    def _show(self, lane: str) -> None:
        """Report the super peer to the application."""
        ordering = self._inner
        ordering.members = {self.lane: "", lane: self.supers.get(lane, "")}
        change = Change(ChangeKind.JOINED, lane, self.supers.get(lane, ""))
        ordering.delivered.append(View(tuple(sorted(ordering.members)), change))

    def _resume(self, link: Link, welcome: star.InternalJoinReply) -> None:
        if welcome.lane != self.super_lane or welcome.address != self._address:
            raise DecodeError("super peer resumed another peer")
        for number, frame in self._upward.items():
            if number > self._offset + welcome.taken:
                link.control.append(frame)

    def _go_on(self) -> None:
        """Send messages that this super peer lacks, once this peer is at its group's frontier."""
        ordering = self._inner
        link = self.greeted.get(self.super_lane)
        peer = ordering.inner.peer
        if self.had < self._until or link is None or peer is None:
            return
        lane = ordering.lanes.by_name[self.lane]
        if self._offset < 0:
            self._offset = lane.oldest - 1
        for number, batch in lane.after(self._offset + self._said_up):
            (effect,) = peer.send(batch.wire)
            assert isinstance(effect, Transmit)
            control = messages.encode(effect.message)
            self.up.count(control, messages.control_bytes(effect.message, with_floor=True))
            frame = self._upward[number] = star.pack_up(control, batch.wire)
            link.control.append(frame)
            self._said_up += 1
        if self.left and not self._upward and not self._leaving:
            self._leaving = True
            link.control.append(wire.pack_frame(star.LEAVE))

    def _came_down(self, link: Link, body: bytes) -> None:
        if self.ordering is None or self.greeted.get(self.super_lane) is not link:
            raise DecodeError("message before a join reply")
        place, control, payload = star.unpack_down(body, link.names)
        self.had += 1
        self.news = True
        ordering = self._inner
        if self.had <= self._until:
            if place[:2] not in self._have:
                ordering.hand_over(payload)
            self._have.add(place)
            if self.had == self._until:
                self._go_on()
            return
        self._have.add(place)
        message = messages.decode(control, payload, (Downward,))
        peer = ordering.inner.peer
        assert peer is not None
        for effect in peer.receive(message):
            if isinstance(effect, Transmit):
                note = effect.message
                control = messages.encode(note)
                self.up.notes += len(control)
                link.control.append(star.pack_up(control, note.payload))
            elif isinstance(effect, Deliver):
                ordering.hand_over(effect.message.payload)
        if message.sender == self._address:
            self._returned += 1
            number = self._offset + self._returned
            self._upward.pop(number, None)
            ordering.safe(number)

    # -- steps -------------------------------------------------------------------------------------

    def turn(self) -> None:
        if self.ordering is None or self.out:
            return
        if self.ordering.unsent:
            self.ordering.flush()
        self._go_on()

    def acknowledge(self) -> None:
        link = self.greeted.get(self.super_lane)
        self.news = False
        if link is not None and self.had > self._acknowledged:
            self._acknowledged = self.had
            link.control.append(wire.pack_frame(star.HAD, varint(self.had)))

    def pull(self, number: int, budget: int, now: int) -> list[bytes]:
        return self.outbound.collect(self.links[number], [], now)


__all__ = ["InternalNode"]
