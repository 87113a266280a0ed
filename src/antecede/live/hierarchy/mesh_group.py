"""The hierarchical protocol of one external peer or super peer, as `Ordering` speaks with a group.

Theory of operation
-------------------
A lane of the mesh carries what its member says to the mesh (`entries`). Numbers of a protocol's
messages are not those of entries: a super peer numbers all messages of its group, and only those
that come from inside are in its lane. `progress` knows both.

An external peer's messages are handed over once, whatever way they come. A super peer hands over
none: what it numbers for its group is in `down`, what the protocol says to the mesh in `outgoing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols import Addressing, Deliver, Discard, Guarantee, MessageId, Transmit
from antecede.core.protocols.hierarchical import (
    Downward,
    External,
    ExternalPeer,
    Flush,
    SuperPeer,
    messages,
)
from antecede.core.protocols.serialization import (
    ANY,
    NUMBER,
    PAIRS,
    TEXT,
    WINDOW,
    Many,
    Shape,
    misfit,
    pack_state,
    unpack_state,
)
from antecede.errors import DecodeError, LocalError, UnknownMemberError
from antecede.live.events import is_lane
from antecede.live.hierarchy import entries, origin
from antecede.live.hierarchy.entries import (
    BY_SUPER,
    FORWARDS,
    MESH,
    MOVED,
    NOTE,
    SAYS,
    SUPER_NOTE,
    Entry,
    Names,
)
from antecede.live.hierarchy.origin import VOID, FirstCopies, Origin, Place, Places
from antecede.live.hierarchy.progress import Progress

SUPER: Final = "super"
EXTERNAL: Final = "external"
_NUMBERS: Shape = Many((TEXT, NUMBER))
_TABLES: Shape = Many((TEXT, Many(TEXT)))
_PLACES: Shape = Many((TEXT, WINDOW))
_NOTES: Shape = Many((TEXT, Many(NUMBER)))
_VECTORS: Shape = Many((NUMBER, WINDOW))
_OUTSIDE: Shape = (Many(NUMBER), PAIRS, _VECTORS, PAIRS, _VECTORS, PAIRS)
INVITATION: tuple[Shape, ...] = (
    *(Many(TEXT), _OUTSIDE, _TABLES, _NUMBERS, _PLACES, _NOTES, _NUMBERS),
)
"""Names; the protocol's frontier; names as each lane numbers them; entries had of each lane; places
of messages had; entries that are notes; origins."""
STATE: tuple[Shape, ...] = (
    *(Many(TEXT), NUMBER, _TABLES, _NUMBERS, Many((TEXT, PAIRS)), _NOTES, _PLACES, _NUMBERS, ANY),
)


class Given(NamedTuple):
    """What the mesh hands over: as a message of a group has it."""

    sender: str
    seq: int
    payload: bytes
    """A batch."""
    reply_to: tuple[()] = ()
    missing: tuple[()] = ()
    topics: tuple[()] = ()

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


class Down(NamedTuple):
    """What a super peer numbered: for all in its group."""

    message: Downward
    place: Place
    origin: Origin | None
    """None: a second copy, whose payload is void."""
    first_copy: tuple[str, int]
    """Of a second copy: whose, and the number of its first message."""


class Traffic:
    """Bytes of control information in messages, and how many these were."""

    def __init__(self) -> None:
        self.messages = self.control = self.accounted = 0
        self.notes = 0
        """Bytes of control information in what is no message."""

    def count(self, control: bytes, accounted: int) -> None:
        """Count one message; `accounted`: by the source's rule."""
        self.messages += 1
        self.control += len(control)
        self.accounted += accounted


class _Recording(SuperPeer):
    """Tells which messages of the mesh the last call took in, in order."""

    taken: Sequence[External] = ()

    def _take(self, messages: Iterable[External]) -> list[Any]:
        self.taken = tuple(messages)
        return super()._take(self.taken)


