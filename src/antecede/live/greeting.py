"""Handshake of two ends of a connection, and admission of joining members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError, LocalError, MismatchError
from antecede.formatting import quote
from antecede.live import differing, wire
from antecede.live.charges import BEGIN_ANEW, OLD_COPY
from antecede.live.events import Change, ChangeKind, Id, Message, SentBatch, member_of
from antecede.live.lanes import SenderLog
from antecede.live.links import Link
from antecede.live.ordering import JoinState, Ordering
from antecede.live.settings import NS, fingerprint
from antecede.live.wire import Hello, JoinReply

if TYPE_CHECKING:
    from antecede.live.node import Node

OF_ONE_NAME = 4
"""Connections to incarnations of one member, at most; beyond, the oldest is closed."""
CROSSING_NS = 2 * NS
"""Age difference of two connections that both ends dialed at once."""
HISTORY_BYTES = 16 << 20
"""History in a join reply, bytes. A joining member could reject a larger frame."""
NOT_YET = "not in a group yet"
"""Prefix of the BYE to a joining member that dials too early."""


class Handshake:
    """Handshakes of a peer."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[int, str] = {}
        """Connection -> joining member whose join reply covers batches that the store lacks yet."""

    def begin(self, ordering: Ordering) -> None:
        """Enter a group."""
        ordering.keep_rows = self._node.durable
        if self._node.clock_monitor is not None and self._node.clock_monitor.reading is not None:
            ordering.clock.accuracy_ns = self._node.clock_monitor.accuracy_ns
            ordering.shows(self._node.clock_monitor.reading)
        self._node.ordering = ordering
        self._node.refusal = ""

    def hello(self) -> Hello:
        """Return the HELLO of this member."""
        node = self._node
        room, options = node.settings.tags()[0], differing.pack(node.settings)
        members = sorted(node.ordering.members) if node.ordering is not None else ()
        return Hello(
            *(room, node.settings.order, options, node.group_tag, fingerprint(*members)),
            *(node.lane, node.address, node.seals.owner(node.lane), node.safe()),
        )

    def handle_hello(self, link: Link, hello: Hello, now: int) -> None:
        """Handle a HELLO. Raises MismatchError for a member that cannot stay."""
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
                "group",
                "two groups of one name, bootstrapped separately: restart one of them and join",
            )
        if node.ordering is not None and hello.lane in node.ordering.gone:
            if link.name == node.name:  # the earlier incarnation of this member, dialed to be told
                node.end(link, node.why_out(hello.lane))
                return
            raise MismatchError("members", node.why_out(hello.lane))
        # Before the comparison with other connections of the member: one of them may be the dial
        # that admits one of the two.
        if node.ordering is None and not (link.dialed and hello.group):
            unasked = f"{hello.lane} was not asked to admit {node.name}"
            words = f"{NOT_YET}: {unasked if hello.group else 'bootstrap one there first'}"
            node.end(link, words)
            if link.dialed:
                node.refusal = words
            return
        if link.dialed and node.ordering is not None and not hello.group:
            node.end(link, f"{NOT_YET}: {hello.lane} has not requested to join")
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
        node.timers.handle_connection(link, now)

    def _check(self, link: Link, hello: Hello) -> None:
        node = self._node
        if link.lane:
            raise DecodeError("second HELLO on a connection")
        if link.name and member_of(hello.lane) != link.name:
            raise MismatchError("sender", f"{link.name} uses the sender id {hello.lane}")
        if hello.lane == node.lane:
            raise MismatchError("members", f"{hello.lane} dialed itself")
        settings, member = node.settings, member_of(hello.lane)
        of_another = f"{member} is of another group: "
        if hello.room != settings.tags()[0]:
            raise MismatchError("room", f"{of_another}its group_name= differs")
        if hello.order != settings.order:
            orders = f"{quote(hello.order)} at {member}, {settings.order!r} at {node.name}"
            raise MismatchError("order", f"{of_another}its order= differs: {orders}")
        if not differing.same(settings, hello.options):
            what = differing.words(settings, hello.options, member, node.name)
            raise MismatchError("options", of_another + what)

    def _is_the_one(self, link: Link, lane: str) -> bool:
        """Return whether a new connection replaces the present one. The newer of two stays. Of two
        dialed at once, the one that the greater name dialed stays.
        """
        node, other = self._node, self._node.greeted.get(lane)
        if other is None:
            return True
        at_once = link.up_ns - other.up_ns < CROSSING_NS and link.dialed != other.dialed
        if at_once and link.dialed != (node.lane > lane):
            node.end(link, "duplicate connection")
            return False
        node.end(other, "replaced by another connection")
        return True

    def _end_former(self, lane: str) -> None:
        """Close the oldest connection of a member with more than it can have."""
        node = self._node
        same = [one for one in node.greeted.values() if member_of(one.lane) == member_of(lane)]
        if len(same) >= OF_ONE_NAME:
            node.end(min(same, key=lambda one: one.number), "replaced by a newer incarnation")

    def _meet(self, link: Link, hello: Hello) -> None:
        """Resume with a member: exchange frontiers and send what each lacks."""
        node = self._node
        ordering = node.active
        # The HELLO counts, not the start it was given, which may be higher by more than one.
        ordering.lanes.replace_frontier(hello.lane, hello.frontier)
        had = hello.frontier.get(node.lane, 0)
        self._resume(link, had)
        if (specimen := node.outbound.specimen(had)) is not None:
            link.control.append(specimen)
        rows = [(node.place(name), count) for name, count in node.safe().items()]
        link.control.append(wire.pack_rows(wire.ACK, rows))

    def _resume(self, link: Link, had: int) -> None:
        """Resume the own log where the other end lacks it. Raises MismatchError."""
        node = self._node
        lane = node.active.lanes.by_name[node.lane]
        if had > node.outbound.written_upto:
            why = f"{link.name} has {had} batches of {node.lane}, more than the {lane.newest} here"
            if had <= lane.newest:
                why += f", {lane.newest - node.outbound.written_upto} of which were never sent"
            # It may relay them, as a proof, or more members report the same.
            row = node.place(node.lane), min(had - 1, lane.newest)
            link.control.append(wire.pack_rows(wire.NAK, [row]))
            node.add_vote(link, OLD_COPY, f"{OLD_COPY}: {why}. {BEGIN_ANEW}")
            if node.out:
                raise MismatchError("members", why)
        link.member = True
        link.cursors = {node.lane: had} if had <= lane.newest else {}

    def _let_in(self, link: Link, hello: Hello) -> None:
        """Admit a joining member as its sponsor, and keep what it will need."""
        node = self._node
        ordering = node.active
        if node.left or node.lane not in ordering.members:
            node.end(link, f"{NOT_YET}: {node.name} is leaving, join at another member")
            return
        if node.in_minority:
            raise MismatchError("members", "minority part of the group: join at another member")
        ordering.flush()
        try:
            guest = ordering.invite(hello.lane)
        except LocalError as error:
            raise MismatchError("members", str(error)) from error
        if guest.frontier[node.lane] > node.safe().get(node.lane, 0):
            self._waiting[link.number] = hello.lane
        else:
            self._welcome(link, hello.lane, guest)

    def handle_stored(self) -> None:
        """Send join replies whose batches are stored now. This member announces its own batches
        only after they are stored. Otherwise a crash could undo batches that a joining member
        already counts.
        """
        node = self._node
        for number, lane in list(self._waiting.items()):
            link, guest = node.links.get(number), node.active.guests.get(lane)
            if link is None or link.closing or guest is None:
                del self._waiting[number]
                if link is not None and not link.closing:
                    node.end(link, f"{NOT_YET}: dial again")
            elif guest.frontier[node.lane] <= node.safe().get(node.lane, 0):
                del self._waiting[number]
                self._welcome(link, lane, guest)

    def _welcome(self, link: Link, lane: str, guest: JoinState) -> None:
        node = self._node
        ordering = node.active
        shown = {name: node.seals.owner(name) for name in ordering.members if name != lane}
        owners = {name: owner for name, owner in shown.items() if owner}
        welcome = JoinReply(
            *(node.group_tag, guest.invitation, guest.frontier),
            *(ordering.members, sorted(ordering.gone), owners),
            _pack_history(guest.history),
        )
        link.control.append(wire.pack_join_reply(welcome))
        node.outbound.record_announced(guest.frontier[node.lane])
        self._resume(link, guest.frontier[node.lane])
        rows = [(node.place(name), count) for name, count in node.safe().items()]
        link.control.append(wire.pack_rows(wire.ACK, rows))

    def handle_join_reply(self, link: Link, welcome: JoinReply, now: int) -> None:
        """Enter the group of a join reply. Raises DecodeError for an invalid one."""
        node = self._node
        if node.ordering is not None:  # of two join replies the first counts
            node.end(link, "in the group already")
            return
        known = link.lane in welcome.members and welcome.invitation
        if len(welcome.group) != wire.TAG or not known:
            raise DecodeError("join reply without a group")
        settings = node.settings
        ordering = node.ordering_class(node.lane, settings, node.seals.seal, welcome.invitation)
        for name, owner in welcome.owners.items():
            if name != node.lane:
                node.learn(link, name, owner)
        ordering.lanes.begin(welcome.frontier)
        if settings.timed:  # other members learn it from control information
            met = set(ordering.group.members)
            ordering.group.start_from({n: k for n, k in welcome.frontier.items() if n in met})
        ordering.lanes.by_name[node.lane] = SenderLog()
        ordering.members = {n: a for n, a in welcome.members.items() if n != node.lane}
        ordering.gone = set(welcome.gone)
        given = _unpack_history(welcome.history)
        for run in given[max(0, len(given) - settings.history) :]:  # no more than this member keeps
            ordering.delivered.append(run)
            ordering.history.extend(run.messages())  # for members that this one admits
        node.group_tag = welcome.group
        self.begin(ordering)
        ordering.lanes.acknowledge(link.lane, welcome.frontier)
        link.member, link.cursors = True, {node.lane: 0}
        self._announce(ordering)
        node.timers.call_all(now)

    def _announce(self, ordering: Ordering) -> None:
        """Announce the join, and the end of earlier incarnations, in the first batch."""
        node = self._node
        for lane in list(ordering.members):
            if member_of(lane) == node.name:
                node.timers.tell(ordering.members[lane])
                ordering.change(Change(ChangeKind.LEFT, lane, "restarted without its store"))
        ordering.change(Change(ChangeKind.JOINED, node.lane, node.address))
        node.say_subscription()
        ordering.flush()


