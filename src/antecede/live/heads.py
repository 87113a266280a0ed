"""What stands before a batch in groups by clocks or topics, and what stands for batches that are
not for the other end.

    head   b"B", varint(accuracy), 8 bytes reading, topics; behind it the ordering group's bytes
    run    b"H", varint(first), varint(last), topics: each of these batches is about some of these
           topics, and none is about another

    accuracy   of the sender's clock: 0 where it is not known, else microseconds, rounded up, + 1
    reading    of the sender's clock when it made the batch, nanoseconds with a sign
    topics     varint(count), then block(name), in ascending order; none where all get everything

Both begin with other bytes than a frame of a group (0xA8), so a seal of one is none of the other.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Final, NamedTuple

from antecede.core.clocks import LONGEST_NS
from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.topics import MAX_TOPIC_BYTES, normalize_topics
from antecede.errors import DecodeError, LocalError
from antecede.formatting import shown

BATCH, RUN = b"B", b"H"
GROUP_TOPIC: Final = "*"
"""What batches are about that change the group: everybody subscribes to it."""
MAX_TOPICS: Final = 1000
"""Of a batch, or a run."""
MAX_RUN: Final = 1024
"""Batches of a run: each takes its place in memory, however short the run is as bytes."""
MAX_SUBSCRIBED_BYTES: Final = 1 << 14
"""Of all the names to which one member subscribes."""
US: Final = 1000
_MOST_US: Final = (1 << 40) - 1
_READING: Final = struct.Struct(">q")


class Head(NamedTuple):
    """What is said of one batch."""

    accuracy_ns: int | None
    """How far the sender's clock may be from true time; None: it does not know."""
    sent_ns: int
    topics: tuple[str, ...]
    start: int
    """Where the bytes of the ordering group begin."""


class Run(NamedTuple):
    """What is said of several batches in a row: numbers, both included, and all their topics."""

    first: int
    last: int
    topics: tuple[str, ...]


def pack_head(accuracy_ns: int | None, sent_ns: int, topics: Collection[str]) -> bytes:
    """Return what stands before the bytes of the ordering group."""
    units = 0 if accuracy_ns is None else min(-(-accuracy_ns // US), _MOST_US) + 1
    return b"".join((BATCH, varint(units), _READING.pack(sent_ns), pack_topics(topics)))


def read_head(wire: bytes) -> Head:
    """Return what `pack_head` wrote before a batch. Raises DecodeError."""
    if wire[:1] != BATCH:
        raise DecodeError("a batch without its head")
    reader = ByteReader(wire, 1)
    units = reader.varint()
    if units > _MOST_US + 1:
        raise DecodeError(f"a clock that is off by {units} us: more than a day is not believed")
    sent_ns: int = _READING.unpack(reader.take(8))[0]
    if abs(sent_ns) > LONGEST_NS:
        raise DecodeError(f"a clock that shows {sent_ns} ns; readings are within 146 years of 0")
    topics = read_topics(reader)
    return Head((units - 1) * US if units else None, sent_ns, topics, reader.offset)


def is_run(wire: bytes) -> bool:
    """Tell whether these bytes stand for batches, and are none."""
    return wire[:1] == RUN


def pack_run(run: Run) -> bytes:
    """Return what stands for a run of batches."""
    return b"".join((RUN, varint(run.first), varint(run.last), pack_topics(run.topics)))


def read_run(wire: bytes) -> Run:
    """Return what `pack_run` wrote. Raises DecodeError."""
    if not is_run(wire):
        raise DecodeError("no run of batches")
    reader = ByteReader(wire, 1)
    first, last = reader.varint(), reader.varint()
    topics = read_topics(reader)
    reader.finish()
    if not 1 <= first <= last < 1 << 62 or last - first >= MAX_RUN or not topics:
        raise DecodeError(f"a run of batches {first} to {last} about {len(topics)} topics")
    return Run(first, last, topics)


def pack_topics(topics: Collection[str]) -> bytes:
    """Return topics as bytes."""
    if not topics:
        return b"\x00"
    return varint(len(topics)) + b"".join(block(one.encode()) for one in sorted(topics))


def read_topics(reader: ByteReader, at_most: int = MAX_TOPICS) -> tuple[str, ...]:
    """Read what `pack_topics` wrote. Raises DecodeError."""
    count = reader.varint()
    if count > at_most:
        raise DecodeError(f"{count} topics announced; {at_most} are the most")
    found: list[str] = []
    for _ in range(count):
        raw = reader.block()
        try:
            name = raw.decode()
        except UnicodeDecodeError as error:
            raise DecodeError("a topic that is not UTF-8") from error
        if not is_topic(name) or (found and name <= found[-1]):
            raise DecodeError(f"{name!r:.60} is no topic here, or not in its place")
        found.append(name)
    return tuple(found)


def is_topic(name: str) -> bool:
    """Tell whether a text can be a topic of a live group."""
    return 0 < len(name.encode()) <= MAX_TOPIC_BYTES and name.isprintable()


def own_topics(topics: Collection[str]) -> tuple[str, ...]:
    """Return topics that a program names, sorted. Raises LocalError for what can be none."""
    if isinstance(topics, str | bytes) or not isinstance(topics, Collection):
        raise LocalError(f"topics are a list of names, not {shown(topics)}")
    found = normalize_topics(topics)
    for name in found:
        if name == GROUP_TOPIC or not is_topic(name):
            raise LocalError(
                f"a topic is 1 to {MAX_TOPIC_BYTES} bytes of printable text, and not "
                f"{GROUP_TOPIC!r}, which is what everybody hears of the group; not {shown(name)}"
            )
    if sum(len(name.encode()) + 1 for name in found) > MAX_SUBSCRIBED_BYTES:
        raise LocalError(f"the names of these topics are more than {MAX_SUBSCRIBED_BYTES} bytes")
    if len(found) > MAX_TOPICS:
        raise LocalError(f"{len(found)} topics; {MAX_TOPICS} are the most")
    return found
