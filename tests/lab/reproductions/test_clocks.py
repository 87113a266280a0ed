"""The study of Tsuneizumi et al.: its grid, and what its quick runs show."""

from __future__ import annotations

import pytest

from antecede.lab.reproductions.clocks.study import (
    LAMBDA_S,
    LOADS,
    MIN_DELAYS,
    RATIOS,
    RULES,
    STUDY,
)
from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.simulate.topology import Mesh
from tests.lab.reproductions.conftest import Carried, mean


@pytest.mark.parametrize("quick", [True, False])
def test_delays_go_from_far_below_to_far_above_twice_the_accuracy(quick: bool) -> None:
    """Tsuneizumi et al., section 5: fast networks (delta <= 2 lambda), slow ones, and 2 to 4 lambda
    between.
    """
    runs = [run for run in check_runs(STUDY.runs(quick)) if run.kind == "pairs"]
    ratios = {run.parameters["ratio"] for run in runs}
    assert min(ratios) <= 0.5
    assert max(ratios) >= 20
    assert any(2 < ratio < 4 for ratio in ratios)
    assert quick or ratios == set(RATIOS)
    for run in runs:
        given = run.load_config()
        delay = given.links.delay
        assert given.clocks.accuracy_s == LAMBDA_S
        assert delay.high_s == pytest.approx(run.parameters["ratio"] * LAMBDA_S)
        assert delay.low_s == pytest.approx(delay.high_s * MIN_DELAYS[run.parameters["least"]])
        assert given.topology == Mesh(6)


def test_the_sound_rules_miss_nothing(carried_out: Carried) -> None:
    results = carried_out("clocks").results
    assert sum(results.values("causal", kind="pairs")) > 10_000
    for rule in ("linear", "physical", "linear-physical"):
        assert not sum(results.values(f"{rule}.missed_pairs", kind="pairs")), rule


def test_rules_as_published_and_sorting_miss_pairs(carried_out: Carried) -> None:
    """Tsuneizumi et al., sections 4.1, 4.2 and 5 with the largest delay; by time of sending and of
    arrival.
    """
    results = carried_out("clocks").results
    for rule in RULES:
        if rule in ("linear", "physical", "linear-physical"):
            continue
        assert sum(results.values(f"{rule}.missed_pairs", kind="pairs")) > 0, rule


def test_physical_time_takes_pairs_away_that_linear_time_orders(carried_out: Carried) -> None:
    results = carried_out("clocks").results
    for run in results.find_runs(kind="pairs"):
        figures = results.get_metrics(run)
        both, linear = (figures[f"{rule}.false_pairs"] for rule in ("linear-physical", "linear"))
        assert both <= linear, run.key
        if run.parameters["ratio"] >= 20:  # far above the accuracy it takes most away
            assert both < 0.5 * linear, run.key


def test_every_pair_is_ordered_or_concurrent(carried_out: Carried) -> None:
    results = carried_out("clocks").results
    for run in results.find_runs(kind="pairs"):
        figures = results.get_metrics(run)
        for rule in ("linear", "linear-physical"):
            ordered = figures["causal"] + figures[f"{rule}.false_pairs"]
            assert figures[f"{rule}.ordered"] == ordered
            assert figures["pairs"] == ordered + figures[f"{rule}.concurrent"]


def test_times_cost_the_same_in_any_group_and_vectors_grow(carried_out: Carried) -> None:
    """Tsuneizumi et al., section 1."""
    results = carried_out("clocks").results
    for protocol in ("linear", "physical", "linear-physical", "bss"):
        small, large = (
            mean(results, "peer.control_bytes", kind="bytes", protocol=protocol, members=members)
            for members in (5, 10)
        )
        assert large / small == (2 if protocol == "bss" else pytest.approx(1)), protocol


def test_recovery_brings_what_was_lost(carried_out: Carried) -> None:
    done = carried_out("clocks")
    losses = done.results.list_parameter_values("loss", kind="loss")
    assert losses[0] == 0 < losses[-1]
    for loss in losses:
        alone, helped = (
            sum(done.results.values("undelivered", kind="loss", loss=loss, recovery=recovery))
            for recovery in (False, True)
        )
        assert helped == 0
        assert (alone > 0) is (loss > 0)
    section = next(s for s in done.findings.sections if s.title.startswith("Loss"))
    assert len(section.table) == 2 * len(losses)


def test_the_page_says_what_was_missed(carried_out: Carried) -> None:
    findings = carried_out("clocks").findings
    assert (
        "Missed causal pairs per message, maximum: sound rules 0 and as published 0."
        in findings.finding
    )
    pairs = [section for section in findings.sections if section.title.startswith("Pairs")]
    assert len(pairs) == len(MIN_DELAYS)
    for section in pairs:
        assert "linear 0, physical 0, both 0, linear, as published 0." in section.finding


def test_what_is_taken_away_is_told_by_point(carried_out: Carried) -> None:
    done = carried_out("clocks")
    taken = [s for s in done.findings.sections if s.title.startswith("False pairs removed")]
    assert [len(section.table) for section in taken] == [
        len(done.results.list_parameter_values("ratio", kind="pairs", least=least))
        for least in MIN_DELAYS
    ]
    parts = [float(row[3].rstrip("%")) for section in taken for row in section.table]
    assert min(parts) < 5
    assert max(parts) > 70
    for part in (min(parts), max(parts)):
        assert f"{part:.0f}%" in done.findings.finding


def test_waits_stand_beside_pairs(carried_out: Carried) -> None:
    done = carried_out("clocks")
    waits = [s for s in done.findings.sections if s.title.startswith("Waits")]
    assert len(waits) == len(LOADS)
    for name in done.results.list_parameter_values("waiting", kind="waits"):
        assert all(f"{name} " in section.finding for section in waits)
    assert not sum(done.results.values("promise_violations", kind="waits"))