def _pack_history(messages: Iterable[Message]) -> bytes:
    """Return the newest messages as bytes, as many as a join reply may have."""
    parts: list[bytes] = []
    left = HISTORY_BYTES
    for one in reversed(list(messages)):
        head = block(one.sender_id.encode()), varint(one.number), block(one.payload)
        part = b"".join((*head, _pack_ids(one.reply_to), _pack_ids(one.missing_ids)))
        left -= len(part)
        if left < 0:
            break
        parts.append(part)
    return varint(len(parts)) + b"".join(reversed(parts))


def _unpack_history(data: bytes) -> list[SentBatch]:
    reader = ByteReader(data)
    found = []
    for _ in range(reader.varint()):
        lane, number, payload = wire.lane(reader), reader.varint(), reader.block()
        found.append(
            SentBatch(lane, number, [payload], _read_ids(reader), _read_ids(reader), (), True)
        )
    return found


def _pack_ids(ids: Sequence[Id]) -> bytes:
    return varint(len(ids)) + b"".join(block(str(one).encode()) for one in ids)


def _read_ids(reader: ByteReader) -> tuple[Id, ...]:
    return tuple([_id(wire.text(reader)) for _ in range(reader.varint())])


def _id(text: str) -> Id:
    try:
        return Id.from_text(text)
    except LocalError as error:
        raise DecodeError(str(error)) from error
