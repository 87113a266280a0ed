"""The study of Nakayama 2017: the text's system, its grid, and what its quick runs show."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.reproductions.topics import study
from antecede.lab.simulate.schedule import build_schedule
from antecede.lab.simulate.topology import PubSub
from tests.lab.reproductions.conftest import Carried

MS = 1000.0
"""A time unit is a millisecond."""


def test_the_system_of_the_source(source: Callable[[str], str]) -> None:
    """Nakayama 2017, section 3: peers, largest delays, clock offset and length, as its text has
    them.
    """
    text = source("nakayama_2017")
    given = study.make_config(**study.DEFAULTS)
    delays = re.search(r"n = (\d+), maxd = (\d+) in LAN, maxd = (\d+) in WAN", text)
    assert delays is not None
    peers, lan, wan = map(int, delays.groups())
    assert given.topology.size == peers
    assert given.links.delay.high_s * MS == wan
    assert {special.delay.high_s * MS for special in given.links.special} == {lan}
    assert f"varepsilon$  is {given.clocks.accuracy_s * MS:.0f} [tu]" in text
    assert f"number of subgroups is {len(study.SUBGROUPS)}" in text
    assert f"maxT is {given.duration_s * MS:,.0f} [tu]" in text


def test_links_inside_a_subgroup_are_short() -> None:
    given = study.make_config(**{**study.DEFAULTS, "least": 0.5})
    assert isinstance(given.topology, PubSub)
    assert [(s.source, s.target) for s in given.links.special] == [
        ("group:0", "group:0"),
        ("group:1", "group:1"),
    ]
    assert given.links.delay.low_s == 0.08
    assert {special.delay.low_s for special in given.links.special} == {0.008}


def test_events_are_published_at_random_by_random_peers() -> None:
    """Nakayama 2017, section 3: m events, the publisher and the time from 0 to maxT - 1 drawn."""
    sent = build_schedule(study.make_config(**{**study.DEFAULTS, "events": 6000}), 1)
    assert len(sent.sender) == 6000
    assert 0 <= sent.time_us.min() < 1e6
    assert 149e6 < sent.time_us.max() < 150e6
    shares = np.bincount(sent.sender, minlength=6) / 6000
    assert abs(shares - 1 / 6).max() < 0.03


@pytest.mark.parametrize("quick", [True, False])
def test_one_quantity_varies_at_a_time(quick: bool) -> None:
    runs = check_runs(study.STUDY.runs(quick))
    for name, values in study.VARIED.items():
        there = {run.parameters[name] for run in runs}
        assert len(there) >= 3
        assert study.DEFAULTS[name] in there
        assert quick or there == set(values)
    for run in runs:
        assert sum(run.parameters[name] != usual for name, usual in study.DEFAULTS.items()) <= 1


def test_htbc_orders_no_more_without_need_than_tv_pt(carried_out: Carried) -> None:
    """Nakayama 2017, section 3: "the UO number ... in the HTBC protocol is a little smaller"."""
    done = carried_out("topics")
    for suffix in ("", ":published"):
        smaller = 0
        for run in done.results.runs:
            figures = done.results.get_metrics(run)
            htbc, tv_pt, tv_lt, tv = (
                figures[f"{rule}.false_pairs"]
                for rule in (f"htbc{suffix}", f"tv-pt{suffix}", f"tv-lt{suffix}", "tv")
            )
            assert htbc <= min(tv_pt, tv_lt), run.key
            assert max(tv_pt, tv_lt) <= tv, run.key
            smaller += htbc < tv_pt
        assert smaller > len(done.results.runs) / 2
    assert [one.holds for one in done.findings.sections[0].claims] == [True] * 4


def test_both_readings_of_whom_events_are_sent_to(carried_out: Carried) -> None:
    """Nakayama 2017: section 3 says every peer, section 4 targets only: the same events, delays."""
    done = carried_out("topics")
    every, targets = (
        done.results.find_runs(**study.DEFAULTS, sent_to=one) for one in study.SENT_TO
    )
    assert len(every) == len(targets) > 0
    for run, other in zip(every, targets, strict=True):
        assert (run.seed, run.config) == (other.seed, other.config)
        all_of_them, some = done.results.get_metrics(run), done.results.get_metrics(other)
        assert all_of_them["events"] == study.DEFAULTS["events"] * 5 > some["events"]
        assert all_of_them["htbc.false_pairs"] < some["htbc.false_pairs"] / 3
        assert all_of_them["htbc.missed_pairs"] == some["htbc.missed_pairs"] == 0
    totals = done.findings.sections[1]
    assert totals.title.startswith("Totals, as in Figure 1")
    assert {len(row) for row in totals.table} == {9}


def test_safe_rules_miss_nothing(carried_out: Carried) -> None:
    results = carried_out("topics").results
    assert sum(results.values("topic_causal")) > 10_000
    for rule in ("tv", "tv-lt", "tv-pt", "htbc"):
        assert not sum(results.values(f"{rule}.missed_pairs")), rule


def test_physical_time_as_published_misses_pairs(carried_out: Carried) -> None:
    """Nakayama 2017, section 2: rule 3 of TV_PT, where the least delay is below 2 epsilon.

    In the usual case the least delay inside a subgroup is 2 epsilon exactly: rule 3 (b) holds.
    """
    results = carried_out("topics").results
    assert study.DEFAULTS["least"] * study.LAN_S == 2 * study.EPSILON_S
    for rule in ("tv-pt:published", "htbc:published"):
        assert sum(results.values(f"{rule}.missed_pairs", least=0.0)) > 0
        assert sum(results.values(f"{rule}.missed_pairs", least=0.1)) > 0
        assert sum(results.values(f"{rule}.missed_pairs", **study.DEFAULTS)) == 0


def test_truth_by_vectors_orders_nothing_without_need(carried_out: Carried) -> None:
    results = carried_out("topics").results
    for run in results.runs:
        figures = results.get_metrics(run)
        assert figures["tv-vt.false_pairs"] == figures["tv-vt.missed_pairs"] == 0
        assert figures["tv-vt.ordered"] == figures["topic_causal"]


def test_every_rule_has_a_row_in_every_section(carried_out: Carried) -> None:
    findings = carried_out("topics").findings
    for section in findings.sections[3:]:
        said = {row.quantity for row in section.rows}
        assert len(said) == 2 * (len(study.RULES) - 1) + 1
        assert "TV_VT ordered" in said
    assert "Figure 1 cannot be compared" in findings.not_reached[-1]
