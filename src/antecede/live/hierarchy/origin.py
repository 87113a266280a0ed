"""End-to-end identity of messages, and sets of positions in the external group.

The hierarchical protocol renumbers messages on their way. A message may arrive through two super
peers if its sender moved. So its payload begins with sender id and numbers, which receivers use.

A message also has a *position* in the external group: the sender id of the member that brought it
there, and its number in that log. When a peer moves, its set of positions is compared with that of
the new super peer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from antecede.core.clocks import MAX_SPAN, absorb
from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError, SequenceError
from antecede.live import wire
from antecede.live.events import is_lane

VOID = b""
"""Payload of a second copy, which only the order needs."""
MAX_LANES = 1 << 16


class Origin(NamedTuple):
    """Identity of a batch: sender id, number of the first message, number of messages."""

    lane: str
    first: int
    messages: int

    @property
    def last(self) -> int:
        return self.first + self.messages - 1


class Place(NamedTuple):
    """Position of a message in the external group."""

    lane: str
    number: int
    notes: int = 0
    """Entries without message directly before it."""


def pack(lane: str, batch: bytes) -> bytes:
    """Return the payload of a sender's batch."""
    return block(lane.encode()) + batch


def unpack(payload: bytes) -> tuple[Origin, bytes]:
    """Return identity and batch of a payload. Raises DecodeError, also for an empty one."""
    reader = ByteReader(payload)
    try:
        lane = reader.block().decode()
    except UnicodeDecodeError as error:
        raise DecodeError("sender id of a message is not UTF-8") from error
    if not is_lane(lane):
        raise DecodeError(f"invalid sender id {lane!r:.60}")
    start = reader.offset
    first, count = reader.varint(), reader.varint()
    if first < 1 or count < 1 or count > len(payload):
        raise DecodeError(f"invalid range of {count} messages from number {first}")
    return Origin(lane, first, count), payload[start:]


class FirstCopies:
    """Filter for the first copies of messages."""

    def __init__(self, newest: dict[str, int] | None = None) -> None:
        self.newest = dict(newest or {})
        """Sender id -> number of its newest message."""
        self.seconds = 0
        """Number of second copies."""

    def take(self, payload: bytes) -> tuple[Origin | None, bytes]:
        """Return identity and batch of a payload. None: empty, or a second copy."""
        if not payload:
            return None, b""
        who, batch = unpack(payload)
        if who.last <= self.newest.get(who.lane, 0):
            self.seconds += 1
            return None, b""
        self.newest[who.lane] = who.last
        return who, batch


class Places:
    """Set of positions: for each sender a window, all up to its base and some beyond."""

    def __init__(self, windows: dict[str, tuple[int, int]] | None = None) -> None:
        self.windows = dict(windows or {})

    def add(self, place: Place) -> None:
        """Add a position and the entries before it. Raises SequenceError for one too far ahead."""
        base, bits = self.windows.get(place.lane, (0, 0))
        if place.number - base > MAX_SPAN or place.notes > MAX_SPAN:
            raise SequenceError(
                f"position {place.number} of {place.lane} is too far ahead of {base}"
            )
        if place.number == base + 1 and not bits:
            self.windows[place.lane] = place.number, 0
            return
        for number in range(place.number - place.notes, place.number + 1):
            if number > base:
                bits |= 1 << (number - base - 1)
        self.windows[place.lane] = absorb(base, bits)

    def __contains__(self, place: tuple[str, int]) -> bool:
        base, bits = self.windows.get(place[0], (0, 0))
        return place[1] <= base or bool(bits >> (place[1] - base - 1) & 1)

    def lacks(self, other: Places) -> Iterator[tuple[str, int]]:
        """Yield the highest missing position of each sender of which `other` has more."""
        for lane, (base, bits) in other.windows.items():
            own_base, own = self.windows.get(lane, (0, 0))
            shift = base - own_base
            if shift > MAX_SPAN:  # limits memory for remote input
                yield lane, base + bits.bit_length()
                continue
            more = ((1 << max(0, shift)) - 1) | (bits << shift if shift >= 0 else bits >> -shift)
            if missing := more & ~own:
                yield lane, own_base + missing.bit_length()

    def copy(self) -> Places:
        return Places(self.windows)

    def pack(self) -> bytes:
        rows = (
            block(lane.encode())
            + varint(base)
            + block(bits.to_bytes((bits.bit_length() + 7) // 8, "little"))
            for lane, (base, bits) in sorted(self.windows.items())
        )
        return varint(len(self.windows)) + b"".join(rows)

    @classmethod
    def read(cls, reader: ByteReader) -> Places:
        """Read the set of `pack`. Raises DecodeError."""
        count = reader.varint()
        if count > MAX_LANES:
            raise DecodeError(f"positions of {count} senders; the limit is {MAX_LANES}")
        windows = {}
        for _ in range(count):
            lane, base = wire.lane(reader), reader.varint()
            bits = int.from_bytes(reader.block(), "little")
            if bits & 1 or bits.bit_length() > MAX_SPAN:
                raise DecodeError("invalid window of positions")
            windows[lane] = base, bits
        return cls(windows)
