"""The study of Evropeytsev et al. 2016: the figures of its text, its grid, and what its quick runs
show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from antecede.lab.reproductions.framework.page_builder import read_page
from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.reproductions.hierarchy.study import (
    DELAYS,
    LARGEST,
    RATES,
    STUDY,
    config_of,
    list_peer_counts,
)
from antecede.lab.simulate.topology import Hierarchy
from tests.lab.reproductions.conftest import Carried, mean

Source = Callable[[str], str]
PAGE = read_page("antecede.lab.reproductions.hierarchy")
PUBLISHED: dict[str, float] = PAGE["published"]
FIGURES = {one["where"]["delay"]: one["figure"] for one in PAGE["each"]["delays"]}
RATE_FIGURES = {one["where"]["delay"]: one["rate_figure"] for one in PAGE["each"]["delays"]}
WORDS = {"two": 2.0, "ten": 10.0, "eleven": 11.0}
BOTH = ("storage", "overhead")
NUMBER = r"([−-]?\d+(?:\.\d+)?)"


def numbers(found: list[str]) -> list[float]:
    return [float(one.replace("−", "-")) for one in found]


@pytest.fixture(params=DELAYS)
def delay(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def part_of(text: str, figure: str) -> str:
    """Return what is said from the last mention of a figure to that of the next."""
    start = text.rindex(f"{figure})")
    following = f"Figure {int(figure[-1]) + 1})"
    return text[start : text.rindex(following) if following in text else len(text)]


def test_values_at_the_largest_number_of_peers(delay: str, source: Source) -> None:
    """Evropeytsev et al. 2016, section 3.2: bytes stored, then sent, of internal and external
    peers, IDR, DS.
    """
    said = re.search(
        rf"or {LARGEST[delay]} peers, each internal peer(.*)",
        part_of(source("evropeytsev_2016"), FIGURES[delay]),
    )
    assert said is not None
    order = [f"{who} {what}" for who in ("internal", "external", "idr") for what in BOTH]
    ours = [PUBLISHED[f"{name}, {delay}"] for name in [*order, "ds overhead"]]
    assert numbers(re.findall(r"\d+", said[1])) == ours


def test_slopes(delay: str, source: Source) -> None:
    """Evropeytsev et al. 2016, section 3.2: least-squares slopes of overheads and storage."""
    text = part_of(source("evropeytsev_2016"), FIGURES[delay])
    sent = re.search(
        rf"slopes are: {NUMBER} for internal group, {NUMBER} for external group, {NUMBER} for IDR "
        rf"and {NUMBER} for DS",
        text,
    )
    kept = re.search(
        rf"slopes are: {NUMBER} in internal group, {NUMBER} in external group and {NUMBER}", text
    )
    assert sent is not None
    assert kept is not None
    sending = [f"{who} overhead" for who in ("internal", "external", "idr", "ds")]
    storing = [f"{who} storage" for who in ("internal", "external", "idr")]
    for found, names in ((sent, sending), (kept, storing)):
        assert numbers([*found.groups()]) == [PUBLISHED[f"{n} slope, {delay}"] for n in names]


def test_how_many_times_lower(delay: str, source: Source) -> None:
    """Evropeytsev et al. 2016, section 3.2: "is 18.3 times lower than"; "similar" is once."""
    text = part_of(source("evropeytsev_2016"), FIGURES[delay]).partition("Scalability Analysis")[0]
    said = [
        WORDS.get(word) or float(word)
        for word in re.findall(r"(\w+(?:\.\d+)?) times (?:lower|less)", text)
    ]
    assert Counter(said + [1.0] * text.count("is similar to")) == Counter(
        PUBLISHED[f"{one['more']} by {one['less']}, {delay}"] for one in PAGE["each"]["pairs"]
    )


def test_slopes_at_fixed_rates(delay: str, source: Source) -> None:
    """Evropeytsev et al. 2016, Scalability Analysis: slopes of the linear part, by total rate."""
    text = part_of(source("evropeytsev_2016"), RATE_FIGURES[delay])
    said = [
        {int(rate): float(value.replace("−", "-")) for value, rate in pairs}
        for sentence in re.findall(r"the slopes are ([^:]*?)(?:\. In|while|\.\n)", text)
        if (pairs := re.findall(rf"{NUMBER} for (\d+) messages", sentence))
    ]
    names = ("internal overhead", "external overhead")
    each = [
        {rate: PUBLISHED.get(f"{name} slope, {delay}, {rate}") for rate in sorted(RATES)[::-1]}
        for name in names
    ]
    ours = [found for found in each if None not in found.values()]
    assert said == ours
    assert all(sorted(found) == sorted(RATES) for found in ours)


@pytest.mark.parametrize("quick", [True, False])
def test_the_grid_ends_where_the_text_has_figures(quick: bool) -> None:
    runs = check_runs(STUDY.runs(quick))
    for delay in DELAYS:
        there = {
            run.parameters["peers"]
            for run in runs
            if run.kind == "grid" and run.parameters["delay"] == delay
        }
        assert max(there) == LARGEST[delay]
        assert len(there) >= 3  # a slope is more than a difference
        assert there <= set(list_peer_counts(delay))
        assert quick or there == set(list_peer_counts(delay))
    rates = {run.parameters["rate"] for run in runs if run.kind == "rate"}
    assert rates <= set(RATES)
    assert quick or rates == set(RATES)


def test_the_system_of_the_source(delay: str) -> None:
    """Evropeytsev et al. 2016, section 3.2: equal groups, N(80, 5) ms between sendings, no FIFO
    channels.
    """
    given = config_of(delay, 300, 1.0)
    assert given.topology == Hierarchy((150,), 150)
    assert (given.workload.interval.low_s, given.workload.interval.high_s) == (0.07, 0.09)
    assert given.workload.interval.mean_s == pytest.approx(0.08)
    assert (given.links.delay.low_s, given.links.delay.high_s) == DELAYS[delay]
    assert not given.links.fifo
    assert given.duration_s - given.warm_s == pytest.approx(1.0)


def test_the_figures_of_the_text_come_out(carried_out: Carried) -> None:
    rows = [
        row
        for section in carried_out("hierarchy").findings.sections
        for row in section.rows
        if row.figure in FIGURES.values()
        and "delays" in section.title
        and not row.quantity.startswith("ds")
        and "variance" not in row.condition
    ]
    assert len(rows) == 3 * 2 * 6
    for row in rows:
        assert row.ratio == pytest.approx(1, abs=0.1), row


def test_what_does_not_come_out_is_told(carried_out: Carried) -> None:
    findings = carried_out("hierarchy").findings
    told = "\n".join(findings.not_reached)
    compared = [row for section in findings.sections for row in section.rows if row.ratio]
    for row in compared:
        if "variance" not in row.condition and abs((row.ratio or 1) - 1) > 0.1:
            assert f"{row.figure}, {row.quantity}, {row.condition}" in told
    assert "published overhead of DS is reached" in told


def test_ds_is_eight_bytes_an_external_peer(carried_out: Carried, delay: str) -> None:
    results = carried_out("hierarchy").results
    found = mean(results, "ds.control_bytes", kind="grid", delay=delay, peers=LARGEST[delay])
    assert found == pytest.approx(8 * (LARGEST[delay] // 2 - 1), rel=0.01)


def test_passive_receivers_cost_nothing(carried_out: Carried, delay: str) -> None:
    """Evropeytsev et al. 2016, Scalability Analysis: 300 peers of which 200 are silent cost what
    100 cost.
    """
    results = carried_out("hierarchy").results
    for figure in ("internal.control_bytes", "external.control_bytes", "idr.control_bytes"):
        talking, some = (
            mean(results, figure, kind="passive", delay=delay, silent=silent) for silent in (0, 200)
        )
        assert some == pytest.approx(talking, rel=0.06)


def test_pruning_as_published_is_unsafe_under_skewed_links_alone(carried_out: Carried) -> None:
    results = carried_out("hierarchy").results
    for groups in (1, 3):
        early = {
            (skewed, pruning): sum(
                results.values(
                    "promise_violations",
                    kind="pruning",
                    groups=groups,
                    skewed=skewed,
                    pruning=pruning,
                )
            )
            for skewed in (False, True)
            for pruning in ("safe", "none", "published")
        }
        assert early.pop((True, "published")) > 0
        assert not any(early.values())
        assert len(early) == 5
    assert min(results.values("violations.checked", kind="pruning")) > 10_000


def test_pruning_keeps_the_table_small(carried_out: Carried) -> None:
    results = carried_out("hierarchy").results
    for groups in (1, 3):
        safe, none = (
            mean(results, "tt.mean", kind="pruning", groups=groups, skewed=True, pruning=pruning)
            for pruning in ("safe", "none")
        )
        assert safe < none / 2


def test_bits_are_set_exactly_for_immediate_dependencies(carried_out: Carried) -> None:
    """Evropeytsev et al. 2016, Lemma 3, in every run with the safe rule."""
    results = carried_out("hierarchy").results
    safe = [
        run
        for run in results.runs
        if run.kind != "last" and run.parameters.get("pruning") != "published"
    ]
    for run in safe:
        figures = results.get_metrics(run)
        assert figures["lemma3.missing"] == figures["lemma3.extra"] == 0, run.key
    assert len(safe) > 40


def test_encoded_sizes_at_the_largest_groups(carried_out: Carried, delay: str) -> None:
    results = carried_out("hierarchy").results
    where = {"kind": "grid", "delay": delay, "peers": LARGEST[delay]}
    for role, below, most in (
        ("internal", "entropy_bytes", 1.2),
        ("external", "control_bytes", 0.5),
        ("idr", "control_bytes", 0.5),
    ):
        encoded = mean(results, f"{role}.wire_bytes", **where)
        assert 0 < encoded <= most * mean(results, f"{role}.{below}", **where)
