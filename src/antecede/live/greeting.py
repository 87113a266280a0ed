"""How two ends of a link come to know each other, and how a newcomer is let in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError, LocalError, MismatchError
from antecede.formatting import shown
from antecede.live import differing, wire
from antecede.live.charges import BEGIN_ANEW, OLD_COPY
from antecede.live.events import Change, ChangeKind, Id, Message, Said, member_of
from antecede.live.lanes import Lane
from antecede.live.links import Link
from antecede.live.ordering import Guest, Ordering
from antecede.live.settings import NS, fingerprint
from antecede.live.wire import Hello, Welcome

if TYPE_CHECKING:
    from antecede.live.node import Node

OF_ONE_NAME = 4
"""Links at most of lives of one member: it has one at a time, and the oldest of more is over."""
CROSSING_NS = 2 * NS
"""Two links between the same members within so long were dialed at once from both ends."""
HISTORY_BYTES = 16 << 20
"""Of what was said lately in a welcome: with more, a newcomer could refuse the frame."""
NOT_YET = "in no group yet"
"""How the word begins to whom wants to be let in too early."""


class Greeting:
    """Who may speak on a link, and from where on."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[int, str] = {}
        """Link -> lane of a newcomer whose welcome covers what the store does not have yet."""

    def begin(self, ordering: Ordering) -> None:
        """Be in a group from now on."""
        ordering.keep_rows = self._node.durable
        if self._node.time is not None and self._node.time.reading is not None:
            ordering.clock.accuracy_ns = self._node.time.accuracy_ns
            ordering.shows(self._node.time.reading)
        self._node.ordering = ordering
        self._node.refusal = ""

    def hello(self) -> Hello:
        """Return what one says first on a link."""
        node = self._node
        room, options = node.settings.tags()[0], differing.pack(node.settings)
        members = sorted(node.ordering.members) if node.ordering is not None else ()
        return Hello(
            *(room, node.settings.order, options, node.group_tag, fingerprint(*members)),
            *(node.lane, node.address, node.seals.owner(node.lane), node.safe()),
        )

    def greeted(self, link: Link, hello: Hello, now: int) -> None:
        """The other end has said who it is. Raises MismatchError when it cannot stay."""
        node = self._node
        if node.out:
            node.end(link, "out of the group")
            return
        if not link.name:
            link.name = member_of(hello.lane)
        self._check(link, hello)
        node.learn_owner(hello.lane, hello.owner)
        if hello.group and node.group_tag and hello.group != node.group_tag:
            raise MismatchError(
                "group", "two groups of one room, founded apart: one of them has to join the other"
            )
        if node.ordering is not None and hello.lane in node.ordering.gone:
            if link.name == node.name:  # one's own former life, which one has called to tell it
                node.end(link, node.why_out(hello.lane))
                return
            raise MismatchError("members", node.why_out(hello.lane))
        # Before a link is compared with others of the same member: one of these may be the call by
        # which that member, or this one, is to be let in.
        if node.ordering is None and not (link.dialed and hello.group):
            unasked = f"{hello.lane} was not asked to let {node.name} in"
            words = f"{NOT_YET}: {unasked if hello.group else 'found one there first'}"
            node.end(link, words)
            if link.dialed:
                node.refusal = words
            return
        if link.dialed and node.ordering is not None and not hello.group:
            node.end(link, f"{NOT_YET}: {hello.lane} has not asked to be let in")
            return
        if not self._is_the_one(link, hello.lane):
            return
        self._end_former(hello.lane)
        link.lane = hello.lane
        node.greeted[hello.lane] = link
        if node.ordering is not None and hello.group:
            self._meet(link, hello)
        elif node.ordering is not None:
            self._let_in(link, hello)
        node.upkeep.met(link, now)

    def _check(self, link: Link, hello: Hello) -> None:
        node = self._node
        if link.lane:
            raise DecodeError("a second greeting on one link")
        if link.name and member_of(hello.lane) != link.name:
            raise MismatchError("sender", f"{link.name} speaks as {hello.lane}")
        if hello.lane == node.lane:
            raise MismatchError("members", f"{hello.lane} calls itself")
        settings, member = node.settings, member_of(hello.lane)
        of_another = f"{member} is of another group: "
        if hello.room != settings.tags()[0]:
            raise MismatchError("room", f"{of_another}its room= differs")
        if hello.order != settings.order:
            orders = f"{shown(hello.order)} at {member}, {settings.order!r} at {node.name}"
            raise MismatchError("order", f"{of_another}its order= differs: {orders}")
        if not differing.same(settings, hello.options):
            what = differing.words(settings, hello.options, member, node.name)
            raise MismatchError("options", of_another + what)

    def _is_the_one(self, link: Link, lane: str) -> bool:
        """Of two links between the same members, keep the newer; of two at once, one both agree on.

        That is the one that the member with the greater name dialed.
        """
        node, other = self._node, self._node.greeted.get(lane)
        if other is None:
            return True
        at_once = link.up_ns - other.up_ns < CROSSING_NS and link.dialed != other.dialed
        if at_once and link.dialed != (node.lane > lane):
            node.end(link, "another link was made at once")
            return False
        node.end(other, "another link took its place")
        return True

    def _end_former(self, lane: str) -> None:
        """A member has one life at a time: of more links than can be, the oldest is over."""
        node = self._node
        same = [one for one in node.greeted.values() if member_of(one.lane) == member_of(lane)]
        if len(same) >= OF_ONE_NAME:
            node.end(min(same, key=lambda one: one.number), "a newer life of it is here")

    def _meet(self, link: Link, hello: Hello) -> None:
        """Two members: each is told what the other has, and sends what it lacks."""
        node = self._node
        ordering = node.active
        # What it says now counts, and not what it was told to start from, by more than one perhaps.
        ordering.lanes.met(hello.lane, hello.frontier)
        had = hello.frontier.get(node.lane, 0)
        self._resume(link, had)
        if (specimen := node.outflow.specimen(had)) is not None:
            link.control.append(specimen)
        rows = [(node.place(name), count) for name, count in node.safe().items()]
        link.control.append(wire.pack_rows(wire.HAVE, rows))

    def _resume(self, link: Link, had: int) -> None:
        """Send of one's own lane what the other end lacks. Raises when that cannot be."""
        node = self._node
        lane = node.active.lanes.by_name[node.lane]
        if had > node.outflow.written_upto:
            why = f"{link.name} has {had} batches of {node.lane}, and here are {lane.newest}"
            if had <= lane.newest:
                why += f", {lane.newest - node.outflow.written_upto} of which were sent to nobody"
            # It may hand them on, which shows that it is so; or more of the others say so.
            row = node.place(node.lane), min(had - 1, lane.newest)
            link.control.append(wire.pack_rows(wire.WANT, [row]))
            node.charge(link, OLD_COPY, f"{OLD_COPY}: {why}. {BEGIN_ANEW}")
            if node.out:
                raise MismatchError("members", why)
        link.member = True
        link.cursors = {node.lane: had} if had <= lane.newest else {}

    def _let_in(self, link: Link, hello: Hello) -> None:
        """As sponsor: give a newcomer what it starts from, and keep what it will need."""
        node = self._node
        ordering = node.active
        if node.left or node.lane not in ordering.members:
            node.end(link, f"{NOT_YET}: {node.name} is leaving, join elsewhere")
            return
        if node.stopped:
            raise MismatchError("members", "this part of the group has no majority: join elsewhere")
        ordering.flush()
        try:
            guest = ordering.invite(hello.lane)
        except LocalError as error:
            raise MismatchError("members", str(error)) from error
        if guest.frontier[node.lane] > node.safe().get(node.lane, 0):
            self._waiting[link.number] = hello.lane
        else:
            self._welcome(link, hello.lane, guest)

    def stored(self) -> None:
        """The store has more: welcome who waits for no more than that. What one said is told to
        nobody before, or a crash could take back what a newcomer takes for said.
        """
        node = self._node
        for number, lane in list(self._waiting.items()):
            link, guest = node.links.get(number), node.active.guests.get(lane)
            if link is None or link.closing or guest is None:
                del self._waiting[number]
                if link is not None and not link.closing:
                    node.end(link, f"{NOT_YET}: ask again")
            elif guest.frontier[node.lane] <= node.safe().get(node.lane, 0):
                del self._waiting[number]
                self._welcome(link, lane, guest)

    def _welcome(self, link: Link, lane: str, guest: Guest) -> None:
        node = self._node
        ordering = node.active
        shown = {name: node.seals.owner(name) for name in ordering.members if name != lane}
        owners = {name: owner for name, owner in shown.items() if owner}
        welcome = Welcome(
            *(node.group_tag, guest.invitation, guest.frontier),
            *(ordering.members, sorted(ordering.gone), owners),
            _pack_history(guest.history),
        )
        link.control.append(wire.pack_welcome(welcome))
        node.outflow.told(guest.frontier[node.lane])
        self._resume(link, guest.frontier[node.lane])
        rows = [(node.place(name), count) for name, count in node.safe().items()]
        link.control.append(wire.pack_rows(wire.HAVE, rows))

    def welcomed(self, link: Link, welcome: Welcome, now: int) -> None:
        """As newcomer: start from what the sponsor has. Raises DecodeError when that cannot be."""
        node = self._node
        if node.ordering is not None:  # called twice, let in twice: the first counts
            node.end(link, "in the group by now")
            return
        known = link.lane in welcome.members and welcome.invitation
        if len(welcome.group) != wire.TAG or not known:
            raise DecodeError("a welcome to no group")
        settings = node.settings
        ordering = node.ordering_class(node.lane, settings, node.seals.seal, welcome.invitation)
        for name, owner in welcome.owners.items():
            if name != node.lane:
                node.learn(link, name, owner)
        ordering.lanes.begin(welcome.frontier)
        if settings.timed:  # others learn it from control information
            met = set(ordering.group.members)
            ordering.group.start_from({n: k for n, k in welcome.frontier.items() if n in met})
        ordering.lanes.by_name[node.lane] = Lane()
        ordering.members = {n: a for n, a in welcome.members.items() if n != node.lane}
        ordering.gone = set(welcome.gone)
        given = _unpack_history(welcome.history)
        for run in given[max(0, len(given) - settings.history) :]:  # not more than one keeps
            ordering.delivered.append(run)
            ordering.history.extend(run.messages())  # for newcomers that one lets in oneself
        node.group_tag = welcome.group
        self.begin(ordering)
        ordering.lanes.acknowledged(link.lane, welcome.frontier)
        link.member, link.cursors = True, {node.lane: 0}
        self._announce(ordering)
        node.upkeep.call_all(now)

    def _announce(self, ordering: Ordering) -> None:
        """Say in one's first batch that one is here, and that former lives are over."""
        node = self._node
        for lane in list(ordering.members):
            if member_of(lane) == node.name:
                node.upkeep.tell(ordering.members[lane])
                ordering.change(Change(ChangeKind.LEFT, lane, "began anew"))
        ordering.change(Change(ChangeKind.JOINED, node.lane, node.address))
        node.say_subscription()
        ordering.flush()


