"""Event message of Nakayama 2017 and its encoding.

On the wire: sender and number; the topics known to the sender, in ascending order, each with its
name and `2 * count + 1` if the event is about it, else `2 * count`. Then follow the carried times:
linear (a varint), physical (8 bytes, nanoseconds with a sign), and vector time (pairs, without the
sender's own entry, which is the number).
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any, NamedTuple

from antecede.core.clocks import LANE_BITS, LONGEST_NS, MAX_VALUE, put
from antecede.core.clocks.encoding import ByteReader, block, encode_pairs, read_pairs, varint
from antecede.core.protocols.topics.relations import TopicTimestamp
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError
from antecede.formatting import quote

MAX_TOPIC_BYTES = 255
MAX_COUNT = (1 << 62) - 1
"""Largest accepted topic count and linear time."""


class CarriedTimes(NamedTuple):
    """Times that a protocol's messages carry besides the topic vector."""

    linear: bool = False
    physical: bool = False
    vector: bool = False


class TopicMessage(NamedTuple):
    """Event. Times that the protocol does not carry are 0."""

    sender: int
    seq: int
    """The sender's number for it, from 1, over all its events, with or without subscribers."""
    payload: Any
    topics: tuple[str, ...]
    """The publication e.P, in ascending order."""
    tv: tuple[tuple[str, int], ...]
    """e.TV: (topic, count) of all topics that the sender knows, in ascending order."""
    lt: int = 0
    pt_ns: int = 0
    vt: int = 0
    """e.VT in packed lanes, without the sender's own entry."""


def make_timestamp(message: TopicMessage, *, vector: bool = True) -> TopicTimestamp:
    """Return the input of the relations; `vector`: with the (long) vector time."""
    counts = dict(message.tv)
    vt = put(message.vt, message.sender, message.seq) if vector else 0
    about = {topic: counts[topic] for topic in message.topics}
    weight = sum(counts.values())
    return TopicTimestamp(message.sender, message.seq, about, weight, message.lt, message.pt_ns, vt)


def normalize_topics(topics: Collection[str]) -> tuple[str, ...]:
    """Return topics in ascending order. Raises LocalError for an empty or too long name."""
    if isinstance(topics, str):
        raise LocalError(
            f"topics is the word {topics!r}; expected several names, for example [{topics!r}]"
        )
    for topic in topics:
        if not _is_name(topic):
            raise LocalError(
                f"topic {quote(topic)} is invalid; expected 1 to {MAX_TOPIC_BYTES} bytes as UTF-8"
            )
    return tuple(sorted(set(topics)))


def _is_name(topic: object) -> bool:
    try:
        return isinstance(topic, str) and 0 < len(topic.encode()) <= MAX_TOPIC_BYTES
    except UnicodeEncodeError:
        return False


def _describe_source(message: TopicMessage) -> str:
    return f"message {message.seq} of member {message.sender}"


def check_times(message: TopicMessage, parts: CarriedTimes) -> None:
    """Raise a RemoteError for impossible topics or times of an event."""
    counts = dict(message.tv)
    about, numbers = [counts.get(topic, 0) for topic in message.topics], counts.values()
    if not about or min(about) < 1:
        raise RemoteError(
            f"{_describe_source(message)} has no topic, or one that it does not count"
        )
    if min(numbers) < 1 or max(numbers) > MAX_COUNT:
        what = _describe_source(message)
        raise SequenceError(f"{what} counts a topic below 1 or above {MAX_COUNT}")
    if parts.linear and not 1 <= message.lt <= MAX_COUNT:
        what = _describe_source(message)
        raise SequenceError(f"{what} has linear time {message.lt}; expected 1 to {MAX_COUNT}")
    if parts.physical and abs(message.pt_ns) > LONGEST_NS:
        raise RemoteError(
            f"{_describe_source(message)} has physical time {message.pt_ns} ns; "
            "expected within 146 years of 0"
        )
    if message.vt and (message.vt >> (message.sender * LANE_BITS)) & MAX_VALUE:
        raise RemoteError(
            f"{_describe_source(message)} has its sender's own entry in its vector time"
        )


def encode(message: TopicMessage, parts: CarriedTimes) -> bytes:
    """Return the control information as bytes (see the module docstring)."""
    about = frozenset(message.topics)
    out = bytearray(varint(message.sender) + varint(message.seq) + varint(len(message.tv)))
    for topic, count in message.tv:
        out += block(topic.encode()) + varint(2 * count + (topic in about))
    if parts.linear:
        out += varint(message.lt)
    if parts.physical:
        out += struct.pack(">q", message.pt_ns)
    if parts.vector:
        out += encode_pairs(message.vt)
    return bytes(out)


def decode(control: bytes, payload: Any, parts: CarriedTimes) -> TopicMessage:
    """Return the message that `encode` wrote. Raises DecodeError or another RemoteError."""
    reader = ByteReader(control)
    sender, seq = reader.varint(), reader.varint()
    topics, tv = _read_topics(reader)
    lt = reader.varint() if parts.linear else 0
    pt_ns = struct.unpack(">q", reader.take(8))[0] if parts.physical else 0
    vt = read_pairs(reader) if parts.vector else 0
    reader.finish()
    return TopicMessage(sender, seq, payload, topics, tv, lt, pt_ns, vt)


def _read_topics(reader: ByteReader) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    about: list[str] = []
    tv: list[tuple[str, int]] = []
    before = b""
    for _ in range(reader.varint()):
        name = reader.block()
        if not before < name or len(name) > MAX_TOPIC_BYTES:
            raise DecodeError(
                f"topic {name[:20]!r} before byte {reader.offset}: names ascend and have "
                f"1 to {MAX_TOPIC_BYTES} bytes"
            )
        try:
            topic = name.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"a topic before byte {reader.offset} is not UTF-8") from error
        count, is_about = divmod(reader.varint(), 2)
        if not count:
            raise DecodeError(f"topic {topic!r} before byte {reader.offset} has a count of 0")
        tv.append((topic, count))
        if is_about:
            about.append(topic)
        before = name
    return tuple(about), tuple(tv)
