"""Topics and clocks over live links: who gets what, in which order, and what is said when not."""

from __future__ import annotations

import random

import pytest

from antecede.live.settings import NS
from tests.live.topic_runs import BROADCAST, BY_TOPICS, ClockRun, clock_plan

ORDERS = BY_TOPICS + BROADCAST


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_where_bounds_hold_all_is_in_order_and_no_alarm_sounds(first: int) -> None:
    sent = got = 0
    for seed in range(first, first + 20):
        draw = random.Random(seed)
        plan = clock_plan(
            *(seed, ORDERS[seed % 8]),
            members=draw.randrange(3, 6),
            durable=draw.random() < 0.5,
            faults=0,
        )
        run = ClockRun(plan)
        judgement = run.watched()
        assert judgement.clean, (plan, judgement)
        assert not run.alarms, plan
        assert not run.late
        sent, got = sent + judgement.messages, got + judgement.deliveries
    assert sent > 20 * 50
    assert got > 20 * 60


@pytest.mark.parametrize("first", range(100, 160, 20))
def test_beyond_the_bounds_what_is_out_of_order_was_said_to_be_late(first: int) -> None:
    late = 0
    for seed in range(first, first + 20):
        draw = random.Random(seed)
        durable = draw.random() < 0.5
        plan = clock_plan(
            *(seed, ORDERS[seed % 8]),
            members=draw.randrange(3, 6),
            durable=durable,
            faults=draw.randrange(2, 6),
            settings={} if durable else {"put_out_ns": 3 * NS},
        )
        run = ClockRun(plan)
        judgement = run.watched()
        assert judgement.clean, (plan, judgement)
        late += len(run.late)
    assert late > 20
