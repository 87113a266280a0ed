"""Bytes and damaged frames into a node: a typed refusal or nothing, and never another state.

In memory, one frame at a time: what is refused has changed nothing of the ordering.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import varint
from antecede.live import wire
from antecede.live.node import Node
from antecede.live.settings import NS, Settings
from tests.live.byzantine import KeyedSeals

KINDS = st.integers(0, 12)
NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 5)


class Talk:
    """Three nodes that know each other, and all frames that went over their links."""

    def __init__(self, order: str, strict: bool) -> None:
        settings = Settings(order=order, verify_all_signatures=strict)
        self.nodes = {
            name: Node(
                name, settings, f"{name}0000000", name, seals=KeyedSeals(f"{name}~{name}0000000")
            )
            for name in "abm"
        }
        self.frames: list[bytes] = []
        self.now = 0
        a, b, m = self.nodes.values()
        a.bootstrap(b"12345678")
        for caller, called in ((b, a), (m, a), (m, b)):
            self.connect(caller, called)
            self.exchange()
        for one in (a, b, m):
            for k in range(3):
                one.send(b"%d" % k)
                one.turn()
                self.exchange()
        self.frames.sort()

    def connect(self, caller: Node, called: Node) -> None:
        number = 10 * (ord(caller.name) - 90) + ord(called.name) - 90
        caller.link_up(number, called.name, self.now, dialed=True)
        called.link_up(number, caller.name, self.now, dialed=False)

    def exchange(self) -> None:
        """Let all that is to be said arrive."""
        for _ in range(12):
            self.now += NS // 50
            for one in self.nodes.values():
                one.tick(self.now)
                one.turn()
                for number in list(one.links):
                    data = b"".join(one.pull(number, 1 << 16, self.now))
                    for other in self.nodes.values():
                        if other is not one and number in other.links and data:
                            other.receive(number, data, self.now)
                            found, _, _ = wire.split_frames(data)
                            self.frames += [wire.pack_frame(k, data[s:e]) for k, s, e in found]


def state(node: Node) -> Any:
    ordering = node.ordering
    if ordering is None:
        return None
    spoken = sorted(ordering.members), sorted(ordering.gone), sorted(ordering.guests)
    return ordering.state(()), spoken, ordering.place, dict(ordering.broken)


def link_to(node: Node, name: str) -> int:
    return next(link.number for link in node.links.values() if link.name == name)


@st.composite
def damaged(draw: Callable[..., Any], frames: list[bytes]) -> bytes:
    """Return a real frame that was damaged, or a false one."""
    how = draw(st.integers(0, 5))
    frame = draw(st.sampled_from(frames))
    (kind, start, end) = wire.split_frames(frame)[0][0]
    body = bytearray(frame[start:end])
    if how == 0:
        return wire.pack_frame(draw(KINDS), draw(st.binary(max_size=80)))
    if how == 1:
        return wire.pack_frame(draw(KINDS), bytes(body))
    if how == 2 and body:
        for _ in range(draw(st.integers(1, 4))):
            body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
        return wire.pack_frame(kind, bytes(body))
    if how == 3:
        cut = draw(st.integers(0, len(body)))
        return wire.pack_frame(kind, bytes(body[:cut]) + draw(st.binary(max_size=20)))
    if how == 4:
        place, number, rest = draw(st.integers(0, 4)), draw(NUMBERS), bytes(body[2:])
        return wire.pack_frame(wire.BATCH, varint(place) + varint(number), rest)
    rows = draw(st.dictionaries(st.integers(0, 4), NUMBERS, max_size=4))
    return wire.pack_rows(draw(st.sampled_from((wire.ACK, wire.NAK, wire.TRUNCATED))), rows.items())


KEYS = ("causal", False), ("reply", True), ("bss", False)
# A talk is made once and copied for each test: a copy takes a fortieth of the time.
MADE = {key: pickle.dumps(Talk(*key)) for key in KEYS}


def talk_of(key: tuple[str, bool]) -> Talk:
    made = pickle.loads(MADE[key])
    assert isinstance(made, Talk)
    return made


TALKS = {key: talk_of(key).frames for key in KEYS}


@pytest.mark.parametrize("key", TALKS)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_a_member_that_sends_nonsense_changes_nothing(
    key: tuple[str, bool], data: st.DataObject
) -> None:
    talk = talk_of(key)
    node = talk.nodes["a"]
    number = link_to(node, "m")
    link = node.links[number]
    for _ in range(data.draw(st.integers(1, 3))):
        before, refused = state(node), node.rejected.total()
        node.receive(number, data.draw(damaged(TALKS[key])), talk.now)
        if node.rejected.total() > refused and not node.active.broken:
            assert state(node) == before
        node.turn()
        node.tick(talk.now)
        for one in list(node.links):
            node.pull(one, 1 << 16, talk.now)
        if link.closing:
            break
    assert not node.out
    other = link_to(node, "b")
    assert not node.links[other].closing, "the others are not held to account"
    talk.nodes["b"].send(b"heard")
    before_place = node.active.place
    talk.exchange()
    assert node.active.place > before_place


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_stranger_that_sends_nonsense_changes_nothing(data: st.DataObject) -> None:
    talk = talk_of(("causal", False))
    node = talk.nodes["a"]
    node.link_up(99, "x", talk.now, dialed=False)
    before = state(node)
    raw = data.draw(st.binary(max_size=200) | damaged(TALKS["causal", False]))
    node.receive(99, raw, talk.now)
    for one in list(node.links):
        node.pull(one, 1 << 16, talk.now)
    if node.links[99].lane == "":
        assert state(node) == before
    assert not node.out


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_sponsor_that_sends_nonsense_is_refused(data: st.DataObject) -> None:
    frames = TALKS["causal", False]
    welcomes = [one for one in frames if wire.split_frames(one)[0][0][0] == wire.JOIN_REPLY]
    hellos = [
        one for one in frames if wire.split_frames(one)[0][0][0] == wire.HELLO and b"a~a" in one
    ]
    node = Node("m", Settings(), "m0000000", "m", seals=KeyedSeals("m~m0000000"))
    node.link_up(1, "a", 0, dialed=True)
    node.receive(1, data.draw(st.sampled_from(hellos)), 0)
    node.receive(1, data.draw(damaged(welcomes)), 0)
    node.turn()
    node.tick(NS)
    for one in list(node.links):
        node.pull(one, 1 << 16, NS)
    if node.ordering is not None:
        state(node)


def test_numbers_that_cannot_be_break_nothing() -> None:
    talk = talk_of(("causal", False))
    talk.exchange()
    talk.exchange()
    node = talk.nodes["a"]
    number = link_to(node, "m")
    own = node.active.lanes.by_name[node.lane]
    assert own.first > 1
    place = node.links[number].names.index(node.lane)
    node.receive(number, wire.pack_rows(wire.ACK, [(place, 2**64 - 1)]), talk.now)
    node.receive(number, wire.pack_rows(wire.NAK, [(place, 0)]), talk.now)
    for one in list(node.links):
        node.pull(one, 1 << 16, talk.now)
    node.send(b"heard")
    node.turn()
    talk.exchange()
    assert talk.nodes["b"].active.lanes.newest(node.lane) == own.newest


@pytest.mark.slow
def test_ten_thousand_damaged_frames() -> None:
    draw = random.Random(5)
    talk = talk_of(("causal", False))
    frames = TALKS["causal", False]
    node = talk.nodes["a"]
    for count in range(10_000):
        if not count % 500:
            talk = talk_of(("causal", False))
            node = talk.nodes["a"]
        number = 100 + count
        node.link_up(number, "m", talk.now, dialed=False)
        hello = next(
            one for one in frames if wire.split_frames(one)[0][0][0] == wire.HELLO and b"m~" in one
        )
        node.receive(number, hello, talk.now)
        raw = bytearray(draw.choice(frames))
        raw[draw.randrange(len(raw))] = draw.randrange(256)
        node.receive(number, bytes(raw), talk.now)
        node.pull(number, 1 << 16, talk.now)
        node.link_down(number, talk.now)
    assert node.rejected
    assert not node.out
