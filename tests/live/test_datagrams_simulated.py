"""Groups over simulated datagrams that lose, repeat and mix up; the oracle judges."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from antecede.live.drivers.lossy import MS, Weather
from antecede.trace.schema import DELIVER, SEND
from tests.live.simulated_datagrams import Judgement, Plan, Run

ORDERS = ("matrix", "matrix", "linear", "physical", "linear-physical")
FAULTS = ("crash", "crash", "freeze", "leave", "leave", "cut", "one way", "long")


def plan_of(seed: int) -> Plan:
    """Return a run that differs from the others in all that matters."""
    draw = random.Random(seed)
    order = draw.choice(ORDERS)
    bound = order != "matrix" and draw.random() < 0.25
    weather = Weather(
        loss=draw.choice((0, 0.01, 0.1, 0.2) if bound else (0, 0.01, 0.1, 0.2, 0.3, 0.4)),
        twice=draw.choice((0, 0.2)),
        least_ns=2 * MS,
        most_ns=draw.choice((5, 30, 60)) * MS,
        off_ns=MS // 2,
    )
    # Bounds of delays hold neither in a partition nor for what a dead member leaves to others.
    kinds = ("leave",) if bound else FAULTS
    return Plan(
        *(seed, order, "bound" if bound else "null"),
        members=draw.randrange(2, 6),
        weather=weather,
        faults=tuple(draw.choice(kinds) for _ in range(draw.randrange(0, 4))),
        late=draw.randrange(0, 3),
        largest=draw.choice((60, 60, 3000)),
    )


def verdict(seed: int) -> Judgement:
    judgement = Run(plan_of(seed)).run()
    assert judgement.clean, (plan_of(seed), judgement)
    return judgement


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 160, 20))
def test_nothing_is_lost_early_twice_or_stuck(first: int) -> None:
    done = [verdict(seed) for seed in range(first, first + 20)]
    assert sum(one.messages for one in done) > 20 * 30
    assert sum(one.deliveries for one in done) > 20 * 60
    faults = sum((one.done for one in done), Counter[str]())
    assert faults["join"]
    assert faults["left"]
    assert faults["no quorum"] <= 2


def test_a_run_follows_from_its_seed() -> None:
    one, again = Run(plan_of(7)), Run(plan_of(7))
    one.run(), again.run()
    logs = [[host.node.log for host in run.network.hosts.values()] for run in (one, again)]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("kind", ["early", "lost", "twice"])
def test_the_judge_finds_what_is_put_wrong_by_hand(kind: str) -> None:
    run = Run(Plan(3, members=3, late=0))
    assert run.run().clean
    log = next(one.node.log for one in run.alive() if one.node.log and len(one.node.log) > 40)
    assert log is not None
    rows = [k for k, row in enumerate(log) if row[0] == DELIVER]
    if kind == "early":
        same = ((a, b) for a, b in pairwise(rows) if log[a][1] == log[b][1])
        a, b = next((a, b) for a, b in same if all(row[0] != SEND for row in log[a:b]))
        log[a], log[b] = log[b], log[a]
    elif kind == "lost":
        del log[rows[-1]]
    else:
        log.append(log[rows[0]])
    run.judgement = Judgement()
    run.judge()
    assert getattr(run.judgement, kind)
