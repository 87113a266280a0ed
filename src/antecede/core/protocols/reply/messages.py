"""Message of S_b, `<mid_c, mid_p, data>`, and its encoding.

Source: Bhavanasi and Iyer, section IV.B.2. The root of the ordering tree (OTR) is encoded as "no
parent". On the wire: sender, number, count of parents, and sender and number of each, as varints.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antecede.core.clocks.encoding import ByteReader, varint
from antecede.core.protocols.base import MessageId
from antecede.errors import DecodeError

ID_BYTES = 8
"""Size of an id by the accounting of the source: member and number, 4 bytes each."""


class SbMessage(NamedTuple):
    """Message with its id and the ids of the messages to which it replies."""

    sender: int
    seq: int
    parents: tuple[MessageId, ...]
    """Empty without a parent (the parent is OTR); at most one in the source."""
    payload: Any


def encode(message: SbMessage) -> bytes:
    """Return the control information as varints."""
    out = varint(message.sender) + varint(message.seq) + varint(len(message.parents))
    for sender, seq in message.parents:
        out += varint(sender) + varint(seq)
    return out


def decode(control: bytes, payload: Any) -> SbMessage:
    """Return the message that `encode` wrote. Raises DecodeError."""
    reader = ByteReader(control)
    sender, seq, count = reader.varint(), reader.varint(), reader.varint()
    left = len(control) - reader.offset
    if 2 * count > left:
        raise DecodeError(f"{count} parents at byte {reader.offset} exceed the {left} bytes left")
    parents = tuple(MessageId(reader.varint(), reader.varint()) for _ in range(count))
    reader.finish()
    return SbMessage(sender, seq, parents, payload)


def control_bytes(message: SbMessage) -> int:
    """Return 8 bytes for mid_c and 8 for each mid_p; OTR counts as an id, too."""
    return ID_BYTES * (1 + max(1, len(message.parents)))
