"""The messages of the hierarchical protocol: layouts, wire bytes, and the source's byte count.

Source: 000, section 3.1.1 ("Internal Group Message Structure", "External Group Message
Structure"); layouts lost from the text: (Id, SN, Last, DV, Data) and (Id, SN, CI, I, Data).

Theory of operation
-------------------
A bit vector inside a message is a trimmed window `(base, bits)` of `antecede.clocks.bits`. The
internal layout is two types, because its fields differ by direction: a peer does not know its
`Last` (it sends 0; only the super peer numbers the group), and a super peer has no `floor`.
CI is two tuples, integers for external peers and bit vectors for super peers, each ascending
by process. On the wire every message begins with its kind; all numbers are varints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from antecede.clocks.bits import encode_window, read_window, span_bytes
from antecede.clocks.wire import Reader, varint
from antecede.errors import DecodeError, LocalError
from antecede.protocols.base import MessageId

Window: TypeAlias = tuple[int, int]
EMPTY: Final[Window] = (0, 0)

INTEGER_BYTES = 4
PAIR_BYTES = 8


class Upward(NamedTuple):
    """From an internal peer to its super peer: (Id, SN, 0, DV, Data) and the peer's floor."""

    sender: int
    seq: int
    """The peer's own number for the message (Listing 4)."""
    dv: Window
    floor: int
    """No later message of this peer names a message numbered at or below (safe pruning)."""
    payload: Any


class Downward(NamedTuple):
    """From a super peer into its group: (Id, SN, Last, DV, Data)."""

    sender: int
    """The internal peer it came from, or the super peer itself for a translated message
    (printed: 0, Listing 15 line 15)."""
    seq: int
    """The super peer's number for it in this group (Listing 8 line 4)."""
    last: int
    dv: Window
    payload: Any


class Acknowledgement(NamedTuple):
    """From a peer that has nothing to say: its floor, valid once message `seq` has come."""

    sender: int
    seq: int
    floor: int
    payload: Any
    """Nothing of the application; a value that the host's transport can carry."""


class External(NamedTuple):
    """In the external group: (Id, SN, CI, I, Data)."""

    sender: int
    seq: int
    counts: tuple[tuple[int, int], ...]
    """CI, pairs of an external peer and the number of its message."""
    vectors: tuple[tuple[int, Window], ...]
    """CI, pairs of a super peer and a bit vector of its messages."""
    translated: Window
    """I: numbers that the sending super peer gave to messages it translated into its group."""
    payload: Any


Message: TypeAlias = Upward | Downward | Acknowledgement | External


def identity(message: Message) -> MessageId:
    """Return the id by which its receivers name a message; -floor tells acknowledgements apart."""
    if isinstance(message, Acknowledgement):
        return MessageId(message.sender, -message.floor)
    return MessageId(message.sender, message.seq)


def control_bytes(message: Message, *, with_floor: bool) -> int:
    """Return the bytes of control information by 000's accounting.

    Integers 4, pairs 8, a bit vector ceil(span / 8); headers (Id, SN, Last) are not counted.
    The floor, which the source does not have, counts as one integer.
    """
    if isinstance(message, External):
        vectors = sum(span_bytes(bits) for _, (_, bits) in message.vectors)
        return PAIR_BYTES * len(message.counts) + vectors + span_bytes(message.translated[1])
    if isinstance(message, Acknowledgement):
        return INTEGER_BYTES
    floor = INTEGER_BYTES if with_floor and isinstance(message, Upward) else 0
    return span_bytes(message.dv[1]) + floor


# -- wire ------------------------------------------------------------------------------------


def encode(message: Message) -> bytes:
    """Return the control information of a message, its kind first; raises LocalError."""
    if not isinstance(message, Message):
        raise LocalError(f"{type(message).__name__} is no message of the hierarchical protocol")
    head = varint(message.sender) + varint(message.seq)
    match message:
        case Upward():
            return b"\x00" + head + varint(message.floor) + encode_window(*message.dv)
        case Downward():
            return b"\x01" + head + varint(message.last) + encode_window(*message.dv)
        case Acknowledgement():
            return b"\x02" + head + varint(message.floor)
        case External():
            counts = b"".join(varint(peer) + varint(seq) for peer, seq in message.counts)
            vectors = b"".join(varint(peer) + encode_window(*v) for peer, v in message.vectors)
            sizes = varint(len(message.counts)), varint(len(message.vectors))
            body = sizes[0] + counts + sizes[1] + vectors
            return b"\x03" + head + body + encode_window(*message.translated)


def decode(control: bytes, payload: Any, accepted: tuple[type, ...]) -> Any:
    """Return what `encode` wrote; raises DecodeError, also for a kind not in `accepted`."""
    reader = Reader(control)
    kind = reader.take(1)[0]
    if kind >= len(_READERS):
        raise DecodeError(f"message kind {kind} is unknown; there are 0 to {len(_READERS) - 1}")
    message = _READERS[kind](reader, reader.varint(), reader.varint(), payload)
    reader.finish()
    if not isinstance(message, accepted):
        names = " or ".join(kind.__name__ for kind in accepted)
        raise DecodeError(f"{type(message).__name__} came to a role that takes {names} messages")
    return message


def _upward(reader: Reader, sender: int, seq: int, payload: Any) -> Message:
    floor = reader.varint()
    return Upward(sender, seq, read_window(reader), floor, payload)


def _downward(reader: Reader, sender: int, seq: int, payload: Any) -> Message:
    return Downward(sender, seq, reader.varint(), read_window(reader), payload)


def _acknowledgement(reader: Reader, sender: int, seq: int, payload: Any) -> Message:
    return Acknowledgement(sender, seq, reader.varint(), payload)


def _external(reader: Reader, sender: int, seq: int, payload: Any) -> Message:
    counts = _entries(reader, lambda: reader.varint())
    vectors = _entries(reader, lambda: read_window(reader))
    if any(not window[1] for _, window in vectors):
        raise DecodeError("CI has an empty bit vector")
    return External(sender, seq, counts, vectors, read_window(reader), payload)


def _entries(reader: Reader, read: Callable[[], Any]) -> tuple[tuple[int, Any], ...]:
    entries: list[tuple[int, Any]] = []
    for _ in range(reader.varint()):
        process = reader.varint()
        if entries and process <= entries[-1][0]:
            raise DecodeError(f"CI is not ascending: {process} after {entries[-1][0]}")
        entries.append((process, read()))
    return tuple(entries)


_READERS: tuple[Callable[[Reader, int, int, Any], Message], ...] = (
    _upward,
    _downward,
    _acknowledgement,
    _external,
)
