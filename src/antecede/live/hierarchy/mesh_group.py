"""The hierarchical protocol of one external peer or super peer, as `Ordering` speaks with a group.

Theory of operation
-------------------
An entry of a lane of the mesh is a byte for its kind, names, and what it says:

    SAYS      an external peer's message: block(control information), payload
    FORWARDS  a super peer's: a message of its group, or I alone (`Flush`)
    NOTE      who came or went, from either kind of member (SUPER_NOTE: a super peer's)
    MOVED     peers inside that have come to this super peer from another one

Numbers in control information are the sender's own: it numbers the lanes that it knows as it learns
of them, and tells in its lane the names that are new, from a place on. Numbers of a protocol's
messages are not those of entries: a super peer numbers all messages of its group, and only those
that come from inside are in its lane.

The protocol counts the members of the mesh from `MESH` on, peers inside from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError, LocalError, RemoteError, UnknownMemberError
from antecede.live import wire
from antecede.live.events import is_lane
from antecede.live.hierarchy import origin
from antecede.live.hierarchy.origin import VOID, Origin, Place, Places
from antecede.protocols.base import Addressing, Deliver, Guarantee, MessageId, Transmit
from antecede.protocols.hierarchical import messages
from antecede.protocols.hierarchical.external import ExternalPeer
from antecede.protocols.hierarchical.messages import Downward, External, Flush, Upward
from antecede.protocols.hierarchical.super_peer import SuperPeer
from antecede.protocols.stored.codec import pack_state, unpack_state
from antecede.protocols.stored.shapes import ANY, NUMBER, PAIRS, TEXT, WINDOW, Many, Shape, misfit

SUPER: Final = "super"
EXTERNAL: Final = "external"
MESH: Final = 1 << 24
"""Number of the first member of the mesh in the protocol; those below are of peers inside."""
SAYS, NOTE, FORWARDS, SUPER_NOTE, MOVED = range(5)
BY_SUPER = (FORWARDS, SUPER_NOTE, MOVED)
_NAMED: Shape = Many((TEXT, NUMBER))
_OUTSIDE: Shape = (
    Many(NUMBER),
    PAIRS,
    Many((NUMBER, WINDOW)),
    PAIRS,
    Many((NUMBER, WINDOW)),
    PAIRS,
)
INVITATION: tuple[Shape, ...] = (
    *(Many(TEXT), _OUTSIDE, Many((TEXT, Many(TEXT))), _NAMED),
    *(Many((TEXT, WINDOW)), Many((TEXT, Many(NUMBER))), _NAMED),
)
"""Names; the protocol's frontier; names as each lane numbers them; entries had of each lane; places
of messages had; entries that are notes; origins."""


class Given(NamedTuple):
    """What the mesh hands over: as a message of a group has it."""

    sender: str
    seq: int
    payload: bytes
    """A batch."""
    reply_to: tuple[()] = ()

    @property
    def id(self) -> tuple[str, int]:
        """Whose it is, and its number."""
        return self.sender, self.seq


class Blocked(NamedTuple):
    """A message that is held back, and what it waits for, by entries."""

    message: Given
    waits_for: tuple[tuple[str, int], ...]


class Stats(NamedTuple):
    """What a live peer asks of a group."""

    held: int


class Entry(bytes):
    """An entry of one's own lane, and its number."""

    seq: int


class Down(NamedTuple):
    """What a super peer numbered: for all in its group."""

    message: Downward
    place: Place
    origin: Origin | None
    """None: a second copy, whose payload is void."""
    first_copy: tuple[str, int]
    """Of a second copy: whose, and the number of its first message."""


class Traffic:
    """Bytes of control information in what one's own lane said, and how many messages."""

    def __init__(self) -> None:
        self.messages = self.control = self.accounted = self.flushes = 0

    def count(self, control: bytes, accounted: int) -> None:
        """Count one message; `accounted`: by the source's rule."""
        self.messages += 1
        self.control += len(control)
        self.accounted += accounted


class _Recording(SuperPeer):
    """Tells which messages of the mesh the last call took in, in order."""

    taken: Sequence[External] = ()

    def _translate(self, messages: Iterable[External]) -> list[Any]:
        self.taken = tuple(messages)
        return super()._translate(self.taken)


