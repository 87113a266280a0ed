"""`max_held`: rejections at the limit, their effect and their cost."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.protocols.base import Protocol
from antecede.errors import LimitError, LocalError, RemoteError
from tests.helpers.stored_groups import (
    NAMES,
    ORDERS,
    ROLES,
    START_S,
    TOPICS,
    fresh,
    options_of,
    story,
)
from tests.helpers.unchanged import unchanged

CHEAP = ("idr", "bss", "ds", "matrix", "fifo", "sb", "ses", "sent", "total", "total-agreed")
CLOCKS = ("linear", "physical", "linear-physical")
cheap = pytest.mark.parametrize("order", [o for o in ORDERS if o in (*CHEAP, *CLOCKS)])


def limited(order: str, most: int) -> Group:
    return Group("carol", NAMES, order=order, incarnation=5, max_held=most, **options_of(order))


def talk(order: str, rng: random.Random, count: int) -> list[bytes]:
    """Return what alice and bob say to carol, each having read some of the other, shuffled."""
    groups = {name: fresh(order, name) for name in NAMES[:2]}
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    now, for_carol, under_way = START_S, list[bytes](), {name: list[bytes]() for name in groups}
    read: dict[str, list[Any]] = {name: [] for name in groups}
    for k in range(count):
        now += 0.01
        name = rng.choice(NAMES[:2])
        group, other = groups[name], NAMES[1 - NAMES.index(name)]
        while under_way[name] and rng.random() < 0.7:
            read[name] += group.receive(under_way[name].pop(0), now=now)
        if order == "sb" and read[name]:
            how["reply_to"] = read[name][-1:]
        packets = group.send_packets(b"%d" % k, now=now, **how) + group.take_control_packets()
        for packet in packets:
            under_way[other] += [packet.wire] * (other in packet.to)
            for_carol += [packet.wire] * ("carol" in packet.to)
    places = [place + rng.choice((0, 0, 3, 6)) for place in range(len(for_carol))]
    return [for_carol[at] for at in sorted(range(len(for_carol)), key=places.__getitem__)]


def taken(group: Group, wire: bytes, now: float) -> Any:
    try:
        return group.receive(wire, now=now)
    except RemoteError as error:
        return type(error), str(error)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 4))
def test_the_quick_look_refuses_what_a_trial_would(order: str, seed: int, most: int) -> None:
    rng = random.Random(seed)
    quick, trial = limited(order, most), limited(order, most)
    trial._state.protocol = _Without(trial._state.protocol)  # type: ignore[assignment]
    now, refused = START_S + 1.0, 0
    for wire in talk(order, rng, 12):
        now += 0.01
        before = quick.snapshot()
        outcome = taken(quick, wire, now)
        assert outcome == taken(trial, wire, now)
        if isinstance(outcome, tuple):
            refused += 1
            assert quick.snapshot() == before
        assert quick._state.protocol.count_held() == len(quick.list_held())
        assert quick.stats().held <= most + len(NAMES) - 1
        assert quick.snapshot() == trial.snapshot()
        quick.take_control_packets(), trial.take_control_packets()


class _Without:
    """Protocol without `would_hold`: the snapshot decides."""

    def __init__(self, inner: Protocol) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        return False


@cheap
def test_a_refusal_at_the_limit_costs_no_snapshot(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, carol = fresh(order, "alice"), limited(order, 5)
    parents: list[Any] = []
    wires = []
    for k in range(12):
        wires.append(alice.send(b"%d" % k, reply_to=parents, now=START_S + k))
        parents = [wires[-1]] if order == "sb" else []
    for wire in wires[1:6]:
        carol.receive(wire, now=START_S + 20)

    def costly(self: Any, *state: Any) -> Any:
        raise AssertionError("a snapshot of everything, to refuse one message")

    kind = type(carol._state.protocol)
    monkeypatch.setattr(kind, "snapshot", costly)
    monkeypatch.setattr(kind, "restore", costly)
    for wire in wires[6:]:
        with pytest.raises(LimitError, match="5 messages are held"):
            carol.receive(wire, now=START_S + 21)
    monkeypatch.undo()
    carol.receive(wires[0], now=START_S + 22)
    assert carol.stats().held <= 6, "what all that is held waits for is taken in"
    assert carol.list_missing() == [] or carol.list_missing()[0].seq is None
    assert carol.stats().rejected == {"LimitError": 6}


# -- max_packet: the whole message counts, before it has a number -------------------------------


def sending(order: str, name: str, most: int | None = None, *, is_open: bool = False) -> Group:
    limit: dict[str, Any] = {} if most is None else {"max_packet": most}
    members = None if is_open else NAMES
    return Group(name, members, order=order, incarnation=len(name), **limit, **options_of(order))


OPEN = ("unordered", "fifo", "bss", "ds", "idr", "sb", "ses", "sent")


@pytest.mark.parametrize(
    ("order", "is_open"), [*((one, False) for one in ORDERS), *((one, True) for one in OPEN)]
)
def test_a_message_is_measured_whole_before_it_has_a_number(order: str, is_open: bool) -> None:
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    plain = sending(order, "alice", is_open=is_open)
    bob = sending(order, "bob", is_open=is_open)
    talk = [bob.send(b"%d" % k, now=START_S + k, **how) for k in range(3)]
    read = [m for wire in talk for m in plain.receive(wire, now=START_S + 5)]
    read += plain.tick(START_S + 9)
    if order == "sb":
        how["reply_to"] = read[-1:]
    plain.take_control_packets()
    stored = plain.snapshot()
    for size in (0, 1, 100, 2000):
        plain.restore(stored, resume=True)
        exact = len(plain.send(bytes(size), now=START_S + 10, **how))
        tight = sending(order, "alice", exact, is_open=is_open)
        short = sending(order, "alice", exact - 1, is_open=is_open)
        for group in (tight, short):
            group.restore(stored, resume=True)
        with (
            unchanged(short),
            pytest.raises(LocalError, match=rf"payload of {size} bytes.*max_packet={exact - 1}"),
        ):
            short.send(bytes(size), now=START_S + 10, **how)
        assert short.effects() == []
        wire = tight.send(bytes(size), now=START_S + 10, **how)
        assert (len(wire), wire.seq) == (exact, 1)
        peer = sending(order, "carol", exact, is_open=is_open)
        peer.receive(wire, now=START_S + 11)
        peer = sending(order, "carol", exact - 1, is_open=is_open)
        with pytest.raises(LimitError, match="max_packet"):
            peer.receive(wire, now=START_S + 11)


@pytest.mark.few(6)
@pytest.mark.parametrize("order", ORDERS)
@given(seed=st.integers(0, 2**32), restarts=st.booleans())
def test_no_message_is_larger_than_the_estimate(order: str, seed: int, restarts: bool) -> None:
    rng, now = random.Random(seed), START_S
    groups = {name: fresh(order, name) for name in NAMES}
    how: dict[str, Any] = {"topics": ("news", "sport")} if order in TOPICS else {}
    for k in range(12):
        now += 0.01
        name = rng.choice(NAMES)
        group = groups[name]
        if restarts and rng.random() < 0.3:
            stored, group = group.snapshot(), fresh(order, name)
            group.restore(stored, incarnation=k)
            groups[name] = group
        most = group._codec.estimate_overhead(0, how.get("topics", ()))
        for packet in group.send_packets(b"", now=now, **how):
            assert most is not None
            assert len(packet.wire) < most
            for other in packet.to:
                if rng.random() < 0.7:
                    groups[other].receive(packet.wire, now=now)


@pytest.mark.slow
@pytest.mark.parametrize("order", [order for order in ORDERS if order not in TOPICS])
def test_the_estimate_holds_in_a_large_group(order: str) -> None:
    count = 60
    names = [f"{k:0>60}" for k in range(count)]
    options = options_of(order)
    groups = [Group(name, names, order=order, incarnation=1, **options) for name in names]
    for turn in range(2):
        for group in groups:
            most = group._codec.estimate_overhead(0, ())
            packets = group.send_packets(b"", now=START_S + turn)
            assert most is not None
            assert all(len(packet.wire) < most for packet in packets)
            for packet in packets:
                for other in groups[: 20 * (turn + 1)]:
                    if other is not group:
                        other.receive(packet.wire, now=START_S + turn)


@pytest.mark.parametrize("order", ORDERS)
def test_a_message_that_is_surely_small_enough_costs_no_snapshot(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = fresh(order, "alice")
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}

    def costly(self: Any) -> Any:
        raise AssertionError("a snapshot of everything, to send one message")

    monkeypatch.setattr(type(group._state.protocol), "snapshot", costly)
    assert group.send(bytes(1000), now=START_S, **how).seq == 1


def test_half_is_left_where_messages_are_made_anew_on_their_way() -> None:
    group = fresh("internal")
    group._state.limits = group._state.limits._replace(max_packet=100)
    with (
        unchanged(group),
        pytest.raises(LocalError, match=r"payload of 51 bytes exceeds 50 \(half of max_packet="),
    ):
        group.send_packets(bytes(51))
    assert group.send_packets(bytes(50))


class NoWalk(dict[Any, Any]):
    """Table that must not be iterated."""

    def __iter__(self) -> Any:
        raise AssertionError("O(members)")

    values = items = keys = __iter__


@pytest.mark.parametrize("order", [*CLOCKS, "total-agreed"])
def test_the_count_of_held_messages_walks_through_no_member(order: str) -> None:
    alice, carol = fresh(order, "alice"), fresh(order, "carol")
    wires = [alice.send(b"%d" % k, now=START_S + k) for k in range(4)]
    for wire in wires[1:]:
        carol.receive(wire, now=START_S + 5)
    protocol: Any = carol._state.protocol
    part = getattr(protocol, "channel", protocol)
    ahead, part.ahead = part.ahead, NoWalk(part.ahead)
    assert protocol.count_held() == 3
    part.ahead = ahead
    again = fresh(order, "carol")
    again.restore(carol.snapshot())
    assert again._state.protocol.count_held() == 3, "derived anew from a state"


def test_who_forgets_the_time_is_told_so_at_the_limit_too() -> None:
    alice, carol = fresh("linear", "alice"), limited("linear", 1)
    wires = [alice.send(b"%d" % k, now=START_S + k) for k in range(3)]
    carol.receive(wires[1], now=START_S + 5)
    with pytest.raises(LocalError, match="needs the local clock"):
        carol.receive(wires[2])


@pytest.mark.parametrize("order", [*CLOCKS, "total-agreed"])
def test_a_full_group_takes_what_all_that_is_held_waits_for(order: str) -> None:
    alice, bob = fresh(order, "alice"), fresh(order, "bob")
    carol = limited(order, 3)
    wires = [alice.send(b"%d" % k, now=START_S + k / 100) for k in range(4)]
    for wire in wires[1:]:
        carol.receive(wire, now=START_S + 1)
    assert [(one.sender, one.seq) for one in carol.list_missing()] == [("alice", 1)]
    delivered = carol.receive(wires[0], now=START_S + 1)
    for wire in wires:
        bob.receive(wire, now=START_S + 1)
    last = bob.send(b"bob's", now=START_S + 2)
    delivered += carol.receive(last, now=START_S + 3)
    assert [message.payload for message in delivered][:4] == [b"0", b"1", b"2", b"3"]


@pytest.mark.few(13)
@pytest.mark.parametrize("order", [*ORDERS, *ROLES])
@given(data=st.data())
def test_bytes_that_are_refused_leave_everything_as_it_was(order: str, data: st.DataObject) -> None:
    told = story(order)
    group, wire = told.group, bytearray(told.late[0])
    end = len(wire) - 6
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(9, end - 1))] = data.draw(st.integers(0, 255))
    before, blocked = group.snapshot(), group.list_held()
    try:
        group.receive(bytes(wire), now=START_S + 14.0)
    except RemoteError:
        assert group.snapshot() == before
        assert group.list_held() == blocked
        assert group.effects() == []


# -- max_packet: what just fits, fits in every copy of it ------------------------------------------


@pytest.mark.parametrize("options", [{"recovering": True}, {"retry_s": 0.5}])
def test_a_message_that_just_fits_is_taken_when_it_is_sent_again(options: dict[str, Any]) -> None:
    order = "matrix" if "recovering" in options else "linear"
    pair = ["alice", "bob"]

    def member(name: str, **more: Any) -> Group:
        return Group(name, pair, order=order, incarnation=1, **options, **more)

    exact = len(member("alice").send(bytes(300), now=START_S))
    alice, bob = member("alice", max_packet=exact), member("bob", max_packet=exact)
    stored = bob.snapshot()
    alice.send(bytes(300), now=START_S)  # lost on its way
    bob = member("bob", max_packet=exact)
    bob.restore(stored, incarnation=3)
    got: list[int] = []
    longest = 0
    for step in range(40):
        now = START_S + (step + 1) / 2
        for one, other in ((alice, bob), (bob, alice)):
            one.tick(now)
            for packet in one.take_control_packets():
                longest = max(longest, len(packet.wire))
                got += [m.seq for m in other.receive(packet.wire, now=now) if other is bob]
    assert longest > exact
    assert got == [1]


def test_a_message_that_just_fits_is_handed_over_by_a_sponsor_that_began_anew() -> None:
    exact = len(Group("alice", ["alice", "bob"]).send(bytes(100)))
    limit: dict[str, Any] = {"max_packet": exact}
    alice = Group("alice", ["alice", "bob"], incarnation=1, **limit)
    bob = Group("bob", ["alice", "bob"], incarnation=2, **limit)
    first, second = alice.send(bytes(99)), alice.send(bytes(100))
    bob.receive(second)
    stored = bob.snapshot()
    bob = Group("bob", ["alice", "bob"], **limit)
    bob.restore(stored, incarnation=9)
    dave = Group.accept("dave", bob.invite("dave"), **limit)
    (copy,) = bob.list_held_packets()
    assert len(copy.wire) > exact
    assert dave.receive(copy.wire) == []
    assert [m.seq for m in dave.receive(first)] == [1, 2]


def test_what_a_frame_may_tell_of_lives_is_bounded_too() -> None:
    alice = Group("alice", NAMES, max_packet=100)
    with pytest.raises(LimitError, match="max_packet=100"):
        alice.receive(bytes(30_000_000))
    assert alice.stats().rejected == {"LimitError": 1}
