"""Bounds of any size are explored at their limits, to the nanosecond."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.registry import entry
from antecede.core.protocols.topics.protocols import Htbc
from antecede.lab.check.checked_run import replay
from antecede.lab.check.conformance import SuitePlan, conform, play
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.harness.timing import compute_instants_ns, compute_step_ns, describe_steps
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.results import EARLY, STUCK
from antecede.lab.check.scenario.verdict import format_searches
from antecede.lab.check.search_plans import SearchSize, list_clock_offsets, plan_searches
from antecede.lab.check.target import Target
from tests.lab.check import require_failure, toys_timed

TENTHS = Bounds[int](accuracy_s=0.1, least_s=0.1, most_s=0.3)
ODD = Bounds[int](accuracy_ns=100_000_003, least_ns=100_000_001, most_ns=300_000_007)
LONG = Bounds[int](accuracy_s=60, least_s=60, most_s=300)
GIVEN = {"default": None, "tenths": TENTHS, "odd": ODD, "long": LONG}


class Bound(LinearPhysical):
    """Delivers by the bound of the delay."""

    def __init__(self, me: int, members: Iterable[int], **options: Any) -> None:
        super().__init__(me, members, **{**options, "delivery": "bound"})


class DueAtTheLimit(Bound):
    """Delivers at the reading at which a cause may still arrive: < for <=."""

    def wait_ns(self, sender: int) -> int:
        return super().wait_ns(sender) - 1


class SeparationTooLarge(Bound):
    """Treats pairs as concurrent that are exactly as close as causal pairs can be."""

    def relate(self, separation: Any) -> Any:
        old = separation.between_ns
        separation.between_ns = lambda a, b: old(a, b) + 1
        return super().relate(separation)


class DueTooSoon(Htbc):
    """Delivers at the reading at which an earlier event may still arrive."""

    def due_ns(self, waiting: Any) -> int:
        return super().due_ns(waiting) - 1


def what_is_found(cls: type, given: str) -> set[str]:
    bounds = GIVEN[given]
    options = {} if bounds is None else {"bounds": bounds}
    found = set()
    for offsets in list_clock_offsets(Target("own", cls, None, options), 3):
        group = make_flat_group("own", cls, 3, options, offsets)
        failure = explore(group, SearchLimits(2, send_until=2, extremes=True)).failure
        if failure is not None:
            again = require_failure(replay(group, failure.actions))
            assert again.what == failure.what
            found.add(failure.what)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("given", GIVEN)
def test_the_condition_as_it_is_keeps_its_promise(given: str) -> None:
    assert what_is_found(Bound, given) == set()


@pytest.mark.slow
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("cls", [DueAtTheLimit, SeparationTooLarge])
def test_a_condition_that_is_off_by_one_nanosecond_is_refuted(cls: type, given: str) -> None:
    assert what_is_found(cls, given) == {EARLY}


def test_a_rule_of_topics_that_is_off_by_one_nanosecond_is_refuted() -> None:
    found = (
        explore(*search).failure
        for search in plan_searches(Target("due", DueTooSoon), SearchSize())
    )
    failure = next((one for one in found if one is not None), None)
    assert failure is not None
    assert failure.what == EARLY


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", ["linear", "linear-physical"])
def test_the_network_keeps_given_bounds(name: str, given: str) -> None:
    bounds = GIVEN[given]
    options = {} if bounds is None else {"bounds": bounds}
    group = make_flat_group(name, entry(name).load(), 4, options)
    assert conform(group, SuitePlan(runs=3, messages=6)).failure is None
    trial = play(group, SuitePlan(messages=6), "1")
    assert trial.world.now_ns > 0
    assert len(trial.sent_labels) == 6
    assert not trial.is_unfinished() or trial.check() is None


def test_the_network_meets_both_limits_of_uneven_delays() -> None:
    group = make_flat_group(
        "linear", entry("linear").load(), 3, {"bounds": ODD, "heartbeat_s": 0.2}
    )
    taken = set()
    for seed in range(10):
        trial = play(group, SuitePlan(messages=6, duplicates=0.0), str(seed))
        assert trial.failure is None
        now_ns = 0
        for action in trial.actions:
            now_ns += int(getattr(action, "seconds", 0) * NS)
            taken.add(now_ns)
    assert {ODD.least_ns, ODD.most_ns} & taken
    assert any(one % 1000 for one in taken)


def test_steps_of_time_meet_every_delay() -> None:
    assert compute_step_ns(Bounds[int](least_s=1, most_s=3)) == NS
    assert compute_step_ns(Bounds[int](least_s=2, most_s=4)) == NS
    assert compute_step_ns(TENTHS) == NS // 10
    assert compute_step_ns(LONG) == 60 * NS
    assert compute_step_ns(Bounds[int](least_s=0, most_s=0.3)) == NS // 10
    assert compute_step_ns(Bounds[int](least_s=0, most_s=0)) == NS
    assert compute_step_ns(ODD) == 0
    assert {0, ODD.least_ns, ODD.most_ns, 2 * ODD.least_ns} <= set(compute_instants_ns(ODD))
    assert describe_steps(TENTHS) == "steps of 0.1 s"
    assert "0.100000001 s, 0.300000007 s" in describe_steps(ODD)


@pytest.mark.slow
def test_the_verdict_says_in_which_steps_time_went_by() -> None:
    options = {"bounds": TENTHS}
    parts = (
        explore(
            make_flat_group("own", DueAtTheLimit, 3, options, offsets),
            SearchLimits(2, send_until=2, extremes=True),
        )
        for offsets in list_clock_offsets(Target("own", DueAtTheLimit, None, options), 3)
    )
    part = next(part for part in parts if part.failure is not None)
    printed = "\n".join(format_searches([part]))
    assert "within 0.2 s, minimum or maximum delays" in printed
    assert "(time passes in steps of 0.1 s; a copy takes any delay" in printed
    assert part.failure is not None
    assert "tick 0.1\n" in part.failure.to_scenario()
    assert "bounds accuracy=0.1 least=0.1 most=0.3" in part.failure.to_scenario()


def test_what_only_takes_long_is_not_called_stuck() -> None:
    offsets = (NS, -NS, NS)
    group = make_flat_group("linear-physical", LinearPhysical, 3, {"heartbeat_s": 100.0}, offsets)
    assert explore(group, SearchLimits(1, send_until=1)).failure is None
    assert conform(group, SuitePlan(runs=3, messages=4)).failure is None


def test_what_never_comes_is_stuck_and_the_longest_steps_are_not_shown() -> None:
    failure = explore(
        make_flat_group("toys", toys_timed.Stuck, 2), SearchLimits(1, send_until=0)
    ).failure
    assert failure is not None
    assert failure.what == STUCK
    assert len(failure.actions) < 60
