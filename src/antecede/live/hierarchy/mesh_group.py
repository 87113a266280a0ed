"""Hierarchical protocol of an external peer or super peer, with the interface of a group.

Theory of operation
-------------------

A sender log of the external group contains entries (`entries`). Numbers of protocol messages differ
from those of entries. A super peer numbers all messages of its group, but only those of its
internal peers are in its log. `progress` maps the two.

An external peer delivers each message once, whichever way it arrives. A super peer delivers none:
numbered messages for its group are in `down`, protocol messages for the external group in
`outgoing`.
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
from antecede.live.hierarchy.progress import LogProgress

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
"""Sender ids; frontier of the protocol; numbering of each sender; entries received of each sender;
positions of messages received; entries without message; origins."""
STATE: tuple[Shape, ...] = (
    *(Many(TEXT), NUMBER, _TABLES, _NUMBERS, Many((TEXT, PAIRS)), _NOTES, _PLACES, _NUMBERS, ANY),
)


class Given(NamedTuple):
    """Delivery with the fields of a group's message."""

    sender: str
    seq: int
    payload: bytes
    reply_to: tuple[()] = ()
    missing: tuple[()] = ()
    topics: tuple[()] = ()

    @property
    def id(self) -> tuple[str, int]:
        return self.sender, self.seq


class Blocked(NamedTuple):
    """Held message and its missing causes, by entries."""

    message: Given
    waits_for: tuple[tuple[str, int], ...]


class HeldStats(NamedTuple):
    """Counts that a live peer reads of a group."""

    held: int


class Down(NamedTuple):
    """Numbered message for the internal group."""

    message: Downward
    place: Place
    origin: Origin | None
    """None: a second copy with empty payload."""
    first_copy: tuple[str, int]
    """Second copy: sender and first number of the first copy."""


class TrafficCounter:
    """Number of messages and bytes of their control information."""

    def __init__(self) -> None:
        self.messages = self.control = self.accounted = 0
        self.notes = 0
        """Bytes of control messages."""

    def count(self, control: bytes, accounted: int) -> None:
        """Count one message; `accounted`: bytes by the source's rule."""
        self.messages += 1
        self.control += len(control)
        self.accounted += accounted


class _Recording(SuperPeer):
    """Super peer that records the messages accepted by the last call, in order."""

    taken: Sequence[External] = ()

    def _take(self, messages: Iterable[External]) -> list[Any]:
        self.taken = tuple(messages)
        return super()._take(self.taken)


