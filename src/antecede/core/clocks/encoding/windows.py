"""Byte encoding of bit windows: Rice-coded run lengths, or raw bits.

    varint      16 * count, + 8 for runs of ones, + the Rice parameter (0 to 7)
    varint      base, the position before the first set bit
    rest        the runs (`rice`)

Runs of zeros lie between two adjacent ones; `count` is the number of ones, one more than runs. Runs
of ones lie between two zeros, before the first and after the last; `count` is their number. The
kind with fewer runs is encoded, in a tie that of zeros. With parameter 0, runs of zeros are the raw
bits without the first. The empty window is one byte 0. A window has exactly one encoding, and
decoders reject any other. No encoding is a prefix of another.

One bit of code covers at most 2**7 positions, so a few received bytes cannot use much memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from antecede.core.clocks.encoding import rice
from antecede.core.clocks.encoding.wire import ByteReader, varints
from antecede.errors import DecodeError, SequenceError

MAX_SPAN = 1 << 20
"""Maximum positions of a window: 128 KiB of bits, hours of messages of a large group."""
MAX_POSITION = (1 << 63) - 1
MAX_RUN_PARAMETER = 7
"""Highest Rice parameter of runs. Sparser windows take one bit per 128 positions."""
_ONES = 8
_FLIP = bytes.maketrans(b"01", b"10")


def encode(base: int, bits: int, near: int | None = None) -> bytes:
    """Encode a trimmed window, with `near` the base relative to it (known to the receiver)."""
    if not bits:
        return b"\0"
    text = bin(bits)[:1:-1].encode()
    mode, runs = split_runs(text)
    low = rice.choose_parameter(runs, MAX_RUN_PARAMETER)
    start = base if near is None else zigzag(base - near)
    body = text[1:] if not mode and not low else rice.write(runs, low)
    return varints(make_head(mode, low, runs), start) + rice.pack(body)


def decode(data: bytes, near: int | None = None) -> tuple[int, int]:
    """Return (base, bits). Raise DecodeError or SequenceError."""
    reader = ByteReader(data)
    mode, low, count = read_head(reader)
    if count < 0:
        reader.finish()
        return 0, 0
    start = reader.varint()
    base = start if near is None else near + unzigzag(start)
    body = reader.rest()
    bits = _decode_raw(body, count) if not mode and not low else None
    if bits is None:
        bits = _decode_runs(rice.unpack(body), mode, low, count)
    if base < 0 or base + bits.bit_length() > MAX_POSITION:
        raise SequenceError(
            f"positions {base + 1} to {base + bits.bit_length()} are outside 1 to {MAX_POSITION}"
        )
    return base, bits


def _decode_raw(body: bytes, count: int) -> int | None:
    """Return the window of raw runs of zeros; None: invalid, `rice` raises the error."""
    if not body or not body[-1]:
        return None
    bits = int.from_bytes(body, "little")
    span = bits.bit_length() + 1
    if bits.bit_count() != count or span - 1 > 2 * count or span > MAX_SPAN:
        return None
    if has_fewer_runs_of_ones(span, count + 1):
        return None
    return bits << 1 | 1


def _decode_runs(text: bytes, mode: int, low: int, count: int) -> int:
    if low and count:
        zeros, rest = rice.read_runs(text, count, low, MAX_RUN_PARAMETER, MAX_SPAN)
        window = zeros[:-1].translate(_FLIP) if mode else b"1" + zeros
    else:
        runs, rest = rice.read(text, count, low, MAX_RUN_PARAMETER)
        window = join_runs(mode, runs)
    if rest:
        raise DecodeError(f"{len(rest)} bits after the end of a bit vector")
    ones = window.count(b"1")
    check_runs(mode, len(window), ones, window[:1] + window[-1:])
    if len(window) > MAX_SPAN:
        raise SequenceError(f"bit vector of {len(window)} positions exceeds {MAX_SPAN}")
    return int(window[::-1], 2)


# -- runs, shared with `counters` -------------------------------------------------------------


def split_runs(text: bytes) -> tuple[int, list[int]]:
    """Return mode (8: runs of ones, else 0) and runs of a text that begins and ends with "1"."""
    ones = text.count(b"1")
    if has_fewer_runs_of_ones(len(text), ones):
        return _ONES, list(map(len, text.split(b"0")))
    return 0, list(map(len, text.split(b"1")))[1:-1]


def has_fewer_runs_of_ones(span: int, ones: int) -> bool:
    """Return whether runs of ones (`span - ones + 1`) are fewer than runs of zeros (`ones - 1`)."""
    return span + 2 < 2 * ones


def join_runs(mode: int, runs: Sequence[int]) -> bytes:
    """Return the bit text of runs."""
    text = b"1".join(rice.make_zeros(runs))
    if mode:
        return text.translate(_FLIP)
    return b"1%b1" % text if runs else b"1"


def check_runs(mode: int, span: int, ones: int, ends: bytes) -> None:
    """Raise DecodeError unless a window has these runs. `ends`: its first and last bit."""
    if ends != b"11":
        raise DecodeError("bit vector is not trimmed")
    if has_fewer_runs_of_ones(span, ones) != bool(mode):
        raise DecodeError(f"bit vector has the wrong kind of runs: {ones} of {span} bits are set")


def make_head(mode: int, low: int, runs: Sequence[int]) -> int:
    """Return the first number of a nonempty window."""
    return (len(runs) + (not mode)) << 4 | mode | low


def read_head(reader: ByteReader) -> tuple[int, int, int]:
    """Read (mode, parameter, number of runs); -1 runs: empty window. Raise DecodeError."""
    number = reader.varint()
    mode, low, count = number & _ONES, number & MAX_RUN_PARAMETER, number >> 4
    if number and not count:
        raise DecodeError(f"empty bit vector has head {number}; expected 0")
    return mode, low, count - (not mode)


def zigzag(number: int) -> int:
    """Return 0, 1, 2, 3, 4 for 0, -1, 1, -2, 2."""
    return 2 * number if number >= 0 else -2 * number - 1


def unzigzag(number: int) -> int:
    """Return the inverse of `zigzag`."""
    return -(number + 1 >> 1) if number & 1 else number >> 1
