"""Byte encoding of counters by member: a bit window of members, and differences from the mean.

    varint      number of members, as in the head of a window (`windows`)
    varint      first member
    varint      mean of the counters, rounded
    byte        Rice parameter of the differences; for two or more members
    rest        runs of the window, then the differences from the mean (0, -1, 1, -2, 2 as
                0, 1, 2, 3, 4) by member (`rice`)

Members that send equally often have similar counters: two to three bits each, or about two bits
more than the logarithm of the mean difference. An empty vector is one byte 0. A vector has exactly
one encoding, and decoders reject any other. No encoding is a prefix of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, compress, pairwise

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding import rice, windows
from antecede.core.clocks.encoding.windows import MAX_POSITION, MAX_RUN_PARAMETER, MAX_SPAN
from antecede.core.clocks.encoding.wire import ByteReader, read_varints, varints
from antecede.core.clocks.lanes import MAX_MEMBER, MAX_VALUE
from antecede.errors import DecodeError, LocalError, SequenceError, UnknownMemberError

_BITS = bytes.maketrans(b"01", b"\0\1")
_ONE_MEMBER_HEAD = 16
"""Head of a window of one member (`windows.make_head`). Most messages name one cause."""
_ONE_MEMBER_BYTE = bytes((_ONE_MEMBER_HEAD,))


def encode(members: Sequence[int], counters: Sequence[int]) -> bytes:
    """Encode counters by member, ascending. Raise LocalError for members too far apart."""
    count = len(members)
    if not count:
        return b"\0"
    if count == 1:
        return varints(_ONE_MEMBER_HEAD, members[0], counters[0])
    mode, runs = _split_members(members)
    low = rice.choose_parameter(runs, MAX_RUN_PARAMETER)
    mean = _mean(counters)
    head = varints(windows.make_head(mode, low, runs), members[0], mean)
    apart = [2 * (n - mean) if n >= mean else 2 * (mean - n) - 1 for n in counters]
    apart_low = rice.choose_parameter(apart)
    text = rice.write(runs, low) + rice.write(apart, apart_low)
    return head + bytes((apart_low,)) + rice.pack(text)


def decode(data: bytes) -> tuple[list[int], list[int]]:
    """Return (members, counters). Raise DecodeError or SequenceError."""
    if data[:1] == _ONE_MEMBER_BYTE:
        (_, member, counter), rest = read_varints(data, 3)
        if rest:
            raise DecodeError(f"{len(rest)} bytes after the end of counters")
        return [member], [_check_range(counter, counter)]
    reader = ByteReader(data)
    mode, low, count = windows.read_head(reader)
    if count < 0:
        reader.finish()
        return [], []
    first, mean = reader.varint(), reader.varint()
    if not count:
        raise DecodeError("counters of one member have runs between members")
    apart_low = reader.take(1)[0]
    text = rice.unpack(reader.rest())
    runs, text = rice.read(text, count, low, MAX_RUN_PARAMETER)
    named = sum(runs) if mode else count + 1
    if named > len(text):
        raise DecodeError(f"{len(text)} bits left for the counters of {named} members")
    apart, text = rice.read(text, named, apart_low)
    if text:
        raise DecodeError(f"{len(text)} bits after the end of counters")
    counters = [mean - (n + 1 >> 1) if n & 1 else mean + (n >> 1) for n in apart]
    if _mean(counters) != mean:
        raise DecodeError(f"announced mean {mean} of counters is wrong")
    _check_range(min(counters), max(counters))
    return _join_members(first, mode, runs), counters


def encode_lanes(vector: int) -> bytes:
    """Encode the nonzero counters of a packed vector."""
    return encode(*lanes.columns(vector))


def decode_lanes(data: bytes) -> int:
    """Return the packed vector of `encode_lanes`. Raise RemoteError."""
    members, counters = decode(data)
    if not members:
        return 0
    if members[-1] > MAX_MEMBER:
        raise UnknownMemberError(
            f"control information names member {members[-1]}, above {MAX_MEMBER}"
        )
    if max(counters) > MAX_VALUE:
        raise SequenceError(f"control information names message {max(counters)}, above {MAX_VALUE}")
    if not min(counters):
        raise DecodeError("control information names message 0; expected 1 or more")
    return lanes.pack_columns(members, counters)


def _mean(counters: Sequence[int]) -> int:
    return (2 * sum(counters) + len(counters)) // (2 * len(counters))


def _check_range(least: int, most: int) -> int:
    if least < 0:
        raise DecodeError(f"counter {least} is negative")
    if most > MAX_POSITION:
        raise SequenceError(f"counter {most} is above {MAX_POSITION}")
    return most


def _split_members(members: Sequence[int]) -> tuple[int, list[int]]:
    first, span = members[0], members[-1] - members[0] + 1
    if span > MAX_SPAN:
        raise LocalError(f"members {first} and {members[-1]} are more than {MAX_SPAN} apart")
    if not windows.has_fewer_runs_of_ones(span, len(members)):
        return 0, [b - a - 1 for a, b in pairwise(members)]
    text = bytearray(b"0" * span)
    for member in members:
        text[member - first] = 49
    return windows.split_runs(bytes(text))


def _join_members(first: int, mode: int, runs: Sequence[int]) -> list[int]:
    if not mode:
        members = list(accumulate([first, *[run + 1 for run in runs]]))
        ends = b"11"
    else:
        text = windows.join_runs(mode, runs)
        members = list(compress(range(first, first + len(text)), text.translate(_BITS)))
        ends = text[:1] + text[-1:]
    windows.check_runs(mode, sum(runs) + len(runs) + (-1 if mode else 1), len(members), ends)
    if members[-1] - first >= MAX_SPAN or members[-1] > MAX_POSITION:
        raise SequenceError(f"members {first} and {members[-1]} are more than {MAX_SPAN} apart")
    return members