class MeshGroup:
    """Group interface of the protocol. `role`: SUPER or EXTERNAL. `invitation`: from `invite`."""

    addressing = Addressing.ALL
    has_control_messages = False
    order = "hierarchical"

    def __init__(self, lane: str, role: str, invitation: bytes = b"") -> None:
        """Start a group of one, or accept an invitation. Raises DecodeError for an invalid one."""
        self.me, self.role = lane, role
        self.names = Names()
        self.progress = LogProgress()
        self.copies = FirstCopies()
        self.down: list[Down] = []
        self.outgoing: list[Entry] = []
        """Own entries with protocol messages, for the log."""
        self.moved: list[tuple[str, int]] = []
        """(sender id of an internal peer that moved to another super peer, its number of HELLOs).
        """
        self.out = TrafficCounter()
        if invitation:
            self.protocol = self._accept(invitation)
        else:
            self.protocol = self._make_protocol(self.names.add(lane))
        self.progress.fed[lane] = 0

    def _make_protocol(self, me: int) -> Any:
        if self.role == SUPER:
            return _Recording(me, (), (), (me,), even_to_nobody=True)
        return ExternalPeer(me, (me,), ())

    @property
    def guarantee(self) -> Guarantee:
        found: Guarantee = self.protocol.guarantee
        return found

    @property
    def given(self) -> Places:
        """Positions of all delivered or forwarded messages."""
        return self.progress.given

    @property
    def supers(self) -> list[str]:
        """Sender ids of all other super peers, departed ones included."""
        return [self.names.lane(address) for address in self.protocol.clock.vectors]

    # -- sending -----------------------------------------------------------------------------------

    def send(self, batch: bytes, *, reply_to: Sequence[Any] = ()) -> Entry:
        """Return the entry of a batch: a note without messages, else an external peer's message.
        Raises LocalError at a super peer, which only forwards.
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
        """Return the entry of an own message."""
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
        """Announce, as a super peer, an internal peer that moved here."""
        self.outgoing.append(self._entry(MOVED, varint(times) + lane.encode()))

    def decode_own(self, entry: bytes) -> Given:
        """Return the argument of `send` for an own entry, for a replay."""
        kind, _, _, reader = entries.read(entry)
        if kind == SAYS:
            reader.block()
            return Given(self.me, 0, origin.unpack(reader.rest())[1])
        return Given(self.me, 0, reader.rest())

    def resume_incarnation(self, entry: bytes) -> None:
        """Do nothing: entries have no incarnation."""

    # -- receiving ---------------------------------------------------------------------------------

    def receive(
        self, entry: bytes, *, said_by: tuple[str, int], meet: Sequence[str] = ()
    ) -> list[Given]:
        """Accept the next entry of another sender; return the deliveries. Raises UnknownMemberError
        for a reference to a sender that has not started, another RemoteError for an invalid entry,
        without effect.
        """
        lane, number = said_by
        parts = entries.read(entry)
        table = self.names.table_with(lane, parts)
        self._check_speaker(lane, parts.kind, begins=bool(meet))
        message = None
        if parts.kind in (SAYS, FORWARDS):
            message = self._decode(lane, parts.kind, table, parts.said)
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
                raise UnknownMemberError(f"{lane} has not started")
            if kind in (SAYS, FORWARDS):
                raise DecodeError(f"{lane} starts with a message instead of its join")
        elif (kind in BY_SUPER) != (self.names.address(lane) in self.protocol.clock.vectors):
            raise DecodeError(f"{lane} sent an entry of another role")

    def _decode(
        self, lane: str, kind: int, table: list[str], reader: ByteReader
    ) -> External | Flush:
        control = reader.block()
        message = messages.decode(control, reader.rest(), (External, Flush))
        if isinstance(message, External) and message.payload:
            who, _ = origin.unpack(message.payload)
            if who.lane != lane and (kind == SAYS or who.lane in self.names):
                raise DecodeError(f"{lane} sent a message of {who.lane}")
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
        elif effects and isinstance(effects[0], Discard):  # covered by the frontier of the join
            return []
        else:
            self.progress.wait(lane, message.seq, number)
        if self.role == SUPER:
            self._record_effects(effects)
            return []
        return self._deliver_first(one.message for one in effects if isinstance(one, Deliver))

    def _deliver_first(self, delivered: Iterable[External]) -> list[Given]:
        """Return, as an external peer, the first copies."""
        found = []
        for message in delivered:
            self._had(message)
            who, batch = self.copies.take(message.payload)
            if who is not None:
                found.append(Given(who.lane, who.first, batch))
        return found

    def _had(self, message: External) -> Place:
        return self.progress.had_waiting(self.names.lane(message.sender), message.seq)

    def _record_effects(self, effects: Iterable[Any]) -> None:
        """Record, as a super peer, messages for the internal group and for outside (I alone)."""
        taken = iter(self.protocol.taken)
        for one in effects:
            if not isinstance(one, Transmit):
                continue
            if isinstance(one.message, Downward):
                self._go_down(one.message, self._had(next(taken)))
            else:
                self.outgoing.append(self._message(one.message))

    def forward(self, message: Any) -> None:
        """Accept, as a super peer, a message of an internal peer. Raises a RemoteError."""
        sent = [one.message for one in self.protocol.receive(message) if isinstance(one, Transmit)]
        for downward, outward in zip(sent[::2], sent[1::2], strict=True):
            place = self.progress.had(self.me, self.progress.fed[self.me] + 1)
            payload = self._go_down(downward, place).payload
            self.outgoing.append(self._message(outward._replace(payload=payload)))

    def _go_down(self, message: Downward, place: Place) -> Downward:
        """Record a message for the internal group; a second copy without payload."""
        who, _ = self.copies.take(message.payload)
        first_copy = ("", 0)
        if who is None and message.payload:
            again, _ = origin.unpack(message.payload)
            first_copy = again.lane, again.first
        if who is None:
            message = message._replace(payload=VOID)
        self.down.append(Down(message, place, who, first_copy))
        return message

    # -- held messages -----------------------------------------------------------------------------

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        return {n: ((1, count),) if count else () for n, count in self.progress.list_done()}

    def stats(self) -> HeldStats:
        return HeldStats(len(self.protocol.clock.held))

    def list_held(self) -> list[Blocked]:
        """Return the held messages and their missing causes, by entries. An unknown cause has a
        number behind the newest received.
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

    # -- membership --------------------------------------------------------------------------------

    def invite(self, lane: str) -> bytes:
        """Return the state for a joining member. Raises LocalError for a known sender."""
        if lane in self.names:
            raise LocalError(f"{lane} is or was in the group")
        protocol, progress, done = self.protocol, self.progress, dict(self.progress.list_done())
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

    def _accept(self, invitation: bytes) -> Any:
        fields = unpack_state(invitation, len(INVITATION))
        if where := misfit(fields, INVITATION):
            raise DecodeError(f"invalid invitation: {where}")
        names, outside, tables, done, given, notes, origins = fields
        if len({*names, self.me}) <= len(names) or not all(map(is_lane, names)):
            raise DecodeError("invalid invitation: invalid or repeated sender ids")
        numbers = {*outside[0], *(n for table in outside[1:] for n, _ in table)}
        if any(not 0 <= number - MESH < len(names) for number in numbers):
            raise DecodeError("invalid invitation: members without a sender id")
        self.names = Names((*names, self.me))
        self._become(tables, done, notes, given, origins)
        protocol = self._make_protocol(self.names.address(self.me))
        try:
            protocol.install_join_state(outside)
        except (LocalError, ValueError, KeyError) as error:
            raise DecodeError(f"invalid invitation: {error}") from error
        return protocol

    def _become(self, tables: Any, fed: Any, notes: Any, given: Any, origins: Any) -> None:
        self.names.tables = {name: list(table) for name, table in tables}
        self.progress.fed = dict(fed)
        self.progress.notes = {name: set(numbers) for name, numbers in notes}
        self.progress.given = Places(dict(given))
        self.copies = FirstCopies(dict(origins))

    def leave(self, lane: str, last: int) -> list[Given]:
        """Truncate a sender's log behind an entry."""
        late = self.progress.cut(lane, last)
        if late:
            self.protocol.leave(self.names.address(lane), min(late) - 1)
        return []

    # -- store -------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return an external peer's state. Raises LocalError at a super peer."""
        if self.role == SUPER:
            raise LocalError("a super peer has no store")
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
        fields = unpack_state(state, len(STATE))
        if where := misfit(fields, STATE):
            raise DecodeError(f"invalid state of the group: {where}")
        names, told, tables, fed, waiting, notes, given, origins, inner = fields
        self.names = Names(names)
        self.names.told = told
        self._become(tables, fed, notes, given, origins)
        self.progress.waiting = {name: dict(held) for name, held in waiting}
        self.protocol = self._make_protocol(self.names.address(self.me))
        self.protocol.restore(inner)


def _many(table: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    return tuple((name, tuple(values)) for name, values in table.items())
