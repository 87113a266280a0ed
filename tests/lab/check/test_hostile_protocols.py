"""`antecede check` on protocols that never return or that hide their state."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.lab.check.check import run_check
from antecede.lab.check.model_checker.explorer import explore
from antecede.lab.check.results import EARLY, ENDLESS
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.check.search_plans import SearchSize, plan_searches
from antecede.lab.check.target import Target, load_class
from tests.lab.check import toys, toys_timed

TOYS = toys_timed.__file__


def test_a_file_with_a_protocol_that_cannot_be_made_without_bounds_is_judged() -> None:
    assert load_class(f"{TOYS}:Impatient").__name__ == "Impatient"
    verdict = run_check(f"{TOYS}:Impatient")
    assert verdict.failures[0].what == EARLY
    run = run_scenario(parse_scenario(verdict.failures[0].to_scenario()))
    assert any("VIOLATION" in line for moment in run.results for line in moment.output)


def test_a_message_that_is_passed_on_for_ever_ends_the_check() -> None:
    (failure,) = run_check(f"{toys.__file__}:PassingOn").failures
    assert failure.what == ENDLESS
    assert run_scenario(parse_scenario(failure.to_scenario())).results


class WideClocks(toys_timed.Patient):
    """Clocks are off by more than the minimum delay separates."""

    @classmethod
    def trial_options(cls, members: Any) -> dict[str, Any]:
        return {"bounds": Bounds(accuracy_s=2, least_s=3, most_s=4)}


@pytest.mark.slow
def test_somebody_can_answer_however_long_the_least_delay_is() -> None:
    target = Target("wide", WideClocks)
    found = [explore(*search).failure for search in plan_searches(target, SearchSize())]
    failures = [failure for failure in found if failure is not None]
    assert failures
    assert failures[0].what == EARLY
    assert {failure.label[0] for failure in failures} != {"a"}