class MeshGroup:
    """`role`: SUPER or EXTERNAL. `invitation`: what `invite` returned at a member of the mesh."""

    addressing = Addressing.ALL
    has_control_messages = False
    order = "hierarchical"

    def __init__(self, lane: str, role: str, invitation: bytes = b"") -> None:
        """Begin a mesh of one, or accept an invitation. Raises DecodeError for what is none."""
        self.me, self.role = lane, role
        self.names = Names()
        self.progress = Progress()
        self.copies = FirstCopies()
        self.down: list[Down] = []
        self.outgoing: list[Entry] = []
        """Own entries that the protocol said, for the lane."""
        self.moved: list[tuple[str, int]] = []
        """(lane of a peer inside that is at another super peer now, how often it said hello)."""
        self.out = Traffic()
        if invitation:
            self.protocol = self._accepted(invitation)
        else:
            self.protocol = self._made(self.names.add(lane))
        self.progress.fed[lane] = 0

    def _made(self, me: int) -> Any:
        if self.role == SUPER:
            return _Recording(me, (), (), (me,), even_to_nobody=True)
        return ExternalPeer(me, (me,), ())

    @property
    def guarantee(self) -> Guarantee:
        """What the protocol promises."""
        found: Guarantee = self.protocol.guarantee
        return found

    @property
    def given(self) -> Places:
        """Places of all messages that were delivered here, or forwarded."""
        return self.progress.given

    @property
    def supers(self) -> list[str]:
        """Lanes of the other super peers there ever were."""
        return [self.names.lane(address) for address in self.protocol.clock.vectors]

    # -- what is said here -------------------------------------------------------------------------

    def send(self, batch: bytes, *, reply_to: Sequence[Any] = ()) -> Entry:
        """Return the entry for a batch: a note, where it has no messages, else an external peer's
        message. Raises LocalError for a super peer's, which says nothing itself.
        """
        reader = ByteReader(batch)
        reader.varint()
        if not reader.varint():
            return self._entry(SUPER_NOTE if self.role == SUPER else NOTE, batch)
        (effect,) = self.protocol.send(origin.pack(self.me, batch))
        entry = self._message(effect.message)
        self.copies.take(effect.message.payload)
        self.progress.had(self.me, entry.seq)
        return entry

    def _entry(self, kind: int, body: bytes) -> Entry:
        entry = Entry(self.names.head(kind) + body)
        entry.seq = self.progress.fed[self.me] = self.progress.fed[self.me] + 1
        if kind not in (SAYS, FORWARDS):
            self.progress.note(self.me, entry.seq)
        return entry

    def _message(self, message: External | Flush) -> Entry:
        """Return the entry for a message of one's own."""
        control = messages.encode(self.names.outward(message))
        entry = self._entry(
            FORWARDS if self.role == SUPER else SAYS, block(control) + message.payload
        )
        if isinstance(message, Flush):
            self.progress.note(self.me, entry.seq)
            self.out.notes += len(control)
        else:
            self.out.count(control, messages.control_bytes(message, with_floor=False))
        return entry

    def say_moved(self, lane: str, times: int) -> None:
        """As super peer: tell the others that a peer inside is here now."""
        self.outgoing.append(self._entry(MOVED, varint(times) + lane.encode()))

    def decode_own(self, entry: bytes) -> Given:
        """Return what was given to `send` for an entry of one's own, for a replay."""
        kind, _, _, reader = entries.read(entry)
        if kind == SAYS:
            reader.block()
            return Given(self.me, 0, origin.unpack(reader.rest())[1])
        return Given(self.me, 0, reader.rest())

    def resume_incarnation(self, entry: bytes) -> None:
        """Entries tell nothing of a life."""

    # -- what comes --------------------------------------------------------------------------------

    def receive(
        self, entry: bytes, *, said_by: tuple[str, int], meet: Sequence[str] = ()
    ) -> list[Given]:
        """Take the next entry of another lane; returns what is handed over.

        Raises UnknownMemberError where it speaks of who has not begun, another RemoteError where it
        cannot be: then nothing was taken.
        """
        lane, number = said_by
        parts = entries.read(entry)
        table = self.names.table_with(lane, parts)
        self._check_speaker(lane, parts.kind, begins=bool(meet))
        message = None
        if parts.kind in (SAYS, FORWARDS):
            message = self._decoded(lane, parts.kind, table, parts.said)
        if lane not in self.names:
            self._meet(lane, parts.kind)
        if message is not None:
            return self._take(lane, number, table, message)
        self.names.tables[lane], self.progress.fed[lane] = table, number
        self.progress.note(lane, number)
        if parts.kind == MOVED:
            times = parts.said.varint()
            self.moved.append((parts.said.rest().decode(errors="replace"), times))
            return []
        return [Given(lane, number, parts.said.rest())]

    def _check_speaker(self, lane: str, kind: int, *, begins: bool) -> None:
        if lane not in self.names:
            if not begins:
                raise UnknownMemberError(f"{lane} speaks, and has not begun")
            if kind in (SAYS, FORWARDS):
                raise DecodeError(f"{lane} begins with a message, and not by saying who it is")
        elif (kind in BY_SUPER) != (self.names.address(lane) in self.protocol.clock.vectors):
            raise DecodeError(f"{lane} is another kind of member than it speaks as")

    def _decoded(
        self, lane: str, kind: int, table: list[str], reader: ByteReader
    ) -> External | Flush:
        control = reader.block()
        message = messages.decode(control, reader.rest(), (External, Flush))
        if isinstance(message, External) and message.payload:
            who, _ = origin.unpack(message.payload)
            if who.lane != lane and (kind == SAYS or who.lane in self.names):
                raise DecodeError(f"{lane} says what {who.lane} is to have said")
        found: External | Flush = self.names.inward(message, self.names.address(lane), table)
        return found

    def _meet(self, lane: str, kind: int) -> None:
        address = self.names.add(lane)
        if kind in BY_SUPER:
            self.protocol.join_super_peer(address)
        elif self.role == SUPER:
            self.protocol.join_external(address)
        else:
            self.protocol.join(address)

    def _take(
        self, lane: str, number: int, table: list[str], message: External | Flush
    ) -> list[Given]:
        effects = self.protocol.receive(message)
        self.names.tables[lane], self.progress.fed[lane] = table, number
        if isinstance(message, Flush):
            self.progress.note(lane, number)
        elif effects and isinstance(effects[0], Discard):  # the frontier it began from has it
            return []
        else:
            self.progress.wait(lane, message.seq, number)
        if self.role == SUPER:
            self._translated(effects)
            return []
        return self._handed(one.message for one in effects if isinstance(one, Deliver))

    def _handed(self, delivered: Iterable[External]) -> list[Given]:
        """As external peer: return what is no second copy."""
        found = []
        for message in delivered:
            self._had(message)
            who, batch = self.copies.take(message.payload)
            if who is not None:
                found.append(Given(who.lane, who.first, batch))
        return found

    def _had(self, message: External) -> Place:
        return self.progress.had_waiting(self.names.lane(message.sender), message.seq)

    def _translated(self, effects: Iterable[Any]) -> None:
        """As super peer: note what goes into the group, and what goes out (I alone)."""
        taken = iter(self.protocol.taken)
        for one in effects:
            if not isinstance(one, Transmit):
                continue
            if isinstance(one.message, Downward):
                self._go_down(one.message, self._had(next(taken)))
            else:
                self.outgoing.append(self._message(one.message))

    def forward(self, message: Any) -> None:
        """As super peer: take what a peer inside sent. Raises a RemoteError."""
        sent = [one.message for one in self.protocol.receive(message) if isinstance(one, Transmit)]
        for downward, outward in zip(sent[::2], sent[1::2], strict=True):
            place = self.progress.had(self.me, self.progress.fed[self.me] + 1)
            payload = self._go_down(downward, place).payload
            self.outgoing.append(self._message(outward._replace(payload=payload)))

    def _go_down(self, message: Downward, place: Place) -> Downward:
        """Note what goes into the group; a second copy without its payload."""
        who, _ = self.copies.take(message.payload)
        first_copy = ("", 0)
        if who is None and message.payload:
            again, _ = origin.unpack(message.payload)
            first_copy = again.lane, again.first
        if who is None:
            message = message._replace(payload=VOID)
        self.down.append(Down(message, place, who, first_copy))
        return message

    # -- what waits --------------------------------------------------------------------------------

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return up to where all of each lane was delivered, as a group does."""
        return {n: ((1, count),) if count else () for n, count in self.progress.done()}

    def stats(self) -> Stats:
        """Return how many messages are held back."""
        return Stats(len(self.protocol.clock.held))

    def list_held(self) -> list[Blocked]:
        """Return the held messages, and what they wait for, by entries.

        What is not here at all has a number behind the newest that came.
        """
        return [
            Blocked(
                Given(*self._entry_of(MessageId(one.message.sender, one.message.seq)), b""),
                tuple(sorted({self._entry_of(missing) for missing in one.missing})),
            )
            for one in self.protocol.clock.list_held()
        ]

    def _entry_of(self, message: MessageId) -> tuple[str, int]:
        lane = self.names.lane(message[0])
        return lane, self.progress.entry_of(lane, message[1])

    # -- who comes and goes ------------------------------------------------------------------------

    def invite(self, lane: str) -> bytes:
        """Return what a newcomer starts from. Raises LocalError for who is here already."""
        if lane in self.names:
            raise LocalError(f"{lane} is or was in the mesh")
        protocol, progress, done = self.protocol, self.progress, dict(self.progress.done())
        outside = protocol.outer_frontier() if self.role == SUPER else protocol.join_state()
        notes = {
            name: sorted(number for number in numbers if number <= done[name])
            for name, numbers in progress.notes.items()
        }
        return pack_state(
            (
                *(tuple(self.names.known), outside, _many(self.names.all_tables(self.me))),
                *(tuple(done.items()), tuple(progress.given.windows.items())),
                *(_many(notes), tuple(self.copies.newest.items())),
            )
        )

    def _accepted(self, invitation: bytes) -> Any:
        fields = unpack_state(invitation, len(INVITATION))
        if where := misfit(fields, INVITATION):
            raise DecodeError(f"no invitation to a mesh: {where}")
        names, outside, tables, done, given, notes, origins = fields
        if len({*names, self.me}) <= len(names) or not all(map(is_lane, names)):
            raise DecodeError("no invitation to a mesh: names that are none, or twice")
        numbers = {*outside[0], *(n for table in outside[1:] for n, _ in table)}
        if any(not 0 <= number - MESH < len(names) for number in numbers):
            raise DecodeError("no invitation to a mesh: it speaks of members without a name")
        self.names = Names((*names, self.me))
        self._become(tables, done, notes, given, origins)
        protocol = self._made(self.names.address(self.me))
        try:
            protocol.install_join_state(outside)
        except (LocalError, ValueError, KeyError) as error:
            raise DecodeError(f"no invitation to a mesh: {error}") from error
        return protocol

    def _become(self, tables: Any, fed: Any, notes: Any, given: Any, origins: Any) -> None:
        self.names.tables = {name: list(table) for name, table in tables}
        self.progress.fed = dict(fed)
        self.progress.notes = {name: set(numbers) for name, numbers in notes}
        self.progress.given = Places(dict(given))
        self.copies = FirstCopies(dict(origins))

    def leave(self, lane: str, last: int) -> list[Given]:
        """Give up what has come of a lane behind an entry."""
        late = self.progress.cut(lane, last)
        if late:
            self.protocol.leave(self.names.address(lane), min(late) - 1)
        return []

    # -- the way through a store -------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return an external peer's state. Raises LocalError at a super peer: it has no store."""
        if self.role == SUPER:
            raise LocalError("a super peer goes through no store")
        names, progress = self.names, self.progress
        waiting = {name: held.items() for name, held in progress.waiting.items()}
        return pack_state(
            (
                *(tuple(names.known), names.told, _many(names.tables)),
                *(tuple(progress.fed.items()), _many(waiting)),
                _many({name: sorted(numbers) for name, numbers in progress.notes.items()}),
                *(tuple(progress.given.windows.items()), tuple(self.copies.newest.items())),
                self.protocol.snapshot(),
            )
        )

    def restore(self, state: bytes, *, resume: bool = False) -> None:
        """Become what `snapshot` returned. Raises DecodeError."""
        fields = unpack_state(state, len(STATE))
        if where := misfit(fields, STATE):
            raise DecodeError(f"no state of a mesh: {where}")
        names, told, tables, fed, waiting, notes, given, origins, inner = fields
        self.names = Names(names)
        self.names.told = told
        self._become(tables, fed, notes, given, origins)
        self.progress.waiting = {name: dict(held) for name, held in waiting}
        self.protocol = self._made(self.names.address(self.me))
        self.protocol.restore(inner)


def _many(table: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    return tuple((name, tuple(values)) for name, values in table.items())
