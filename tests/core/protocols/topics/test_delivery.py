"""Delivery of Nakayama's protocols: no violation, none stuck; times, recipients, held events."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import DUPLICATE, Addressing, Deliver, Discard, Hold, Relation
from antecede.core.protocols.topics.delivery import TopicProtocol
from antecede.core.protocols.topics.protocols import Htbc, Tv, TvLt, TvPt, TvVt
from antecede.core.protocols.topics.state import NOT_SUBSCRIBED
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError
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
from tests.helpers.unchanged import unchanged

every = pytest.mark.parametrize("name", CLASSES)
groups = pytest.mark.parametrize("group", GROUPS)


# -- the promise -----------------------------------------------------------------------------


@pytest.mark.few(1)
@every
@groups
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_network_that_keeps_the_bounds(name: str, group: str, seed: int) -> None:
    assert TopicNetwork(CLASSES[name], seed, GROUPS[group]).publish(24).finish().early == []


@pytest.mark.few(1)
@every
@given(seed=st.integers(0, 2**32), reading=st.sampled_from(["all", "some"]))
def test_members_come_and_go_and_subscribe_anew(name: str, seed: int, reading: str) -> None:
    network = TopicNetwork(CLASSES[name], seed, reading=reading)
    for _ in range(12):
        network.publish(network.random.randrange(5))
        network.change()
    assert network.finish().early == []


def test_the_network_is_adversarial() -> None:
    networks = [TopicNetwork(Htbc, seed).publish(36).finish() for seed in range(5)]
    assert sum(network.holds for network in networks) > 100
    assert sum(network.discards[DUPLICATE] for network in networks) > 10
    assert (
        sum(len(network.list_needed(3, key)) for network in networks for key in network.sent) > 100
    )


@every
def test_what_a_protocol_of_004_promises(name: str) -> None:
    member = group(name, "x", "x")[0]
    assert member.addressing is Addressing.TOPICS
    assert member.guarantee.relation is Relation.BY_TOPIC
    assert member.guarantee.needs_time
    assert not member.guarantee.no_unnecessary_wait
    assert not member.guarantee.survives_loss


@pytest.mark.parametrize("name", ["tv-pt", "htbc"])
def test_as_published_causes_are_overtaken_where_mind_is_less_than_twice_epsilon(name: str) -> None:
    bounds = GROUPS["alike, clocks off by a delay"]
    early = 0
    for seed in range(20):
        network = TopicNetwork(CLASSES[name], seed, bounds, as_published=True)
        early += len(network.publish(24).finish().early)
    assert early > 0


# -- times -----------------------------------------------------------------------------------


def test_publishing_counts_every_topic_of_the_event_and_stamps_after_that() -> None:
    """Errata of Nakayama 2017: on publishing, increment every topic in e.P, then stamp."""
    a, _ = group("htbc", "xyz", "xyz")
    assert publish_all(a, "xy").tv == (("x", 1), ("y", 1))
    message = publish_all(a, "zx", now=s(7.5))
    assert message.tv == (("x", 2), ("y", 1), ("z", 1))
    assert message.topics == ("x", "z")
    assert (message.lt, message.pt_ns, message.vt) == (2, s(7.5), 0)


def test_arrival_takes_the_maximum_even_of_what_is_held() -> None:
    """Errata of Nakayama 2017: by receipt, component-wise; LT and VT are maxima too."""
    a, b, c = (AllTimes(k, range(3), subscriptions=EVERYTHING, bounds=EXACT) for k in range(3))
    for _ in range(3):
        first = publish_all(a, "x")
    publish_all(b, "xy")
    assert [type(effect) for effect in b.receive(first, now=0)] == [Hold]
    second = publish_all(b, "y")
    assert second.tv == (("x", 3), ("y", 2))
    assert second.lt == 4
    c.receive(second, now=0)
    assert publish_all(c, "z").tv == (("x", 3), ("y", 2), ("z", 1))
    assert c.describe()["VT"] == "<3, 2, 1>"
    assert b.describe()["VT"] == "<3, 2, 0>"
    assert c.describe()["TV"] == "<x 3, y 2, z 1>"
    assert c.describe()["LT"] == "5"


@pytest.mark.parametrize(
    ("cls", "lt", "pt_s", "vt"),
    [(Tv, 0, 0, 0), (TvLt, 2, 0, 0), (TvPt, 0, 9, 0), (Htbc, 2, 9, 0), (TvVt, 0, 0, 1)],
)
def test_a_protocol_carries_its_times_alone(
    cls: type[TopicProtocol], lt: int, pt_s: int, vt: int
) -> None:
    """Nakayama 2017, section 2: the four types of protocols, and TV_VT of section 3."""
    a, b = (cls(k, range(2), subscriptions=EVERYTHING, bounds=EXACT) for k in range(2))
    b.receive(publish_all(a, "x", now=s(8)), now=s(9))
    message = publish_all(b, "x", now=s(9))
    assert (message.lt, message.pt_ns, message.vt) == (lt, s(pt_s), vt)
    assert b.decode(b.encode(message), b"") == message


# -- recipients of an event ------------------------------------------------------------------


@every
def test_events_go_to_those_who_subscribe_to_one_of_their_topics(name: str) -> None:
    """Nakayama 2017, section 4: delivered to only target peers."""
    a, *_ = group(name, "xyz", "x", "yz", "z", "")
    assert a.send(b"", topics=["x"], now=0)[0].to == (1,)  # type: ignore[union-attr]
    assert a.send(b"", topics=["x", "y"], now=0)[0].to == (1, 2)  # type: ignore[union-attr]
    assert a.send(b"", topics=["z"], now=0)[0].to == (2, 3)  # type: ignore[union-attr]
    assert a.send(b"", topics=["w"], now=0) == ()
    assert a.sent == 4


@every
def test_an_event_for_nobody_else_counts_all_the_same(name: str) -> None:
    a, b = group(name, "xw", "x")
    a.send(b"", topics=["w"], now=0)
    message = publish_all(a, "x")
    assert message.seq == 2
    assert message.tv == (("w", 1), ("x", 1))
    b.receive(message, now=0)
    assert [effect.message for effect in b.tick(s(9))] == [message]


@every
def test_what_is_about_no_topic_of_mine_is_discarded_and_its_times_kept(name: str) -> None:
    a, b = group(name, "x", "y")
    b.subscribe(0, ["x"])
    a.subscribe(1, ["x"])
    message = publish_all(a, "x")
    assert b.receive(message, now=0) == (Discard(message, NOT_SUBSCRIBED),)
    assert dict(publish_all(b, "x").tv) == {"x": 2}


@every
def test_who_unsubscribes_gives_up_what_is_held(name: str) -> None:
    a, b = group(name, "xy", "xy")
    x, both = publish_all(a, "x"), publish_all(a, "xy")
    b.receive(x, now=0)
    b.receive(both, now=0)
    assert b.subscribe(0, ["y"]) == ()
    assert b.subscribe(1, ["y"]) == (Discard(x, NOT_SUBSCRIBED),)
    assert list(b.tick(s(9))) == [Deliver(both)]


@every
@pytest.mark.parametrize("topics", [[], "x", [""], ["y" * 256], [7], ["\ud800"]])
def test_wrong_topics_are_refused_and_change_nothing(name: str, topics: object) -> None:
    a, _ = group(name, "x", "x")
    with unchanged(a), pytest.raises(LocalError, match="topic"):
        a.send(b"", topics=topics, now=0)  # type: ignore[arg-type]


def test_bounds_must_be_given() -> None:
    with pytest.raises(LocalError, match="bounds=Bounds"):
        Htbc(0, range(2), subscriptions=EVERYTHING)


# -- holding and releasing -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tv", "tv-lt", "tv-vt"])
def test_without_physical_time_the_wait_counts_from_the_arrival(name: str) -> None:
    a, b = group(name, "x", "x")
    message = publish_all(a, "x", now=s(0))
    assert b.receive(message, now=s(50)) == (Hold(message, ()),)
    assert [held.message for held in b.list_held()] == [message]
    assert list(b.tick(s(52))) == []
    assert list(b.tick(s(52.5))) == [Deliver(message)]
    assert b.list_held() == ()


@pytest.mark.parametrize("name", ["tv-pt", "htbc"])
def test_with_physical_time_it_counts_from_the_publishing(name: str) -> None:
    a, b = group(name, "x", "x")
    slow = publish_all(a, "x", now=s(50))
    assert b.receive(slow, now=s(53)) == (Hold(slow, ()),)
    assert list(b.tick(s(53))) == []
    assert list(b.tick(s(53.5))) == [Deliver(slow)]
    late = publish_all(a, "x", now=s(60))
    assert list(b.receive(late, now=s(64))) == [Deliver(late)]


@pytest.mark.parametrize("name", ["tv-pt", "htbc"])
def test_a_clock_that_is_far_ahead_delays_nobody_for_ever(name: str) -> None:
    a, b = group(name, "x", "x")
    message = publish_all(a, "x", now=s(10**9))
    assert b.receive(message, now=s(50)) == (Hold(message, ()),)
    assert list(b.tick(s(52))) == []
    assert list(b.tick(s(52.5))) == [Deliver(message)]


@every
def test_an_arrival_lets_others_go_whose_time_has_come(name: str) -> None:
    a, b = group(name, "x", "x")
    first, second = publish_all(a, "x", now=s(50)), publish_all(a, "x", now=s(90))
    b.receive(first, now=s(51))
    effects = b.receive(second, now=s(91))
    assert list(effects) == [Hold(second, ()), Deliver(first)]


@every
def test_what_precedes_goes_first_whatever_came_first(name: str) -> None:
    a, b, c = group(name, "x", "x", "x")
    first = publish_all(a, "x", now=s(50))
    b.receive(first, now=s(51))
    second = publish_all(b, "x", now=s(51))
    c.receive(second, now=s(52))
    c.receive(first, now=s(53))
    assert list(c.tick(s(90))) == [Deliver(first), Deliver(second)]


@every
def test_a_due_event_waits_for_a_held_one_that_precedes_it(name: str) -> None:
    bounds: Bounds[int] = Bounds(
        accuracy_s=5, least_s=1, most_s=3, clocks={2: 0}, channels={(0, 2): (1, 9)}
    )
    a, b, c = group(name, "x", "x", "x", bounds=bounds)
    first = publish_all(a, "x", now=s(55))
    b.receive(first, now=s(51))
    second = publish_all(b, "x", now=s(46))
    c.receive(second, now=s(52))
    c.receive(first, now=s(59))
    delivered = [e.message for now in range(60, 90) for e in c.tick(s(now))]
    assert delivered == [first, second]


@pytest.mark.parametrize("name", ["tv", "tv-pt"])
def test_a_cycle_of_the_relation_is_released_by_the_sum_of_the_topic_vector(name: str) -> None:
    bounds: Bounds[int] = Bounds(accuracy_s=5, least_s=1, most_s=3)
    subscriptions = Subscriptions({3: "abc"})
    members = [
        CLASSES[name](k, range(4), subscriptions=subscriptions, bounds=bounds) for k in range(4)
    ]
    cycle = []
    for member, before, topics in zip(members, "abc", ("ab", "bc", "ca"), strict=False):
        publish_all(member, before)
        cycle.append(publish_all(member, topics))
    d = members[3]
    for message in cycle:
        d.receive(message, now=0)
    held = [(key.sender, waiting.timestamp) for key, waiting in d.held.items()]
    ordered = {
        (one, other)
        for (one, e1), (other, e2) in itertools.permutations(held, 2)
        if d.relation.precedes(e1, e2, d.subscription)
    }
    assert ordered == {(0, 1), (1, 2), (2, 0)}
    assert [effect.message for effect in d.tick(s(99))] == cycle