class MeshGroup:
    """`role`: SUPER or EXTERNAL. `invitation`: what `invite` returned at a member of the mesh."""

    addressing = Addressing.ALL
    has_notes = False
    order = "hierarchical"

    def __init__(self, lane: str, role: str, invitation: bytes = b"") -> None:
        """Begin a mesh of one, or accept an invitation. Raises DecodeError for what is none."""
        self.me, self.role = lane, role
        self.names: list[str] = []
        """Lanes of the mesh by number."""
        self.number_of: dict[str, int] = {}
        self.tables: dict[str, list[str]] = {}
        """Lane -> lanes by the numbers that it gives them, as far as it has told."""
        self.told = 0
        """So many names were told in one's own lane."""
        self.fed: dict[str, int] = {}
        """Lane -> newest entry that came."""
        self.waiting: dict[str, dict[int, int]] = {}
        """Lane -> number of a held message -> its entry."""
        self.notes: dict[str, set[int]] = {}
        """Lane -> entries without a message, behind which none has been had."""
        self.given = Places()
        """Places of all messages that were delivered, or forwarded."""
        self.origins: dict[str, int] = {}
        """Lane of whoever says something -> number of its newest message that came."""
        self.down: list[Down] = []
        self.outgoing: list[Entry] = []
        """Own entries that the protocol said, for the lane."""
        self.moved: list[tuple[str, str, int]] = []
        """(lane of a peer inside, its super peer now, how often it moved)."""
        self.out = Traffic()
        self.seconds = 0
        """Second copies that came."""
        self.protocol = self._accepted(invitation) if invitation else self._made(0)
        self.fed[lane] = 0
        if not invitation:
            self._name(lane)

    def _made(self, number: int) -> Any:
        me = MESH + number
        if self.role == SUPER:
            return _Recording(me, (), (), (me,), even_to_nobody=True)
        return ExternalPeer(me, (me,), ())

    def _name(self, lane: str) -> None:
        self.number_of[lane] = len(self.names)
        self.names.append(lane)

    @property
    def guarantee(self) -> Guarantee:
        """What the protocol promises."""
        found: Guarantee = self.protocol.guarantee
        return found

    @property
    def supers(self) -> list[str]:
        """Lanes of the other super peers there ever were."""
        return [self.names[number - MESH] for number in self.protocol.clock.vectors]

    # -- what is said here -------------------------------------------------------------------------

    def send(self, batch: bytes, *, reply_to: Sequence[Any] = ()) -> Entry:
        """Return the entry for a batch: a note, where it has no messages, else an external peer's
        message. Raises LocalError for a super peer's, which says nothing itself.
        """
        reader = Reader(batch)
        reader.varint()
        if not reader.varint():
            return self._entry(SUPER_NOTE if self.role == SUPER else NOTE, batch)
        effects = self.protocol.send(origin.pack(self.me, batch))
        entry = self._message(effects[0].message)
        said = origin.unpack(effects[0].message.payload)[0]
        self.origins[self.me] = said.last
        self._had(Place(self.me, entry.seq))
        return entry

    def _entry(self, kind: int, body: bytes) -> Entry:
        fresh = self.names[self.told :]
        names = b"".join(block(name.encode()) for name in fresh)
        head = bytes((kind,)) + varint(self.told) + varint(len(fresh)) + names
        self.told = len(self.names)
        entry = Entry(head + body)
        entry.seq = self.fed[self.me] = self.fed[self.me] + 1
        if kind not in (SAYS, FORWARDS):
            self._is_note(self.me, entry.seq)
        return entry

    def _message(self, message: External | Flush) -> Entry:
        """Return the entry for a message of one's own, with one's own numbers."""
        control = messages.encode(_renumbered(message, 0, lambda address: address - MESH))
        if isinstance(message, Flush):
            self.out.flushes += len(control)
        else:
            self.out.count(control, messages.control_bytes(message, with_floor=False))
        kind = FORWARDS if self.role == SUPER else SAYS
        entry = self._entry(kind, block(control) + message.payload)
        if isinstance(message, Flush):
            self._is_note(self.me, entry.seq)
        return entry

    def say_moved(self, lane: str, times: int) -> None:
        """As super peer: tell the others that a peer inside is here now."""
        self.outgoing.append(self._entry(MOVED, varint(times) + lane.encode()))

    def said(self, entry: bytes) -> Given:
        """Return what was given to `send` for an entry of one's own, for a replay."""
        kind, _, _, reader = _read(entry)
        if kind == SAYS:
            reader.block()
            return Given(self.me, 0, origin.unpack(reader.rest())[1])
        return Given(self.me, 0, reader.rest())

    def speak_as(self, entry: bytes) -> None:
        """Entries tell nothing of a life."""

    # -- what comes --------------------------------------------------------------------------------

    def receive(
        self, entry: bytes, *, said_by: tuple[str, int], meet: Sequence[str] = ()
    ) -> list[Given]:
        """Take the next entry of another lane; returns what is handed over.

        Raises UnknownMemberError where it speaks of who has not begun, DecodeError where it cannot
        be: then nothing was taken.
        """
        lane, number = said_by
        kind, start, names, reader = _read(entry)
        table = self.tables.get(lane, [])
        if start > len(table):
            raise DecodeError(f"{lane} tells names from {start} on, and {len(table)} were told")
        table = [*table[:start], *names, *table[start + len(names) :]]
        known = self.number_of.get(lane)
        if known is None and not meet:
            raise UnknownMemberError(f"{lane} speaks, and has not begun")
        if known is not None and (kind in BY_SUPER) != (
            MESH + known in self.protocol.clock.vectors
        ):
            raise DecodeError(f"{lane} is another kind of member than it speaks as")
        address = MESH + (len(self.names) if known is None else known)
        message = None
        if kind in (SAYS, FORWARDS):
            message = self._decoded(address, table, reader)
            self._check(message)
        if known is None:
            self._meet(lane, kind)
        self.tables[lane], self.fed[lane] = table, number
        if message is None or isinstance(message, Flush):
            self._is_note(lane, number)
        if isinstance(message, Flush):
            return self._take(message)
        if message is not None:
            waiting = self.waiting.setdefault(lane, {})
            waiting[message.seq] = number
            try:
                return self._take(message)
            except RemoteError:
                del waiting[message.seq]
                self.fed[lane] = number - 1
                raise
        if kind == MOVED:
            self._moved(lane, reader)
            return []
        return [Given(lane, number, reader.rest())]

    def _moved(self, lane: str, reader: Reader) -> None:
        times = reader.varint()
        self.moved.append((reader.rest().decode(errors="replace"), lane, times))

    def _decoded(self, address: int, table: list[str], reader: Reader) -> External | Flush:
        control = reader.block()
        message = messages.decode(control, reader.rest(), (External, Flush))

        def here(number: int) -> int:
            name = wire.named(number, table)
            found = self.number_of.get(name)
            if found is None:
                raise UnknownMemberError(f"a message names {name}, who has not begun")
            return MESH + found

        if isinstance(message, External) and message.payload:
            origin.unpack(message.payload)
        found: External | Flush = _renumbered(message, address, here)
        return found

    def _check(self, message: External | Flush) -> None:
        """Refuse what the protocol would, before anything is changed for it."""
        clock = self.protocol.clock
        if isinstance(message, External) and message.sender in {*clock.counts, *clock.vectors}:
            clock.check(message)

    def _meet(self, lane: str, kind: int) -> None:
        address = MESH + len(self.names)
        if kind in BY_SUPER:
            self.protocol.join_super_peer(address)
        elif self.role == SUPER:
            self.protocol.join_external(address)
        else:
            self.protocol.join(address)
        self._name(lane)
        self.fed[lane] = 0

    def _take(self, message: External | Flush) -> list[Given]:
        effects = self.protocol.receive(message)
        if self.role == SUPER:
            self._translated(effects)
            return []
        return self._handed(one.message for one in effects if isinstance(one, Deliver))

    def _handed(self, delivered: Iterable[External]) -> list[Given]:
        """As external peer: return what is no second copy."""
        found = []
        for message in delivered:
            self._had(self._place_of(message))
            who, batch = self._first(message.payload)
            if who is not None:
                found.append(Given(who.lane, who.first, batch))
        return found

    def _translated(self, effects: Iterable[Any]) -> None:
        """As super peer: note what goes into the group, and what goes out (I alone)."""
        taken = iter(self.protocol.taken)
        for one in effects:
            if not isinstance(one, Transmit):
                continue
            if isinstance(one.message, Downward):
                place = self._had(self._place_of(next(taken)))
                self._go_down(one.message, place)
            else:
                self.outgoing.append(self._message(one.message))

    def forward(self, message: Any) -> None:
        """As super peer: take what a peer inside sent. Raises a RemoteError."""
        downward: Downward | None = None
        for one in self.protocol.receive(message):
            if not isinstance(one, Transmit):
                continue
            if isinstance(one.message, Downward):
                downward = one.message
                continue
            assert downward is not None
            place = self._had(Place(self.me, self.fed[self.me] + 1))
            down = self._go_down(downward, place)
            self.outgoing.append(self._message(one.message._replace(payload=down.payload)))

    def _go_down(self, message: Downward, place: Place) -> Downward:
        """Note what goes into the group; a second copy without its payload."""
        payload, copy_of = message.payload, ("", 0)
        who, _ = self._first(payload) if payload else (None, b"")
        if who is None:
            if payload:
                again = origin.unpack(payload)[0]
                copy_of = again.lane, again.first
            message = message._replace(payload=VOID)
        self.down.append(Down(message, place, who, copy_of))
        return message

    def _first(self, payload: bytes) -> tuple[Origin | None, bytes]:
        """Return whose a payload is; None: it is a second copy."""
        if not payload:
            return None, b""
        who, batch = origin.unpack(payload)
        if who.last <= self.origins.get(who.lane, 0):
            self.seconds += 1
            return None, b""
        self.origins[who.lane] = who.last
        return who, batch

    # -- places ------------------------------------------------------------------------------------

    def _place_of(self, message: External) -> Place:
        lane = self.names[message.sender - MESH]
        return Place(lane, self.waiting[lane].pop(message.seq))

    def _is_note(self, lane: str, number: int) -> None:
        self.notes.setdefault(lane, set()).add(number)

    def _had(self, place: Place) -> Place:
        notes, count = self.notes.get(place.lane, set()), 0
        while place.number - 1 - count in notes:
            notes.discard(place.number - 1 - count)
            count += 1
        place = place._replace(notes=count)
        self.given.add(place)
        return place

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return up to where all of each lane was delivered, as a group does."""
        return {lane: ((1, count),) if count else () for lane, count in self._done()}

    def _done(self) -> Iterator[tuple[str, int]]:
        for lane, fed in self.fed.items():
            waiting = self.waiting.get(lane)
            yield lane, min(waiting.values()) - 1 if waiting else fed

    # -- what waits --------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Return how many messages are held back."""
        return Stats(len(self.protocol.clock.held))

    def blocked_on(self) -> list[Blocked]:
        """Return the held messages, and what they wait for, by entries.

        What is not here at all has a number behind the newest that came.
        """
        return [
            Blocked(
                Given(*self._entry_of(MessageId(one.message.sender, one.message.seq)), b""),
                tuple(sorted({self._entry_of(missing) for missing in one.missing})),
            )
            for one in self.protocol.clock.blocked_on()
        ]

    def _entry_of(self, message: MessageId) -> tuple[str, int]:
        lane = self.names[message[0] - MESH]
        number = self.waiting.get(lane, {}).get(message[1])
        return lane, self.fed[lane] + 1 if number is None else number

    # -- who comes and goes ------------------------------------------------------------------------

    def invite(self, lane: str) -> bytes:
        """Return what a newcomer starts from. Raises LocalError for who is here already."""
        if lane in self.number_of:
            raise LocalError(f"{lane} is or was in the mesh")
        protocol, done = self.protocol, dict(self._done())
        outside = protocol.outer_frontier() if self.role == SUPER else protocol.frontier()
        tables = {**self.tables, self.me: self.names[: self.told]}
        notes = ((n, tuple(k for k in sorted(s) if k <= done[n])) for n, s in self.notes.items())
        return pack_state(
            (
                *(tuple(self.names), outside),
                tuple((name, tuple(table)) for name, table in tables.items()),
                *(tuple(done.items()), tuple(self.given.windows.items()), tuple(notes)),
                tuple(self.origins.items()),
            )
        )

    def _accepted(self, invitation: bytes) -> Any:
        fields = unpack_state(invitation, len(INVITATION))
        if where := misfit(fields, INVITATION):
            raise DecodeError(f"no invitation to a mesh: {where}")
        names, outside, tables, done, given, notes, origins = fields
        if len(set(names)) < len(names) or not all(map(is_lane, names)):
            raise DecodeError("no invitation to a mesh: names that are none, or twice")
        for name in (*names, self.me):
            self._name(name)
        numbers = {*outside[0], *(n for table in outside[1:] for n, _ in table)}
        if any(not 0 <= number - MESH < len(names) for number in numbers):
            raise DecodeError("no invitation to a mesh: it speaks of members without a name")
        self.tables = {name: list(table) for name, table in tables}
        self.fed, self.origins = dict(done), dict(origins)
        self.given = Places(dict(given))
        self.notes = {name: set(numbers) for name, numbers in notes}
        protocol = self._made(self.number_of[self.me])
        protocol.adopt(outside)
        return protocol

    def leave(self, lane: str, last: int) -> list[Given]:
        """Give up what has come of a lane behind an entry."""
        waiting = self.waiting.get(lane, {})
        late = {seq for seq, entry in waiting.items() if entry > last}
        if late:
            self.protocol.leave(MESH + self.number_of[lane], min(late) - 1)
        for seq in late:
            del waiting[seq]
        self.fed[lane] = max(last, 0)
        return []

    # -- the way through a store -------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return an external peer's state. Raises LocalError at a super peer: it has no store."""
        if self.role == SUPER:
            raise LocalError("a super peer goes through no store")
        return pack_state(
            (
                *(tuple(self.names), self.told),
                tuple((name, tuple(table)) for name, table in self.tables.items()),
                tuple(self.fed.items()),
                tuple((name, tuple(held.items())) for name, held in self.waiting.items()),
                tuple((name, tuple(sorted(held))) for name, held in self.notes.items()),
                *(tuple(self.given.windows.items()), tuple(self.origins.items())),
                self.protocol.snapshot(),
            )
        )

    def restore(self, state: bytes, *, resume: bool = False) -> None:
        """Become what `snapshot` returned. Raises DecodeError."""
        fields = unpack_state(state, len(_STATE))
        if where := misfit(fields, _STATE):
            raise DecodeError(f"no state of a mesh: {where}")
        names, self.told, tables, fed, waiting, notes, given, origins, inner = fields
        self.names = list(names)
        self.number_of = {name: number for number, name in enumerate(names)}
        self.tables = {name: list(table) for name, table in tables}
        self.fed, self.origins = dict(fed), dict(origins)
        self.waiting = {name: dict(held) for name, held in waiting}
        self.notes = {name: set(held) for name, held in notes}
        self.given = Places(dict(given))
        self.protocol = self._made(self.number_of[self.me])
        self.protocol.restore(inner)


