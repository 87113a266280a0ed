"""Codec between protocol messages and frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.group.frames import format as frame
from antecede.core.group.frames.format import Frame, Incarnation
from antecede.core.group.incarnations import KnownIncarnations
from antecede.core.group.message import Envelope, Packet, SendArguments
from antecede.core.group.state import GroupState
from antecede.core.protocols import Addressing, Transmit
from antecede.errors import DecodeError, MismatchError, UnknownMemberError

MAX_CACHED_HEADS = 4096
FIXED_BYTES = 256
"""Upper bound of the bytes of a frame that do not grow with the group."""
PLAIN_HEAD_BYTES = 18
"""Bytes before control information in a closed group without restarted members."""
NUMBER_BYTES = 10


class FrameCodec:
    """Encodes and decodes the frames of one group. Caches heads of frames."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self._parsed_heads: dict[bytes, Frame] = {}
        self._parsed_version: object = None
        self._packed_version: object = None
        self._packed_heads: dict[Incarnation, bytes] = {}
        self._packed_rows: dict[int, bytes] = {}
        self._fixed_overhead: int | None = None
        self._newest_receivers: tuple[tuple[int, ...], tuple[str, ...]] = (), ()

    # -- writing ----------------------------------------------------------------------------

    def make_packet(self, effect: Transmit) -> Packet:
        """Return a transmission as bytes with receivers."""
        return Packet(self.name_receivers(effect.to), self.encode(effect.message))

    def _refresh(self) -> None:
        if self._state.roster.version is not self._packed_version:
            self._packed_version, self._packed_heads, self._newest_receivers = (
                self._state.roster.version,
                {},
                ((), ()),
            )
            self._packed_rows = {}
            self._fixed_overhead = self._estimate_fixed_overhead()

    def _estimate_fixed_overhead(self) -> int | None:
        state = self._state
        names, power = state.roster.names, state.protocol.control_power
        if power is None:
            return None
        numbers: int = 2 * (max(names) + 2) ** power
        table = sum(map(_estimate_text_bytes, names.values())) if state.is_open else 0
        return FIXED_BYTES + NUMBER_BYTES * numbers + table

    def estimate_overhead(self, replied_to: int, topics: Iterable[str]) -> int | None:
        """Return an upper bound of the next own message's bytes without payload; None: unknown."""
        self._refresh()
        most, state = self._fixed_overhead, self._state
        if most is None:
            return None
        incarnations, protocol = state.incarnations, state.protocol
        if incarnations.restarted_members:
            most += sum(
                len(incarnations.by_member[name]) * _estimate_text_bytes(name)
                for name in incarnations.restarted_members
            )
        if protocol.addressing is Addressing.TOPICS:
            most += sum(map(_estimate_text_bytes, (*protocol.control_texts(), *topics)))
        return most + 2 * NUMBER_BYTES * replied_to

    def name_receivers(self, to: tuple[int, ...]) -> tuple[str, ...]:
        """Return members' names."""
        self._refresh()
        roster = self._state.roster
        if to != self._newest_receivers[0]:
            self._newest_receivers = to, tuple([roster.names[number] for number in to])
        return self._newest_receivers[1]

    def encode(self, message: Any) -> bytes:
        """Return a message as frame bytes."""
        state = self._state
        protocol, incarnations, incarnation = state.protocol, state.incarnations, state.incarnation
        note = state.renumbers or (state.has_control and protocol.is_control(message))
        if not note and message.sender != protocol.me:  # a relayed copy
            incarnation = incarnations.find_incarnation(
                state.roster.names[message.sender], message.seq
            )
        known: KnownIncarnations = ()
        if incarnations.restarted_members:
            causes = () if note else state.find_causes(message)
            chosen = not note and protocol.addressing is Addressing.MEMBERS
            known = incarnations.collect_known(causes, include_all=chosen)
        control = protocol.encode(message)
        if known:
            return frame.pack(self._make_frame(incarnation, known, message, control))
        table = self._pack_names(protocol.mentions(message)) if state.is_open else b""
        return b"".join((self._pack_head(incarnation), table, block(control), message.payload))

    def _pack_names(self, numbers: Iterable[int]) -> bytes:
        rows, names = self._packed_rows, self._state.roster.names
        for number in numbers:
            if number not in rows:
                rows[number] = frame.pack_row(number, names[number])
        return frame.pack_table([rows[number] for number in dict.fromkeys(numbers)])

    def _pack_head(self, incarnation: Incarnation) -> bytes:
        self._refresh()
        written = self._packed_heads.get(incarnation)
        if written is None:
            if len(self._packed_heads) >= MAX_CACHED_HEADS:
                self._packed_heads.clear()
            written = self._packed_heads[incarnation] = frame.pack_head(
                self._make_frame(incarnation, (), None, b"")
            )
        return written

    def _make_frame(
        self, incarnation: Incarnation, known: KnownIncarnations, message: Any, control: bytes
    ) -> Frame:
        state = self._state
        names = {}
        if state.is_open and message is not None:
            names = {n: state.roster.names[n] for n in state.protocol.mentions(message)}
        return Frame(
            order=state.order,
            room=state.room,
            options=state.options,
            view=None if state.is_open else state.roster.view,
            by=incarnation,
            names=names,
            known=known,
            control=control,
            payload=b"" if message is None else message.payload,
        )

    def wrap_original(self, payload: bytes) -> bytes:
        """Prepend the original sender and number, for a protocol that renumbers messages."""
        state = self._state
        return block(state.name.encode()) + varint(state.sent + 1) + payload

    # -- reading ----------------------------------------------------------------------------

    def unpack(self, wire: bytes) -> tuple[Frame, int]:
        """Return a frame, and the number of its joins unknown here. Raise DecodeError or
        MismatchError.
        """
        roster = self._state.roster
        if (
            roster.version is not self._parsed_version
            or len(self._parsed_heads) >= MAX_CACHED_HEADS
        ):
            self._parsed_heads, self._parsed_version = {}, roster.version
        known = self._parsed_heads.get(wire[:PLAIN_HEAD_BYTES]) if isinstance(wire, bytes) else None
        if known is not None:
            return _attach_body(known, wire), 0
        parts = frame.unpack(self._state.order, wire)
        self._check(parts)
        unknown_joins = 0 if parts.view is None else roster.check(parts.view)
        if not unknown_joins and len(wire) > PLAIN_HEAD_BYTES and wire[2] == 0 and wire[9] < 0x80:
            self._parsed_heads[bytes(wire[:PLAIN_HEAD_BYTES])] = parts._replace(
                control=b"", payload=b""
            )
        return parts, unknown_joins

    def _check(self, parts: Frame) -> None:
        state = self._state
        if state.is_open and parts.view is not None:
            raise MismatchError(
                "kind", "no name table: the sender's group is closed, this one is open"
            )
        if parts.view is None and not state.is_open:
            raise MismatchError(
                "kind", "unexpected name table: the sender's group is open, this one is closed"
            )
        if parts.room != state.room:
            raise MismatchError("room", "message has another room= than this group")
        if parts.options != state.options:
            raise MismatchError(
                "options", f"message of a group of {state.order} with other options"
            )

    def decode(self, parts: Frame) -> Any:
        """Return the protocol's message of a frame. Raise DecodeError."""
        state = self._state
        message = state.protocol.decode(parts.control, parts.payload)
        if not state.renumbers:
            return message
        if not state.protocol.is_control(message):
            origin = state.to_message(message)
            if not 0 < len(origin.sender.encode()) <= frame.MAX_NAME_BYTES or origin.seq < 1:
                raise DecodeError(
                    f"invalid original message id: {origin.seq} of {origin.sender[:20]!r}"
                )
        return message

    def inspect(self, wire: bytes) -> Envelope:
        """Return the content of a message: see `Group.inspect`."""
        state = self._state
        parts, unknown_joins = self.unpack(wire)
        if unknown_joins:
            raise UnknownMemberError("sender knows joins that were not reported here")
        names = parts.names if state.is_open else state.roster.names
        with state.translate_errors(names):
            message = self.decode(parts)
        if state.roster.forgotten and not state.is_open:
            message = state.protocol.without(message, state.roster.is_forgotten)
        causes = tuple(state.protocol.causes(message)) if state.names_causes else ()
        for number in (message.sender, *(cause.sender for cause in causes)):
            if number not in names:
                raise UnknownMemberError(f"message mentions unknown member {number}")
        named = tuple((names[cause.sender], cause.seq) for cause in causes)
        sizes = frame.measure_parts(bytes(wire))
        content = names[message.sender], message.seq, parts.payload
        if state.renumbers and not state.protocol.is_control(message):
            content = state.to_message(message)[:3]
        return Envelope(
            *(content[0], content[1], named, content[2], named if state.by_reply else ()),
            control_bytes=sizes.control,
            identity_bytes=sizes.identity + sizes.names,
        )

    def decode_own(self, wire: bytes) -> SendArguments | None:
        """Return the arguments of an own message: see `Group.decode_own`."""
        state = self._state
        parts, protocol = frame.unpack(state.order, wire), state.protocol
        if not protocol.application:
            return None
        if state.renumbers:  # own and received messages differ: only the payload has the origin
            return _unwrap_original(parts.payload)
        message = protocol.decode(parts.control, parts.payload)
        if protocol.is_control(message):
            return None
        names = parts.names if state.is_open else state.roster.names

        def get_name(number: int) -> str:
            if number not in names:
                raise UnknownMemberError(f"own message mentions unknown member {number}")
            return names[number]

        arguments = SendArguments(parts.payload)
        if state.by_reply:
            parents = protocol.causes(message)
            arguments = arguments._replace(
                reply_to=tuple((get_name(p.sender), p.seq) for p in parents)
            )
        # Tsuneizumi et al. send each receiver other bytes, without a list.
        to = getattr(message, "to", None)
        if protocol.addressing is Addressing.MEMBERS and to and set(to) != set(protocol.others()):
            arguments = arguments._replace(to=tuple(map(get_name, to)))
        if protocol.addressing is Addressing.TOPICS:
            arguments = arguments._replace(topics=message.topics)
        return arguments


def _attach_body(head: Frame, wire: bytes) -> Frame:
    """Return the frame of bytes with a known head. Raise DecodeError."""
    size = wire[PLAIN_HEAD_BYTES] if len(wire) > PLAIN_HEAD_BYTES else 0
    if 0 < size < 0x80 and PLAIN_HEAD_BYTES + size < len(wire):  # fast path: a length of one byte
        after = PLAIN_HEAD_BYTES + 1 + size
        return Frame(*head[:7], wire[PLAIN_HEAD_BYTES + 1 : after], wire[after:])
    reader = ByteReader(wire, PLAIN_HEAD_BYTES)
    return Frame(*head[:7], reader.block(), reader.rest())


def _estimate_text_bytes(text: str) -> int:
    return 4 * len(text) + 4 * NUMBER_BYTES


def _unwrap_original(payload: bytes) -> SendArguments | None:
    if not payload:
        return None
    reader = ByteReader(payload)
    reader.block(), reader.varint()
    return SendArguments(reader.rest())
