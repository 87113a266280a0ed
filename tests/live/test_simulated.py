"""Live peers over a simulated network: crashes, partitions, joins, leaves; the oracle judges."""

from __future__ import annotations

import os
import random
import time

import pytest

from antecede.live.settings import NS
from antecede.trace.schema import DELIVER
from tests.live.simulated import Judgement, Plan, Row, Run

ORDERS = ("causal", "causal", "reply", "fifo", "bss", "none")
SOAK_S = float(os.environ.get("ANTECEDE_SOAK_S", "3600"))


def plan_of(seed: int) -> Plan:
    """Return a run that differs from the others in all that matters."""
    draw = random.Random(seed)
    durable = draw.random() < 0.5
    settings = {} if durable else {"put_out_ns": 3 * NS}
    return Plan(
        seed,
        members=draw.randrange(2, 6),
        order=draw.choice(ORDERS),
        durable=durable,
        faults=draw.randrange(2, 7),
        settings=settings,
    )


def verdict(seed: int) -> Judgement:
    judgement = Run(plan_of(seed)).run()
    assert judgement.clean, (plan_of(seed), judgement)
    return judgement


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_nothing_is_lost_early_twice_or_stuck(first: int) -> None:
    done = [verdict(seed) for seed in range(first, first + 40)]
    assert sum(one.messages for one in done) > 40 * 30
    assert sum(one.deliveries for one in done) > 40 * 60


def test_a_run_follows_from_its_seed() -> None:
    one, again = Run(plan_of(7)), Run(plan_of(7))
    one.run(), again.run()
    assert one.rows == again.rows
    assert one.rows != Run(plan_of(9)).rows


def _same_sender(one: Row, other: Row) -> bool:
    return one[0] == other[0] == DELIVER and one[1].lane == other[1].lane


@pytest.mark.parametrize("kind", ["early", "lost", "twice"])
def test_the_judge_finds_what_is_put_wrong_by_hand(kind: str) -> None:
    run = Run(Plan(3, members=3, faults=0))
    run.run()
    rows = next(rows for rows in run.rows.values() if rows[-1][0] == DELIVER)
    if kind == "early":  # two of one sender, one after the other
        at = next(k for k in range(1, len(rows)) if _same_sender(rows[k - 1], rows[k]))
        rows[at - 1], rows[at] = rows[at], rows[at - 1]
    elif kind == "lost":
        rows.remove(next(row for row in rows if row[0] == DELIVER))
    else:
        rows.append(rows[-1])
    run.judgement = Judgement()
    run.judge()
    assert getattr(run.judgement, kind)


@pytest.mark.soak
def test_an_hour_of_runs() -> None:
    end, seed, messages = time.monotonic() + SOAK_S, 10**6, 0
    while time.monotonic() < end:
        messages += verdict(seed).messages
        seed += 1
    assert messages > SOAK_S
