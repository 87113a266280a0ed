"""Homogeneous TBC of Nakayama 2017: one delay between every pair of peers."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.topics.messages import CarriedTimes
from antecede.core.protocols.topics.protocols import Htbc
from antecede.core.protocols.topics.relations import TopicRelation, TopicTimestamp
from tests.core.protocols.seconds import s
from tests.core.protocols.topics.test_relations import relation
from tests.core.protocols.topics.tools import MOST_MEMBERS, AllTimes, TopicNetwork

LEAST_S, MOST_S = 3, 5
SEEDS = range(12)
TBC = CarriedTimes(linear=True, physical=True)


def alike(accuracy_s: float, *, spelled: bool = False) -> Bounds[int]:
    """Return bounds of a homogeneous network; `spelled`: each channel is named."""
    pairs = [(a, b) for a in range(MOST_MEMBERS) for b in range(MOST_MEMBERS) if a != b]
    channels = dict.fromkeys(pairs, (LEAST_S, MOST_S)) if spelled else {}
    base: dict[str, Any] = {"accuracy_s": accuracy_s, "least_s": LEAST_S, "most_s": MOST_S}
    return Bounds(**base, channels=channels)


@pytest.mark.parametrize("accuracy_s", [0, 1])
def test_homogeneous_tbc_delivers_in_topic_based_causal_order(accuracy_s: float) -> None:
    """Nakayama 2017, abstract and section 2: in a homogeneous network, TBC delivers every pair of
    events that are causally related and have topics in common in that order.
    """
    for seed in SEEDS:
        network = TopicNetwork(Htbc, seed, alike(accuracy_s)).publish(24).finish()
        assert network.early == []
        assert network.truth.delivered


@pytest.mark.parametrize("accuracy_s", [0, 1])
def test_homogeneous_tbc_is_htbc_with_one_delay(accuracy_s: float) -> None:
    """Nakayama 2017, section 2, rule 4: e1 TBC-precedes e2 if TV, LT and PT say so; in a
    homogeneous network rule 3 has one delay: e2.PT - e1.PT >= mind - 2 epsilon (repaired).
    """
    bounds = alike(accuracy_s)
    order = relation(TBC, bounds, members=MOST_MEMBERS)
    ordered = 0
    for seed in SEEDS:
        network = TopicNetwork(AllTimes, seed, bounds).publish(24).finish()
        stamps = list(network.stamps().values())
        for e1 in stamps:
            for e2 in stamps:
                if e1.source != e2.source:
                    subscribed = e1.counts.keys() | e2.counts.keys()
                    assert order.precedes(e1, e2, subscribed) == tbc(e1, e2, accuracy_s)
                    ordered += tbc(e1, e2, accuracy_s)
    assert ordered > 100


def tbc(e1: TopicTimestamp, e2: TopicTimestamp, accuracy_s: float) -> bool:
    """Return True if e1 TBC-precedes e2 at a peer that subscribes to all topics of both."""
    common = e1.counts.keys() & e2.counts.keys()
    by_topics = bool(common) and all(e1.counts[t] < e2.counts[t] for t in common)
    return by_topics and e1.lt < e2.lt and e2.pt_ns - e1.pt_ns >= s(LEAST_S - 2 * accuracy_s)


def test_a_homogeneous_network_may_be_given_channel_by_channel() -> None:
    for seed in SEEDS:
        runs = [
            TopicNetwork(Htbc, seed, alike(1, spelled=spelled)).publish(24).finish()
            for spelled in (False, True)
        ]
        assert runs[0].truth.delivered == runs[1].truth.delivered
    delays = [Delays(alike(1, spelled=spelled), range(MOST_MEMBERS)) for spelled in (False, True)]
    orders = [TopicRelation(one, linear=True, physical=True) for one in delays]
    for gap in range(-2, 6):
        e1, e2 = (
            TopicTimestamp(0, 1, {"x": 1}, lt=1),
            TopicTimestamp(1, 1, {"x": 2}, lt=2, pt_ns=s(gap)),
        )
        answers = {order.precedes(e1, e2, {"x"}) for order in orders}
        assert answers == {gap >= LEAST_S - 2}
