"""Pages of studies, built of tables of figures and claims."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.errors import LocalError
from antecede.lab.report.model import NO_METRICS, Claim, Findings, Row, Section
from antecede.lab.reproductions.framework.page_builder import findings_from_tables
from antecede.lab.reproductions.framework.results import Results
from tests.lab.reproductions.framework.test_results import grid, powers

MEAN = {"mean": "y"}


def page(results: Results, section: dict[str, Any], **tables: Any) -> Findings:
    return findings_from_tables({"section": [{"title": "T", **section}], **tables})(results, False)


def section(results: Results, tables: dict[str, Any], **more: Any) -> Section:
    (found,) = page(results, tables, **more).sections
    return found


def claim(table: dict[str, Any], results: Results | None = None) -> Claim:
    shown = {"figure": [{"quantity": "q", "value": MEAN}]}
    given = {"statement": "S", **table}
    (found,) = section(results or grid()[0], {**shown, "claim": [given]}).claims
    return found


def test_a_row_for_each_point_that_has_a_figure() -> None:
    figure = {
        "each": [{"q": "y"}, {"q": "z"}],
        "quantity": "{q} of {factor}",
        "condition": "x {x}",
        "by": ["factor", "x"],
        "value": {"mean": "{q}"},
        "unit": "units",
        "place": "Figure 1",
        "published": "{q} at {x}",
    }
    published, notes = {"y at 2": 10}, {"y at 2": "read off"}
    found = section(grid()[0], {"figure": [figure]}, published=published, notes=notes)
    assert [row.ours for row in found.rows] == [4.0, 6.0, 9.0, 5.0, 8.0, 14.0]
    assert found.rows[4] == Row("Figure 1", "y of 3", "x 2", 10.0, 8.0, "units", "read off")
    assert found.finding == (
        "0 of 2 published values are reproduced within 10 %, 0 of them within 6 %."
    )
    assert found.reads == ("y", "z")


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ({"mean": "y"}, 11.0),
        ({"total": "y"}, 22.0),
        ({"most": "y"}, 12.0),
        ({"least": "y"}, 10.0),
        ({"share": ["y", "y"]}, 1.0),
        ({"ratio": ["y", "y"]}, 1.0),
        ({"rest": {"share": ["y", "y"]}}, 0.0),
        ({"size": {"mean": "y"}}, 11.0),
        ({"quotient": [{"mean": "y"}, {"mean": "y", "where": {"x": 1}}]}, 11 / 3),
        ({"fold": "most", "by": "seed", "of": {"mean": "y"}}, 12.0),
        ({"fold": "range", "by": "seed", "of": {"mean": "y"}}, 0.2),
        ({"fold": "mean", "by": "x", "of": {"mean": "y"}, "without": ["x"]}, 17 / 3),
        ({"fold": "mean", "by": "x", "but": [4], "of": {"mean": "y"}, "without": ["x"]}, 3.0),
        ({"slope": ["y", "x"], "without": ["x"]}, 2.857),
        ({"slope": ["y", "x"], "without": ["x"], "to": 2}, 0.0),
        ({"fit": ["y", "x"], "without": ["x"]}, 0.9),
        ({"mean": "z"}, None),
        ({"slope": ["y", "x"]}, None),
    ],
)
def test_measures(measure: dict[str, Any], value: float | None) -> None:
    results = powers({1: [3.0, 3.0], 2: [3.0, 3.0], 4: [10.0, 12.0]})
    shown = {"quantity": "q", "value": MEAN}
    figure = {"quantity": "asked", "value": measure}
    found = section(results, {"where": {"x": 4}, "figure": [shown, figure]})
    ours = [row.ours for row in found.rows if row.quantity == "asked"]
    assert ours == ([] if value is None else [pytest.approx(value, rel=0.02)])


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ({"equal": 8}, True),
        ({"at_most": 8}, True),
        ({"at_least": 8}, True),
        ({"above": 8}, False),
        ({"below": 8}, False),
    ],
)
def test_limits(holds: dict[str, float], verdict: bool) -> None:
    found = claim({"value": {"mean": "y", "where": {"factor": 3, "x": 2}}, "holds": holds})
    assert found == ("S", "ours", "8", verdict, ("y",))


def test_what_no_run_gave_is_not_judged() -> None:
    found = claim({"value": {"mean": "z"}, "holds": {"equal": 0}})
    assert (found.found, found.verdict) == (NO_METRICS, "not run")


def test_values_rise_along_an_axis() -> None:
    table = {"by": ["x"], "value": {"mean": "y", "where": {"factor": 3}}, "unit": "units"}
    found = claim({**table, "holds": {"rising": 0}})
    assert (found.found, found.holds) == ("5 (x 1), 8 (x 2) and 14 (x 4) units", True)
    assert claim({**table, "holds": {"rising": -4}}).holds is False
    assert claim({**table, "but": {"x": [1, 2]}, "holds": {"rising": 0}}).holds is None
    assert claim({**table, "from": {"x": 4}, "holds": {"equal": 14}}).holds is True


def test_values_are_compared_with_the_source() -> None:
    table = {"by": ["x"], "value": {"mean": "y", "where": {"factor": 3}}, "published": "at {x}"}
    shown = {"figure": [{"quantity": "q", "value": MEAN}]}
    given = {"statement": "S", **table, "holds": {"within": 0.1}}
    twice = {**given, "holds": {"reaches": 0.5}}
    (found,) = section(grid()[0], {**shown, "claim": [twice]}, published={"at 4": 28}).claims
    assert found.holds is True
    for published, holds in (({"at 2": 8.5}, True), ({"at 2": 8.5, "at 4": 20}, False), ({}, None)):
        (found,) = section(grid()[0], {**shown, "claim": [given]}, published=published).claims
        assert found.holds is holds


def test_measures_are_compared_at_every_point() -> None:
    two, three = ({"mean": "y", "where": {"factor": factor}} for factor in (2, 3))
    less = claim({"by": ["x"], "compare": [two, three]})
    assert (less.found, less.holds) == ("so in 3 of 3 cases", True)
    more = claim({"by": ["x"], "compare": [three, two]})
    assert (more.found, more.holds) == ("so in 0 of 3 cases, not at x 1; x 2; x 4", False)
    assert claim({"compare": [two, two]}).holds
    assert not claim({"compare": [two, two], "strictly": True}).holds
    over = claim({"by": ["x"], "compare_over": "factor", "value": {"mean": "y"}})
    assert (over.found, over.holds) == ("so in 3 of 3 cases", True)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({1_000: [51.8], 10_000: [73.4], 100_000: [48.3], 1_000_000: [46.2]}, "undecided"),
        ({10: [50.0, 50.1], 100: [50.0, 50.1], 1_000: [50.05, 50.0]}, "holds"),
        ({10: [50.0, 50.1], 100: [500.0, 501.0], 1_000: [5000.0, 5001.0]}, "does not hold"),
        ({10: [50.0], 100: [56.2]}, "undecided"),  # the power 0.051, and no interval
        ({10: [50.0]}, "not run"),
    ],
)
def test_a_power_is_undecided_where_its_interval_spans_a_limit(
    values: dict[int, list[float]], verdict: str
) -> None:
    table = {"value": {"power": ["y", "x"]}, "holds": {"power_between": [-0.05, 0.05]}}
    made = claim(table, powers(values))
    assert made.verdict == verdict
    if len(values) == 4:
        assert made.found.startswith("46.2 to 73.4, as the power -0.033 (95 % interval -0.2")


def test_what_a_page_cannot_say_is_refused() -> None:
    with pytest.raises(
        LocalError, match=r"claim 'S': invalid holds = \{'near': 1\}; choose from at_most, at_least"
    ):
        claim({"value": MEAN, "holds": {"near": 1}})
    with pytest.raises(
        LocalError, match=r"unknown measure \{'median': 'y'\}; choose from mean, total"
    ):
        claim({"value": {"median": "y"}, "holds": {"equal": 1}})
    with pytest.raises(
        LocalError, match="claim: unknown key 'formt'; choose from statement, place"
    ):
        claim({"value": MEAN, "formt": ".1f", "holds": {"equal": 1}})
    with pytest.raises(
        LocalError, match="measure power: unknown key 'from'; choose from power, where"
    ):
        claim({"value": {"power": ["y", "x"], "from": 2}, "holds": {"equal": 1}})
    with pytest.raises(LocalError, match="claim 'S': set one of holds, compare and compare_over"):
        claim({"value": MEAN})
    with pytest.raises(LocalError, match=r"holds = .'rising': 0, 'equal': 1.; .*the last 4"):
        claim({"value": MEAN, "by": ["x"], "holds": {"rising": 0, "equal": 1}})


def test_one_value_has_to_be_below_a_limit() -> None:
    table = {"by": ["x"], "value": {"mean": "y", "where": {"factor": 3}}}
    for limit, holds in ((5, False), (6, True)):
        assert claim({**table, "holds": {"at_most": 14, "some_below": limit}}).holds is holds
    same = powers({1: [2.0], 2: [2.0]})
    rising = {"by": ["x"], "value": MEAN, "holds": {"rising": 0}}
    assert claim(rising, same).holds is True
    assert claim({**rising, "strictly": True}, same).holds is False


def test_a_table_has_a_line_for_each_point() -> None:
    cells = [{"title": "y", "value": MEAN, "format": ".1f"}, {"title": "z", "value": {"mean": "z"}}]
    columns = {"by": ["factor", "x"], "column": cells}
    found = section(grid()[0], {"columns": columns}, names={"x": "places"})
    assert found.columns == ["factor", "places", "y", "z"]
    assert found.table[0] == ["2", "1", "4.0", "-"]
    assert len(found.table) == 6


def test_lines_have_the_deviation_over_seeds() -> None:
    line = {"by": "factor", "label": "times {factor}", "over": "x", "value": MEAN}
    plot = {"key": "k", "title": "lines", "x": "x", "y": "y", "line": [line]}
    found = section(grid()[0], {"plot": [plot]})
    two, three = found.plots[0].series
    assert (three.label, three.points) == ("times 3", [(1.0, 5.0), (2.0, 8.0), (4.0, 14.0)])
    assert list(three.spread) == pytest.approx([2**0.5] * 3)
    assert len(two.x) == 3


def test_sections_are_made_once_for_each_entry_and_left_out_when_empty() -> None:
    figure = {"quantity": "q", "value": MEAN}
    found = page(
        grid()[0],
        {
            "each": [{"where": {"factor": 2}}, {"where": {"factor": 9}}, {"where": {"factor": 3}}],
            "title": "times {factor}",
            "template": "all",
            "about": "of {factor}",
        },
        template={"all": {"figure": [figure]}},
        say=[{"intro": "The mean", "label": "y", "value": MEAN, "format": ".2f"}],
        conditions=["{seeds}"],
    )
    assert [(one.title, one.about) for one in found.sections] == [
        ("Times 2", "of 2"),
        ("Times 3", "of 3"),
    ]
    assert found.finding.startswith("The mean: y ")
    assert found.reads == ("y",)
    assert found.conditions == ["seeds 1, 3"]
