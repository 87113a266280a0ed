"""Claims of matrix clocks about other members, compared with the truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.core.protocols.registry import ENTRIES
from antecede.lab.check.check import find_target, run_check
from antecede.lab.check.checked_run import replay
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.results import CONTRACT_BROKEN, RAISED, WRONG_CLAIM, Failure, Verdict
from tests.lab.check import require_failure

TOYS = Path(__file__).with_name("toys_claims.py")


def verdict(name: str) -> Verdict:
    return run_check(f"{TOYS}:{name}", messages=2, quick=True, first_failure=True)


def failure_of(name: str) -> Failure:
    (failure,) = {one.what: one for one in verdict(name).failures}.values()
    return failure


@pytest.mark.parametrize(
    ("name", "words", "lines"),
    [
        ("OneOfAll", "stable() claims that every member has a1, which C lacks", 2),
        ("OneAhead", "stable() claims that every member has a1, which B lacks", 1),
        ("OnceSent", "knows(B, A) claims that B has a1, which B lacks", 1),
        ("Held", "knows(C, A) claims that C has a2, which C lacks", 3),
        ("Restored", "stable() claims that every member has a1, which B lacks", 1),
        ("Unsent", "stable() returns 1 for B, which has sent fewer messages", 1),
    ],
)
def test_a_claim_that_is_too_large_is_found_with_few_actions(
    name: str, words: str, lines: int
) -> None:
    failure = failure_of(name)
    assert (failure.what, failure.detail) == (WRONG_CLAIM, words)
    assert len(failure.lines()) <= lines, failure.lines()


def test_a_claim_about_a_newcomer_is_found_in_the_network() -> None:
    target = find_target(f"{TOYS}:Newcomer")
    suite = conform(target.flat(3), SuitePlan(runs=60), 0)
    assert suite.failure is not None
    assert suite.failure.what == WRONG_CLAIM
    assert any(line.startswith("join") for line in suite.failure.lines())
    assert len(suite.failure.lines()) <= 3, suite.failure.lines()


def test_a_saved_counterexample_fails_in_the_same_way() -> None:
    failure = failure_of("OneOfAll")
    again = require_failure(replay(find_target(f"{TOYS}:OneOfAll").flat(3), failure.actions))
    assert (again.what, again.detail) == (WRONG_CLAIM, failure.detail)


def test_a_snapshot_that_adds_claims_is_found_by_runs_that_restore() -> None:
    target = find_target(f"{TOYS}:Restored")
    suite = conform(target.flat(3), SuitePlan(runs=20), 0)
    assert suite.failure is not None
    assert "every member has" in suite.failure.sentence()


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        (
            "NoNumbers",
            CONTRACT_BROKEN,
            "stable() must return a number of messages from 0, not 'all'",
        ),
        ("Raises", RAISED, "KeyError"),
    ],
)
def test_an_answer_that_is_no_number_is_refused(name: str, what: str, words: str) -> None:
    failure = verdict(name).failures[-1]
    assert failure.what == what
    assert words in failure.detail


@pytest.mark.parametrize("name", ["CannotTell", "OtherMeaning"])
def test_a_member_need_not_claim_anything(name: str) -> None:
    assert verdict(name).ok


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["", *ENTRIES["matrix"].variants])
def test_matrix_clocks_claim_nothing_that_is_wrong(variant: str) -> None:
    assert run_check("matrix", variant=variant, quick=True).ok
