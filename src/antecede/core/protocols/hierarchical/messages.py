"""Messages of the hierarchical protocol: layouts, encoding, and the source's byte count.

Source: Evropeytsev et al. 2016, section 3.1.1 ("Internal Group Message Structure", "External Group
Message Structure"); layouts lost from the text: (Id, SN, Last, DV, Data) and (Id, SN, CI, I, Data).

A bit vector in a message is a trimmed window `(base, bits)` of `antecede.core.clocks.bits`. The
internal layout is two types, because its fields differ by direction. A peer does not know its
`Last` and sends 0, since only the super peer numbers the group.

CI is two tuples, integers for external peers and bit vectors for super peers, each ascending by
process. On the wire every message begins with its kind; numbers are varints. DV is the last field,
as a window (`core.clocks.encoding.windows`) relative to the lower bound or, downward, to SN. CI's
integers are counters (`core.clocks.encoding.counters`) with a length prefix; I is the last field.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from antecede.core.clocks import encode_window, read_window, span_bytes
from antecede.core.clocks.encoding import ByteReader, block, counters, varint, windows
from antecede.core.protocols.base import MessageId, Protocol
from antecede.errors import DecodeError, LocalError

Window: TypeAlias = tuple[int, int]
EMPTY: Final[Window] = (0, 0)

INTEGER_BYTES = 4
PAIR_BYTES = 8
HIGHEST_KIND = 4
"""Highest first byte of a message on the wire."""


class Upward(NamedTuple):
    """From an internal peer to its super peer: (Id, SN, 0, DV, Data) and a lower bound."""

    sender: int
    seq: int
    """The peer's own number for the message (Listing 4)."""
    dv: Window
    lower_bound: int
    """No later message of this peer names a number at or below this (safe pruning)."""
    payload: Any


class Downward(NamedTuple):
    """From a super peer into its group: (Id, SN, Last, DV, Data)."""

    sender: int
    """The internal peer that sent it, or the super peer itself for a translated message.

    Printed: 0, Listing 15 line 15.
    """
    seq: int
    """The super peer's number for it in this group (Listing 8 line 4)."""
    last: int
    dv: Window
    payload: Any


class Acknowledgement(NamedTuple):
    """Lower bound of a silent internal peer, valid once message `seq` has arrived."""

    sender: int
    seq: int
    lower_bound: int
    payload: Any
    """A value that the host's transport can carry; not for the application."""


class External(NamedTuple):
    """In the external group: (Id, SN, CI, I, Data)."""

    sender: int
    seq: int
    counts: tuple[tuple[int, int], ...]
    """CI, pairs of an external peer and the number of its message."""
    vectors: tuple[tuple[int, Window], ...]
    """CI, pairs of a super peer and a bit vector of its messages."""
    translated: Window
    """I: numbers of the messages that the sending super peer translated into its group."""
    payload: Any


class Flush(NamedTuple):
    """In the external group: I of a super peer whose group has long sent nothing."""

    sender: int
    seq: int
    translated: Window
    """I, which the next message of the group need not carry."""
    payload: Any


Message: TypeAlias = Upward | Downward | Acknowledgement | External | Flush


def identity(message: Message) -> MessageId:
    """Return the id of a message at the receivers; control messages have negative numbers."""
    if isinstance(message, Acknowledgement):
        return MessageId(message.sender, -message.lower_bound)
    if isinstance(message, Flush):
        base, bits = message.translated
        return MessageId(message.sender, -base - bits.bit_length())
    return MessageId(message.sender, message.seq)


def control_bytes(message: Message, *, with_floor: bool) -> int:
    """Return the bytes of control information by Evropeytsev et al.'s accounting.

    Integers (the lower bound is one) 4, pairs 8, a bit vector ceil(span / 8); no headers.
    """
    if isinstance(message, External):
        vectors = sum(span_bytes(bits) for _, (_, bits) in message.vectors)
        return PAIR_BYTES * len(message.counts) + vectors + span_bytes(message.translated[1])
    if isinstance(message, Acknowledgement):
        return INTEGER_BYTES
    if isinstance(message, Flush):
        return span_bytes(message.translated[1])
    bound_bytes = INTEGER_BYTES if with_floor and isinstance(message, Upward) else 0
    return span_bytes(message.dv[1]) + bound_bytes


