"""Bit windows on the wire: the lengths of runs, Rice-coded, or the bits themselves.

    varint      16 * count, + 8 when the runs are of ones, + the Rice parameter (0 to 7)
    varint      base, the position before the first set bit
    the rest    the runs (`rice`)

Runs of zeros lie between each two ones that follow each other: `count` counts the ones, one more
than these runs. Runs of ones lie between each two zeros, before the first and after the last;
`count` counts them. The kind with fewer runs is coded, in a tie that of zeros. With the parameter
0, runs of zeros are the raw bits themselves, without the first. The empty window is one byte 0.
A window has one spelling, and every other is refused; no part from its front is a window.

A bit of code stands for at most 2**7 positions, so memory does not follow what a few bytes say.
"""

from __future__ import annotations

from collections.abc import Sequence

from antecede.core.clocks.encoding import rice
from antecede.core.clocks.encoding.wire import Reader, varints
from antecede.errors import DecodeError, SequenceError

MAX_SPAN = 1 << 20
"""Positions in one window: 128 KiB of bits, hours of messages of a large group."""
MAX_POSITION = (1 << 63) - 1
MOST_LOW = 7
"""Highest Rice parameter of runs: sparser windows take one bit for 128 positions."""
_ONES = 8
_FLIP = bytes.maketrans(b"01", b"10")


def encode(base: int, bits: int, near: int | None = None) -> bytes:
    """Encode a trimmed window; with `near`, which the receiver knows, the base relative to it."""
    if not bits:
        return b"\0"
    text = bin(bits)[:1:-1].encode()
    mode, runs = runs_of(text)
    low = rice.parameter(runs, MOST_LOW)
    start = base if near is None else zigzag(base - near)
    body = text[1:] if not mode and not low else rice.write(runs, low)
    return varints(head(mode, low, runs), start) + rice.pack(body)


def decode(data: bytes, near: int | None = None) -> tuple[int, int]:
    """Return (base, bits) as `encode` was given. Raises DecodeError and SequenceError."""
    reader = Reader(data)
    mode, low, count = read_head(reader)
    if count < 0:
        reader.finish()
        return 0, 0
    start = reader.varint()
    base = start if near is None else near + unzigzag(start)
    body = reader.rest()
    bits = _raw(body, count) if not mode and not low else None
    if bits is None:
        bits = _coded(rice.unpack(body), mode, low, count)
    if base < 0 or base + bits.bit_length() > MAX_POSITION:
        raise SequenceError(
            f"positions {base + 1} to {base + bits.bit_length()}; they are 1 to {MAX_POSITION}"
        )
    return base, bits


def _raw(body: bytes, count: int) -> int | None:
    """Return the window of runs of zeros with parameter 0; None: `rice` shall say what is wrong."""
    if not body or not body[-1]:
        return None
    bits = int.from_bytes(body, "little")
    span = bits.bit_length() + 1
    if bits.bit_count() != count or span - 1 > 2 * count or span > MAX_SPAN:
        return None
    if fewer_runs_of_ones(span, count + 1):
        return None
    return bits << 1 | 1


def _coded(text: bytes, mode: int, low: int, count: int) -> int:
    if low and count:
        zeros, rest = rice.read_runs(text, count, low, MOST_LOW, MAX_SPAN)
        window = zeros[:-1].translate(_FLIP) if mode else b"1" + zeros
    else:
        runs, rest = rice.read(text, count, low, MOST_LOW)
        window = text_of(mode, runs)
    if rest:
        raise DecodeError(f"{len(rest)} bits left over behind a bit vector")
    ones = window.count(b"1")
    check_runs(mode, len(window), ones, window[:1] + window[-1:])
    if len(window) > MAX_SPAN:
        raise SequenceError(f"a bit vector of {len(window)} positions; {MAX_SPAN} can be")
    return int(window[::-1], 2)


# -- runs, also for sets of members (`counters`) ----------------------------------------------


def runs_of(text: bytes) -> tuple[int, list[int]]:
    """Return the mode (0, or 8 for runs of ones) and runs of a text that begins and ends "1"."""
    ones = text.count(b"1")
    if fewer_runs_of_ones(len(text), ones):
        return _ONES, list(map(len, text.split(b"0")))
    return 0, list(map(len, text.split(b"1")))[1:-1]


def fewer_runs_of_ones(span: int, ones: int) -> bool:
    """Tell whether the runs of ones are fewer: `span - ones + 1` against `ones - 1`."""
    return span + 2 < 2 * ones


def text_of(mode: int, runs: Sequence[int]) -> bytes:
    """Return the text that has these runs."""
    text = b"1".join(rice.zeros(runs))
    if mode:
        return text.translate(_FLIP)
    return b"1%b1" % text if runs else b"1"


def check_runs(mode: int, span: int, ones: int, ends: bytes) -> None:
    """Raise DecodeError when a window, `ends` its first and last bit, has other runs."""
    if ends != b"11":
        raise DecodeError("a bit vector is not trimmed")
    if fewer_runs_of_ones(span, ones) != bool(mode):
        raise DecodeError(f"runs of the wrong kind: {ones} of {span} bits are set")


def head(mode: int, low: int, runs: Sequence[int]) -> int:
    """Return the first number of a window that is not empty."""
    return (len(runs) + (not mode)) << 4 | mode | low


def read_head(reader: Reader) -> tuple[int, int, int]:
    """Read (mode, parameter, number of runs); -1 runs: the empty window. Raises DecodeError."""
    number = reader.varint()
    mode, low, count = number & _ONES, number & MOST_LOW, number >> 4
    if number and not count:
        raise DecodeError(f"a bit vector that is empty, with the head {number}")
    return mode, low, count - (not mode)


def zigzag(number: int) -> int:
    """Return 0, 1, 2, 3, 4 for 0, -1, 1, -2, 2."""
    return 2 * number if number >= 0 else -2 * number - 1


def unzigzag(number: int) -> int:
    """Return what `zigzag` was given."""
    return -(number + 1 >> 1) if number & 1 else number >> 1
