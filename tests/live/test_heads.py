"""What stands before batches, and in their place; and frames of subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import ByteReader, block, varint
from antecede.core.clocks.nanoseconds import LONGEST_NS
from antecede.errors import DecodeError, LocalError, RemoteError
from antecede.live import audience, heads, wire
from antecede.live.heads import GROUP_TOPIC, Head, Run
from antecede.live.links import Link
from antecede.live.node import Node
from antecede.live.settings import Settings
from tests.live.topic_runs import BOUNDS

NAMES = st.text(min_size=1, max_size=20).filter(heads.is_topic)
TOPICS = st.lists(NAMES, unique=True, max_size=6).map(lambda names: tuple(sorted(names)))


@given(
    st.none() | st.integers(0, 10**15),
    st.integers(-LONGEST_NS, LONGEST_NS),
    TOPICS,
    st.binary(max_size=40),
)
def test_a_head_comes_back(accuracy: int | None, sent: int, topics: Any, rest: bytes) -> None:
    raw = heads.pack_head(accuracy, sent, topics)
    head = heads.read_head(raw + rest)
    assert head == Head(head.accuracy_ns, sent, topics, len(raw))
    if accuracy is None:
        assert head.accuracy_ns is None
    else:  # never better than it is, by a microsecond at most
        assert head.accuracy_ns is not None
        assert 0 <= head.accuracy_ns - accuracy < heads.US
    assert not heads.is_run(raw)


@given(st.integers(1, 2**61), st.integers(0, heads.MAX_RUN - 1), TOPICS.filter(bool))
def test_a_run_comes_back(first: int, more: int, topics: Any) -> None:
    run = Run(first, first + more, topics)
    raw = heads.pack_run(run)
    assert heads.is_run(raw)
    assert heads.read_run(raw) == run
    with pytest.raises(DecodeError):
        heads.read_head(raw)


def subscriber(*topics: str) -> Node:
    return Node("a", Settings(order="tv", options={"bounds": BOUNDS}, topics=topics), "0" * 8)


@given(TOPICS.filter(lambda names: GROUP_TOPIC not in names))
def test_a_subscription_comes_over_a_link(topics: tuple[str, ...]) -> None:
    node, link = subscriber(*topics), Link(1, "b", 0, dialed=False)
    assert node.audience is not None
    node.audience.tell(link)
    (frame,) = link.control
    [(kind, start, end)], _, _ = wire.frames(frame)
    assert kind == audience.TOPICS
    node.audience.told(link, frame[start:end])
    assert set(link.reader.topics or ()) == {*topics, GROUP_TOPIC}


def _readers() -> list[tuple[Callable[[bytes], object], bytes]]:
    run = heads.pack_run(Run(300, 900, ("news", "sport")))

    def told(raw: bytes) -> None:
        node = subscriber()
        assert node.audience is not None
        node.audience.told(Link(1, "b", 0, dialed=False), raw)

    def lacks(raw: bytes) -> None:
        node, link = subscriber(), Link(1, "b", 0, dialed=False)
        link.names = ["b~00000000", "c~00000000"]
        assert node.audience is not None
        node.audience.frame(link, audience.LACKS, raw)

    return [
        (heads.read_head, heads.pack_head(12_345, 67, ("news", "sport"))),
        (heads.read_run, run),
        (told, heads.pack_topics(("*", "news", "sport"))),
        (lacks, b"".join(map(varint, (1, 700, 900)))),
    ]


@pytest.mark.parametrize("which", range(4))
def test_damage_is_refused_or_sound(which: int) -> None:
    read, raw = _readers()[which]
    damaged = [raw[:end] for end in range(len(raw))]
    for at in range(len(raw)):
        for bit in range(8):
            flipped = bytearray(raw)
            flipped[at] ^= 1 << bit
            damaged.append(bytes(flipped))
    refused = 0
    for one in damaged:
        try:
            read(one)
        except RemoteError:
            refused += 1
    assert refused > len(raw) // 2


@given(st.binary(max_size=100), st.integers(0, 3))
def test_any_bytes_are_refused_or_sound(raw: bytes, which: int) -> None:
    read, whole = _readers()[which]
    for one in (raw, whole[:1] + raw):
        try:
            read(one)
        except RemoteError:
            continue


@pytest.mark.parametrize(
    "raw",
    [
        heads.RUN + varint(0) + varint(3) + heads.pack_topics(("x",)),  # numbers are from 1
        heads.RUN + varint(4) + varint(3) + heads.pack_topics(("x",)),
        heads.RUN + varint(4) + varint(4 + heads.MAX_RUN) + heads.pack_topics(("x",)),
        heads.RUN + varint(1) + varint(3) + heads.pack_topics(()),  # about nothing
        heads.RUN + varint(1) + varint(3) + heads.pack_topics(("x",)) + b"\x00",
    ],
)
def test_runs_that_cannot_be_are_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        heads.read_run(raw)


def test_topics_that_promise_too_much_are_refused_at_once() -> None:
    with pytest.raises(DecodeError, match="announced"):
        heads.read_topics(ByteReader(varint(heads.MAX_TOPICS + 1)))
    twice = varint(2) + block(b"x") * 2
    with pytest.raises(DecodeError, match="not in its place"):
        heads.read_topics(ByteReader(twice))


@pytest.mark.parametrize(
    "topics", ["news", b"news", [""], ["*"], ["a\nb"], ["x" * 256], [3], 5, ["\ud800"]]
)
def test_what_can_be_no_topic_is_refused_in_words(topics: Any) -> None:
    with pytest.raises(LocalError, match="topic"):
        heads.own_topics(topics)


def test_too_many_topics_are_refused() -> None:
    with pytest.raises(LocalError, match="bytes"):
        heads.own_topics([f"{k:0200}" for k in range(100)])
    with pytest.raises(LocalError, match="most"):
        heads.own_topics([f"{k}" for k in range(1001)])
    assert heads.own_topics({"b", "a"}) == ("a", "b")
