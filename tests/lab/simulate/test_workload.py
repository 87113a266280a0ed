"""Who gets what: addressees, topics, replies; drawn by message, whatever carries it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from antecede.lab.simulate.config.model import SimulationConfig, Workload
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Mesh, PubSub
from antecede.lab.simulate.workload import Traffic, draw_subscriptions, list_topics
from tests.lab.simulate.small_configs import TALK, config_of


def test_addressees_are_others_drawn_evenly() -> None:
    traffic = Traffic(SimulationConfig(Mesh(6), workload=Workload(fanout=2)), 3)
    counted: Counter[int] = Counter()
    for message in range(3000):
        chosen = traffic.choose_addressees(message, 4)
        assert chosen is not None
        assert chosen == tuple(sorted(set(chosen)))
        assert len(chosen) == 2
        counted.update(chosen)
    assert set(counted) == {0, 1, 2, 3, 5}
    assert all(1100 < count < 1300 for count in counted.values())


def test_everybody_is_nobody_in_particular() -> None:
    for fanout in (None, 5, 9):
        traffic = Traffic(SimulationConfig(Mesh(6), workload=Workload(fanout=fanout)), 3)
        assert traffic.choose_addressees(0, 4) is None


def test_a_message_for_some_goes_to_them_alone() -> None:
    config = config_of("ses", topology=Mesh(5), workload=replace(TALK, fanout=2))
    result, run = run_readable(config, 2, record=True)
    assert result.figures["deliveries"] == 2 * result.figures["sent"]
    for _, member, message in run.deliveries():
        assert member in run.receivers(message)


def test_subscriptions_and_publications_have_1_to_so_many_topics() -> None:
    """Nakayama 2017, section 3: h_i and k_i are drawn out of 1 to xt."""
    topology = PubSub((500, 500), topics=12, subscribed=4)
    names = list_topics(topology)
    assert names[0] == "t00"
    assert names[-1] == "t11"
    chosen = draw_subscriptions(topology, 1)
    sizes = Counter(map(len, chosen))
    assert set(sizes) == {1, 2, 3, 4}
    assert all(200 < count < 300 for count in sizes.values())
    each = Counter(topic for own in chosen for topic in own)
    assert set(each) == set(names)
    assert all(150 < count < 270 for count in each.values())
    workload = Workload("random", messages=10, topics=3)
    traffic = Traffic(SimulationConfig(topology, "htbc", workload=workload), 1)
    found = [traffic.choose_topics(message) for message in range(3000)]
    assert Counter(map(len, found)).keys() == {1, 2, 3}
    assert all(list(topics) == sorted(set(topics)) for topics in found)
    assert traffic.subscriptions == chosen


def test_everybody_subscribes_to_all_unless_said() -> None:
    assert draw_subscriptions(PubSub((2,), topics=3), 1) == (frozenset({"t0", "t1", "t2"}),) * 2


def test_replies_are_to_what_was_delivered_lately() -> None:
    workload = replace(TALK, reply_fraction=0.7, recent=3)
    config = config_of("sb", workload=workload, duration_s=4.0)
    _, run = run_readable(config, 2, record=True)
    delivered: dict[int, list[int]] = {}
    replies = asked = 0
    for _, kind, member, message in run.events():
        recent = delivered.setdefault(member, [])
        if kind == 0:
            asked += bool(recent)
            replies += len(run.parents[message])
            assert set(run.parents[message]) <= set(recent[-3:])
        elif kind == 2:
            recent.append(message)
    assert 0.55 < replies / asked < 0.85
