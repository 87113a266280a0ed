"""Model checker: exact on small groups, and equivalent to the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import pytest

from antecede.lab.check.causal_past import iter_bits
from antecede.lab.check.check import find_target
from antecede.lab.check.checked_run import JudgedRun, replay
from antecede.lab.check.conformance import replay_with_twin
from antecede.lab.check.harness.group_under_test import GroupUnderTest, make_flat_group
from antecede.lab.check.model_checker.explorer import Explorer, SearchAction, SearchLimits, explore
from antecede.lab.check.model_checker.invariants import CheckerFinding
from antecede.lab.check.results import (
    CONTRACT_BROKEN,
    DELIVERED_TWICE,
    EARLY,
    NEEDLESS_HOLD,
    NEVER_SENT,
    RAISED,
    SNAPSHOT_CHANGED,
    STUCK,
)
from tests.lab.check import require_failure, toys, toys_timed


def company(name: str, size: int, variant: str = "") -> GroupUnderTest:
    return find_target(name, variant).flat(size)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "messages", "states"),
    [("fifo", 4, 4_589), ("bss", 4, 23_261), ("idr", 4, 23_261), ("sb", 3, 4_211)],
)
def test_every_interleaving_keeps_every_promise(name: str, messages: int, states: int) -> None:
    found = explore(company(name, 3), SearchLimits(messages))
    assert found.failure is None
    assert found.complete
    assert found.states == states


def test_the_state_space_of_two_members_is_what_can_be_counted_by_hand() -> None:
    """One message of A: not sent, in flight, arrived. Two members: the same for B.

    Each of the two messages has 3 states: 3 * 3 with at most two messages, plus A's second and B's
    second. With at most one message 1 + 2 + 2.
    """
    assert explore(company("fifo", 2), SearchLimits(1)).states == 5
    one_each = explore(company("fifo", 2), SearchLimits(2, senders=(0, 1)))
    # 1 + (a1 sent, arrived) + (a1: way or there) * (b1: way or there)
    assert one_each.states == 1 + 2 + 4


@pytest.mark.parametrize(
    ("peers", "limits", "states"),
    [
        (2, SearchLimits(2), 3_000),
        pytest.param(2, SearchLimits(3), 300_000, marks=pytest.mark.slow),
        (1, SearchLimits(4, senders=(0, 2, 0, 2)), 0),
    ],
)
def test_hierarchies_keep_every_promise(peers: int, limits: SearchLimits, states: int) -> None:
    found = explore(find_target("hierarchical").hierarchy((peers,), peers), limits)
    assert found.failure is None
    assert found.complete
    assert found.states > states


def list_paths(
    explorer: Explorer, state: int, moves: tuple[SearchAction, ...]
) -> Iterator[tuple[tuple[SearchAction, ...], CheckerFinding | None]]:
    """Yield (actions, finding) for every path, not only for every state."""
    ended = True
    for move, successor, found in explorer.list_successors(state):
        ended = False
        path = (*moves, move)
        yield path, found
        if found is None:
            yield from list_paths(explorer, successor, path)
    assert not ended or explorer.unpack(state).in_flight == ()


def check_with_oracle(
    explorer: Explorer, path: Sequence[SearchAction], found: CheckerFinding | None
) -> JudgedRun:
    """Replay a path; the oracle finds the same failure."""
    run = JudgedRun(explorer.group)
    failure = run.run_actions(explorer.to_scenario_actions(path))
    # Only the network checks that arrivals have effects.
    broken = failure if failure is not run.minor_failure else None
    what = found.kind if found is not None else None
    assert (broken.what if broken is not None else None) == what, run.actions
    return run


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("group", "limits"),
    [
        (company("bss", 2), SearchLimits(2, duplicates=1)),
        (company("bss", 3, "as-published"), SearchLimits(2)),
        (company("unordered", 3), SearchLimits(2)),
        (company("sb", 2), SearchLimits(3)),
        (make_flat_group("toys", toys.Receipt, 3), SearchLimits(2)),
        (make_flat_group("toys", toys.Eager, 3), SearchLimits(2)),
        (make_flat_group("toys", toys.Lazy, 3), SearchLimits(2)),
        (make_flat_group("toys", toys.Lossy, 2), SearchLimits(2)),
        (make_flat_group("toys", toys.Twice, 2), SearchLimits(2)),
        (make_flat_group("toys", toys.Replies, 2), SearchLimits(3)),
        (make_flat_group("toys", toys_timed.Forgetful, 3), SearchLimits(2)),
        (make_flat_group("toys", toys_timed.Gossip, 3), SearchLimits(1)),
    ],
    ids=lambda value: value.protocol if isinstance(value, GroupUnderTest) else str(value[:2]),
)
def test_the_judge_agrees_with_the_oracle_on_every_path(
    group: GroupUnderTest, limits: SearchLimits
) -> None:
    explorer = Explorer(group, limits)
    paths = 0
    for path, found in list_paths(explorer, explorer.make_start_state(), ()):
        paths += 1
        run = check_with_oracle(explorer, path, found)
        assert len(run.actions) == len(path)
        if run.failure is not None and found is not None and found.kind == EARLY:
            assert set(run.failure.missing) == {
                explorer.labels[k] for k in iter_bits(found.missing)
            }
    assert paths > 10


@pytest.mark.parametrize(
    ("toy", "what"),
    [
        (toys.Eager, EARLY),
        (toys.Lazy, NEEDLESS_HOLD),
        (toys.Lossy, STUCK),
        (toys.Twice, DELIVERED_TWICE),
        (toys.Ghost, NEVER_SENT),
        (toys.Raises, RAISED),
        (toys.Drifting, SNAPSHOT_CHANGED),
    ],
)
def test_each_kind_of_failure_is_found(toy: type, what: str) -> None:
    found = explore(make_flat_group("toys", toy, 3), SearchLimits(2))
    assert found.failure is not None
    assert found.failure.what == what
    assert not found.complete
    again = require_failure(
        replay_with_twin(make_flat_group("toys", toy, 3), found.failure.actions)
    )
    assert again.what == what


def test_nobody_transmits_to_itself() -> None:
    found = require_failure(
        explore(make_flat_group("toys", toys.Echoing, 2), SearchLimits(1)).failure
    )
    assert found.what == CONTRACT_BROKEN
    assert "returned Transmit to the member itself" in found.detail


def test_the_counterexample_is_a_smallest_one() -> None:
    group = make_flat_group("toys", toys.Eager, 3)
    found = require_failure(explore(group, SearchLimits(2)).failure)
    assert found.lines() == ["send A a1", "send A a2", "arrive B a2"]
    for fewer in permutations(found.actions, len(found.actions) - 1):
        assert replay(group, fewer) is None


def test_a_search_ends_at_the_allowed_number_of_states() -> None:
    found = explore(company("bss", 3), SearchLimits(4, max_states=1_000))
    assert not found.complete
    assert found.failure is None
    assert found.states < 10_000


def test_ignored_kinds_are_passed_over() -> None:
    group = company("bss", 3, "as-published")
    first = require_failure(explore(group, SearchLimits(2)).failure)
    assert first.what == NEEDLESS_HOLD
    second = explore(group, SearchLimits(2, ignored=frozenset({NEEDLESS_HOLD, STUCK}))).failure
    assert second is not None
    assert second.what == EARLY


def test_progress_is_told_after_each_round() -> None:
    told: list[int] = []
    found = explore(company("fifo", 2), SearchLimits(2), told.append)
    assert told == sorted(told)
    assert told[-1] == found.states
