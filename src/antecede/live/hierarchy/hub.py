"""Internal group of a super peer: its peers, their messages and acknowledgements.

Theory of operation
-------------------

Messages that the protocol numbered go into a log. Each internal peer has a cursor in it. A message
is sent down once a crash of this super peer cannot undo it: another connected external member has
it, if there is one. It is kept until all internal peers here, all external members and all their
internal peers have it. So a peer that moves from another super peer finds here what it lacks.

A moving peer announces its positions in the external group. It waits until all of these are here,
so that its next messages can follow them. Then it joins the protocol at the present frontier of the
group, and gets earlier messages from the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from antecede.core.clocks.encoding import ByteReader, block
from antecede.core.protocols.hierarchical import Acknowledgement, Upward, messages
from antecede.errors import DecodeError, MismatchError
from antecede.live import differing, laggards, wire
from antecede.live.events import member_of
from antecede.live.greeting import NOT_YET
from antecede.live.hierarchy import origin, star
from antecede.live.hierarchy.entries import MESH
from antecede.live.hierarchy.log import Log
from antecede.live.hierarchy.mesh import INSIDE
from antecede.live.hierarchy.mesh_group import Down, TrafficCounter
from antecede.live.hierarchy.origin import Place, Places
from antecede.live.laggards import LOOKS, Behind, SlowMembers
from antecede.live.links import Link
from antecede.live.settings import NS
from antecede.live.upkeep import FALLBACK_BYTES, FALLBACK_TIMES, FREE_NS, GIVE_UP_NS

if TYPE_CHECKING:
    from antecede.live.hierarchy.super_peer import SuperNode

LOOK_NS: Final = NS // 20


class Inside:
    """Internal peer."""

    def __init__(self, lane: str, address: int, start: int, times: int) -> None:
        self.lane, self.address, self.times = lane, address, times
        self.link: Link | None = None
        self.cursor = self.had = start
        """Newest message written to its connection, and newest acknowledged one."""
        self.unheard_ns = 0


class JoiningPeer(NamedTuple):
    """Internal peer that has sent HELLO and cannot be admitted yet."""

    link: Link
    hello: star.InternalHello
    since_ns: int


class Hub:
    """All internal peers of a super peer."""

    def __init__(self, node: SuperNode) -> None:
        self._node = node
        self.inside: dict[str, Inside] = {}
        self.gone: dict[str, str] = {}
        """Evicted sender id -> reason."""
        self.log = Log()
        self.up, self.down = TrafficCounter(), TrafficCounter()
        """Messages from internal peers; numbered messages, counted once."""
        self.waiting: dict[int, JoiningPeer] = {}
        self._addresses = 0
        self._supers: list[tuple[str, str]] = []
        self._told: dict[int, dict[str, int]] = {}
        """External connection -> frontier of the internal peers announced there."""
        self._looked_ns = self._freed_ns = 0
        looks = max(LOOKS, node.settings.evict_slow_after_ns // FREE_NS)
        self._laggards = SlowMembers(looks)

    def begin(self) -> None:
        """Enter the external group. Earlier messages are not available."""
        self.log.begin(self._node.mesh_ordering.mesh.given)

    # -- joins -------------------------------------------------------------------------------------

    def hello(self, link: Link, hello: star.InternalHello, now: int) -> None:
        """Handle the HELLO of an internal peer. Raises MismatchError."""
        node, lane = self._node, hello.lane
        if link.lane:
            raise DecodeError("second HELLO on a connection")
        if link.name and member_of(lane) != link.name:
            raise MismatchError("sender", f"{link.name} uses the sender id {lane}")
        if hello.room != node.settings.tags()[0]:
            raise MismatchError(
                "room", f"{member_of(lane)} is of another group: its group_name= differs"
            )
        if not differing.same(node.settings, hello.options):
            what = differing.words(node.settings, hello.options, member_of(lane), node.name)
            raise MismatchError("options", f"{member_of(lane)} is of another group: {what}")
        if node.ordering is None or node.out or node.left:
            why = (
                "is leaving, use another super peer"
                if node.left
                else "bootstrap or join one there first"
            )
            node.end(link, f"{NOT_YET}: {node.name} {why}")
            return
        if hello.group and hello.group != node.group_tag:
            raise MismatchError("group", f"{member_of(lane)} is of another group")
        if lane in self.gone:
            node.end(link, f"{star.OUT}: {self.gone[lane]}")
            return
        link.lane, link.name = lane, link.name or member_of(lane)
        node.seals.learn(lane, hello.owner)
        self._tell_supers()
        link.control.append(wire.pack_frame(star.WAIT, block(node.lane.encode())))
        link.control.append(star.pack_supers(self._supers))
        known = self.inside.get(lane)
        if known is not None and known.link is not None:
            node.end(known.link, "replaced by another connection")
            known.link = None
        if known is not None and (hello.before, hello.address) == (node.lane, known.address):
            self._resume(known, link, hello)
            return
        if known is not None:
            self._detach(known)
        self.waiting[link.number] = JoiningPeer(link, hello, now)
        self._let_in(now)

    def _resume(self, known: Inside, link: Link, hello: star.InternalHello) -> None:
        node = self._node
        if not self.log.first - 1 <= hello.had <= known.cursor:
            raise DecodeError(f"{known.lane} reports {hello.had} messages of {known.cursor} sent")
        known.link, known.cursor = link, hello.had
        known.had = max(known.had, hello.had)
        if hello.times != known.times + 1:  # it tried another super peer and may seem to be there
            node.mesh_ordering.mesh.say_moved(known.lane, hello.times)
        known.times = hello.times
        taken = node.mesh_ordering.mesh.protocol.lr[known.address][0]
        link.control.append(
            star.pack_join_reply(
                star.InternalJoinReply(
                    *(node.group_tag, node.lane, known.address, True, taken),
                    *(0, (0, 0), 0, 0, Places()),
                )
            )
        )

    def _let_in(self, now: int) -> None:
        self._keep_numbered()
        for number, (link, hello, since) in list(self.waiting.items()):
            if link.closing or self._node.links.get(number) is not link:
                del self.waiting[number]
            elif not hello.before:
                self._attach(link, hello, None)
            elif not any(self._list_missing(hello)):
                self._come_over(link, hello)
            elif now - since > GIVE_UP_NS and self._is_nobodys(hello):
                why = "a message that it has is lost with its super peer"
                self._node.end(link, f"{star.ANEW}: {why}")

    def _list_missing(self, hello: star.InternalHello) -> list[tuple[str, int]]:
        return list(self._node.mesh_ordering.mesh.given.lacks(hello.places))

    def _is_nobodys(self, hello: star.InternalHello) -> bool:
        """Return whether some message that a peer has can never arrive here."""
        node = self._node
        if node.timers.unheard():
            return False
        lanes, known = node.mesh_ordering.lanes, node.timers.find_newest()
        return any(
            lane in node.mesh_ordering.cuts
            or (number > lanes.newest(lane) >= known.get(lane, 0) and lane not in node.greeted)
            for lane, number in self._list_missing(hello)
        )

    def _come_over(self, link: Link, hello: star.InternalHello) -> None:
        """Admit a peer of another super peer that has nothing unknown here."""
        if any(hello.places.lacks(self.log.freed)):
            self._node.end(link, f"{star.ANEW}: messages that it lacks were freed here")
            return
        had = self.log.with_copies(hello.places)
        self._attach(link, hello, had)
        self._node.mesh_ordering.mesh.say_moved(hello.lane, hello.times)

    def _attach(self, link: Link, hello: star.InternalHello, had: Places | None) -> None:
        """Start a peer at the present frontier. `had`: its messages, if it moves."""
        node = self._node
        del self.waiting[link.number]
        self._addresses += 1
        start = self.log.passed if had is None else self.log.start_for(had)
        known = Inside(hello.lane, self._addresses, start, hello.times)
        known.link = link
        self.inside[hello.lane] = known
        protocol = node.mesh_ordering.mesh.protocol
        protocol.join(known.address)
        _, number, heads = protocol.join_state()
        link.control.append(
            star.pack_join_reply(
                star.InternalJoinReply(
                    *(node.group_tag, node.lane, known.address, False, 0, number, heads),
                    *(start, self.log.newest, self.log.down if had is None else had),
                )
            )
        )

    # -- leaves ------------------------------------------------------------------------------------

    def _detach(self, known: Inside) -> None:
        protocol = self._node.mesh_ordering.mesh.protocol
        protocol.leave(known.address, protocol.lr[known.address][0])
        del self.inside[known.lane]

    def handle_close(self, link: Link, now: int) -> None:
        """Handle the end of a connection."""
        self.waiting.pop(link.number, None)
        self._told.pop(link.number, None)
        known = self.inside.get(link.lane)
        if known is not None and known.link is link:
            known.link, known.unheard_ns = None, now

    def evict(self, lane: str, why: str) -> None:
        """Evict an internal peer."""
        known = self.inside[lane]
        self._detach(known)
        self.gone[lane] = why
        if known.link is not None:
            self._node.end(known.link, f"{star.OUT}: {why}")

    def _have_moved(self) -> None:
        """Forget the peers that moved to another super peer."""
        mesh = self._node.mesh_ordering.mesh
        moved, mesh.moved = mesh.moved, []
        for lane, times in moved:
            known = self.inside.get(lane)
            if known is not None and known.times < times:
                if known.link is not None:
                    self._node.end(known.link, "moved to another super peer")
                self._detach(known)

    # -- upward ------------------------------------------------------------------------------------

    def frame(self, link: Link, kind: int, body: bytes) -> None:
        """Handle a frame of an internal peer. Raises a RemoteError."""
        known = self.inside.get(link.lane)
        if known is None or known.link is not link:
            raise DecodeError(f"frame of kind {kind} from a peer that is not internal")
        if kind == star.UP:
            self._came_up(known, body)
        elif kind == star.HAD:
            known.had = max(known.had, min(ByteReader(body).varint(), known.cursor))
        elif kind == star.LEAVE:
            self._detach(known)
            self._node.end(link, "left")
        else:
            raise DecodeError(f"unknown frame kind {kind} from an internal peer")

    def _came_up(self, known: Inside, body: bytes) -> None:
        reader = ByteReader(body)
        control = reader.block()
        message = messages.decode(control, reader.rest(), (Upward, Acknowledgement))
        if message.sender != known.address:
            raise DecodeError(f"{known.lane} uses the number {message.sender}")
        if isinstance(message, Upward):
            said, _ = origin.unpack(message.payload)
            if said.lane != known.lane:
                raise DecodeError(f"{known.lane} sent a message of {said.lane}")
            self.up.count(control, messages.control_bytes(message, with_floor=True))
        else:
            self.up.notes += len(control)
        self._node.mesh_ordering.mesh.forward(message)

    # -- downward ----------------------------------------------------------------------------------

    def turn(self, now: int) -> None:
        """End a step: log the numbered messages and release those that are durable."""
        mesh = self._node.mesh_ordering.mesh
        self._keep_numbered()
        self.log.let_pass(self._is_safe)
        if mesh.moved:
            self._have_moved()
        if self.waiting:
            self._let_in(now)

    def _keep_numbered(self) -> None:
        """Log the numbered messages before any frontier of the group is announced."""
        mesh = self._node.mesh_ordering.mesh
        if mesh.down:
            numbered, mesh.down = mesh.down, []
            for one in numbered:
                self._keep(one)

    def _keep(self, down: Down) -> None:
        message, place = down.message, down.place
        if message.sender >= MESH:
            message = message._replace(sender=0)  # as in Listing 15 line 15
        control = messages.encode(message)
        self.down.count(control, messages.control_bytes(message, with_floor=False))
        frame = star.pack_down(
            *(self._node.place(place.lane), place.number, place.notes, control, message.payload)
        )
        self.log.keep(frame, place, down.origin, down.first_copy)

    def _is_safe(self, place: Place) -> bool:
        """Return whether a message survives a crash of this super peer."""
        node = self._node
        if not node.greeted or place.lane in node.greeted:
            return True
        heard = node.mesh_ordering.lanes.heard
        return any(heard.get(m, {}).get(place.lane, 0) >= place.number for m in node.greeted)

    def writable(self) -> set[int]:
        passed = self.log.passed
        return {
            one.link.number
            for one in self.inside.values()
            if one.cursor < passed and one.link is not None
        }

    def pull(self, link: Link, budget: int) -> list[bytes]:
        known = self.inside.get(link.lane)
        if known is None or known.link is not link or known.cursor >= self.log.passed:
            return []
        parts = self.log.frames(known.cursor, budget)
        known.cursor += len(parts)
        return parts

    # -- time --------------------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        if now - self._looked_ns >= LOOK_NS:
            self._looked_ns = now
            self._let_in(now)
            self._tell_supers()
            self._put_out_silent(now)
        if now - self._freed_ns >= FREE_NS:
            self._freed_ns = now
            self._tell_inside()
            self._free()

    def _tell_supers(self) -> None:
        """Announce a changed list of super peers to the internal peers."""
        node = self._node
        ordering = node.mesh_ordering
        others = {one: ordering.members.get(one, "") for one in ordering.mesh.supers}
        found = [(node.lane, node.address), *sorted(others.items())]
        found = [(lane, address) for lane, address in found if address]
        if found == self._supers:
            return
        self._supers = found
        frame = star.pack_supers(found)
        for known in self.inside.values():
            if known.link is not None:
                known.link.control.append(frame)

    def _put_out_silent(self, now: int) -> None:
        after = self._node.settings.evict_after_ns
        for known in list(self.inside.values()):
            silent = now - known.unheard_ns
            if after is not None and known.link is None and silent > after:
                self.evict(known.lane, f"unheard for {silent // 10**6} ms")

    def _had(self) -> int:
        """Return the number up to which all internal peers have the log."""
        return min((one.had for one in self.inside.values()), default=self.log.passed)

    def _tell_inside(self) -> None:
        """Announce the frontier of the internal peers to the external group."""
        node = self._node
        self._keep_numbered()
        table = node.mesh_ordering.find_done()
        for place in self.log.after(min(self._had(), self.log.passed)):
            table[place.lane] = min(table.get(place.lane, 0), place.number - 1)
        for link in node.greeted.values():
            told = self._told.setdefault(link.number, {})
            news = {lane: n for lane, n in table.items() if told.get(lane, 0) < n}
            if news:
                told.update(news)
                rows = [(node.place(lane), n) for lane, n in news.items()]
                link.control.append(wire.pack_rows(INSIDE, rows))

    def _free(self) -> None:
        lanes = self._node.mesh_ordering.lanes.by_name

        def is_unneeded(place: Place) -> bool:
            return place.lane not in lanes or place.number < lanes[place.lane].oldest

        self.log.free(self._had(), is_unneeded)
        kept, at_most = self.log.bytes, self._node.settings.max_memory_bytes // 2
        if kept <= at_most:
            self._laggards.reset()
            return
        passed = self.log.passed
        behind = {
            one.lane: Behind(self.log.bytes_between(one.had, passed), one.had)
            for one in self.inside.values()
        }
        allowance = FALLBACK_TIMES * max(at_most, FALLBACK_BYTES)
        slowest = self._laggards.sample(kept, at_most, allowance, behind)
        if slowest is not None:
            self.evict(slowest, laggards.words(kept, behind[slowest]))


__all__ = ["Hub", "Inside"]
