"""Rice codes of many small numbers as one bit string, without a Python loop per bit.

With parameter `low`, a number v takes `low + 1 + (v >> low)` bits: its `low` lowest bits, and the
rest in unary (zeros ended by a one). First come the low bits of all numbers, plane by plane, then
all unary parts. So Python cuts planes by slicing and unary parts by `split`, at the speed of C.

The parameter with the fewest bits is used, of two the lower. From `low` to `low + 1` the size
changes by `count - sum(ceil((v >> low) / 2))`, which never falls as `low` grows. So the best
parameter is the lowest at which this sum is not above `count`. A decoder computes the sum at `low`
from the unary parts, and at `low - 1` from these and the highest plane. It rejects any other
parameter, so numbers have exactly one encoding.

Bits are text, bytes of "0" and "1", first bit first. In packed bytes the first bit is the lowest of
the first byte. The text ends with a one, so the last byte is not 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from antecede.errors import DecodeError, SequenceError

MAX_PARAMETER = 64
"""Highest parameter, for numbers below 2**64."""
_DIGITS = [bytes(48 + (byte >> bit & 1) for byte in range(256)) for bit in range(8)]
_HALVES = [bytes((byte >> low) + 1 >> 1 for byte in range(256)) for low in range(8)]
_SHIFTED = [bytes(byte >> low for byte in range(256)) for low in range(8)]
_ZEROS = [b"0" * length for length in range(257)]
_TERMINATED = [b"0" * length + b"1" for length in range(256)]


def choose_parameter(numbers: Sequence[int], most: int = MAX_PARAMETER) -> int:
    """Return the best parameter up to `most`."""
    count, total = len(numbers), sum(numbers)
    low = 0
    # total <= count << low: the sum is at most count. total > 3 * count << low: it is above.
    # Only in between it is computed.
    while low < most and total > count << low:
        if total <= 3 * count << low and _sum_halves(numbers, low) <= count:
            break
        low += 1
    return low


def _sum_halves(numbers: Sequence[int], low: int) -> int:
    if low < 8:
        try:
            return sum(bytes(numbers).translate(_HALVES[low]))
        except ValueError:  # a number above 255
            pass
    return sum([(number >> low) + 1 >> 1 for number in numbers])


def write(numbers: Sequence[int], low: int) -> bytes:
    """Return the bit text of numbers under a parameter."""
    if not numbers:
        return b""
    planes, above = _split_planes(numbers, low) if low else ([], numbers)
    return b"".join(planes) + b"1".join(make_zeros(above)) + b"1"


def _split_planes(numbers: Sequence[int], low: int) -> tuple[list[bytes], Sequence[int]]:
    if low < 8:
        try:
            small = bytes(numbers)
        except ValueError:  # a number above 255
            pass
        else:
            planes = [small.translate(digits) for digits in _DIGITS[:low]]
            return planes, small.translate(_SHIFTED[low])
    planes = []
    for bit in range(0, low, 8):
        part = bytes([number >> bit & 0xFF for number in numbers])
        planes += [part.translate(digits) for digits in _DIGITS[: min(low - bit, 8)]]
    return planes, [number >> low for number in numbers]


def make_zeros(lengths: Sequence[int]) -> list[bytes]:
    """Return texts of zeros of these lengths."""
    try:
        return [_ZEROS[length] for length in lengths]
    except IndexError:
        return [b"0" * length for length in lengths]


def read(text: bytes, count: int, low: int, most: int = MAX_PARAMETER) -> tuple[list[int], bytes]:
    """Read `count` numbers; return them and the rest of the text. Raise DecodeError."""
    pieces, rest = _read_unary(text, count, low, most)
    numbers = list(map(len, pieces))
    for start in range(0, low, 8):
        part = _read_planes(text, count, start, min(start + 8, low))
        if not start:
            numbers = [n << low | byte for n, byte in zip(numbers, part, strict=True)]
        else:
            numbers = [n | byte << start for n, byte in zip(numbers, part, strict=True)]
    return numbers, rest


def read_runs(text: bytes, count: int, low: int, most: int, span: int) -> tuple[bytes, bytes]:
    """Read numbers, `low` from 1 to 8, as text. Raise SequenceError if it is much longer than
    `span`.
    """
    _, rest = _read_unary(text, count, low, most)
    mixed = [b""] * (2 * count)
    head, end = count * low, len(text) - len(rest)
    if (end - head - count) << low > span:
        raise SequenceError(f"{count} runs of bits span more than {span}")
    grown = text[head:end].replace(b"0", _ZEROS[1 << low])
    mixed[::2] = grown.split(b"1")[:-1]
    mixed[1::2] = [_TERMINATED[byte] for byte in _read_planes(text, count, 0, low)]
    return b"".join(mixed), rest


def _read_unary(text: bytes, count: int, low: int, most: int) -> tuple[list[bytes], bytes]:
    """Return the zeros of each number's unary part, and the rest of the text."""
    if not count:
        if low:
            raise DecodeError(f"Rice parameter {low} without numbers")
        return [], text
    head = count * low
    if low > most or head + count > len(text):
        raise DecodeError(f"{len(text)} bits left for {count} Rice codes of {low} bits or more")
    pieces = text[head:].split(b"1", count)
    if len(pieces) <= count:
        raise DecodeError(f"truncated after {len(pieces) - 1} of {count} Rice codes")
    rest = pieces.pop()
    _check_parameter(text, len(text) - len(rest), count, low, most)
    return pieces, rest


def _check_parameter(text: bytes, end: int, count: int, low: int, most: int) -> None:
    head = count * low
    zeros = end - head - count
    if low < most:
        # Two adjacent zeros always belong to one number.
        odd = text[head:end].replace(b"00", b"").count(b"0")
        if (zeros + odd) // 2 > count:
            raise DecodeError(f"Rice parameter {low} is too low")
    if low and zeros + text.count(b"1", head - count, head) <= count:
        raise DecodeError(f"Rice parameter {low} is too high")


def _read_planes(text: bytes, count: int, start: int, end: int) -> bytes:
    units = int.from_bytes(b"\1" * count, "little")
    columns = 0
    for bit in range(start, end):
        plane = text[bit * count : (bit + 1) * count]
        columns |= (int.from_bytes(plane, "little") & units) << (bit - start)
    return columns.to_bytes(count, "little")


def pack(text: bytes) -> bytes:
    """Return the bytes of a bit text that is empty or ends with a one."""
    return int(text[::-1], 2).to_bytes((len(text) + 7) // 8, "little") if text else b""


def unpack(data: bytes) -> bytes:
    """Return the bit text of bytes. Raise DecodeError if the last byte is 0."""
    if not data:
        return b""
    if not data[-1]:
        raise DecodeError("bit string ends with a byte of 0")
    return bin(int.from_bytes(data, "little"))[:1:-1].encode()
