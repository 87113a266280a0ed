"""Super peers over a simulated network: kills, cuts, joins, leaves; the oracle judges."""

from __future__ import annotations

import os
import random
import time
from itertools import count

import pytest

from antecede.live.settings import NS
from antecede.tables.trace.schema import DELIVER
from tests.live.observation import HierarchyObservation
from tests.live.simulated import Judgement
from tests.live.simulated_hierarchy import HierarchyRun, Plan

SOAK_S = float(os.environ.get("ANTECEDE_SOAK_S", "3600"))
KILLS = ("kill",)


def plan_of(seed: int, kinds: tuple[str, ...] = ()) -> Plan:
    """Return a run that differs from the others in all that matters."""
    draw = random.Random(seed)
    return Plan(
        seed,
        supers=draw.randrange(2, 4),
        internals=draw.randrange(2, 7),
        externals=draw.randrange(0, 3),
        faults=draw.randrange(2, 7),
        durable=draw.random() < 0.5,
        kinds=kinds or Plan._field_defaults["kinds"],
    )


def verdict(plan: Plan) -> HierarchyRun:
    run = HierarchyRun(plan)
    judgement = run.run()
    assert judgement.clean, (plan, judgement)
    return run


@pytest.mark.few(1)
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_nothing_is_lost_early_twice_or_stuck(first: int) -> None:
    done = [verdict(plan_of(seed)) for seed in range(first, first + 10)]
    assert sum(one.judgement.messages for one in done) > 10 * 25
    assert sum(one.judgement.deliveries for one in done) > 10 * 75
    assert sum(one.failovers for one in done) > 2


@pytest.mark.slow
def test_the_kill_of_a_super_peer_costs_nobody_inside_its_place() -> None:
    failovers = 0
    for seed in range(100, 116):
        run = verdict(plan_of(seed, KILLS)._replace(faults=1, supers=3))
        failovers += run.failovers
        assert run.anew == 0
        lives = [one.lives for one in run.network.hosts.values() if run.role[one.name] != "super"]
        assert set(lives) == {1}
    assert failovers > 16


@pytest.mark.slow
def test_a_run_follows_from_its_seed() -> None:
    one, again, other = (HierarchyRun(plan_of(seed)) for seed in (7, 7, 9))
    for run in (one, again, other):
        run.run()
    assert one.rows == again.rows
    assert one.rows != other.rows


@pytest.mark.parametrize("kind", ["early", "lost", "twice"])
def test_the_judge_finds_what_is_put_wrong_by_hand(kind: str) -> None:
    run = HierarchyRun(Plan(3, faults=0))
    run.run()
    rows = next(rows for rows in run.rows.values() if rows and rows[-1][0] == DELIVER)
    delivered = [row for row in rows if row[0] == DELIVER]
    if kind == "early":  # two of one sender, the second first
        lane = delivered[-1][1].sender_id
        first, second = [
            k for k, row in enumerate(rows) if row[0] == DELIVER and row[1].sender_id == lane
        ][:2]
        rows[first], rows[second] = rows[second], rows[first]
    elif kind == "lost":
        rows.remove(delivered[-1])
    else:
        rows.append(delivered[-1])
    run.judgement = Judgement()
    run.judge()
    assert getattr(run.judgement, kind)


# -- what holds amid a run -------------------------------------------------------------------


def quiet(internals: int = 4) -> HierarchyRun:
    """Return a run that has begun, with nothing said yet, two inside of s1 at least, one of s2."""
    for seed in count(1):
        run = HierarchyRun(Plan(seed, faults=0, internals=internals))
        run.start()
        if 1 < len(inside(run, "s1")) < internals:
            break
    return run


def inside(run: HierarchyRun, super_peer: str) -> list[str]:
    """Return who is inside of a super peer."""
    return [lane.partition("~")[0] for lane in hierarchy_at(run, super_peer).internal_peers]


def hierarchy_at(run: HierarchyRun, name: str) -> HierarchyObservation:
    return run.network.observe(name).hierarchy


def test_what_only_a_super_peer_has_does_not_go_down() -> None:
    run = quiet(internals=4)
    network = run.network
    first, *others = inside(run, "s1")
    assert others
    network.cut(["s1"], ["s2", "e1"])  # and nobody knows yet
    network.say(first, b"said while cut off")
    network.run(network.now + NS)
    assert all(run.network.payloads(name) == [] for name in others)
    network.heal()
    network.run(network.now + NS)
    assert all(run.network.payloads(name) == [b"said while cut off"] for name in others)


