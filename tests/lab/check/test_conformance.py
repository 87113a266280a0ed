"""Adversarial network: passes correct protocols, refutes and shrinks wrong ones."""

from __future__ import annotations

import pytest

from antecede.core.protocols import registry
from antecede.lab.check.check import find_target
from antecede.lab.check.checked_run import JudgedRun
from antecede.lab.check.conformance import SuitePlan, conform, play, replay_with_twin
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.results import (
    DELIVERED_TWICE,
    EARLY,
    ENCODING_CHANGED,
    NEVER_SENT,
    NO_EFFECT,
    RAISED,
    SNAPSHOT_CHANGED,
    STUCK,
    WRONG_REASON,
)
from antecede.lab.check.scenario.actions import Action, Arrive, Join, Leave, Send
from tests.lab.check import require_failure, toys

SHORT = SuitePlan(runs=15)


@pytest.mark.judged
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        (name, variant)
        for name, entry in registry.ENTRIES.items()
        if entry.flat
        for variant in ("", *entry.variants)
        if variant not in entry.defective
    ],
)
def test_built_in_protocols_pass(name: str, variant: str) -> None:
    suite = conform(find_target(name, variant).flat(4), SHORT)
    assert suite.failure is None
    assert suite.runs == SHORT.runs
    assert suite.deliveries > 100


@pytest.mark.parametrize("toy", [toys.Causal, toys.Receipt])
def test_right_protocols_of_one_file_pass(toy: type) -> None:
    assert conform(make_flat_group("toys", toy, 4), SHORT).failure is None


@pytest.mark.parametrize(
    ("toy", "what"),
    [
        (toys.Eager, EARLY),
        (toys.Lazy, STUCK),
        (toys.Twice, DELIVERED_TWICE),
        (toys.Ghost, NEVER_SENT),
        (toys.Raises, RAISED),
        (toys.Forgetful, SNAPSHOT_CHANGED),
        (toys.Drifting, SNAPSHOT_CHANGED),
        (toys.Garbled, ENCODING_CHANGED),
        (toys.Lossy, STUCK),
        (toys.Mute, NO_EFFECT),
        (toys.Liar, WRONG_REASON),
    ],
)
def test_each_kind_of_failure_is_caught_and_shortened(toy: type, what: str) -> None:
    group = make_flat_group("toys", toy, 4)
    failure = require_failure(conform(group, SuitePlan(runs=40)).failure)
    assert failure.what == what
    assert len(failure.actions) <= 8
    group = make_flat_group("toys", toy, len(failure.setup.members))
    again = require_failure(replay_with_twin(group, failure.actions))
    assert again.what == failure.what


def test_runs_come_from_the_seed_alone() -> None:
    group = find_target("idr").flat(4)
    first, again, other = (play(group, SuitePlan(), seed).actions for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


def test_the_network_does_all_it_claims_to() -> None:
    group = find_target("bss").flat(4)
    kinds = set()
    for seed in range(20):
        for action in play(group, SuitePlan(), str(seed)).actions:
            kinds.add((type(action).__name__, getattr(action, "again", False)))
    assert kinds == {
        ("Send", False),
        ("Arrive", False),
        ("Arrive", True),
        ("Join", False),
        ("Leave", False),
        ("Tick", False),
    }


def test_a_newcomer_is_judged_from_its_sponsors_frontier_on() -> None:
    run = JudgedRun(find_target("bss").flat(3))
    failure = run.run_actions(
        [
            Send("A", "a1"),
            Arrive("B", "a1"),
            Join("D", "B"),
            Send("B", "b1"),
            Arrive("D", "b1"),
            Send("D", "d1"),
            Arrive("C", "d1"),
            Arrive("C", "b1"),
            Arrive("C", "a1"),
        ]
    )
    assert failure is None
    assert len(run.actions) == 9
    assert [row.id for row in run.build_events() if row.member == "3"] == ["a1", "b1", "b1", "d1"]


def test_impossible_actions_are_passed_over() -> None:
    run = JudgedRun(find_target("fifo").flat(2))
    nonsense: list[Action] = [
        Arrive("A", "b1"),
        Send("Z", "z1"),
        Leave("A"),
        Arrive("B", "a1", again=True),
        Send("A", "a1", ("never",)),
    ]
    assert run.run_actions(nonsense) is None
    assert run.actions == []
