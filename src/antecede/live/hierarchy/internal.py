"""A peer inside as a node: it knows its super peer, and where other super peers are.

Theory of operation
-------------------
All that it sends goes up its one link; it keeps that until it comes down again, which tells that a
crash of the super peer will not take it back. When the link is lost it calls its super peer again,
and the others in turn. Its super peer goes on where they were. Another one lets it in as a
newcomer to its group, and sends what it lacks first, in order; then it says again what has not come
down.
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
from antecede.live.events import Change, ChangeKind, Id, Said, View
from antecede.live.hierarchy import origin, star
from antecede.live.hierarchy.mesh_group import Blocked, Stats, Traffic
from antecede.live.hierarchy.origin import Places
from antecede.live.lanes import Sealed
from antecede.live.links import Link
from antecede.live.node import Node, Saved
from antecede.live.ordering import Ordering
from antecede.live.settings import Settings
from antecede.live.upkeep import FIRST_CALL_NS, LAST_CALL_NS, Upkeep


class _Protocol:
    """The protocol of a peer inside, as a live peer asks a group."""

    order = "hierarchical"

    def __init__(self) -> None:
        self.peer: InternalPeer | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""
        return InternalPeer.guarantee

    def stats(self) -> Stats:
        """Return how many messages are held back."""
        return Stats(self.peer.count_held() if self.peer is not None else 0)

    def list_held(self) -> list[Blocked]:
        """Return nothing: a super peer sends in an order in which nothing waits."""
        return []


class InsideOrdering(Ordering):
    """What a peer inside said and is not known to be safe, and what was delivered to it."""

    def __init__(self, lane: str, settings: Settings) -> None:
        super().__init__(lane, settings, lambda number, data: b"")
        self.inner = _Protocol()
        self.group = cast(Any, self.inner)
        self.firsts: deque[int] = deque()
        """Numbers of the first messages of the batches that are kept."""

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """As in a flat group. Raises BufferFullError while too much is not safe yet."""
        if self.lanes.bytes > self.settings.memory:
            raise self.buffer_full()
        return super().say(payload, reply_to, topics)

    def buffer_full(self) -> BufferFullError:
        """Return the error for a message that `memory` has no room for."""
        return BufferFullError(
            f"{self.lanes.bytes} bytes that were said are not safe in the mesh yet; "
            f"memory={self.settings.memory} is the most. Is a super peer reached?"
        )

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of messages are in no batch yet, or not known to be safe."""
        return super().waiting_bytes + self.lanes.bytes

    def _send(self, batch: Batch, reply_to: Sequence[Id], topics: tuple[str, ...] = ()) -> int:
        lane = self.lanes.by_name[self.me]
        payload = origin.pack(self.me, batches.pack(batch))
        number = lane.newest + 1
        self.lanes.take(self.me, number, Sealed(b"", payload))
        lane.fed = number
        self.firsts.append(batch.first)
        return number

    def ids_in(self, number: int, wire: bytes) -> list[Id]:
        """Return the ids of the messages in an own batch."""
        batch = batches.unpack(origin.unpack(wire)[1])
        return [Id(self.me, batch.first + k) for k in range(len(batch.said))]

    def safe(self, number: int) -> None:
        """Keep no batch up to this one any more."""
        lane = self.lanes.by_name[self.me]
        while self.firsts and lane.oldest <= number:
            self.firsts.popleft()
            self.lanes.free({self.me: lane.oldest})
        for other in self.others():
            self.lanes.acknowledged(other, {self.me: lane.oldest - 1})

    def came_back(self, first: int) -> None:
        """What was said up to the batch that begins with this message is in the mesh."""
        while self.firsts and self.firsts[0] <= first:
            self.safe(self.lanes.by_name[self.me].oldest)

    def hand_over(self, payload: bytes) -> None:
        """Deliver what somebody else said; nothing of a second copy. Raises DecodeError."""
        if not payload:
            return
        who, data = origin.unpack(payload)
        if who.lane == self.me:
            self.came_back(who.first)
            return
        said = batches.unpack(data).said
        self.delivered.append(Said(who.lane, who.first, said))
        self.place += len(said)
        self.backlog.add(who.lane, 0, self.place, len(data), len(said))


