"""The check continues after less severe failures; consecutive ticks are merged."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from antecede.lab.check.check import find_target, run_check
from antecede.lab.check.checked_run import replay
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.results import (
    EARLY,
    LESS_SEVERE,
    NEEDLESS_HOLD,
    STUCK,
    WRONG_CLAIM,
    Failure,
    Verdict,
)
from antecede.lab.check.scenario.actions import Tick
from tests.lab.check import require_failure, toys, toys_timed

TOYS = Path(__file__).with_name("toys_severity.py")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("LazyThenEager", [NEEDLESS_HOLD, STUCK, EARLY]),
        ("LiarThenEager", [EARLY]),
        ("MuteThenEager", [EARLY]),
    ],
)
def test_an_early_delivery_of_larger_groups_is_reported(name: str, found: list[str]) -> None:
    failures = run_check(f"{TOYS}:{name}", messages=2).failures
    assert [one.what for one in failures] == found
    assert [one.severity for one in failures] == sorted(one.severity for one in failures)


def test_a_run_shows_its_gravest_failure() -> None:
    failure = require_failure(
        conform(make_flat_group("toys", toys.Lazy, 4), SuitePlan(runs=40)).failure
    )
    assert failure.what == STUCK, "what is stuck was held without need before"
    assert failure.severity > LESS_SEVERE.index(NEEDLESS_HOLD)


def test_a_wrong_claim_hides_nothing_graver() -> None:
    failures = run_check(f"{TOYS}:ClaimsThenEager", messages=2).failures
    assert failures[0].what == WRONG_CLAIM
    assert failures[-1].severity == len(LESS_SEVERE)


def test_any_failure_ends_a_search_for_the_first_one() -> None:
    verdict = run_check(f"{TOYS}:LazyThenEager", messages=2, first_failure=True)
    assert [one.what for one in verdict.failures] == [NEEDLESS_HOLD]


def has_folded_ticks(failure: Failure) -> bool:
    ticks = [isinstance(action, Tick) for action in failure.actions]
    return not any(a and b for a, b in pairwise(ticks))


@pytest.mark.parametrize(
    ("protocol", "variant", "lines"),
    [
        ("linear", "dseq", 6),
        ("linear", "dropped", 6),
        ("linear", "no-null-messages", 6),
        ("physical", "no-null-messages", 4),
    ],
)
def test_a_message_held_for_ever_is_shown_with_few_ticks(
    protocol: str, variant: str, lines: int
) -> None:
    failure = run_check(protocol, variant=variant, first_failure=True).failures[0]
    assert failure.what == STUCK
    assert len(failure.lines()) <= lines, failure.lines()
    target = find_target(protocol, variant)
    again = require_failure(replay(target.flat(len(failure.setup.members)), failure.actions))
    assert (again.what, again.at, again.label) == (STUCK, failure.at, failure.label)


@pytest.mark.parametrize("name", ["Stuck", "Impatient", "Hopeful"])
def test_ticks_in_a_row_become_one(name: str) -> None:
    file = Path(__file__).with_name("toys_timed.py")
    verdict: Verdict = run_check(f"{file}:{name}", messages=2, first_failure=True)
    assert not verdict.ok
    assert has_folded_ticks(verdict.failures[0]), verdict.failures[0].lines()


def test_ticks_in_a_row_become_one_in_the_network() -> None:
    failure = require_failure(
        conform(make_flat_group("toys", toys_timed.Stuck, 3), SuitePlan(runs=40)).failure
    )
    assert failure.lines() == ["send B b1", "tick 3", "arrive A b1", "tick 9"]
