"""Messages of `clock_based.channel`: application messages, null messages, requests and answers.

Source: Tsuneizumi et al., section 6: m.src, m.seq, m.PT, m.LT, m.data. A message also names its
sender's previous message to the same receiver. In a broadcast group this is seq - 1 and adds
nothing. In a selective group it closes the gaps left by messages to other receivers.

On the wire: kind and sender; number; difference to the previous number. Then LT as a varint and PT
as 8 bytes (nanoseconds, with a sign), if the protocol carries them.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, TypeAlias

from antecede.core.clocks import LONGEST_NS, MAX_NUMBER
from antecede.core.clocks.encoding import ByteReader, varint
from antecede.errors import DecodeError, SequenceError

INTEGER_BYTES = 4
CLOCK_BYTES = 8
_MESSAGE, _NULL, _REQUEST, _GONE = range(4)
_CLOCK = struct.Struct(">q")


class StampedMessage(NamedTuple):
    """Application message; LT and PT are 0 if the protocol carries none."""

    sender: int
    seq: int
    """The sender's number for it, from 1 (SEQ; in Tsuneizumi et al. from 0)."""
    payload: Any
    before: int
    """Number of the sender's previous message to the same receiver; 0: none."""
    lt: int = 0
    pt_ns: int = 0


class NullMessage(NamedTuple):
    """Heartbeat: no message to the receiver after number `last`, up to these times."""

    sender: int
    seq: int
    payload: Any
    last: int
    lt: int = 0
    pt_ns: int = 0


class RetransmissionRequest(NamedTuple):
    """Request to retransmit the messages `first` to `last`, both included."""

    sender: int
    seq: int
    payload: Any
    first: int
    last: int


class Gone(NamedTuple):
    """Negative answer to a request: messages up to `last` are no longer kept."""

    sender: int
    seq: int
    payload: Any
    last: int


ControlMessage: TypeAlias = NullMessage | RetransmissionRequest | Gone
AnyMessage: TypeAlias = StampedMessage | ControlMessage


def encode(message: AnyMessage, *, lt: bool, pt: bool) -> bytes:
    """Return the control information; `lt` and `pt` select the carried times."""
    match message:
        case StampedMessage():
            numbers = [_MESSAGE, message.sender, message.seq, message.seq - message.before]
        case NullMessage():
            numbers = [_NULL, message.sender, message.last]
        case RetransmissionRequest():
            return b"".join(map(varint, (_REQUEST, message.sender, message.first, message.last)))
        case Gone():
            return b"".join(map(varint, (_GONE, message.sender, message.last)))
    if lt:
        numbers.append(message.lt)
    return b"".join(map(varint, numbers)) + (_CLOCK.pack(message.pt_ns) if pt else b"")


def decode(control: bytes, payload: Any, *, lt: bool, pt: bool) -> AnyMessage:
    """Return the message that `encode` wrote. Raises DecodeError and SequenceError."""
    reader = ByteReader(control)
    kind, sender = reader.varint(), reader.varint()
    message: AnyMessage
    if kind == _MESSAGE:
        seq, back = _read_number(reader), reader.varint()
        if not 1 <= back <= seq:
            raise SequenceError(
                f"message {seq} from member {sender} names the message {back} numbers before "
                "it as previous"
            )
        message = StampedMessage(sender, seq, payload, seq - back, *_read_times(reader, lt, pt))
    elif kind == _NULL:
        message = NullMessage(
            sender, 0, payload, _read_number(reader), *_read_times(reader, lt, pt)
        )
    elif kind == _REQUEST:
        message = RetransmissionRequest(
            sender, 0, payload, _read_number(reader), _read_number(reader)
        )
    elif kind == _GONE:
        message = Gone(sender, 0, payload, _read_number(reader))
    else:
        raise DecodeError(f"unknown message kind {kind}; expected {_MESSAGE} to {_GONE}")
    reader.finish()
    return message


def _read_number(reader: ByteReader) -> int:
    number = reader.varint()
    if number > MAX_NUMBER:
        raise SequenceError(f"number {number} is above {MAX_NUMBER}")
    return number


def _read_times(reader: ByteReader, lt: bool, pt: bool) -> tuple[int, int]:
    linear = _read_number(reader) if lt else 0
    physical: int = _CLOCK.unpack(reader.take(_CLOCK.size))[0] if pt else 0
    if abs(physical) > LONGEST_NS:
        raise DecodeError(f"a physical time of {physical} ns; readings are within 146 years of 0")
    return linear, physical


def control_bytes(message: AnyMessage, *, lt: bool, pt: bool) -> int:
    """Return 4 bytes per integer and 8 for PT; the previous number counts if it is not implied."""
    if isinstance(message, RetransmissionRequest):
        return 2 * INTEGER_BYTES
    if isinstance(message, Gone):
        return INTEGER_BYTES
    size = INTEGER_BYTES * (1 + lt) + CLOCK_BYTES * pt
    if isinstance(message, StampedMessage) and message.before != message.seq - 1:
        size += INTEGER_BYTES
    return size
