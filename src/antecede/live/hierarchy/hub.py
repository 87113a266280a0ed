"""A super peer's side of its star: who is inside, what they are sent, what they have.

Theory of operation
-------------------
What the protocol numbers goes into a log, in order; a peer inside has a cursor in it. It goes down
only when a crash of this super peer would not take it back: when another member of the mesh that is
connected has it, if there is one. And it is kept until all inside have it, and all in the mesh, and
all inside the others: so whoever comes from another super peer finds here what it lacks.

Such a peer tells which places of the mesh it has. It waits until all of these are here, so that
what it says next can follow them; then it is a newcomer to the protocol, at the group's frontier of
now, and gets what it lacks up to there as it stands in the log.
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
from antecede.live.hierarchy.mesh_group import Down, Traffic
from antecede.live.hierarchy.origin import Place, Places
from antecede.live.laggards import LOOKS, Behind, Laggards
from antecede.live.links import Link
from antecede.live.settings import NS
from antecede.live.upkeep import FALLBACK_BYTES, FALLBACK_TIMES, FREE_NS, GIVE_UP_NS

if TYPE_CHECKING:
    from antecede.live.hierarchy.super_peer import SuperNode

LOOK_NS: Final = NS // 20
"""How often it is looked who can be let in."""


class Inside:
    """One peer inside."""

    def __init__(self, lane: str, address: int, start: int, times: int) -> None:
        self.lane, self.address, self.times = lane, address, times
        self.link: Link | None = None
        self.cursor = self.had = start
        """What was written to its link; what it says that has come."""
        self.unheard_ns = 0
        """When its link was lost."""


class Waiting(NamedTuple):
    """Who has said hello and cannot be let in yet."""

    link: Link
    hello: star.Hello
    since_ns: int


class Hub:
    """All that is inside of a super peer."""

    def __init__(self, node: SuperNode) -> None:
        self._node = node
        self.inside: dict[str, Inside] = {}
        """By lane."""
        self.gone: dict[str, str] = {}
        """Lanes that were put out, and why."""
        self.log = Log()
        self.up, self.down = Traffic(), Traffic()
        """What came from inside; what was numbered, once for all."""
        self.waiting: dict[int, Waiting] = {}
        self._addresses = 0
        self._supers: list[tuple[str, str]] = []
        self._told: dict[int, dict[str, int]] = {}
        """Link of the mesh -> what it was told that all inside have."""
        self._looked_ns = self._freed_ns = 0
        looks = max(LOOKS, node.settings.evict_slow_after_ns // FREE_NS)
        self._laggards = Laggards(looks)

    def begin(self) -> None:
        """The mesh was founded, or joined: what was said before is not to be had here."""
        self.log.begin(self._node.mesh_ordering.mesh.given)

    # -- who comes ---------------------------------------------------------------------------------

    def hello(self, link: Link, hello: star.Hello, now: int) -> None:
        """Somebody wants to be inside. Raises MismatchError where that cannot be."""
        node, lane = self._node, hello.lane
        if link.lane:
            raise DecodeError("a second greeting on one link")
        if link.name and member_of(lane) != link.name:
            raise MismatchError("sender", f"{link.name} speaks as {lane}")
        if hello.room != node.settings.tags()[0]:
            raise MismatchError("room", f"{member_of(lane)} is of another group: its room= differs")
        if not differing.same(node.settings, hello.options):
            what = differing.words(node.settings, hello.options, member_of(lane), node.name)
            raise MismatchError("options", f"{member_of(lane)} is of another group: {what}")
        if node.ordering is None or node.out or node.left:
            why = "is leaving, go elsewhere" if node.left else "found or join one there first"
            node.end(link, f"{NOT_YET}: {node.name} {why}")
            return
        if hello.group and hello.group != node.group_tag:
            raise MismatchError("group", f"{member_of(lane)} comes from another mesh")
        if lane in self.gone:
            node.end(link, f"{star.OUT}: {self.gone[lane]}")
            return
        link.lane, link.name = lane, link.name or member_of(lane)
        node.seals.learn(lane, hello.owner)
        self._tell_supers()
        link.control.append(wire.framed(star.WAIT, block(node.lane.encode())))
        link.control.append(star.pack_supers(self._supers))
        known = self.inside.get(lane)
        if known is not None and known.link is not None:
            node.end(known.link, "another link took its place")
            known.link = None
        if known is not None and (hello.before, hello.address) == (node.lane, known.address):
            self._resume(known, link, hello)
            return
        if known is not None:
            self._detach(known)
        self.waiting[link.number] = Waiting(link, hello, now)
        self._let_in(now)

    def _resume(self, known: Inside, link: Link, hello: star.Hello) -> None:
        node = self._node
        if not self.log.first - 1 <= hello.had <= known.cursor:
            raise DecodeError(f"{known.lane} has {hello.had} messages of {known.cursor}")
        known.link, known.cursor = link, hello.had
        known.had = max(known.had, hello.had)
        if hello.times != known.times + 1:  # it has tried elsewhere, and may seem to be there
            node.mesh_ordering.mesh.say_moved(known.lane, hello.times)
        known.times = hello.times
        taken = node.mesh_ordering.mesh.protocol.lr[known.address][0]
        link.control.append(
            star.pack_welcome(
                star.Welcome(
                    *(node.group_tag, node.lane, known.address, True, taken),
                    *(0, (0, 0), 0, 0, Places()),
                )
            )
        )

    def _let_in(self, now: int) -> None:
        """Let in who can be."""
        self._keep_numbered()
        for number, (link, hello, since) in list(self.waiting.items()):
            if link.closing or self._node.links.get(number) is not link:
                del self.waiting[number]
            elif not hello.before:
                self._attach(link, hello, None)
            elif not any(self._lacking(hello)):
                self._come_over(link, hello)
            elif now - since > GIVE_UP_NS and self._is_nobodys(hello):
                why = "something that it has died with its super peer"
                self._node.end(link, f"{star.ANEW}: {why}")

    def _lacking(self, hello: star.Hello) -> list[tuple[str, int]]:
        return list(self._node.mesh_ordering.mesh.given.lacks(hello.places))

    def _is_nobodys(self, hello: star.Hello) -> bool:
        """Whether something that it has cannot come here any more."""
        node = self._node
        if node.upkeep.unheard():
            return False
        lanes, known = node.mesh_ordering.lanes, node.upkeep.known_newest()
        return any(
            lane in node.mesh_ordering.cuts
            or (number > lanes.newest(lane) >= known.get(lane, 0) and lane not in node.greeted)
            for lane, number in self._lacking(hello)
        )

    def _come_over(self, link: Link, hello: star.Hello) -> None:
        """Let in a peer that had another super peer, and has nothing that is not here."""
        if any(hello.places.lacks(self.log.freed)):
            self._node.end(link, f"{star.ANEW}: what it lacks is not here any more")
            return
        had = self.log.with_copies(hello.places)
        self._attach(link, hello, had)
        self._node.mesh_ordering.mesh.say_moved(hello.lane, hello.times)

    def _attach(self, link: Link, hello: star.Hello, had: Places | None) -> None:
        """Begin with a peer at the group's frontier of now; `had`: what it has, if not a newcomer
        to the mesh.
        """
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
            star.pack_welcome(
                star.Welcome(
                    *(node.group_tag, node.lane, known.address, False, 0, number, heads),
                    *(start, self.log.newest, self.log.down if had is None else had),
                )
            )
        )

    # -- who goes ----------------------------------------------------------------------------------

    def _detach(self, known: Inside) -> None:
        protocol = self._node.mesh_ordering.mesh.protocol
        protocol.leave(known.address, protocol.lr[known.address][0])
        del self.inside[known.lane]

    def lost(self, link: Link, now: int) -> None:
        """A link is gone."""
        self.waiting.pop(link.number, None)
        self._told.pop(link.number, None)
        known = self.inside.get(link.lane)
        if known is not None and known.link is link:
            known.link, known.unheard_ns = None, now

    def put_out(self, lane: str, why: str) -> None:
        """Take nothing more from a peer inside, and keep nothing for it."""
        known = self.inside[lane]
        self._detach(known)
        self.gone[lane] = why
        if known.link is not None:
            self._node.end(known.link, f"{star.OUT}: {why}")

    def _have_moved(self) -> None:
        """Forget who is at another super peer by now."""
        mesh = self._node.mesh_ordering.mesh
        moved, mesh.moved = mesh.moved, []
        for lane, times in moved:
            known = self.inside.get(lane)
            if known is not None and known.times < times:
                if known.link is not None:
                    self._node.end(known.link, "it is at another super peer")
                self._detach(known)

    # -- what comes from inside --------------------------------------------------------------------

    def frame(self, link: Link, kind: int, body: bytes) -> None:
        """Take what a peer inside says. Raises a RemoteError where it cannot be."""
        known = self.inside.get(link.lane)
        if known is None or known.link is not link:
            raise DecodeError(f"a frame of kind {kind} from who is not inside")
        if kind == star.UP:
            self._came_up(known, body)
        elif kind == star.HAD:
            known.had = max(known.had, min(ByteReader(body).varint(), known.cursor))
        elif kind == star.LEAVE:
            self._detach(known)
            self._node.end(link, "it left")
        else:
            raise DecodeError(f"a frame of an unknown kind, {kind}, from inside")

    def _came_up(self, known: Inside, body: bytes) -> None:
        reader = ByteReader(body)
        control = reader.block()
        message = messages.decode(control, reader.rest(), (Upward, Acknowledgement))
        if message.sender != known.address:
            raise DecodeError(f"{known.lane} speaks as number {message.sender}")
        if isinstance(message, Upward):
            said, _ = origin.unpack(message.payload)
            if said.lane != known.lane:
                raise DecodeError(f"{known.lane} says what {said.lane} is to have said")
            self.up.count(control, messages.control_bytes(message, with_floor=True))
        else:
            self.up.notes += len(control)
        self._node.mesh_ordering.mesh.forward(message)

    # -- what goes down ----------------------------------------------------------------------------

    def turn(self, now: int) -> None:
        """End a turn: what was numbered goes into the log, and down what may."""
        mesh = self._node.mesh_ordering.mesh
        self._keep_numbered()
        self.log.let_pass(self._is_safe)
        if mesh.moved:
            self._have_moved()
        if self.waiting:
            self._let_in(now)

    def _keep_numbered(self) -> None:
        """Put into the log what was numbered: before anything is said of how far the group is."""
        mesh = self._node.mesh_ordering.mesh
        if mesh.down:
            numbered, mesh.down = mesh.down, []
            for one in numbered:
                self._keep(one)

    def _keep(self, down: Down) -> None:
        message, place = down.message, down.place
        if message.sender >= MESH:
            message = message._replace(sender=0)  # as Listing 15 line 15 writes it
        control = messages.encode(message)
        self.down.count(control, messages.control_bytes(message, with_floor=False))
        frame = star.pack_down(
            *(self._node.place(place.lane), place.number, place.notes, control, message.payload)
        )
        self.log.keep(frame, place, down.origin, down.first_copy)

    def _is_safe(self, place: Place) -> bool:
        """Whether a crash of this super peer would not take it back."""
        node = self._node
        if not node.greeted or place.lane in node.greeted:
            return True
        heard = node.mesh_ordering.lanes.heard
        return any(heard.get(m, {}).get(place.lane, 0) >= place.number for m in node.greeted)

    def writable(self) -> set[int]:
        """Return the links of those inside for whom something may go down."""
        passed = self.log.passed
        return {
            one.link.number
            for one in self.inside.values()
            if one.cursor < passed and one.link is not None
        }

    def pull(self, link: Link, budget: int) -> list[bytes]:
        """Return what is to be written to a peer inside now."""
        known = self.inside.get(link.lane)
        if known is None or known.link is not link or known.cursor >= self.log.passed:
            return []
        parts = self.log.frames(known.cursor, budget)
        known.cursor += len(parts)
        return parts

    # -- time --------------------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """Let time pass."""
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
        """Tell all inside where else they may go, when that has changed."""
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
        after = self._node.settings.put_out_ns
        for known in list(self.inside.values()):
            silent = now - known.unheard_ns
            if after is not None and known.link is None and silent > after:
                self.put_out(known.lane, f"unheard for {silent // 10**6} ms")

    def _had(self) -> int:
        """Return up to where all inside have the log."""
        return min((one.had for one in self.inside.values()), default=self.log.passed)

    def _tell_inside(self) -> None:
        """Tell the mesh what all inside have."""
        node = self._node
        self._keep_numbered()
        table = node.mesh_ordering.done()
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
        """Give up what all have, here and everywhere; or who holds up too much."""
        lanes = self._node.mesh_ordering.lanes.by_name

        def unneeded(place: Place) -> bool:
            return place.lane not in lanes or place.number < lanes[place.lane].oldest

        self.log.free(self._had(), unneeded)
        kept, at_most = self.log.bytes, self._node.settings.memory // 2
        if kept <= at_most:
            self._laggards.rest()
            return
        passed = self.log.passed
        behind = {
            one.lane: Behind(self.log.bytes_between(one.had, passed), one.had)
            for one in self.inside.values()
        }
        allowance = FALLBACK_TIMES * max(at_most, FALLBACK_BYTES)
        slowest = self._laggards.judge(kept, at_most, allowance, behind)
        if slowest is not None:
            self.put_out(slowest, laggards.words(kept, behind[slowest]))


__all__ = ["Hub", "Inside"]