def test_who_comes_over_gets_what_it_lacks_and_what_it_says_follows_that() -> None:
    run = quiet(internals=4)
    network = run.network
    first, second, *_ = inside(run, "s1")
    network.cut(["s1"], [second])
    network.say(first, b"1")
    network.say(second, b"2, unsafe")
    network.run(network.now + NS // 2)
    assert run.network.payloads(second) == []
    network.crash("s1")
    network.run(network.now + 6 * NS)
    assert run.network.payloads(second) == [b"1"]
    assert run.network.payloads(first) == [b"2, unsafe"]
    super_peer = hierarchy_at(run, second).super_peer
    assert super_peer.startswith("s2~")
    assert network.observe(second).unacknowledged_by == {super_peer}
    assert not hierarchy_at(run, second).not_returned


def test_what_one_says_elsewhere_follows_what_one_had() -> None:
    run = quiet(internals=4)
    network = run.network
    first, second, *_ = inside(run, "s1")
    bystanders = inside(run, "s2")
    assert bystanders
    network.cut(["s1"], ["s2"])
    network.say(first, b"1")  # e1 has it too, so it goes down
    network.run(network.now + NS // 5)
    assert run.network.payloads(second) == [b"1"]
    network.crash("s1")
    network.say(second, b"2, after 1")
    network.run(network.now + 6 * NS)
    for name in (*bystanders, "e1"):
        assert run.network.payloads(name) == [b"1", b"2, after 1"]


def test_what_went_out_by_two_super_peers_comes_once() -> None:
    run = quiet(internals=4)
    network = run.network
    first, *_ = inside(run, "s1")
    network.cut(["s1"], ["s2"])
    network.say(first, b"twice")
    while not run.network.payloads("e1"):
        network.run(network.now + NS // 1000)
    assert hierarchy_at(run, first).not_returned
    network.crash("s1")
    network.say(first, b"once")
    network.run(network.now + 6 * NS)
    for name in (*run.of("internal"), "e1"):
        assert run.network.payloads(name) == ([] if name == first else [b"twice", b"once"])
    assert [hierarchy_at(run, name).second_copies for name in ("s2", "e1")] == [1, 1]


def test_what_peers_elsewhere_lack_is_kept_for_them() -> None:
    run = quiet(internals=4)
    network = run.network
    first, second, *_ = inside(run, "s1")
    network.cut([second], run.of("super"))
    network.run(network.now + 6 * NS)
    network.say(first, b"while it was away")
    network.run(network.now + NS)
    network.crash("s1")
    network.heal()
    network.run(network.now + 3 * NS)
    assert run.network.payloads(second) == [b"while it was away"]
    assert not network.observe(second).end_reason


def test_a_peer_inside_knows_its_super_peer_alone() -> None:
    run = quiet(internals=6)
    for name in run.of("internal"):
        run.network.say(name, name.encode())
    run.network.run(run.network.now + NS)
    found, known = run.network.observe("i1"), hierarchy_at(run, "i1")
    assert found.members.keys() == {found.sender_id, known.super_peer}
    assert all(lane[0] in "se" for lane in known.received_from)
    assert all(lane.startswith("s") for lane in known.super_peers)


def test_who_left_is_kept_nothing_for() -> None:
    run = quiet(internals=3)
    network = run.network
    (first, *_) = inside(run, "s1")
    with network.step(first):
        network.send(first, b"last words")
        network.leave(first)
    network.run(network.now + NS)
    assert first not in inside(run, "s1")
    assert not network.observe(first).connected
    others = [name for name in run.of("internal") if name != first]
    assert all(run.network.payloads(name) == [b"last words"] for name in others)


def test_a_silent_peer_inside_is_put_out_and_told_when_it_comes_back() -> None:
    run = quiet(internals=3)
    network = run.network
    first, second, *_ = inside(run, "s1")
    network.cut([first], [name for name in run.names if name != first])
    network.run(network.now + 6 * NS)
    network.say(second, b"said meanwhile")
    network.run(network.now + 6 * NS)
    assert first not in inside(run, "s1")
    network.heal()
    network.run(network.now + 5 * NS)
    assert network.observe(first).end_reason.startswith(
        ("evicted by its super peer: unheard for", "join again: messages that it lacks")
    )


def test_who_was_away_and_missed_nothing_goes_on_elsewhere() -> None:
    run = quiet(internals=3)
    network = run.network
    first, second, *_ = inside(run, "s1")
    network.cut([first], ["s1"])
    network.run(network.now + 12 * NS)
    network.say(second, b"to all")
    network.run(network.now + NS)
    assert first in inside(run, "s2")
    assert run.network.payloads(first) == [b"to all"]


def test_a_super_peer_that_leaves_sends_those_inside_elsewhere() -> None:
    run = quiet(internals=4)
    network = run.network
    moving = inside(run, "s1")
    network.say(moving[0], b"before it leaves")
    network.leave("s1")
    network.run(network.now + 3 * NS)
    assert set(moving) <= set(inside(run, "s2"))
    assert all(network.hosts[name].lives == 1 for name in moving)
    others = [name for name in run.of("internal") if name != moving[0]]
    assert all(run.network.payloads(name) == [b"before it leaves"] for name in others)


@pytest.mark.soak
def test_an_hour_of_runs() -> None:
    end, seed, messages = time.monotonic() + SOAK_S, 10**6, 0
    while time.monotonic() < end:
        messages += verdict(plan_of(seed)).judgement.messages
        seed += 1
    assert messages > SOAK_S