_STATE: tuple[Shape, ...] = (
    *(Many(TEXT), NUMBER, Many((TEXT, Many(TEXT))), _NAMED, Many((TEXT, PAIRS))),
    *(Many((TEXT, Many(NUMBER))), Many((TEXT, WINDOW)), _NAMED, ANY),
)


def _read(entry: bytes) -> tuple[int, int, list[str], Reader]:
    """Return kind, place of the first name, names, and the rest. Raises DecodeError."""
    reader = Reader(entry)
    kind = reader.take(1)[0]
    if kind > MOVED:
        raise DecodeError(f"an entry of a lane of the mesh of an unknown kind, {kind}")
    start, count = reader.varint(), reader.varint()
    if count > len(entry):
        raise DecodeError(f"{count} names announced in {len(entry)} bytes")
    return kind, start, [wire.lane(reader) for _ in range(count)], reader


def _renumbered(message: Any, sender: int, number: Any) -> Any:
    """Return a message of the mesh with other numbers for its members."""
    if isinstance(message, Flush):
        return message._replace(sender=sender)
    counts = tuple(sorted((number(peer), seq) for peer, seq in message.counts))
    vectors = tuple(sorted((number(peer), window) for peer, window in message.vectors))
    return message._replace(sender=sender, counts=counts, vectors=vectors)


__all__ = ["EXTERNAL", "MESH", "SUPER", "Mapping", "MeshGroup", "Upward"]
