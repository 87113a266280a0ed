"""A peer of a live group over datagrams as a state machine: no socket, no clock, no thread.

A driver tells it what happened (`introduced`, `receive`, `say`, `tick`), and asks it what to send
(`take_datagrams`), whom to call (`dials`), what to hand to the application (`take_delivered`),
which sessions to end (`ended`), and when it is due again. A *session* is a way to one other life of
a member that both ends know by keys which they got when one called the other (`envelopes`); who is
at its other end is known, and nothing comes over it that the other end did not send.

The ordering group recovers what is lost by its own notes. Here stands what it does not do: who is a
member (`membership`), what fits no datagram (`parcels`), how fast it goes (`pacing`), and that
nobody sends more than the others can keep up with: a batch that some member has not delivered
counts against the window.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import (
    DecodeError,
    LocalError,
    MismatchError,
    PeerError,
    RemoteError,
    SequenceError,
)
from antecede.group.group import Group
from antecede.group.message import Message as Ordered
from antecede.group.message import Packet, Sent
from antecede.live import batches
from antecede.live.batches import Batch
from antecede.live.datagrams import packets, parcels
from antecede.live.datagrams.membership import Membership
from antecede.live.datagrams.sending import Sending, Session
from antecede.live.datagrams.settings import DatagramSettings
from antecede.live.events import Delivery, GivenUp, Id, Said, lane_of, member_of
from antecede.live.settings import NS
from antecede.live.wire import Hello
from antecede.live.wire import lane as read_lane

SESSIONS: Final = 4
"""Of one life of a member."""
STRANGERS: Final = 64
"""Sessions of those who are no members."""


class Moment(NamedTuple):
    """A reading of both clocks, in nanoseconds."""

    now: int
    """Of a clock that never goes back: for time-outs."""
    wall: int
    """Of the system's clock: for the order."""


