"""Bytes and damaged frames into a node: a typed refusal or nothing, and never another state.

In memory, one frame at a time: what is refused has changed nothing of the ordering.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import varint
from antecede.live import wire
from antecede.live.settings import NS, Settings
from tests.live.byzantine import KeyedSeals
from tests.live.memory_network import MS, Frame, MemoryNetwork
from tests.live.observation import snapshot_state

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


def talk(order: str, strict: bool, heard: list[Frame] | None = None) -> MemoryNetwork:
    """Return three members that know each other; `heard`: gets all frames between them."""
    network = MemoryNetwork(1, most_ns=2 * MS)
    network.new_signatures = KeyedSeals
    if heard is not None:
        network.filter = heard.extend
    network.meet("abm", Settings(order=order, verify_all_signatures=strict), at_once=True)
    network.run(60 * MS)
    for name in "abm" * 3:
        network.say(name, name.encode())
    network.run(100 * MS)
    return network


def frames_of(key: tuple[str, bool]) -> list[Frame]:
    heard: list[Frame] = []
    talk(*key, heard).run(NS)
    return heard


HEARD = {key: frames_of(key) for key in KEYS}
FRAMES = {key: sorted(one.pack() for one in heard) for key, heard in HEARD.items()}


@pytest.mark.parametrize("key", KEYS)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_a_member_that_sends_nonsense_changes_nothing(
    key: tuple[str, bool], data: st.DataObject
) -> None:
    network = talk(*key)
    link, host = network.link("a", "m"), network.hosts["a"]
    for _ in range(data.draw(st.integers(1, 3))):
        before, refused = snapshot_state(host), host.observe().rejected.total()
        network.receive("a", link, data.draw(damaged(FRAMES[key])))
        if host.observe().rejected.total() > refused and not host.observe().invalid:
            assert snapshot_state(host) == before
        if link not in host.observe().connections:
            break
    assert host.is_in_group
    assert network.hosts["b"].sender_id in host.observe().connected, "others are not accountable"
    delivered = host.observe().delivered
    network.say("b", b"heard")
    network.run(network.now + 200 * MS)
    assert host.observe().delivered > delivered


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_stranger_that_sends_nonsense_changes_nothing(data: st.DataObject) -> None:
    network = talk(*KEYS[0])
    link, host = network.call("a", "x"), network.hosts["a"]
    before = snapshot_state(host)
    network.receive("a", link, data.draw(st.binary(max_size=200) | damaged(FRAMES[KEYS[0]])))
    if link not in host.observe().identified:
        assert snapshot_state(host) == before
    assert host.is_in_group


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_sponsor_that_sends_nonsense_is_refused(data: st.DataObject) -> None:
    welcomes = [one.pack() for one in HEARD[KEYS[0]] if one.kind == wire.JOIN_REPLY]

    def damage(frames: list[Frame]) -> Iterator[bytes]:
        for one in frames:
            is_welcome = one.kind == wire.JOIN_REPLY
            yield data.draw(damaged(welcomes)) if is_welcome else one.pack()

    network = MemoryNetwork(1, most_ns=2 * MS)
    network.new_signatures, network.filter = KeyedSeals, damage
    network.meet("am", Settings(), at_once=True)
    network.run(60 * MS)
    snapshot_state(network.hosts["m"])


def test_numbers_that_cannot_be_break_nothing() -> None:
    network = talk(*KEYS[0])
    network.run(NS)
    own, link = network.hosts["a"].sender_id, network.link("a", "m")
    assert network.observe("a").newest(own) > 1
    assert not network.observe("a").memory_bytes, "the first are freed"
    place = network.place("m", own)
    network.receive("a", link, wire.pack_rows(wire.ACK, [(place, 2**64 - 1)]))
    network.receive("a", link, wire.pack_rows(wire.NAK, [(place, 0)]))
    network.send("a", b"heard")
    network.run(network.now + NS // 4)
    assert network.observe("b").newest(own) == network.observe("a").newest(own)


@pytest.mark.slow
def test_ten_thousand_damaged_frames() -> None:
    draw = random.Random(5)
    frames, heard = FRAMES[KEYS[0]], HEARD[KEYS[0]]
    hello = next(one for one in heard if (one.source, one.kind) == ("m", wire.HELLO)).pack()
    for count in range(10_000):
        if not count % 500:
            network = talk(*KEYS[0])
        link = network.call("a", "m")
        network.receive("a", link, hello)
        raw = bytearray(draw.choice(frames))
        raw[draw.randrange(len(raw))] = draw.randrange(256)
        network.receive("a", link, bytes(raw))
        network.hang_up("a", link)
    assert network.observe("a").rejected
    assert network.hosts["a"].is_in_group
