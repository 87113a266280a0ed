"""Codec between protocol messages and frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antecede.core.clocks.encoding import Reader, block, varint
from antecede.core.group.frames import format as frame
from antecede.core.group.frames.format import Frame, Incarnation
from antecede.core.group.incarnations import Told
from antecede.core.group.message import Envelope, Packet, Said
from antecede.core.group.state import GroupState
from antecede.core.protocols import Addressing, Transmit
from antecede.errors import DecodeError, MismatchError, UnknownMemberError

HEADS = 4096
FIXED_BYTES = 256
"""Upper bound of the bytes of a frame that do not grow with the group."""
PLAIN = 18
"""Bytes before control information in a closed group without restarted members."""
NUMBER_BYTES = 10


class Frames:
    """Encodes and decodes the frames of one group. Caches heads of frames."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self._heads: dict[bytes, Frame] = {}
        self._heads_under: object = None
        self._roster: object = None
        self._written: dict[Incarnation, bytes] = {}
        self._rows: dict[int, bytes] = {}
        self._beside: int | None = None
        self._to: tuple[tuple[int, ...], tuple[str, ...]] = (), ()

    # -- writing ----------------------------------------------------------------------------

    def packet(self, effect: Transmit) -> Packet:
        """Return a transmission as bytes with receivers."""
        return Packet(self.receivers(effect.to), self.wire(effect.message))

    def _refresh(self) -> None:
        if self._state.roster.version is not self._roster:
            self._roster, self._written, self._to = self._state.roster.version, {}, ((), ())
            self._rows = {}
            self._beside = self._most_fixed()

    def _most_fixed(self) -> int | None:
        state = self._state
        names, power = state.roster.names, state.protocol.control_power
        if power is None:
            return None
        numbers: int = 2 * (max(names) + 2) ** power
        table = sum(map(_most_bytes, names.values())) if state.open else 0
        return FIXED_BYTES + NUMBER_BYTES * numbers + table

    def most_beside(self, parents: int, topics: Iterable[str]) -> int | None:
        """Return an upper bound of the next own message's bytes without payload; None: unknown."""
        self._refresh()
        most, state = self._beside, self._state
        if most is None:
            return None
        lives, protocol = state.lives, state.protocol
        if lives.restarted:
            most += sum(len(lives.chains[name]) * _most_bytes(name) for name in lives.restarted)
        if protocol.addressing is Addressing.TOPICS:
            most += sum(map(_most_bytes, (*protocol.control_texts(), *topics)))
        return most + 2 * NUMBER_BYTES * parents

    def receivers(self, to: tuple[int, ...]) -> tuple[str, ...]:
        """Return members' names."""
        self._refresh()
        roster = self._state.roster
        if to != self._to[0]:
            self._to = to, tuple([roster.names[number] for number in to])
        return self._to[1]

    def wire(self, message: Any) -> bytes:
        """Return a message as frame bytes."""
        state = self._state
        protocol, lives, life = state.protocol, state.lives, state.life
        note = state.renumbers or (state.has_notes and protocol.is_note(message))
        if not note and message.sender != protocol.me:  # a relayed copy
            life = lives.of(state.roster.names[message.sender], message.seq)
        told: Told = ()
        if lives.restarted:
            causes = () if note else state.causes(message)
            chosen = not note and protocol.addressing is Addressing.MEMBERS
            told = lives.told(causes, all_lives=chosen)
        control = protocol.encode(message)
        if told:
            return frame.pack(self._frame(life, told, message, control))
        table = self._table(protocol.mentions(message)) if state.open else b""
        return b"".join((self._head(life), table, block(control), message.payload))

    def _table(self, numbers: Iterable[int]) -> bytes:
        rows, names = self._rows, self._state.roster.names
        for number in numbers:
            if number not in rows:
                rows[number] = frame.row(number, names[number])
        return frame.table([rows[number] for number in dict.fromkeys(numbers)])

    def _head(self, life: Incarnation) -> bytes:
        self._refresh()
        written = self._written.get(life)
        if written is None:
            if len(self._written) >= HEADS:
                self._written.clear()
            written = self._written[life] = frame.head(self._frame(life, (), None, b""))
        return written

    def _frame(self, life: Incarnation, told: Told, message: Any, control: bytes) -> Frame:
        state = self._state
        names = {}
        if state.open and message is not None:
            names = {n: state.roster.names[n] for n in state.protocol.mentions(message)}
        return Frame(
            order=state.order,
            room=state.room,
            options=state.options,
            view=None if state.open else state.roster.view,
            by=life,
            names=names,
            known=told,
            control=control,
            payload=b"" if message is None else message.payload,
        )

    def wrapped(self, payload: bytes) -> bytes:
        """Prepend the original sender and number, for a protocol that renumbers messages."""
        state = self._state
        return block(state.name.encode()) + varint(state.sent + 1) + payload

    # -- reading ----------------------------------------------------------------------------

    def unpack(self, wire: bytes) -> tuple[Frame, int]:
        """Return a frame, and the number of its joins unknown here. Raise DecodeError or
        MismatchError.
        """
        roster = self._state.roster
        if roster.version is not self._heads_under or len(self._heads) >= HEADS:
            self._heads, self._heads_under = {}, roster.version
        known = self._heads.get(wire[:PLAIN]) if isinstance(wire, bytes) else None
        if known is not None:
            return _with_body(known, wire), 0
        parts = frame.unpack(self._state.order, wire)
        self._check(parts)
        lacking = 0 if parts.view is None else roster.check(parts.view)
        if not lacking and len(wire) > PLAIN and wire[2] == 0 and wire[9] < 0x80:
            self._heads[bytes(wire[:PLAIN])] = parts._replace(control=b"", payload=b"")
        return parts, lacking

    def _check(self, parts: Frame) -> None:
        state = self._state
        if state.open and parts.view is not None:
            raise MismatchError(
                "kind", "no name table: the sender's group is closed, this one is open"
            )
        if parts.view is None and not state.open:
            raise MismatchError(
                "kind", "unexpected name table: the sender's group is open, this one is closed"
            )
        if parts.room != state.room:
            raise MismatchError("room", "message has another room= than this group")
        if parts.options != state.options:
            raise MismatchError(
                "options", f"message of a group of {state.order} with other options"
            )

    def decoded(self, parts: Frame) -> Any:
        """Return the protocol's message of a frame. Raise DecodeError."""
        state = self._state
        message = state.protocol.decode(parts.control, parts.payload)
        if not state.renumbers:
            return message
        if not state.protocol.is_note(message):
            origin = state.message(message)
            if not 0 < len(origin.sender.encode()) <= frame.MAX_NAME_BYTES or origin.seq < 1:
                raise DecodeError(
                    f"invalid original message id: {origin.seq} of {origin.sender[:20]!r}"
                )
        return message

    def inspect(self, wire: bytes) -> Envelope:
        """Return the content of a message: see `Group.inspect`."""
        state = self._state
        parts, lacking = self.unpack(wire)
        if lacking:
            raise UnknownMemberError("sender knows joins that were not reported here")
        names = parts.names if state.open else state.roster.names
        with state.named_errors(names):
            message = self.decoded(parts)
        if state.roster.forgotten and not state.open:
            message = state.protocol.without(message, state.roster.is_forgotten)
        causes = tuple(state.protocol.causes(message)) if state.names_causes else ()
        for number in (message.sender, *(cause.sender for cause in causes)):
            if number not in names:
                raise UnknownMemberError(f"message mentions unknown member {number}")
        named = tuple((names[cause.sender], cause.seq) for cause in causes)
        sizes = frame.sizes(bytes(wire))
        shown = names[message.sender], message.seq, parts.payload
        if state.renumbers and not state.protocol.is_note(message):
            shown = state.message(message)[:3]
        return Envelope(
            *(shown[0], shown[1], named, shown[2], named if state.by_reply else ()),
            control_bytes=sizes.control,
            identity_bytes=sizes.identity + sizes.names,
        )

    def said(self, wire: bytes) -> Said | None:
        """Return the arguments of an own message: see `Group.decode_own`."""
        state = self._state
        parts, protocol = frame.unpack(state.order, wire), state.protocol
        if not protocol.application:
            return None
        if state.renumbers:  # own and received messages differ: only the payload has the origin
            return _unwrapped(parts.payload)
        message = protocol.decode(parts.control, parts.payload)
        if protocol.is_note(message):
            return None
        names = parts.names if state.open else state.roster.names

        def named(number: int) -> str:
            if number not in names:
                raise UnknownMemberError(f"own message mentions unknown member {number}")
            return names[number]

        said = Said(parts.payload)
        if state.by_reply:
            parents = protocol.causes(message)
            said = said._replace(reply_to=tuple((named(p.sender), p.seq) for p in parents))
        # Tsuneizumi et al. send each receiver other bytes, without a list.
        to = getattr(message, "to", None)
        if protocol.addressing is Addressing.MEMBERS and to and set(to) != set(protocol.others()):
            said = said._replace(to=tuple(map(named, to)))
        if protocol.addressing is Addressing.TOPICS:
            said = said._replace(topics=message.topics)
        return said


def _with_body(head: Frame, wire: bytes) -> Frame:
    """Return the frame of bytes with a known head. Raise DecodeError."""
    size = wire[PLAIN] if len(wire) > PLAIN else 0
    if 0 < size < 0x80 and PLAIN + size < len(wire):  # fast path: a length of one byte
        after = PLAIN + 1 + size
        return Frame(*head[:7], wire[PLAIN + 1 : after], wire[after:])
    reader = Reader(wire, PLAIN)
    return Frame(*head[:7], reader.block(), reader.rest())


def _most_bytes(text: str) -> int:
    return 4 * len(text) + 4 * NUMBER_BYTES


def _unwrapped(payload: bytes) -> Said | None:
    if not payload:
        return None
    reader = Reader(payload)
    reader.block(), reader.varint()
    return Said(reader.rest())
