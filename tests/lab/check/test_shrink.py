"""Shrinking: counterexamples lose members, messages and actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from antecede.lab.check import shrink as shrinking
from antecede.lab.check.check import find_target
from antecede.lab.check.checked_run import replay
from antecede.lab.check.conformance import SuitePlan, conform, play, shrink_run
from antecede.lab.check.harness.group_under_test import GroupUnderTest, make_flat_group
from antecede.lab.check.results import EARLY, ENDLESS, TIMED_OUT, Failure
from antecede.lab.check.scenario.actions import Action, Arrive, Join, Send
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.check.search_plans import SearchSize, suites
from antecede.lab.check.shrink import MAX_TIMEOUTS, GroupFailure, list_candidates, shrink
from tests.lab.check import require_failure, toys
from tests.lab.check import toys_timed as timed

ROW = re.compile(r"^\| (\w[\w-]*) \| ([\w-]+) \| E\d+ .*? \| ([\w ]+) \| (\d+) \| (\d+) \|", re.M)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "design" / "checking.md"
MEMBERS = {(row[0], row[1]): int(row[3]) for row in ROW.findall(PAGE.read_text("utf-8"))}
SLOW = {
    *(("linear", variant) for variant in ("exclusive-end", "dropped", "dseq", "no-null-messages")),
    ("linear-physical", "no-null-messages"),
}
"""A minute of heartbeats in every replay; `physical` without null messages stands for them."""


@cache
def find_random_failure(name: str, variant: str) -> tuple[GroupUnderTest, Failure]:
    """Return the failure of random runs before shrinking, with its group."""
    for company, plan in suites(find_target(name, variant), SearchSize()):
        for run in range(3 * plan.runs):
            trial = play(company, plan, f"0/{run}")
            failure = trial.failure or trial.check()
            if failure is not None:
                return company, failure
    raise AssertionError(f"{name} {variant} is not refuted")


def small(company: GroupUnderTest, failure: Failure) -> GroupFailure:
    return shrink(company, failure, replay, SuitePlan().replays)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), sorted(MEMBERS.keys() - SLOW))
def test_it_has_no_more_members_than_the_one_of_the_explorer(name: str, variant: str) -> None:
    company, failure = find_random_failure(name, variant)
    found = shrink_run(company, failure)
    assert count_members(found) <= MEMBERS[name, variant]
    assert len(failure.actions) > len(found.actions)


def count_members(found: Failure) -> int:
    """Return the number of members of a counterexample, with joining ones."""
    joined = sum(isinstance(action, Join) for action in found.actions)
    peers = [name for row in found.setup.internal for name in (row[0], *row[1])]
    return len(peers) + len(found.setup.external) + len(found.setup.members) + joined


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), sorted(MEMBERS.keys() - SLOW))
def test_nothing_more_can_be_left_out_and_it_still_fails(name: str, variant: str) -> None:
    company, failure = find_random_failure(name, variant)
    found = small(company, failure)
    again = require_failure(replay(found.group, found.failure.actions))
    assert again.what == failure.what
    assert found.size < GroupFailure(company, failure).size
    for one in list_candidates(found):
        other = replay(one.group, one.actions)
        if other is not None and other.what == failure.what:
            assert GroupFailure(one.group, other).size >= found.size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toy", "least"), [(toys.Eager, 2), (toys.Replies, 2), (timed.Forgetful, 3), (timed.Hearsay, 4)]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_group_of_any_toy_becomes_as_small_as_it_can(toy: type, least: int, seed: int) -> None:
    failure = require_failure(
        conform(make_flat_group("toys", toy, 5), SuitePlan(runs=600, twins=False), seed).failure
    )
    assert failure.what == EARLY
    assert count_members(failure) == least
    sent = [one.label for one in failure.actions if isinstance(one, Send)]
    assert len(sent) == max(2, least - 1)
    # Numbered without holes: a1, a2, b1.
    assert all(label[1] == "1" or f"{label[0]}{int(label[1]) - 1}" in sent for label in sent)


@pytest.mark.slow
def test_a_counterexample_is_a_scenario_that_shows_it() -> None:
    failure = shrink_run(*find_random_failure("tv-pt", "as-published"))
    run = run_scenario(parse_scenario(failure.to_scenario()))
    assert [one.label for one in run.violations()] == [failure.label]


def test_members_are_named_and_their_messages_numbered_without_holes() -> None:
    group = make_flat_group("toys", toys.Eager, 5)
    actions: Sequence[Action] = (
        Send("B", "b1"), Send("C", "c1"), Send("E", "e1"), Arrive("C", "e1"), Send("C", "c2"),
        Arrive("D", "c2"), Send("D", "d1"), Arrive("B", "d1"),
    )  # fmt: skip
    failure = require_failure(replay(group, actions))
    found = small(group, failure).failure
    assert found.setup.members == ("A", "B")
    (first, then) = (one.label for one in found.actions if isinstance(one, Send))
    assert (first, then) in {("a1", "a2"), ("b1", "b2")}
    assert (found.label, found.missing) == (then, (first,))


def test_bounds_clocks_and_subscriptions_go_with_their_members() -> None:
    group = find_target("tv-pt").flat(4, (1, 2, 3, 4))
    fewer = group.remove_member("B")
    assert fewer is not None
    assert fewer.new_names == {"C": "B", "D": "C", **_later("EFGHIJKLMNOPQR")}
    bounds, left = group.timing.bounds, fewer.group.timing.bounds
    assert bounds is not None
    assert left is not None
    old = {0: 0, 1: 2, 2: 3, 3: 4}
    for a, b in ((0, 1), (2, 1), (1, 3)):
        assert left.most_delay_ns(a, b) == bounds.most_delay_ns(old[a], old[b])
    assert fewer.group.timing.offsets_ns == {0: 1, 1: 3, 2: 4}
    for at, before in old.items():
        assert fewer.group.subscriptions[at] == group.subscriptions[before]
    assert find_target("tv-pt").flat(2).remove_member("A") is None


def _later(names: str) -> dict[str, str]:
    return dict(zip(names, "D" + names, strict=False))


def test_a_hierarchy_loses_peers_and_then_their_super_peer() -> None:
    group = find_target("hierarchical").hierarchy((2, 1), 1)
    assert group.remove_member("S") is None
    fewer = group.remove_member("C")
    assert fewer is not None
    assert list(fewer.group.internal) == [("S", ("A", "B")), ("T", ())]
    fewer = fewer.group.remove_member("T")
    assert fewer is not None
    assert fewer.group.describe_size() == "2 internal, 1 super, 1 external peers"
    assert fewer.new_names == {"U": "T"}
    alone = fewer.group.remove_member("X")
    assert alone is not None
    assert alone.group.describe_size() == "2 internal, 1 super, 0 external peers"


def _make_failure(what: str, company: GroupUnderTest, actions: Sequence[Action]) -> Failure:
    return Failure(what, "A", "", (), "", tuple(actions), company.describe(), company.setup)


@pytest.mark.parametrize(
    ("what", "helps", "most"),
    [(EARLY, False, 50), (EARLY, True, 50), (TIMED_OUT, False, MAX_TIMEOUTS)],
)
def test_replays_are_bounded(what: str, helps: bool, most: int) -> None:
    group = make_flat_group("toys", toys.Causal, 5)
    run = play(group, SuitePlan(messages=40), "1").actions
    asked: list[int] = []

    def again(company: GroupUnderTest, actions: Sequence[Action]) -> Failure | None:
        asked.append(len(actions))
        return _make_failure(what, company, actions if helps else run)

    shrink(group, _make_failure(what, group, run), again, 50)
    assert len(asked) <= most


def test_actions_are_bounded_where_runs_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "MAX_ACTIONS", 1_000)
    group = make_flat_group("toys", toys.Causal, 5)
    run = play(group, SuitePlan(messages=40), "1").actions
    taken: list[int] = []

    def again(company: GroupUnderTest, actions: Sequence[Action]) -> Failure | None:
        taken.append(len(actions))
        return None

    shrink(group, _make_failure(EARLY, group, run), again, 5_000)
    assert sum(taken[:-1]) < 1_000 <= sum(taken)


def test_a_run_without_an_end_loses_members_too() -> None:
    group = make_flat_group("toys", toys.Causal, 4)
    run = play(group, SuitePlan(messages=40), "1").actions
    best = shrink(
        group, _make_failure(ENDLESS, group, run), lambda c, a: _make_failure(ENDLESS, c, a), 9_999
    )
    assert len(best.group.names) == 2
    assert len(best.failure.actions) <= 40
