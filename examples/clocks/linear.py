"""Linear (Lamport) clock as a value.

Source: Tsuneizumi et al., the linear clock, with its rule repaired: on receipt the clock becomes
`max(own, received) + 1`. As printed (`max` on receipt, increment after sending) a message
sent after a receipt can carry the same time as the message received, so that a causally later
message is not later by the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from antecede.core.clocks.encoding import ByteReader, varint, varint_size

INTEGER_BYTES = 4


@dataclass(frozen=True, slots=True, order=True)
class LinearClock:
    """A time in a total order that extends happened-before; ties are concurrent events."""

    time: int = 0

    def tick(self) -> LinearClock:
        """Return the time of the next local event or send."""
        return LinearClock(self.time + 1)

    def receive(self, other: LinearClock) -> LinearClock:
        """Return the time of the receipt of a message stamped `other` (Tsuneizumi et al.,
        repaired).
        """
        return LinearClock(max(self.time, other.time) + 1)

    def merge(self, other: LinearClock) -> LinearClock:
        """Return the later of the two."""
        return max(self, other)

    @property
    def storage_bytes(self) -> int:
        """The size by the accounting of the sources: one integer of 4 bytes."""
        return INTEGER_BYTES

    def encode(self) -> bytes:
        """Encode as one varint."""
        return varint(self.time)

    @property
    def encoded_size(self) -> int:
        """The length of `encode()`, without making it."""
        return varint_size(self.time)

    @classmethod
    def decode(cls, data: bytes) -> LinearClock:
        """Return what `encode` wrote. Raises DecodeError."""
        reader = ByteReader(data)
        clock = cls(reader.varint())
        reader.finish()
        return clock
