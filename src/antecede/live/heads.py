"""Header of a batch in orders by clocks or topics, and skip markers.

    header  b"B", varint(accuracy), 8 bytes reading, topics; then the ordering group's bytes
    skip    b"H", varint(first), varint(last), topics: union of the topics of these batches

    accuracy   of the sender's clock: 0 if unknown, else microseconds, rounded up, + 1
    reading    of the sender's clock at the batch, nanoseconds with a sign
    topics     varint(count), then block(name), in ascending order; none without topics

A skip marker replaces batches to which the receiver does not subscribe. Both begin with other bytes
than a group frame (0xA8), so their signatures cannot be confused.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Final, NamedTuple

from antecede.core.clocks import LONGEST_NS
from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.topics import MAX_TOPIC_BYTES, normalize_topics
from antecede.errors import DecodeError, LocalError
from antecede.formatting import quote

BATCH, RUN = b"B", b"H"
GROUP_TOPIC: Final = "*"
"""Topic of batches with group changes, to which all members subscribe."""
MAX_TOPICS: Final = 1000
MAX_RUN: Final = 1024
"""Batches of a skip marker. Each takes memory, although the marker is short."""
MAX_SUBSCRIBED_BYTES: Final = 1 << 14
"""Limit of all topic names in one subscription."""
US: Final = 1000
_MOST_US: Final = (1 << 40) - 1
_READING: Final = struct.Struct(">q")


class Head(NamedTuple):
    """Header of a batch."""

    accuracy_ns: int | None
    """Largest error of the sender's clock. None: unknown."""
    sent_ns: int
    topics: tuple[str, ...]
    start: int


class SkipRange(NamedTuple):
    """Numbers `first` to `last` of skipped batches, and all their topics."""

    first: int
    last: int
    topics: tuple[str, ...]


def pack_head(accuracy_ns: int | None, sent_ns: int, topics: Collection[str]) -> bytes:
    """Return the header of a batch."""
    units = 0 if accuracy_ns is None else min(-(-accuracy_ns // US), _MOST_US) + 1
    return b"".join((BATCH, varint(units), _READING.pack(sent_ns), pack_topics(topics)))


def read_head(wire: bytes) -> Head:
    """Return the header of a batch. Raises DecodeError."""
    if wire[:1] != BATCH:
        raise DecodeError("batch without a header")
    reader = ByteReader(wire, 1)
    units = reader.varint()
    if units > _MOST_US + 1:
        raise DecodeError(f"clock error of {units} us; the limit is a day")
    sent_ns: int = _READING.unpack(reader.take(8))[0]
    if abs(sent_ns) > LONGEST_NS:
        raise DecodeError(f"clock reading of {sent_ns} ns; the limit is 146 years around 0")
    topics = read_topics(reader)
    return Head((units - 1) * US if units else None, sent_ns, topics, reader.offset)


def is_run(wire: bytes) -> bool:
    """Return whether bytes are a skip marker."""
    return wire[:1] == RUN


def pack_run(run: SkipRange) -> bytes:
    """Return a skip marker as bytes."""
    return b"".join((RUN, varint(run.first), varint(run.last), pack_topics(run.topics)))


def read_run(wire: bytes) -> SkipRange:
    """Return a skip marker. Raises DecodeError."""
    if not is_run(wire):
        raise DecodeError("not a skip marker")
    reader = ByteReader(wire, 1)
    first, last = reader.varint(), reader.varint()
    topics = read_topics(reader)
    reader.finish()
    if not 1 <= first <= last < 1 << 62 or last - first >= MAX_RUN or not topics:
        raise DecodeError(f"skip marker of batches {first} to {last} with {len(topics)} topics")
    return SkipRange(first, last, topics)


def pack_topics(topics: Collection[str]) -> bytes:
    """Return topics as bytes."""
    if not topics:
        return b"\x00"
    return varint(len(topics)) + b"".join(block(one.encode()) for one in sorted(topics))


def read_topics(reader: ByteReader, at_most: int = MAX_TOPICS) -> tuple[str, ...]:
    """Read topics. Raises DecodeError."""
    count = reader.varint()
    if count > at_most:
        raise DecodeError(f"{count} topics announced; the limit is {at_most}")
    found: list[str] = []
    for _ in range(count):
        raw = reader.block()
        try:
            name = raw.decode()
        except UnicodeDecodeError as error:
            raise DecodeError("topic is not UTF-8") from error
        if not is_topic(name) or (found and name <= found[-1]):
            raise DecodeError(f"topic {name!r:.60} is invalid or not in ascending order")
        found.append(name)
    return tuple(found)


def is_topic(name: str) -> bool:
    """Return whether a text can be a topic of a live group."""
    return 0 < len(name.encode()) <= MAX_TOPIC_BYTES and name.isprintable()


def own_topics(topics: Collection[str]) -> tuple[str, ...]:
    """Return the topics of a program, sorted. Raises LocalError for invalid ones."""
    if isinstance(topics, str | bytes) or not isinstance(topics, Collection):
        raise LocalError(f"topics={quote(topics)} is invalid; expected a list of names")
    found = normalize_topics(topics)
    for name in found:
        if name == GROUP_TOPIC or not is_topic(name):
            raise LocalError(
                f"invalid topic {quote(name)}; expected 1 to {MAX_TOPIC_BYTES} bytes of printable "
                f"text other than {GROUP_TOPIC!r}, which is reserved"
            )
    if sum(len(name.encode()) + 1 for name in found) > MAX_SUBSCRIBED_BYTES:
        raise LocalError(f"topic names exceed {MAX_SUBSCRIBED_BYTES} bytes; subscribe to fewer")
    if len(found) > MAX_TOPICS:
        raise LocalError(f"{len(found)} topics; the limit is {MAX_TOPICS}")
    return found
