"""Sets of positions as windowed bit vectors: which messages of one numbering are meant.

Source: Evropeytsev et al. 2016, section 3.1.1 (bit vector) and 3.1.2 (reducing its size).

Theory of operation
-------------------
Bits are numbered from 1; position 0 counts as always set. A window is a pair `(base, bits)`: bit 0
of `bits` is position `base + 1`. What lies at or below `base` is a convention of the user: all set
for what was received (RV, VTx: `absorb` moves leading ones below the base), all clear for
dependencies (DV, CI: `trim` moves leading zeros below the base). Comparing two windows is one shift
and one AND.

A window never spans more than `MAX_SPAN` positions; what would is refused with
`SequenceError`, so that memory does not follow a position that somebody else wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from antecede.core.clocks.encoding import windows
from antecede.core.clocks.encoding.wire import Reader, block

MAX_SPAN = windows.MAX_SPAN
MAX_POSITION = windows.MAX_POSITION


def absorb(base: int, bits: int) -> tuple[int, int]:
    """Move leading ones below the base: the form of "everything up to base is set"."""
    if not bits & 1:
        return base, bits
    ones = (~bits & (bits + 1)).bit_length() - 1
    return base + ones, bits >> ones


def trim(base: int, bits: int) -> tuple[int, int]:
    """Move leading zeros below the base; the empty window is (0, 0)."""
    if not bits:
        return 0, 0
    zeros = (bits & -bits).bit_length() - 1
    return base + zeros, bits >> zeros


def positions(base: int, bits: int) -> Iterator[int]:
    """Yield the set positions in ascending order, in time linear in their number and span."""
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
    """Return ceil((last set - first clear + 1) / 8) for absorbed bits: size of RV and VTx."""
    return (bits.bit_length() + 7) // 8


def encode_window(base: int, bits: int) -> bytes:
    """Encode a window as `windows` does, its length in front. Empty windows take one byte."""
    return block(windows.encode(*trim(base, bits)))


def read_window(reader: Reader) -> tuple[int, int]:
    """Read what `encode_window` wrote, trimmed. Raises DecodeError and SequenceError."""
    return windows.decode(reader.block())
