"""Model checker and network with addressed messages, topics, clocks and losses."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.errors import LocalError, ScenarioError
from antecede.lab.check.checked_run import JudgedRun, replay
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.harness.group_under_test import GroupUnderTest, make_flat_group
from antecede.lab.check.harness.timing import TimingModel
from antecede.lab.check.model_checker.explorer import Explorer, SearchAction, SearchLimits, explore
from antecede.lab.check.results import EARLY, STUCK, WRONG_RECIPIENT
from antecede.lab.check.scenario.actions import Arrive, Lose, Send, Tick
from antecede.lab.check.scenario.parse import load_scenario, parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.check.search_plans import SearchSize, plan_searches
from antecede.lab.check.target import Target
from antecede.lab.diagram.scenario_diagram import from_run
from antecede.lab.diagram.text import draw_text
from tests.lab.check import require_failure
from tests.lab.check import toys_timed as toys
from tests.lab.check.test_explorer import check_with_oracle

SHORT = SuitePlan(runs=30)


def first_failure(toy: type) -> tuple[GroupUnderTest, str] | None:
    for company, limits in plan_searches(Target("toys", toy), SearchSize()):
        failure = explore(company, limits).failure
        if failure is not None:
            assert replay(company, failure.actions) is not None, failure.lines()
            return company, failure.what
    return None


@pytest.mark.slow
@pytest.mark.parametrize("toy", [toys.Post, toys.Patient, toys.Topical])
def test_correct_ones_pass(toy: type) -> None:
    assert first_failure(toy) is None
    for offsets in ((), (NS, -NS, NS, -NS)):
        assert conform(make_flat_group("toys", toy, 4, offsets=offsets), SHORT).failure is None


@pytest.mark.parametrize(
    ("toy", "what"),
    [
        (toys.Forgetful, EARLY),
        (toys.Gossip, WRONG_RECIPIENT),
        (toys.Impatient, EARLY),
        (toys.Hopeful, EARLY),
        (toys.Stuck, STUCK),
        (toys.Hasty, EARLY),
        (toys.Deaf, STUCK),
    ],
)
def test_broken_ones_are_found_with_a_counterexample_that_can_be_replayed(
    toy: type, what: str
) -> None:
    found = first_failure(toy)
    assert found is not None
    assert found[1] == what


@pytest.mark.parametrize("toy", [toys.Forgetful, toys.Gossip, toys.Impatient, toys.Hasty])
def test_the_network_finds_them_too(toy: type) -> None:
    offsets = (NS, -NS, NS, -NS)
    assert (
        conform(make_flat_group("toys", toy, 4, offsets=offsets), SuitePlan(runs=300)).failure
        is not None
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("toy", "limits"),
    [
        (toys.Patient, SearchLimits(2)),
        (toys.Impatient, SearchLimits(3)),
        (toys.Stuck, SearchLimits(2, send_until=0)),
        (toys.Hasty, SearchLimits(3)),
        (toys.Topical, SearchLimits(2)),
    ],
)
def test_with_clocks_the_judge_agrees_with_the_oracle_on_random_paths(
    toy: type, limits: SearchLimits
) -> None:
    group = make_flat_group("toys", toy, 3, offsets=(1, -1, 1))
    explorer = Explorer(group, limits)
    rng = random.Random(1)
    for _ in range(150):
        state, path, found = explorer.make_start_state(), list[SearchAction](), None
        # A path ends at a finding, or after time has run to the end.
        while found is None and not explorer.enabled.is_at_end(explorer.unpack(state)):
            move, state, found = rng.choice(list(explorer.list_successors(state)))
            path.append(move)
        check_with_oracle(explorer, path, found)


@pytest.mark.slow
def test_a_chain_of_three_messages_through_four_members_is_found() -> None:
    failure = require_failure(
        conform(
            make_flat_group("toys", toys.Hearsay, 4), SuitePlan(runs=600, twins=False), seed=1
        ).failure
    )
    assert failure.what == EARLY
    assert first_failure(toys.Hearsay) is None


def test_a_copy_arrives_within_the_delays_of_its_channel_and_time_waits_for_it() -> None:
    run = JudgedRun(make_flat_group("toys", toys.Patient, 2))
    assert run.take(Send("A", "a1"))
    assert not run.take(Arrive("B", "a1"))
    assert run.take(Tick(3.0))
    assert not run.take(Tick(2.0))
    assert run.take(Tick(1.0))
    assert not run.take(Tick(0.5))
    assert run.take(Arrive("B", "a1"))
    assert run.take(Tick(0.5))


def test_a_lost_copy_never_arrives() -> None:
    run = JudgedRun(make_flat_group("toys", toys.Patient, 2))
    run.take(Send("A", "a1"))
    assert run.take(Lose("B", "a1"))
    assert not run.take(Lose("B", "a1"))
    assert run.world.in_flight == []
    failure = require_failure(run.check())
    assert failure.what == STUCK


def test_clocks_show_true_time_plus_an_offset_and_never_less_than_nothing() -> None:
    timing = TimingModel({0: -15, 1: 5})
    assert [timing.read_clock(at, 20) for at in (0, 1, 2)] == [20, 40, 35]
    assert timing.read_clock(0, 0) == 0


SCENE = """
protocol unordered
members A B C
"""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bounds A", "write 'bounds accuracy=S least=S most=S'"),
        ("bounds accuracy=far", "write 'bounds"),
        ("bounds speed=3", "write 'bounds"),
        ("bounds least=3 most=2", "expected 0 <= least <= most"),
        ("clock A", "write 'clock MEMBER SECONDS'"),
        ("clock A soon", "write 'clock MEMBER SECONDS'"),
        ("clock Z 1", "clock is set for Z"),
        ("subscribe A", "write 'subscribe MEMBER TOPIC ...'"),
        ("send A m to", r"write 'send MEMBER MESSAGE \[to"),
        ("send A m B", r"write 'send MEMBER MESSAGE \[to"),
        ("send A m to B", "sends every message to all members"),
        ("lose B", "write 'lose MEMBER MESSAGE'"),
    ],
)
def test_what_is_wrong_in_a_scenario_is_said(line: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        run_scenario(parse_scenario(SCENE + line + "\n"))


def test_a_lost_copy_in_a_scenario_is_told_and_stays_lost() -> None:
    run = run_scenario(parse_scenario(SCENE + "send A m\nlose B m\narrive C m\n"))
    assert [moment.output for moment in run.results[1:]] == [("m to B is lost",), ("C delivers m",)]
    with pytest.raises(ScenarioError, match="m is not in flight to B"):
        run_scenario(parse_scenario(SCENE + "send A m\nlose B m\narrive B m\n"))


def test_bounds_say_the_least_delay_over_any_path() -> None:
    channels = {("A", "C"): (9.0, 9.0), ("A", "B"): (2.0, 3.0), ("B", "C"): (1.0, 4.0)}
    bounds = Bounds(accuracy_s=1.0, least_s=5.0, most_s=6.0, channels=channels)
    assert bounds.least_path_ns("A", "C", ("A", "B", "C")) == 3 * NS
    assert bounds.least_path_ns("C", "A", ("A", "B", "C")) == 5 * NS
    assert bounds.least_path_ns("A", "A", ("A", "B", "C")) == 0
    assert not bounds.homogeneous
    assert bounds.replace_names({"A": 0, "B": 1, "C": 2}).most_delay_ns(1, 2) == 4 * NS
    with pytest.raises(LocalError, match="bounds: unknown member"):
        bounds.replace_names({"A": 0})


def test_a_delivery_astray_is_told(tmp_path: Path) -> None:
    (tmp_path / "toys.py").write_text("from tests.lab.check.toys_timed import Gossip\n")
    path = tmp_path / "astray.scenario"
    path.write_text("protocol toys.py:Gossip\nmembers A B C\nsend A m to B\narrive C m\n")
    run = run_scenario(load_scenario(path))
    assert run.results[-1].output == (
        "C delivers m",
        "VIOLATION: C delivers m, which is for others",
    )
    assert [one.label for one in run.violations()] == ["m"]
    assert "✗" in draw_text(from_run(run))
