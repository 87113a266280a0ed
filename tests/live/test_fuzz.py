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
from tests.live.talk import Talk

KINDS = st.integers(0, 12)
NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 5)


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
    link = talk.link("a", "m")
    for _ in range(data.draw(st.integers(1, 3))):
        before, refused = talk.snapshot("a"), talk.observe("a").rejected.total()
        talk.receive("a", link, data.draw(damaged(TALKS[key])))
        found = talk.observe("a")
        if found.rejected.total() > refused and not found.invalid:
            assert talk.snapshot("a") == before
        talk.go_on("a")
        if not talk.is_open("a", link):
            break
    delivered = talk.observe("a").delivered
    assert talk.observe("a").is_in_group
    assert talk.is_open("a", talk.link("a", "b")), "the others are not held to account"
    talk.send("b", b"heard")
    talk.exchange()
    assert talk.observe("a").delivered > delivered


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_stranger_that_sends_nonsense_changes_nothing(data: st.DataObject) -> None:
    talk = talk_of(("causal", False))
    link = talk.call("a", "x")
    before = talk.snapshot("a")
    talk.receive("a", link, data.draw(st.binary(max_size=200) | damaged(TALKS["causal", False])))
    if not talk.is_identified("a", link):
        assert talk.snapshot("a") == before
    talk.go_on("a")
    assert talk.observe("a").is_in_group


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_sponsor_that_sends_nonsense_is_refused(data: st.DataObject) -> None:
    frames = TALKS["causal", False]
    welcomes = [one for one in frames if wire.split_frames(one)[0][0][0] == wire.JOIN_REPLY]
    hellos = [
        one for one in frames if wire.split_frames(one)[0][0][0] == wire.HELLO and b"a~a" in one
    ]
    talk = talk_of(("causal", False))
    link = talk.isolate("m", "a")
    talk.receive("m", link, data.draw(st.sampled_from(hellos)))
    talk.receive("m", link, data.draw(damaged(welcomes)))
    talk.go_on("m")
    talk.snapshot("m")


def test_numbers_that_cannot_be_break_nothing() -> None:
    talk = talk_of(("causal", False))
    talk.exchange()
    talk.exchange()
    link, own = talk.link("a", "m"), talk.observe("a").sender_id
    assert not talk.observe("a").memory_bytes, "the first are freed"
    place = talk.place("a", link, own)
    talk.receive("a", link, wire.pack_rows(wire.ACK, [(place, 2**64 - 1)]))
    talk.receive("a", link, wire.pack_rows(wire.NAK, [(place, 0)]))
    talk.go_on("a")
    talk.send("a", b"heard")
    talk.exchange()
    assert talk.observe("b").newest(own) == talk.observe("a").newest(own)


@pytest.mark.slow
def test_ten_thousand_damaged_frames() -> None:
    draw = random.Random(5)
    talk = talk_of(("causal", False))
    frames = TALKS["causal", False]
    for count in range(10_000):
        if not count % 500:
            talk = talk_of(("causal", False))
        link = talk.call("a", "m")
        hello = next(
            one for one in frames if wire.split_frames(one)[0][0][0] == wire.HELLO and b"m~" in one
        )
        talk.receive("a", link, hello)
        raw = bytearray(draw.choice(frames))
        raw[draw.randrange(len(raw))] = draw.randrange(256)
        talk.receive("a", link, bytes(raw))
        talk.pull("a", link)
        talk.hang_up("a", link)
    assert talk.observe("a").rejected
    assert talk.observe("a").is_in_group