class Calls(Upkeep):
    """Whom a peer inside calls, one after the other."""

    def __init__(self, node: InternalNode) -> None:
        super().__init__(node)
        self._inner = node
        self._next_ns, self._wait_ns, self._turn = 0, FIRST_CALL_NS, 0

    def again(self, now: int) -> None:
        """The link is lost: the same super peer first."""
        self._next_ns, self._wait_ns, self._turn = now, FIRST_CALL_NS, 0
        self.hurried = True

    def dials(self, now: int) -> list[tuple[str, str]]:
        """Return, once, (lane, address) of whom to call now."""
        self.hurried = False
        node = self._inner
        if node.ordering is None or node.out or node.links or node.parted or now < self._next_ns:
            return []
        supers = sorted(node.supers.items(), key=lambda one: (one[0] != node.super_lane, one))
        if not supers or (node.left and not node.owed()):
            return []
        called = supers[self._turn % len(supers)]
        self._turn += 1
        self._next_ns = now + self._wait_ns
        if self._turn % len(supers) == 0:
            self._wait_ns = min(2 * self._wait_ns, LAST_CALL_NS)
        return [called]

    def due(self, now: int) -> int:
        """Return when `tick` is to be called at the latest."""
        settings = self._inner.settings
        wait = settings.heartbeat_ns // 2 if self._inner.links else FIRST_CALL_NS
        return now + min(wait, settings.silence_ns // 2)

    def tick(self, now: int) -> None:
        """Let time pass."""
        self._forgive(now)
        node = self._inner
        self._keep_alive(now)
        for link in node.links.values():
            patience = node.settings.silence_ns
            if link.lane and link.lane not in node.greeted and now - link.up_ns > patience:
                node.end(link, "it lets nobody in")
        if now - self._acknowledged_ns >= node.settings.acknowledge_ns:
            self._acknowledged_ns = now
            node.acknowledge()

    def unheard(self) -> list[str]:
        """Return nobody: a ping of a peer inside tells nothing."""
        return []


class InternalNode(Node):
    """A peer inside. Arguments as of `Node`; it has no store and listens nowhere."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        if self.durable:
            raise LocalError('role "internal" goes without a store: leave store= out')
        self.upkeep: Calls = Calls(self)
        self.supers: dict[str, str] = {}
        """Lane of a super peer -> address."""
        self.super_lane = ""
        """One's own."""
        self.had = self._until = self._acknowledged = 0
        """How many messages came down; up to which they were from before one came."""
        self._have = Places()
        """What it has of the mesh."""
        self._address = self._times = 0
        self._said_up = self._returned = self._offset = 0
        """Batches that went up to this super peer and came down again, behind the first so many."""
        self._upward: dict[int, bytes] = {}
        """Batch -> its frame, until it has come down."""
        self._refused_by: set[str] = set()
        self._leaving = False
        self.up = Traffic()

    @property
    def _inner(self) -> InsideOrdering:
        return cast(InsideOrdering, self.active)

    # -- beginning and end -------------------------------------------------------------------------

    def found(self, tag: bytes) -> None:
        """Raise LocalError: a mesh is founded by a super peer or an external one."""
        raise LocalError(f"{self.name} is a peer inside: it joins a super peer, and founds nothing")

    def restore(self, saved: Saved, now: int) -> None:
        """Raise LocalError: there is no store."""
        raise LocalError('role "internal" goes without a store')

    def put_out(self, lane: str, why: str) -> None:
        """Raise LocalError: a peer inside knows nobody."""
        raise LocalError("a peer inside puts nobody out: its super peer does")

    def leave(self) -> None:
        """Leave once all that was said is in the mesh."""
        self._inner.flush()
        self.left = True

    def owed(self) -> list[str]:
        """Return the super peer, while it has something to take or to hear of."""
        return [] if self._leaving and not self.greeted else [self.super_lane]

    def safe(self) -> dict[str, int]:
        """Return how far one's own lane will survive a crash of the super peer."""
        if self.ordering is None:
            return {}
        return {self.lane: self.ordering.lanes.by_name[self.lane].oldest - 1}

    # -- links -------------------------------------------------------------------------------------

    def link_up(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        """A connection stands: one says who one is, and what one has."""
        taken = any(not one.closing for one in self.links.values())
        link = self.links[number] = Link(number, name, now, dialed=dialed)
        if taken or not dialed:
            self.end(link, "another call came first" if dialed else "nobody joins a peer inside")
            return
        self._times += 1
        hello = star.Hello(
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
        """A connection is gone."""
        link = self.links.pop(number, None)
        if link is None:
            return
        if self.greeted.get(link.lane) is link:
            del self.greeted[link.lane]
            self.upkeep.again(now)

    def _frame(self, link: Link, kind: int, body: bytes, now: int) -> None:
        if kind == star.DOWN:
            self._came_down(link, body)
        elif kind == wire.BYE:
            self._bye(link, body)
        elif kind == star.WELCOME:
            self._welcomed(link, star.unpack_welcome(body))
        elif kind == star.WAIT:
            self._is(link, wire.lane(ByteReader(body)))
        elif kind == star.SUPERS:
            self.supers = star.unpack_supers(body)
        elif kind == wire.LANES:
            link.names += wire.read_names(body, wire.MAX_LANES - len(link.names))
        elif kind == wire.PING:
            link.control.append(wire.framed(wire.PONG, body))
        elif kind == wire.PONG:
            link.round_trip_ns = max(0, now - ByteReader(body).varint())
        elif kind == wire.HELLO:
            raise MismatchError("kind", f"{link.name or 'who was called'} is no super peer")
        else:
            raise DecodeError(f"a frame of an unknown kind, {kind}, from a super peer")

    def _is(self, link: Link, lane: str) -> None:
        member = lane.rpartition("~")[0]
        if link.name and member != link.name:
            raise MismatchError("sender", f"{link.name} speaks as {lane}")
        link.lane, link.name = lane, member

    def _bye(self, link: Link, body: bytes) -> None:
        words = self.rejections.read_bye(link, body.decode(errors="replace"))
        link.said_bye, link.closing = True, words or "the other end ends it"
        if self.ordering is None:
            self.refusal = link.closing
        elif link.closing.startswith(star.OUT):
            self.go_out(link.closing)
        elif link.closing.startswith(star.ANEW):
            self._refused_by.add(link.lane)
            if self.supers.keys() <= self._refused_by:
                self.go_out(link.closing)

    # -- a super peer ------------------------------------------------------------------------------

    def _welcomed(self, link: Link, welcome: star.Welcome) -> None:
        self._is(link, welcome.lane)
        if self.ordering is not None and self.group_tag != welcome.group:
            raise MismatchError("group", f"{link.name} is of another mesh")
        self.greeted = {welcome.lane: link}
        self._refused_by.clear()
        if welcome.resumed:
            self._resume(link, welcome)
            return
        self.group_tag = welcome.group
        if self.ordering is None:
            self.greeting.begin(InsideOrdering(self.lane, self.settings))
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
        """Tell the application who its super peer is now."""
        ordering = self._inner
        ordering.members = {self.lane: "", lane: self.supers.get(lane, "")}
        change = Change(ChangeKind.JOINED, lane, self.supers.get(lane, ""))
        ordering.delivered.append(View(tuple(sorted(ordering.members)), change))

    def _resume(self, link: Link, welcome: star.Welcome) -> None:
        if welcome.lane != self.super_lane or welcome.address != self._address:
            raise DecodeError("a super peer goes on with somebody else")
        for number, frame in self._upward.items():
            if number > self._offset + welcome.taken:
                link.control.append(frame)

    def _go_on(self) -> None:
        """Send what has not been sent to this super peer, once one is where its group was."""
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
            link.control.append(wire.framed(star.LEAVE))

    def _came_down(self, link: Link, body: bytes) -> None:
        if self.ordering is None or self.greeted.get(self.super_lane) is not link:
            raise DecodeError("a message before a welcome")
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

    # -- turns -------------------------------------------------------------------------------------

    def turn(self) -> None:
        """End a turn: what was said becomes a batch."""
        if self.ordering is None or self.out:
            return
        if self.ordering.unsent:
            self.ordering.flush()
        self._go_on()

    def acknowledge(self) -> None:
        """Tell the super peer what has come since the last time."""
        link = self.greeted.get(self.super_lane)
        self.news = False
        if link is not None and self.had > self._acknowledged:
            self._acknowledged = self.had
            link.control.append(wire.framed(star.HAD, varint(self.had)))

    def pull(self, number: int, budget: int, now: int) -> list[bytes]:
        """Return what is to be written on a link now."""
        return self.outflow.written(self.links[number], [], now)


__all__ = ["InternalNode"]
