"""Messages of the matrix protocol and their encoding.

A message is (sender, number, control information). A control message has the number 0, then its
kind. Control information of messages and heartbeats:

- the side of the matrix;
- the sender's principal vector;
- a bit per row, set for the rows that follow (rows of zeros are left out);
- the differences of these rows to the principal vector (`core.clocks.matrix`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from antecede.core.clocks import (
    encode_behind,
    encode_bounds,
    join_rows,
    lanes,
    read_behind,
    read_bounds,
    read_side,
    read_top,
    split_rows,
)
from antecede.core.clocks.encoding import ByteReader, encode_dense, varint
from antecede.errors import DecodeError, UnknownMemberError

HEARTBEAT, REQUEST = 1, 2


class MatrixMessage(NamedTuple):
    """Message with its sender's number for it, from 1, and the sender's matrix clock."""

    sender: int
    seq: int
    payload: Any
    causes: int
    """Principal vector without the sender's own entry, which is `seq`; packed."""
    rows: tuple[int, ...]
    """Rows of all members as packed vectors; 0 for the sender's and for those not carried."""


class Heartbeat(NamedTuple):
    """Control message of a silent member: its matrix clock."""

    sender: int
    seq: int
    """0, which marks a control message."""
    payload: Any
    causes: int
    """Principal vector with the sender's own entry."""
    rows: tuple[int, ...]


class MatrixRequest(NamedTuple):
    """Control message that requests messages of `origin`, numbers as half-open ranges."""

    sender: int
    seq: int
    payload: Any
    origin: int
    bounds: tuple[int, ...]


AnyMessage: TypeAlias = MatrixMessage | Heartbeat | MatrixRequest


def encode(message: AnyMessage) -> bytes:
    """Return the control information as bytes."""
    head = varint(message.sender) + varint(message.seq)
    if isinstance(message, MatrixRequest):
        return head + varint(REQUEST) + varint(message.origin) + encode_bounds(message.bounds)
    if isinstance(message, Heartbeat):
        head += varint(HEARTBEAT)
    rows, side = list_carried_rows(message), len(message.rows)
    head += varint(side) + encode_dense(message.causes)
    head += sum(1 << k for k in rows).to_bytes(-(-side // 8), "little")
    if not rows:
        return head
    vectors = join_rows([message.rows[k] for k in rows], side)
    return head + encode_behind(vectors, principal(message), len(rows), side)


def decode(control: bytes, payload: Any) -> AnyMessage:
    """Return what `encode` wrote. Raises DecodeError, UnknownMemberError and SequenceError."""
    reader = ByteReader(control)
    sender, seq = reader.varint(), reader.varint()
    kind = 0 if seq else reader.varint()
    if kind == REQUEST:
        return _read_request(reader, sender, payload)
    if kind not in (0, HEARTBEAT):
        raise DecodeError(f"unknown kind {kind} of a control message from member {sender}")
    side = read_side(reader)
    if not sender < side:
        raise UnknownMemberError(f"member {sender} has no row in its own matrix of {side}")
    causes = read_top(reader, side)
    if kind == HEARTBEAT:
        return Heartbeat(sender, 0, payload, causes, _read_rows(reader, sender, side, causes))
    if lanes.get(causes, sender):
        raise DecodeError(f"message {seq} of member {sender} contains its own number twice")
    if seq > lanes.MAX_VALUE:
        raise DecodeError(f"message {seq} of member {sender}: numbers are 1 to {lanes.MAX_VALUE}")
    rows = _read_rows(reader, sender, side, causes + lanes.unit(sender, seq))
    return MatrixMessage(sender, seq, payload, causes, rows)


def _read_request(reader: ByteReader, sender: int, payload: Any) -> MatrixRequest:
    origin, bounds = reader.varint(), read_bounds(reader)
    reader.finish()
    if not bounds:
        raise DecodeError(f"request of member {sender} without messages")
    return MatrixRequest(sender, 0, payload, origin, tuple(bounds))


def _read_rows(reader: ByteReader, sender: int, side: int, top: int) -> tuple[int, ...]:
    bits = int.from_bytes(reader.take(-(-side // 8)), "little")
    if bits >> side or bits >> sender & 1:
        raise DecodeError(
            f"matrix of {side} rows: flags of rows outside it, or of the sender's own"
        )
    listed = [k for k in range(side) if bits >> k & 1]
    rows = [0] * side
    if listed:
        vectors = split_rows(read_behind(reader, top, len(listed), side), len(listed), side)
        for k, row in zip(listed, vectors, strict=True):
            rows[k] = row
            if not row:
                raise DecodeError(f"row of zeros for member {k}, which must be left out")
    reader.finish()
    return tuple(rows)


def principal(message: MatrixMessage | Heartbeat) -> int:
    """Return the sender's principal vector at the time of sending, packed."""
    if not message.seq:
        return message.causes
    return lanes.put(message.causes, message.sender, message.seq)


def list_carried_rows(message: MatrixMessage | Heartbeat) -> list[int]:
    """Return the members whose rows the message carries, without the sender."""
    return [k for k, row in enumerate(message.rows) if row]


def renumber(message: AnyMessage, numbers: Mapping[int, int]) -> AnyMessage:
    """Return the message with every member's number replaced."""
    sender = numbers[message.sender]
    if isinstance(message, MatrixRequest):
        return message._replace(sender=sender, origin=numbers[message.origin])
    side = max((*(numbers[k] for k in list_members(message)), sender)) + 1
    rows = [0] * side
    for k in list_carried_rows(message):
        rows[numbers[k]] = _renumber_vector(message.rows[k], numbers)
    causes = _renumber_vector(message.causes, numbers)
    return message._replace(sender=sender, causes=causes, rows=tuple(rows))


def _renumber_vector(vector: int, numbers: Mapping[int, int]) -> int:
    return lanes.pack((numbers[k], count) for k, count in lanes.items(vector))


def list_members(message: AnyMessage) -> tuple[int, ...]:
    """Return the numbers of all members that the control information names."""
    if isinstance(message, MatrixRequest):
        return tuple(sorted({message.sender, message.origin}))
    counted: Iterable[int] = (k for k, _ in lanes.items(message.causes))
    return tuple(sorted({message.sender, *counted, *list_carried_rows(message)}))
