"""Relations of Nakayama 2017: ordered and missed pairs, and cycles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.lanes import pack
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.topics.messages import CarriedTimes, make_timestamp
from antecede.core.protocols.topics.published_relations import (
    PrintedTopicRelation,
    linear_precedes_as_published,
    physical_precedes_as_published,
)
from antecede.core.protocols.topics.relations import (
    ALL,
    SOME,
    TopicRelation,
    TopicTimestamp,
    linear_precedes,
    physical_precedes,
    topics_precede,
    vector_precedes,
)
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError
from tests.core.protocols.seconds import s
from tests.core.protocols.topics.tools import CLASSES, GROUPS, AllTimes, TopicNetwork, publish_all
from tests.helpers.truth import Id

ORDERING = {name: cls.carried_times for name, cls in CLASSES.items()}
"""The relations of section 2, by protocol, and the yardstick of section 3."""


def about(source: int, /, **counts: int) -> TopicTimestamp:
    return TopicTimestamp(source, 1, counts)


def relation(
    parts: CarriedTimes,
    bounds: Bounds[int],
    *,
    members: int = 4,
    reading: str = ALL,
    as_published: bool = False,
) -> TopicRelation:
    delays = Delays(bounds, range(members))
    kind = PrintedTopicRelation if as_published else TopicRelation
    return kind(delays, **parts._asdict(), reading=reading)


# -- rule 1: TV ------------------------------------------------------------------------------


def test_only_common_topics_that_the_receiver_subscribes_to_count() -> None:
    """Nakayama 2017, rule 1: on e1.P & e2.P & p.S; errata: an empty intersection means
    unrelated.
    """
    e1, e2 = about(0, a=1, b=5), about(1, a=2, b=4, c=1)
    assert topics_precede(e1, e2, {"a"})
    assert not topics_precede(e1, e2, {"b"})
    assert topics_precede(e2, e1, {"b"})
    assert not topics_precede(e1, e2, {"a", "b"})
    assert not topics_precede(e2, e1, {"a", "b"})
    assert topics_precede(e1, e2, {"a", "c", "z"})
    for subscription in ({"c"}, {"z"}, set[str]()):
        for reading in (ALL, SOME):
            assert not topics_precede(e1, e2, subscription, reading=reading)
            assert not topics_precede(e2, e1, subscription, reading=reading)


def test_precedes_is_strict_in_every_topic_and_the_other_reading_is_not() -> None:
    e1, e2 = about(0, a=1, b=2), about(1, a=2, b=2)
    assert not topics_precede(e1, e2, {"a", "b"})
    assert topics_precede(e1, e2, {"a", "b"}, reading=SOME)
    same = about(2, a=1, b=2)
    assert not topics_precede(e1, same, {"a", "b"}, reading=SOME)


def test_an_unknown_reading_is_refused() -> None:
    with pytest.raises(LocalError, match="all, some"):
        relation(CarriedTimes(), Bounds(), reading="most")


@pytest.mark.parametrize("part", CarriedTimes._fields)
def test_a_relation_reads_the_times_that_it_is_made_of_and_no_others(part: str) -> None:
    early = TopicTimestamp(0, 1, {"x": 1}, lt=1, pt_ns=s(10), vt=pack({0: 1}.items()))
    late = TopicTimestamp(1, 1, {"x": 2}, lt=2, pt_ns=s(20), vt=pack({0: 1, 1: 1}.items()))
    field = {"linear": "lt", "physical": "pt_ns", "vector": "vt"}[part]
    without: Any = {field: 0}
    changed = late._replace(**without)
    for asked in itertools.product((False, True), repeat=len(CarriedTimes._fields)):
        parts = CarriedTimes(*asked)
        one = relation(parts, GROUPS["alike, good clocks"])
        assert one.precedes(early, late, {"x"})
        assert one.precedes(early, changed, {"x"}) is not getattr(parts, part)


# -- rule 2: LT ------------------------------------------------------------------------------


def test_linear_time_is_compared_strictly_and_as_published_orders_ties_both_ways() -> None:
    """Nakayama 2017, rule 2 prints <=; errata: strict."""
    e1, e2 = TopicTimestamp(0, 1, {}, lt=3), TopicTimestamp(1, 1, {}, lt=3)
    assert not linear_precedes(e1, e2)
    assert not linear_precedes(e2, e1)
    assert linear_precedes_as_published(e1, e2)
    assert linear_precedes_as_published(e2, e1)
    assert linear_precedes(e1, e2._replace(lt=4))


# -- rule 3: PT ------------------------------------------------------------------------------


def orders_at(bounds: Bounds[int], *, as_published: bool) -> list[int]:
    """Return the differences e2.PT - e1.PT, from -9 to 20, at which 0's event precedes 1's."""
    delays = Delays(bounds, range(3))
    rule = physical_precedes_as_published if as_published else physical_precedes
    return [
        later
        for later in range(-9, 21)
        if rule(
            TopicTimestamp(0, 1, {}, pt_ns=s(50)),
            TopicTimestamp(1, 1, {}, pt_ns=s(50 + later)),
            delays,
        )
    ]


def test_rule_3_as_printed() -> None:
    """Nakayama 2017, rule 3: (a) above maxd + 2 epsilon; (b), where mind >= 2 epsilon, from mind -
    2 eps.
    """
    slow: Bounds[int] = Bounds(accuracy_s=1, least_s=5, most_s=8)
    assert orders_at(slow, as_published=True) == list(range(3, 21))
    at_the_limit: Bounds[int] = Bounds(accuracy_s=1, least_s=2, most_s=8)
    assert orders_at(at_the_limit, as_published=True) == list(range(21))
    fast: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=8)
    assert orders_at(fast, as_published=True) == list(range(11, 21))


def test_rule_3_repaired_goes_by_the_least_delay_over_any_path() -> None:
    fast: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=8)
    assert orders_at(fast, as_published=False) == list(range(-1, 21))
    detour: Bounds[int] = Bounds(
        accuracy_s=1, least_s=2, most_s=3, clocks={1: 0}, channels={(0, 1): (9, 9)}
    )
    assert orders_at(detour, as_published=False) == list(range(3, 21))  # 2 + 2 - (1 + 0)
    assert orders_at(detour, as_published=True) == list(range(8, 21))


def test_events_of_one_source_go_by_its_counter() -> None:
    delays = Delays(Bounds(accuracy_s=1, least_s=5, most_s=8), range(2))
    e1, e2 = TopicTimestamp(0, 1, {}, pt_ns=s(50)), TopicTimestamp(0, 2, {}, pt_ns=s(50))
    for rule in (physical_precedes, physical_precedes_as_published):
        assert rule(e1, e2, delays)
        assert not rule(e2, e1, delays)


# -- vector time -----------------------------------------------------------------------------


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=2))
def test_vector_time_precedes_where_no_entry_is_greater(vectors: list[tuple[int, ...]]) -> None:
    """Nakayama 2017, section 3: e1 -> e2 iff e1.VT <= e2.VT, for two events."""
    one, other = vectors
    stamps = [TopicTimestamp(0, 1, {}, vt=pack(enumerate(vector))) for vector in vectors]
    assert vector_precedes(*stamps) == all(a <= b for a, b in zip(one, other, strict=True))


# -- against plain sets ----------------------------------------------------------------------


def pairs(
    network: TopicNetwork, parts: CarriedTimes, **how: object
) -> dict[int, set[tuple[Id, Id]]]:
    """Return by peer the pairs of events it received that a relation orders."""
    ordered = relation(parts, network.bounds, **how)  # type: ignore[arg-type]
    stamps = network.stamps()
    return {
        at: {
            (one, other)
            for one, other in itertools.permutations(network.truth.delivered[at], 2)
            if ordered.precedes(stamps[one], stamps[other], member.subscription)
        }
        for at, member in network.members.items()
    }


def causal_and_related(network: TopicNetwork) -> dict[int, set[tuple[Id, Id]]]:
    """Return by peer the pairs that the oracle calls causal, by receipt, and related."""
    return {
        at: {(one, other) for other in done for one in network.list_needed(at, other)}
        for at, done in network.truth.delivered.items()
    }


groups = pytest.mark.parametrize("group", GROUPS)
seeds = given(seed=st.integers(0, 2**32))


@groups
@seeds
@settings(max_examples=15)
def test_tv_vt_is_causal_by_receipt_and_related_in_topics(group: str, seed: int) -> None:
    """Nakayama 2017, section 3: TV_VT_i is the exact relation."""
    network = TopicNetwork(AllTimes, seed, GROUPS[group]).publish(18).finish()
    assert pairs(network, ORDERING["tv-vt"]) == causal_and_related(network)


@pytest.mark.few(1)
@groups
@seeds
@settings(max_examples=15)
def test_safe_relations_miss_nothing_and_nest(group: str, seed: int) -> None:
    network = TopicNetwork(AllTimes, seed, GROUPS[group]).publish(18).finish()
    for reading in (ALL, SOME):
        found = {name: pairs(network, of, reading=reading) for name, of in ORDERING.items()}
        for at in network.members:
            exact, least = found["tv-vt"][at], found["htbc"][at]
            assert exact <= least
            assert least <= found["tv-lt"][at] <= found["tv"][at]
            assert least <= found["tv-pt"][at] <= found["tv"][at]
            assert least == found["tv-lt"][at] & found["tv-pt"][at]


@seeds
@settings(max_examples=15)
def test_the_other_reading_orders_at_least_as_many_pairs(seed: int) -> None:
    network = TopicNetwork(AllTimes, seed).publish(18).finish()
    for parts in ORDERING.values():
        strict, other = pairs(network, parts), pairs(network, parts, reading=SOME)
        assert all(strict[at] <= other[at] for at in network.members)


@groups
@seeds
@settings(max_examples=15)
def test_a_causal_pair_never_goes_against_the_rank(group: str, seed: int) -> None:
    network = TopicNetwork(AllTimes, seed, GROUPS[group]).publish(18).finish()
    stamps = network.stamps()
    for parts in ORDERING.values():
        rank = relation(parts, GROUPS[group]).rank
        for key in network.sent:
            for cause in network.truth.past[key] & network.sent.keys():
                assert rank(stamps[cause]) < rank(stamps[key])


def count_missed(group: str, runs: int = 12) -> dict[str, int]:
    """Return the number of exact pairs that each published relation misses in some runs."""
    count = dict.fromkeys(ORDERING, 0)
    for seed in range(runs):
        network = TopicNetwork(AllTimes, seed, GROUPS[group]).publish(18).finish()
        exact = causal_and_related(network)
        for name, parts in ORDERING.items():
            found = pairs(network, parts, as_published=True)
            count[name] += sum(len(exact[at] - found[at]) for at in network.members)
    return count


def test_as_published_misses_causal_pairs_where_mind_is_less_than_twice_epsilon() -> None:
    count = count_missed("alike, clocks off by a delay")
    assert count["tv-pt"] > 0
    assert count["htbc"] > 0
    assert count["tv"] == count["tv-lt"] == count["tv-vt"] == 0


def test_as_published_misses_causal_pairs_where_a_path_is_faster_than_the_channel() -> None:
    assert count_missed("all unlike")["htbc"] > 0


def test_as_published_misses_nothing_in_a_group_alike_with_good_clocks() -> None:
    assert count_missed("alike, good clocks") == dict.fromkeys(ORDERING, 0)


# -- every run of a small grid ---------------------------------------------------------------


def chains(
    bounds: Bounds[int], steps: tuple[int, ...]
) -> Iterator[tuple[TopicTimestamp, TopicTimestamp]]:
    """Yield e1 of 0 and e2 of 1, which has e1, or a later event of 2.

    All delays, all clocks, all publications.
    """
    delays = [
        range(bounds.least_delay_ns(a, b) // NS, bounds.most_delay_ns(a, b) // NS + 1)
        for a, b in itertools.pairwise(steps)
    ]
    clocks = [(-bounds.error_ns(k), 0, bounds.error_ns(k)) for k in (steps[0], steps[-1])]
    everything = Subscriptions(dict.fromkeys(range(4), ("a", "b", "c")))
    for took in itertools.product(*delays):
        for offsets in itertools.product(*clocks):
            for first, second in itertools.product(("a", "ab", "b"), repeat=2):
                members = [
                    AllTimes(k, range(4), bounds=bounds, subscriptions=everything) for k in range(4)
                ]
                now = s(100)
                e1 = message = publish_all(members[steps[0]], first, now + offsets[0])
                for at, delay in zip(steps[1:], took, strict=True):
                    now += s(delay)
                    last = at == steps[-1]
                    reading = now + (offsets[1] if last else 0)
                    members[at].receive(message, now=reading)
                    message = publish_all(members[at], second if last else "c", reading)
                yield make_timestamp(e1), make_timestamp(message)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [(0, 1), (0, 2, 1)])
@pytest.mark.parametrize("group", GROUPS)
def test_on_a_small_grid_safe_relations_miss_no_chain(group: str, steps: tuple[int, ...]) -> None:
    bounds = GROUPS[group]
    nearest = relation(CarriedTimes(physical=True), bounds)
    tight = False
    for e1, e2 in chains(bounds, steps):
        related = bool(e1.counts.keys() & e2.counts.keys())
        for parts in ORDERING.values():
            ordered = relation(parts, bounds)
            assert ordered.precedes(e1, e2, {"a", "b", "c"}) == related
            assert not ordered.precedes(e1, e2, {"c"})
        tight = tight or not physical_precedes(e1, e2._replace(pt_ns=e2.pt_ns - 1), nearest.delays)
    delays = Delays(bounds, range(4))
    direct = sum(bounds.least_delay_ns(a, b) for a, b in itertools.pairwise(steps))
    assert tight == (direct < delays.least_ns(0, 1) + 1)  # the bound is reached by the fastest


# -- cycles ----------------------------------------------------------------------------------


class Published(NamedTuple):
    """Event of a run without clocks: its publisher and counts."""

    source: int
    topics: str
    tv: Mapping[str, int]


PUBLICATIONS = ("a", "b", "c", "ab", "bc", "ca")
PEERS = 3


def runs(events: int) -> Iterator[tuple[Published, ...]]:
    """Yield every run of so many events of three peers, with chosen arrivals before each.

    Peers are numbered in the order of their first event, and the first topic is a.
    """

    def extend(
        done: tuple[Published, ...], seen: tuple[frozenset[int], ...]
    ) -> Iterator[tuple[Published, ...]]:
        if len(done) == events:
            yield done
            return
        known = max((e.source for e in done), default=-1)
        for source in range(min(known + 2, PEERS)):
            others = [n for n, e in enumerate(done) if e.source != source and n not in seen[source]]
            for size in range(len(others) + 1):
                for arrived in itertools.combinations(others, size):
                    now = seen[source] | set(arrived)
                    base = {t: max((done[n].tv[t] for n in now), default=0) for t in "abc"}
                    for topics in PUBLICATIONS if done else ("a", "ab"):
                        tv = {t: base[t] + (t in topics) for t in "abc"}
                        mine = (*seen[:source], now | {len(done)}, *seen[source + 1 :])
                        yield from extend((*done, Published(source, topics, tv)), mine)

    yield from extend((), (frozenset(),) * PEERS)


def has_cycle(run: tuple[Published, ...]) -> bool:
    stamps = [
        TopicTimestamp(e.source, n, {t: e.tv[t] for t in e.topics}) for n, e in enumerate(run)
    ]
    follows = {
        n: {m for m, f in enumerate(stamps) if topics_precede(e, f, "abc")}
        for n, e in enumerate(stamps)
    }
    while True:
        ends = {n for n, after in follows.items() if not after & follows.keys()}
        if not ends:
            return bool(follows)
        follows = {n: after for n, after in follows.items() if n not in ends}


@pytest.mark.slow
def test_tv_has_no_cycle_among_four_events() -> None:
    assert not any(has_cycle(run) for run in runs(4))


def test_tv_is_cyclic_over_topics_that_overlap() -> None:
    run = (
        Published(0, "a", {"a": 1, "b": 0, "c": 0}),
        Published(0, "ab", {"a": 2, "b": 1, "c": 0}),
        Published(1, "bc", {"a": 2, "b": 2, "c": 1}),
        Published(2, "c", {"a": 0, "b": 0, "c": 1}),
        Published(2, "ca", {"a": 1, "b": 0, "c": 2}),
    )
    assert has_cycle(run)
    assert not any(has_cycle(run[:n] + run[n + 1 :]) for n in (1, 2, 4))


def test_with_linear_time_a_pair_with_equal_or_falling_lt_is_not_ordered() -> None:
    linear = relation(CarriedTimes(linear=True), Bounds[int](least_s=1, most_s=2))
    for lt, ordered in ((3, False), (4, False), (5, True)):
        first, then = TopicTimestamp(0, 1, {"x": 1}, 1, 4), TopicTimestamp(1, 1, {"x": 2}, 2, lt)
        assert linear.precedes(first, then, ("x",)) is ordered
        assert (linear.rank(first) < linear.rank(then)) or not ordered
