"""Sets of sequence numbers as windowed bit vectors.

Source: Evropeytsev et al. 2016, section 3.1.1 (bit vector) and 3.1.2 (reducing its size).

Bits are numbered from 1; position 0 counts as set. A window is a pair `(base, bits)`: bit 0 of
`bits` is position `base + 1`. Positions up to `base` are all set in received sets (RV, VTx), where
`absorb` moves leading ones below the base. They are all clear in dependency sets (DV, CI), where
`trim` moves leading zeros. Two windows are compared with one shift and one AND. Longer windows than
`MAX_SPAN` raise `SequenceError`, so that a received number does not determine memory use.
"""

from __future__ import annotations

from collections.abc import Iterator

from antecede.core.clocks.encoding import windows
from antecede.core.clocks.encoding.wire import ByteReader, block

MAX_SPAN = windows.MAX_SPAN
MAX_POSITION = windows.MAX_POSITION


def absorb(base: int, bits: int) -> tuple[int, int]:
    """Move leading ones below the base."""
    if not bits & 1:
        return base, bits
    ones = (~bits & (bits + 1)).bit_length() - 1
    return base + ones, bits >> ones


def trim(base: int, bits: int) -> tuple[int, int]:
    """Move leading zeros below the base. The empty window is (0, 0)."""
    if not bits:
        return 0, 0
    zeros = (bits & -bits).bit_length() - 1
    return base + zeros, bits >> zeros


def positions(base: int, bits: int) -> Iterator[int]:
    """Yield the set positions in ascending order, in O(span)."""
    text = bin(bits)[:1:-1]
    at = text.find("1")
    while at >= 0:
        yield base + 1 + at
        at = text.find("1", at + 1)


def span_bytes(bits: int) -> int:
    """Return ceil((last set - first set + 1) / 8): size of DV and CI (Evropeytsev et al. 2016)."""
    if not bits:
        return 0
    return (bits.bit_length() - (bits & -bits).bit_length() + 8) // 8


def window_bytes(bits: int) -> int:
    """Return ceil((last set - first clear + 1) / 8) of absorbed bits: size of RV and VTx."""
    return (bits.bit_length() + 7) // 8


def encode_window(base: int, bits: int) -> bytes:
    """Encode a window with its length in front. The empty window is one byte."""
    return block(windows.encode(*trim(base, bits)))


def read_window(reader: ByteReader) -> tuple[int, int]:
    """Read a window of `encode_window`, trimmed. Raise DecodeError or SequenceError."""
    return windows.decode(reader.block())