def _pack_history(messages: Iterable[Message]) -> bytes:
    """Return messages as bytes: the newest, as many as a welcome may hold."""
    parts: list[bytes] = []
    left = HISTORY_BYTES
    for one in reversed(list(messages)):
        head = block(one.lane.encode()), varint(one.number), block(one.payload)
        part = b"".join((*head, _pack_ids(one.reply_to), _pack_ids(one.missing)))
        left -= len(part)
        if left < 0:
            break
        parts.append(part)
    return varint(len(parts)) + b"".join(reversed(parts))


def _unpack_history(data: bytes) -> list[Said]:
    reader = ByteReader(data)
    found = []
    for _ in range(reader.varint()):
        lane, number, payload = wire.lane(reader), reader.varint(), reader.block()
        found.append(Said(lane, number, [payload], _read_ids(reader), _read_ids(reader), (), True))
    return found


def _pack_ids(ids: Sequence[Id]) -> bytes:
    return varint(len(ids)) + b"".join(block(str(one).encode()) for one in ids)


def _read_ids(reader: ByteReader) -> tuple[Id, ...]:
    return tuple([_id(wire.text(reader)) for _ in range(reader.varint())])


def _id(text: str) -> Id:
    try:
        return Id.of(text)
    except LocalError as error:
        raise DecodeError(str(error)) from error