# -- wire ------------------------------------------------------------------------------------


def encode(message: Message) -> bytes:
    """Return the control information of a message, its kind first. Raises LocalError."""
    if not isinstance(message, Message):
        raise LocalError(
            f"expected a message of the hierarchical protocol, got {type(message).__name__}"
        )
    head = varint(message.sender) + varint(message.seq)
    match message:
        case Upward():
            dv = windows.encode(*message.dv, near=message.lower_bound)
            return b"\x00" + head + varint(message.lower_bound) + dv
        case Downward():
            dv = windows.encode(*message.dv, near=message.seq)
            return b"\x01" + head + varint(message.last) + dv
        case Acknowledgement():
            return b"\x02" + head + varint(message.lower_bound)
        case External():
            peers, numbers = zip(*message.counts, strict=True) if message.counts else ((), ())
            vectors = b"".join(varint(peer) + encode_window(*v) for peer, v in message.vectors)
            ci = block(counters.encode(peers, numbers)) + varint(len(message.vectors)) + vectors
            return b"\x03" + head + ci + windows.encode(*message.translated)
        case Flush():
            return b"\x04" + head + windows.encode(*message.translated)


def decode(control: bytes, payload: Any, accepted: tuple[type, ...]) -> Any:
    """Return the message that `encode` wrote. Raises DecodeError, also for kinds not accepted."""
    reader = ByteReader(control)
    kind = reader.take(1)[0]
    if kind > HIGHEST_KIND:
        raise DecodeError(f"unknown message kind {kind}; expected 0 to {HIGHEST_KIND}")
    message = _read_message(reader, kind, payload)
    reader.finish()
    if not isinstance(message, accepted):
        names = " or ".join(kind.__name__ for kind in accepted)
        raise DecodeError(f"unexpected {type(message).__name__} message; this role accepts {names}")
    return message


def _read_message(reader: ByteReader, kind: int, payload: Any) -> Message:
    sender, seq = reader.varint(), reader.varint()
    match kind:
        case 0:
            lower_bound = reader.varint()
            return Upward(
                sender, seq, windows.decode(reader.rest(), near=lower_bound), lower_bound, payload
            )
        case 1:
            last = reader.varint()
            return Downward(sender, seq, last, windows.decode(reader.rest(), near=seq), payload)
        case 2:
            return Acknowledgement(sender, seq, reader.varint(), payload)
        case 3:
            counts = tuple(zip(*counters.decode(reader.block()), strict=True))
            vectors = _read_vectors(reader)
            return External(sender, seq, counts, vectors, windows.decode(reader.rest()), payload)
        case 4:
            if seq:
                raise DecodeError(f"flush of I with number {seq}; expected none")
            return Flush(sender, 0, windows.decode(reader.rest()), payload)
    raise AssertionError(kind)  # `decode` has rejected it


def _read_vectors(reader: ByteReader) -> tuple[tuple[int, Window], ...]:
    entries: list[tuple[int, Window]] = []
    for _ in range(reader.varint()):
        process = reader.varint()
        if entries and process <= entries[-1][0]:
            raise DecodeError(f"CI is not ascending: {process} after {entries[-1][0]}")
        window = read_window(reader)
        if not window[1]:
            raise DecodeError("CI has an empty bit vector")
        entries.append((process, window))
    return tuple(entries)


class Role(Protocol):
    """Base of the three roles, which share a wire format and renumber messages."""

    renumbers: ClassVar[bool] = True
    accepted: ClassVar[tuple[type, ...]]
    """Types of the messages that the role accepts."""
    pruning: str = "none"

    def identity(self, message: Any) -> MessageId:
        return identity(message)

    def is_control(self, message: Any) -> bool:
        return isinstance(message, Acknowledgement | Flush)

    def encode(self, message: Any) -> bytes:
        return encode(message)

    def decode(self, control: bytes, payload: Any) -> Any:
        return decode(control, payload, self.accepted)

    def control_bytes(self, message: Any) -> int:
        return control_bytes(message, with_floor=self.pruning == "safe")
