"""What a batch carries: what the application said, and who came or went.

    varint      number of the first of the application's messages in the batch, from 1 in its lane
    varint      how many there are
    varint ...  their lengths
    bytes       the messages, one after the other
    the rest    changes of the group: a byte for the kind, block(lane), block(detail)

A batch is one message of the ordering protocol. All that is in it was said with nothing delivered
in between, so it has the same causes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError
from antecede.live.events import Change, ChangeKind, is_lane
from antecede.live.heads import MAX_SUBSCRIBED_BYTES

MAX_CHANGES = 1000
MAX_FIRST = 1 << 62
MAX_DETAIL_BYTES = 1000
AT_A_TIME = 16


class Batch(NamedTuple):
    """The application's messages, numbered from `first`, and changes of the group."""

    first: int
    said: list[bytes]
    changes: Sequence[Change] = ()


def pack(batch: Batch) -> bytes:
    """Return a batch as bytes."""
    lengths = list(map(len, batch.said))
    small = max(lengths, default=0) < 0x80
    sizes = bytes(lengths) if small else b"".join(map(varint, lengths))
    changes = [
        bytes((one.kind,)) + block(one.lane.encode()) + block(one.detail.encode())
        for one in batch.changes
    ]
    return b"".join((varint(batch.first), varint(len(lengths)), sizes, *batch.said, *changes))


def unpack(data: bytes) -> Batch:
    """Return the batch that `pack` wrote. Raises DecodeError."""
    reader = ByteReader(data)
    first, count = reader.varint(), reader.varint()
    if not 1 <= first <= MAX_FIRST:
        raise DecodeError(f"messages are numbered from 1 to {MAX_FIRST}")
    if count > len(data):
        raise DecodeError(f"{count} messages announced in a batch of {len(data)} bytes")
    lengths = _lengths(reader, count)
    start = reader.offset
    reader.offset += sum(lengths)
    if reader.offset > len(data):
        raise DecodeError("the messages of a batch are cut short")
    said = _cut(data[start : reader.offset], lengths)
    changes: list[Change] = []
    while reader.offset < len(data):
        changes.append(_change(reader))
        if len(changes) > MAX_CHANGES:
            raise DecodeError(f"more than {MAX_CHANGES} changes of the group in a batch")
    return Batch(first, said, changes)


def _cut(data: bytes, lengths: Sequence[int]) -> list[bytes]:
    """Cut bytes into pieces of these lengths."""
    if len(lengths) > 1 and lengths[0] and lengths.count(lengths[0]) == len(lengths):
        return _cut_evenly(data, lengths[0])
    return [data[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


def _cut_evenly(data: bytes, length: int) -> list[bytes]:
    """Cut bytes into pieces of one length: so many at a time, in half the time of one at a time."""
    piece = f"{length}s"
    whole = len(data) - len(data) % (AT_A_TIME * length)
    said = list(chain.from_iterable(struct.iter_unpack(AT_A_TIME * piece, data[:whole])))
    said += chain.from_iterable(struct.iter_unpack(piece, data[whole:]))
    return said


def _lengths(reader: ByteReader, count: int) -> Sequence[int]:
    short = reader.data[reader.offset : reader.offset + count]
    if len(short) == count and (not count or max(short) < 0x80):  # as mostly: a byte each
        reader.offset += count
        return short
    return [reader.varint() for _ in range(count)]


def _change(reader: ByteReader) -> Change:
    kind = reader.take(1)[0]
    if kind > ChangeKind.SUBSCRIBED:
        raise DecodeError(f"a change of the group of an unknown kind, {kind}")
    lane, detail = reader.block(), reader.block()
    subscribed = kind == ChangeKind.SUBSCRIBED
    if len(detail) > (MAX_SUBSCRIBED_BYTES if subscribed else MAX_DETAIL_BYTES):
        raise DecodeError(f"{len(detail)} bytes beside a change of the group")
    try:
        change = Change(ChangeKind(kind), lane.decode(), detail.decode())
    except UnicodeDecodeError as error:
        raise DecodeError("a change of the group that is not UTF-8") from error
    if not is_lane(change.lane):
        raise DecodeError(f"a change of the group about {change.lane!r:.40}, which is no lane")
    return change
