"""Rejections, discards, encoding and membership of Nakayama's protocols."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import MAX_MEMBER, MAX_VALUE, pack
from antecede.core.clocks.nanoseconds import LONGEST_NS
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Hold,
    Transmit,
)
from antecede.core.protocols.topics.messages import MAX_COUNT
from antecede.core.protocols.topics.protocols import TvVt
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from tests.core.protocols.seconds import s
from tests.core.protocols.topics.tools import (
    CLASSES,
    EVERYTHING,
    EXACT,
    GROUPS,
    AllTimes,
    TopicNetwork,
    group,
    publish_all,
)
from tests.core.protocols.wire_checks import (
    check_damage,
    check_length_changes,
    check_random_bytes,
)
from tests.helpers.unchanged import unchanged

every = pytest.mark.parametrize("name", CLASSES)
groups = pytest.mark.parametrize("group", GROUPS)


# -- copies and refusals ---------------------------------------------------------------------


@every
def test_copies_are_discarded_before_and_after_delivery(name: str) -> None:
    a, b = group(name, "x", "x")
    message = publish_all(a, "x", now=s(50))
    assert a.receive(message, now=s(50)) == (Discard(message, OWN),)
    b.receive(message, now=s(51))
    assert b.receive(message, now=s(51)) == (Discard(message, DUPLICATE),)
    assert list(b.tick(s(99))) == [Deliver(message)]
    assert b.receive(message, now=s(99)) == (Discard(message, DUPLICATE),)


CORRUPTIONS: list[tuple[dict[str, object], type[RemoteError]]] = [
    ({"sender": 9}, UnknownMemberError),
    ({"seq": 0}, SequenceError),
    ({"seq": MAX_VALUE + 1}, SequenceError),
    ({"sender": 3, "seq": 6, "vt": 0}, SequenceError),  # 3 left after message 5
    ({"topics": ()}, RemoteError),
    ({"topics": ("y",)}, RemoteError),
    ({"tv": (("x", 0),)}, RemoteError),
    ({"tv": (("w", -1), ("x", 1))}, SequenceError),
    ({"tv": (("x", MAX_COUNT + 1),)}, SequenceError),
    ({"lt": 0}, SequenceError),
    ({"lt": MAX_COUNT + 1}, SequenceError),
    ({"pt_ns": -(1 << 63)}, RemoteError),
    ({"pt_ns": LONGEST_NS + 1}, RemoteError),
    ({"vt": pack([(0, 1)])}, RemoteError),  # an entry of its own
    ({"vt": pack([(1, 1)])}, SequenceError),  # of mine, which I have not sent
    ({"vt": pack([(3, 6)])}, SequenceError),  # of a member that left after message 5
    ({"vt": pack([(2, 1), (7, 1)])}, UnknownMemberError),
]


@pytest.mark.parametrize(("change", "error"), CORRUPTIONS)
def test_the_impossible_is_refused_and_changes_nothing(
    change: dict[str, object], error: type[RemoteError]
) -> None:
    a, b = (AllTimes(k, range(4), subscriptions=EVERYTHING, bounds=EXACT) for k in range(2))
    for member in (a, b):
        member.leave(3, 5)
    message = publish_all(a, "x")
    with unchanged(b), pytest.raises(error):
        b.receive(message._replace(**change), now=0)  # type: ignore[arg-type]
    assert b.receive(message, now=0) == (Hold(message, ()),)


# -- bytes -----------------------------------------------------------------------------------


@every
@given(data=st.binary(max_size=60))
@settings(max_examples=150)
def test_random_bytes_decode_or_are_refused(name: str, data: bytes) -> None:
    _, member = group(name, "x", "x")
    check_random_bytes(member, data)


@every
@given(where=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_damaged_event_is_refused_whole_or_read_as_another(
    name: str, where: float, byte: int
) -> None:
    network = TopicNetwork(CLASSES[name], 5).publish(6)
    newest = list(network.sent.values())[-3:]
    check_damage(network.members[0], newest, where, byte)


@every
def test_bytes_left_over_or_cut_short_are_refused(name: str) -> None:
    network = TopicNetwork(CLASSES[name], 5).publish(6)
    check_length_changes(network.members[0], network.sent.values())


@pytest.mark.parametrize(
    "topics",
    [
        b"\x02\x01y\x03\x01x\x03",  # not ascending
        b"\x02\x01x\x03\x01x\x03",  # twice
        b"\x01\x00\x03",  # no name
        b"\x01" + varint(256) + b"y" * 256 + b"\x03",
        b"\x01\x01\xff\x03",  # not UTF-8
        b"\x01\x01x\x01",  # counted 0 times
        varint(1 << 60),
    ],
)
def test_bad_topics_do_not_decode(topics: bytes) -> None:
    _, member = group("tv", "x", "x")
    assert member.decode(b"\x00\x01\x01\x01x\x03", b"").tv == (("x", 1),)
    with pytest.raises(DecodeError):
        member.decode(b"\x00\x01" + topics, b"")


def test_sizes_by_the_accounting_of_the_page() -> None:
    control = {"tv": 8, "tv-lt": 12, "tv-pt": 16, "htbc": 20, "tv-vt": 8 + 4 * 3}
    kept = {"tv": 8, "tv-lt": 12, "tv-pt": 8, "htbc": 12, "tv-vt": 8 + 4 * 3}
    for name in CLASSES:
        a, b, _ = group(name, "xy", "xy", "xy")
        publish_all(a, "y")
        message = publish_all(a, "x")
        assert a.control_bytes(message) == control[name]
        assert b.storage_bytes() == kept[name] - 8
        b.receive(message, now=0)
        assert b.storage_bytes() == kept[name] + 8


# -- names and numbers -----------------------------------------------------------------------


def test_members_that_an_event_speaks_of_and_new_numbers_for_them() -> None:
    a, b, c = group("tv-vt", "x", "x", "x")
    b.receive(publish_all(a, "x"), now=0)
    message = publish_all(b, "x")
    assert c.mentions(message) == (0, 1)
    assert c.causes(message) == ()
    renumbered = c.renumber(message, {0: 7, 1: 4})
    assert (renumbered.sender, renumbered.vt) == (4, pack([(7, 1)]))
    assert c.mentions(renumbered) == (4, 7)


# -- membership ------------------------------------------------------------------------------


@every
def test_a_newcomer_begins_with_its_sponsors_times_and_knows_its_copies(name: str) -> None:
    a, b, _, d = group(name, "x", "x", "", "xy")
    first, second = publish_all(a, "x", now=s(50)), publish_all(a, "x", now=s(60))
    b.receive(first, now=s(51))
    b.tick(s(59))
    b.receive(second, now=s(61))
    frontier = b.join_state()
    newcomer = CLASSES[name](5, [5], subscriptions=Subscriptions({5: "xz"}), bounds=EXACT)
    newcomer.install_join_state(frontier)
    assert newcomer.members == (0, 1, 2, 3, 5)
    assert newcomer.subscription == {"x", "z"}
    assert newcomer.subscriptions.of(3) == {"x", "y"}
    assert newcomer.receive(first, now=s(61)) == (Discard(first, DUPLICATE),)
    assert newcomer.receive(second, now=s(61)) == (Hold(second, ()),)  # the sponsor only holds it
    assert publish_all(newcomer, "x", now=s(61)).tv == (("x", 3),)
    assert d.join(5) == ()
    with pytest.raises(LocalError, match="before anything"):
        newcomer.install_join_state(frontier)


def test_a_newcomers_vector_time_covers_what_its_sponsor_sent_too() -> None:
    sponsor, other = group("tv-vt", "x", "x")
    sponsor.receive(publish_all(other, "x"), now=0)
    publish_all(sponsor, "x")
    newcomer = TvVt(2, [2], subscriptions=EVERYTHING, bounds=EXACT)
    newcomer.install_join_state(sponsor.join_state())
    newcomer.subscribe(1, ["x"])
    assert publish_all(newcomer, "x").vt == pack([(0, 1), (1, 1)])


@every
def test_after_a_leave_late_events_count_and_later_ones_are_discarded(name: str) -> None:
    a, b, _ = group(name, "x", "x", "x")
    messages = [publish_all(b, "x") for _ in range(4)]
    a.receive(messages[0], now=0)
    a.receive(messages[2], now=0)
    assert a.leave(1, 2) == (Discard(messages[2], AFTER_LEAVE),)
    assert a.members == (0, 2)
    with pytest.raises(SequenceError):
        a.receive(messages[3], now=0)
    assert a.receive(messages[1], now=0) == (Hold(messages[1], ()),)
    assert list(a.tick(s(99))) == [Deliver(message) for message in messages[:2]]
    (effect,) = a.send(b"", topics=["x"], now=s(99))
    assert isinstance(effect, Transmit)
    assert effect.to == (2,)


@every
def test_a_join_and_a_leave_reach_the_waits_of_what_is_held(name: str) -> None:
    bounds: Bounds[int] = Bounds(least_s=1, most_s=2, channels={(2, 1): (1, 20)})
    a, b = group(name, "x", "x", bounds=bounds)
    message = publish_all(a, "x", now=s(50))
    b.receive(message, now=s(51))
    b.join(2)
    assert list(b.tick(s(60))) == []
    assert list(b.tick(s(80))) == [Deliver(message)]


@every
def test_states_that_behave_alike_are_equal(name: str) -> None:
    a, b, c = group(name, "x", "x", "x")
    messages = publish_all(a, "x"), publish_all(b, "x"), publish_all(a, "x")
    start = c.snapshot()
    states = set()
    for order in itertools.permutations(messages):
        c.restore(start)
        for message in order:
            c.receive(message, now=s(3))
        states.add(c.snapshot())
    assert len(states) == 1
    assert [effect.message for effect in c.tick(s(9))] == list(messages)


@every
def test_members_and_topics_have_limits_and_changes_of_who_left_are_refused(name: str) -> None:
    a = group(name, "x", "x", "x")[0]
    a.leave(1, 2)
    before = a.snapshot()
    wrong: list[Callable[[], object]] = [
        lambda: a.join(-1),
        lambda: a.join(MAX_MEMBER + 1),
        lambda: a.subscribe(2, [""]),
        lambda: a.subscribe(1, ["x"]),
        lambda: CLASSES[name](MAX_MEMBER + 1, [MAX_MEMBER + 1], bounds=EXACT),
    ]
    for call in wrong:
        with pytest.raises(LocalError):
            call()
        assert a.snapshot() == before
