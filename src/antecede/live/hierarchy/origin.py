"""Whose a message is, wherever it goes, and which messages of the mesh a peer has.

The hierarchical protocol numbers messages anew on their way, and a message may come by two super
peers when its sender went from one to the other. So each carries its sender's lane and numbers in
front of its payload, and who hands it to an application, or into a group, looks there.

A message also has a *place* in the mesh: the lane of the external peer or super peer that brought
it there, and its number in that lane. Sets of places are compared when a peer changes its super
peer: has the new one all that the peer had?
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
"""Payload of a second copy: the order needs it, nobody else does."""
MAX_LANES = 1 << 16


class Origin(NamedTuple):
    """Who said a batch: a lane, the number of the first message in it, and how many there are."""

    lane: str
    first: int
    messages: int

    @property
    def last(self) -> int:
        """Number of its last message."""
        return self.first + self.messages - 1


class Place(NamedTuple):
    """Where a message stands in the mesh."""

    lane: str
    number: int
    notes: int = 0
    """So many entries of the lane right before it carry no message."""


def pack(lane: str, batch: bytes) -> bytes:
    """Return the payload of a batch that a lane said."""
    return block(lane.encode()) + batch


def unpack(payload: bytes) -> tuple[Origin, bytes]:
    """Return whose a payload is, and its batch. Raises DecodeError, also for a void one."""
    reader = ByteReader(payload)
    try:
        lane = reader.block().decode()
    except UnicodeDecodeError as error:
        raise DecodeError("whose a message is, is not UTF-8") from error
    if not is_lane(lane):
        raise DecodeError(f"{lane!r:.60} is no lane that could say something")
    start = reader.offset
    first, count = reader.varint(), reader.varint()
    if first < 1 or count < 1 or count > len(payload):
        raise DecodeError(f"{count} messages from number {first} on")
    return Origin(lane, first, count), payload[start:]


class FirstCopies:
    """Tells the first copy of what somebody said from those that come after it."""

    def __init__(self, newest: dict[str, int] | None = None) -> None:
        self.newest = dict(newest or {})
        """Lane of whoever says something -> number of its newest message that came."""
        self.seconds = 0
        """Second copies that came."""

    def take(self, payload: bytes) -> tuple[Origin | None, bytes]:
        """Return whose a payload is, and its batch; None: it is void, or a second copy."""
        if not payload:
            return None, b""
        who, batch = unpack(payload)
        if who.last <= self.newest.get(who.lane, 0):
            self.seconds += 1
            return None, b""
        self.newest[who.lane] = who.last
        return who, batch


class Places:
    """A set of places: for each lane a window, everything up to its base and some beyond."""

    def __init__(self, windows: dict[str, tuple[int, int]] | None = None) -> None:
        self.windows = dict(windows or {})

    def add(self, place: Place) -> None:
        """Add a place, and the notes before it. Raises SequenceError for one that is far off."""
        base, bits = self.windows.get(place.lane, (0, 0))
        if place.number - base > MAX_SPAN or place.notes > MAX_SPAN:
            raise SequenceError(f"place {place.number} in {place.lane}, far above {base}")
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
        """Yield for each lane of which `other` has more, the highest place that is not here."""
        for lane, (base, bits) in other.windows.items():
            own_base, own = self.windows.get(lane, (0, 0))
            shift = base - own_base
            if shift > MAX_SPAN:  # memory does not follow what somebody else wrote
                yield lane, base + bits.bit_length()
                continue
            more = ((1 << max(0, shift)) - 1) | (bits << shift if shift >= 0 else bits >> -shift)
            if missing := more & ~own:
                yield lane, own_base + missing.bit_length()

    def copy(self) -> Places:
        """Return another set of the same places."""
        return Places(self.windows)

    def pack(self) -> bytes:
        """Return the set as bytes."""
        rows = (
            block(lane.encode())
            + varint(base)
            + block(bits.to_bytes((bits.bit_length() + 7) // 8, "little"))
            for lane, (base, bits) in sorted(self.windows.items())
        )
        return varint(len(self.windows)) + b"".join(rows)

    @classmethod
    def read(cls, reader: ByteReader) -> Places:
        """Read what `pack` wrote. Raises DecodeError."""
        count = reader.varint()
        if count > MAX_LANES:
            raise DecodeError(f"places in {count} lanes; {MAX_LANES} are the most")
        windows = {}
        for _ in range(count):
            lane, base = wire.lane(reader), reader.varint()
            bits = int.from_bytes(reader.block(), "little")
            if bits & 1 or bits.bit_length() > MAX_SPAN:
                raise DecodeError("places that are not written as they should be")
            windows[lane] = base, bits
        return cls(windows)