class DatagramNode:
    """One peer. `seed`: bytes drawn for it, from which it names its lives; `address`: where it is
    reached.
    """

    def __init__(
        self, name: str, settings: DatagramSettings, seed: bytes, address: str = ""
    ) -> None:
        self.name, self.settings, self.address = name, settings, address
        self._seed, self._lives = seed, 0
        self.lane = ""
        self.group: Group | None = None
        """None: in no group yet."""
        self.group_tag = b""
        self.sessions: dict[int, Session] = {}
        self.routes: dict[str, Session] = {}
        """Lane -> the session to it that is used."""
        self.ended: list[int] = []
        """Sessions that the driver is to forget."""
        self.delivered: list[Delivery] = []
        self.place = self.said = self.newest = 0
        """Messages delivered, messages said, batches sent."""
        self._waiting: deque[bytes] = deque()
        self.waiting_bytes = 0
        self._beside = 160
        """Bytes of a frame beside its payload, as it was last."""
        self.refused: Counter[str] = Counter()
        self.last_refusal = ""
        self.bytes_in = self.bytes_out = self.datagrams_in = self.datagrams_out = 0
        self.behind = False
        """Whether the application is: then the others are not told that one has come further."""
        self.handed_on = self.given_up = 0
        self.kept: dict[str, OrderedDict[int, bytes]] = {}
        """Lane -> number -> frame of somebody else that somebody may lack (orders by clocks)."""
        self.kept_bytes = 0
        self.log: list[tuple[str, str, int, tuple[str, ...]]] | None = None
        """For tests: (begin, send, receive or deliver, lane, number, to whom) of batches."""
        self.sending = Sending(settings)
        self._news_ns: int | None = None
        self._ticked_ns = self._beat_ns = 0
        self.membership = Membership(self)
        self.begin_life()

    # -- beginning ----------------------------------------------------------------------------

    def begin_life(self) -> None:
        """Take another name for this life: nobody knows it yet. Sessions of the last one end."""
        self._lives += 1
        digest = hashlib.blake2b(self._seed + varint(self._lives), digest_size=4).hexdigest()
        self.lane = lane_of(self.name, digest)
        self.ended += self.sessions
        self.sessions.clear()
        self.routes.clear()

    def found(self, tag: bytes, at: Moment) -> None:
        """Begin a group of one; `tag`: eight bytes that were drawn for it."""
        self.group_tag = tag
        self.group = self.settings.group(self.lane)
        self.membership.found(at)

    def hello(self, owner: bytes) -> Hello:
        """Return what this peer says first on a call. `owner`: the keys."""
        room, options = self.settings.tags()
        return Hello(
            *(room, self.settings.order, options, self.group_tag, b""),
            *(self.lane, self.address, owner, {}),
        )

    def check(self, hello: Hello, name: str) -> None:
        """Raise MismatchError where the other end is of another group; `name`: its certificate's,
        empty without one.
        """
        if name and member_of(hello.lane) != name:
            raise MismatchError("sender", f"{name} speaks as {hello.lane}")
        if hello.lane == self.lane:
            raise MismatchError("members", f"{hello.lane} calls itself")
        room, options = self.settings.tags()
        ours = {"room": room, "order": self.settings.order, "options": options}
        for what, value in ours.items():
            if getattr(hello, what) != value:
                who = name or hello.lane
                raise MismatchError(what, f"{who} is of another group: its {what}= differs")
        if hello.group and self.group_tag and hello.group != self.group_tag:
            raise MismatchError(
                "group", "two groups of one room, founded apart: one of them has to join the other"
            )
        self.membership.check(hello)

    def introduced(self, number: int, hello: Hello, at: Moment) -> None:
        """There is a session to somebody who was checked."""
        session = Session(number, hello, self.settings, at.now)
        self.sessions[number] = session
        mine = [one for one in self.sessions.values() if one.lane == hello.lane]
        for one in mine[:-SESSIONS]:
            self.end(one)
        strangers = [one for one in self.sessions.values() if not self.membership.knows(one.lane)]
        for one in strangers[:-STRANGERS]:
            self.end(one)
        route = self.routes.get(hello.lane)
        if route is None or route.number not in self.sessions:
            self.routes[hello.lane] = session
        self.tell(session, at, urgent=True)

    def end(self, session: Session) -> None:
        """Forget a session."""
        self.sessions.pop(session.number, None)
        self.ended.append(session.number)
        if self.routes.get(session.lane) is session:
            left = [one for one in self.sessions.values() if one.lane == session.lane]
            self.routes.pop(session.lane)
            if left:
                self.routes[session.lane] = left[-1]

    def refuse(self, who: str, error: Exception) -> None:
        """Count what is not taken."""
        self.refused[type(error).__name__] += 1
        self.last_refusal = f"{who}: {error}"

    # -- what comes ---------------------------------------------------------------------------

    def receive(self, number: int, datagram: bytes, at: Moment) -> None:
        """Take in what came over a session; what cannot be right is dropped and counted."""
        session = self.sessions.get(number)
        if session is None:
            return
        self.bytes_in += len(datagram)
        self.datagrams_in += 1
        route = self.routes.get(session.lane)
        if route is None or at.now - (route.heard_ns or 0) > 4 * self.settings.resend_ns:
            self.routes[session.lane] = session  # the other end may have forgotten the other
        session.heard_ns = at.now
        self.try_flush(at)
        try:
            for one in packets.packets(datagram):
                self._packet(session, one, at)
        except (RemoteError, LocalError) as error:
            self.refuse(session.lane, error)

    def _packet(self, session: Session, packet: bytes, at: Moment) -> None:
        kind, reader = packet[0], Reader(packet, 1)
        if kind == packets.FRAME:
            self._frame(session, reader, at)
        elif kind == packets.PART:
            answer, whole = session.incoming.take(reader)
            self.queue(session, answer, at, urgent=True)
            if whole is not None:
                if whole[0] == packets.PART:
                    raise DecodeError("parts of parts")
                self._packet(session, whole, at)
        elif kind == packets.PARTS:
            of, bits = parcels.read_parts(reader)
            if (parcel := session.parcels.get(of)) is not None:
                parcel.acknowledged(bits, at.now)
                if not parcel.parts:
                    del session.parcels[of]
        elif kind == packets.HANDED:
            self._handed(session, reader, at)
        elif kind == packets.HAVE:
            self._have(session, packets.read_have(reader), at)
        else:
            self.membership.packet(session, kind, reader, at)

    def _frame(self, session: Session, reader: Reader, at: Moment) -> None:
        number, data = reader.varint(), reader.rest()
        if self.membership.may_speak(session.lane):
            self.take(session.lane, number, data, at)
        else:
            self.refused["no member"] += 1
            self.tell(session, at)  # it, or this member, lacks a change

    def _handed(self, session: Session, reader: Reader, at: Moment) -> None:
        lane, number, data = read_lane(reader), reader.varint(), reader.rest()
        if not self.membership.may_speak(session.lane):
            self.refused["no member"] += 1
        elif number and lane != self.lane and self.membership.may_be_handed_on(lane):
            try:
                if not self.fits(lane, number, data):
                    raise SequenceError(f"message {number} of {lane} as it was for a newcomer")
                self.take(lane, number, data, at)
            except SequenceError:
                self.refused["another's copy"] += 1

    def fits(self, lane: str, number: int, data: bytes) -> bool:
        """Tell whether a frame may be handed on: not the copy for a newcomer (orders by clocks).

        That says that nothing came before it: a member that lacks something would never know.
        """
        if not self.settings.clocked or self.group is None or number == 1:
            return True
        return (lane, number - 1) in self.group.inspect(data).causes

    def take(self, lane: str, number: int, data: bytes, at: Moment) -> None:
        """Give a frame of a member to the order. Raises RemoteError, LocalError."""
        if self.group is None or self.membership.out:
            return
        messages = self.group.receive(data, now_ns=at.wall, said_by=(lane, number))
        if number and self.settings.clocked:
            self._keep(lane, number, data)
        self.came_of(messages, at)

    def _keep(self, lane: str, number: int, data: bytes) -> None:
        there = self.kept.setdefault(lane, OrderedDict())
        if number not in there:
            there[number] = data
            self.kept_bytes += len(data)
        while self.kept_bytes > self.settings.memory:
            longest = max(self.kept.values(), key=len)
            self.kept_bytes -= len(longest.popitem(last=False)[1])

    def came_of(self, messages: Iterable[Ordered], at: Moment) -> None:
        """A call of the ordering group returned: hand on what it delivers, send what it wants."""
        assert self.group is not None
        self._note_arrivals(self.group)
        for message in messages:
            self._hand_over(message)
            if self._news_ns is None:
                self._news_ns = at.now
        for packet in self.group.outgoing():
            self._send_packet(packet, at)

    def _note_arrivals(self, group: Group) -> None:
        if self.log is None:
            return
        for effect in group.effects():
            if effect.message is not None and effect.kind in ("held", "delivered", "released"):
                row = ("receive", *effect.message.id, ())
                if row not in self.log:
                    self.log.append(row)

    def _hand_over(self, message: Ordered) -> None:
        if self.log is not None:
            self.log.append(("deliver", message.sender, message.seq, ()))
        if message.missing:
            lacking = tuple(sorted({lane for lane, _ in message.missing}))
            self.given_up += len(message.missing)
            self.delivered.append(GivenUp(message.sender, len(message.missing), lacking))
        try:
            batch = batches.unpack(message.payload)
        except DecodeError as error:
            self.refuse(message.sender, error)
            return
        if batch.said:
            said = Said(message.sender, batch.first, batch.said)
            self.delivered.append(said)
            self.place += len(batch.said)

    # -- the application ----------------------------------------------------------------------

    def say(self, payload: bytes) -> Id:
        """Say something to all; it goes out with `flush`. Raises LocalError and PeerError."""
        settings = self.settings
        if self.group is None:
            raise LocalError(f"{self.name} is in no group yet: join or found one")
        if self.membership.out or self.membership.departures.leaving:
            raise PeerError(f"{self.name} is out of the group: {self.membership.out or 'it left'}")
        if not isinstance(payload, bytes):
            raise LocalError(f"a message is bytes, not {type(payload).__name__}")
        if len(payload) > settings.largest:
            raise LocalError(f"a message of {len(payload)} bytes; largest={settings.largest}")
        if self.waiting_bytes + len(payload) > settings.pending and self._waiting:
            raise PeerError(
                f"{self.waiting_bytes} bytes wait to be sent, and pending={settings.pending}: the "
                "others do not keep up. `await send(...)` waits for them"
            )
        self._waiting.append(payload)
        self.waiting_bytes += len(payload)
        self.said += 1
        return Id(self.lane, self.said)

    @property
    def has_room(self) -> bool:
        """Whether what is said now goes out now: no member lacks too much."""
        return self.newest - self.membership.least_had() < self.settings.window

    def flush(self, at: Moment) -> None:
        """Send what was said, as far as the others keep up. Raises LocalError of the clock."""
        group, there = self.group, self.membership
        mute = there.departures.mute or bool(there.out)
        while group is not None and self._waiting and self.has_room and not mute:
            said = self._batch()
            data = batches.pack(Batch(self.said - len(self._waiting) - len(said) + 1, said))
            posted = group.post(data, now_ns=at.wall)
            self.newest = group.last()
            if self.log is not None:
                to = tuple(lane for packet in posted for lane in packet.to)
                self.log.append(("send", self.lane, self.newest, to))
            for packet in posted:
                self._beside = len(packet.wire) - len(data) + 16
                self._send_packet(packet, at)

    def try_flush(self, at: Moment) -> None:
        """As `flush`, and count it where the clock is in the way."""
        try:
            self.flush(at)
        except LocalError as error:
            self.refuse("the own clock", error)

    def _batch(self) -> list[bytes]:
        """Take what fits a datagram together, or one message that does not."""
        room = self.settings.datagram - self._beside
        said: list[bytes] = []
        while self._waiting and (not said or len(self._waiting[0]) + 3 <= room):
            said.append(self._waiting.popleft())
            room -= len(said[-1]) + 3
            self.waiting_bytes -= len(said[-1])
        return said

    def take_delivered(self) -> list[Delivery]:
        """Return, once, what is delivered."""
        events, self.delivered = self.delivered, []
        return events

    # -- sending ------------------------------------------------------------------------------

    def _send_packet(self, packet: Packet, at: Moment) -> None:
        assert self.group is not None
        if isinstance(packet.wire, Sent):
            body = packets.packet(packets.FRAME, varint(packet.wire.seq), packet.wire)
            again = False
        else:
            told = self.group.inspect(packet.wire)
            again = told.seq > 0
            body = packets.packet(packets.FRAME, varint(told.seq), packet.wire)
            if told.sender != self.lane:
                self.handed_on += 1
                head = block(told.sender.encode()), varint(told.seq)
                body = packets.packet(packets.HANDED, *head, packet.wire)
        for lane in packet.to:
            session = self.routes.get(lane)
            if session is not None and not (again and self.sending.is_early(lane, body, at.now)):
                self.queue(session, body, at)

    def queue(self, session: Session, packet: bytes, at: Moment, *, urgent: bool = False) -> None:
        """Send a packet over a session, in parts where it fits no datagram."""
        self.sending.queue(session, packet, at.now, urgent=urgent)

    def take_datagrams(self, at: Moment) -> list[tuple[int, bytes]]:
        """Return what may be sent now, as (session, datagram)."""
        found = []
        for session in self.sessions.values():
            for datagram in session.pace.take(at.now):
                found.append((session.number, datagram))
                self.bytes_out += len(datagram)
        self.datagrams_out += len(found)
        return found

    # -- how far one has come -----------------------------------------------------------------

    def reached(self) -> dict[str, int]:
        """Return by lane how far its messages are delivered here; one's own: sent."""
        if self.group is None:
            return {}
        return {lane: runs[-1][1] if runs else 0 for lane, runs in self.group.frontier().items()}

    def tell(self, session: Session, at: Moment, *, urgent: bool = False) -> None:
        """Tell one member how far one has come; unless it was told just now, where not `urgent`."""
        if urgent or at.now - session.told_ns >= self.settings.resend_ns // 2:
            session.told_ns = at.now
            age = max(0, at.now - session.clock_ns) if session.clock else 0
            clock = (session.clock, age) if session.clock else (0, 0)
            changes, rows = self.membership.told()
            have = packets.Have(changes, max(1, at.now), *clock, rows)
            session.pace.add(packets.pack_have(have), urgent=True)

    def _have(self, session: Session, have: packets.Have, at: Moment) -> None:
        session.clock, session.clock_ns = have.clock, at.now
        if have.echo:
            session.round_trip_ns = max(0, at.now - have.echo - have.echo_age)
        self.membership.have(session, have, at)

    def forget_kept(self, least: Mapping[str, int]) -> None:
        """Forget of each lane what all members have."""
        for lane, there in list(self.kept.items()):
            most = least.get(lane, 0)
            while there and next(iter(there)) <= most:
                self.kept_bytes -= len(there.popitem(last=False)[1])
            if not there and not self.membership.knows(lane):
                del self.kept[lane]

    # -- time ---------------------------------------------------------------------------------

    def tick(self, at: Moment) -> None:
        """Let time pass; to be called when `due` says, or more often."""
        settings = self.settings
        try:
            self.flush(at)
            if self.group is not None and at.now - self._ticked_ns >= settings.tick_ns:
                self._ticked_ns = at.now
                if not self.membership.out:
                    self.came_of(self.group.tick(now_ns=at.wall), at)
            self.membership.tick(at)
        except LocalError as error:
            self.refuse("the own clock", error)
        news = self._news_ns is not None and at.now - self._news_ns >= settings.acknowledge_ns
        beat = at.now - self._beat_ns >= settings.heartbeat_ns
        if news or beat:
            self._news_ns = None
            self._beat_ns = at.now if beat else self._beat_ns
            for session in self.routes.values():
                self.tell(session, at, urgent=True)
        for session in list(self.sessions.values()):
            self.sending.send_parts(session, at.now)

    def due(self, at: Moment) -> int:
        """Return when `tick`, or `take_datagrams`, is to be called at the latest."""
        paces = (session.pace.due(at.now) for session in self.sessions.values())
        waiting = (max(due, at.now + 1) for due in paces if due is not None)
        return min(at.now + self.settings.tick_ns, *waiting, at.now + NS)

    def dials(self, at: Moment) -> list[str]:
        """Return the addresses to call now."""
        return self.membership.dials(at)
