"""Rows, tables, lines and statements, built from what is asked of the runs."""

from __future__ import annotations

import pytest

from antecede.report.values import NO_FIGURES, Row
from antecede.studies.frame.claims import (
    Asked,
    Quantity,
    as_power,
    claim,
    figure_or_dash,
    lines,
    means,
    rows,
    table,
)
from tests.studies.frame.test_results import grid


def test_what_no_run_gave_is_no_row() -> None:
    results, _ = grid()
    wanted = [Quantity("why", "y", "units"), Quantity("z", "z")]
    asked = means(results.of(factor=3, x=2), wanted, "x 2")
    assert asked[0] == Asked("why", "x 2", 8.0, "units")
    assert asked[1].ours is None
    stated = Asked("s", "c", 0.0, "u", 2.0, "Figure 1", "n")
    assert rows([*asked, stated]) == [
        Row("ours", "why", "x 2", None, 8.0, "units"),
        Row("Figure 1", "s", "c", 2.0, 0.0, "u", "n"),
    ]


def test_lines_without_points_are_left_out() -> None:
    results, _ = grid()
    (line,) = lines(results.of(factor=3), "x", [Quantity("z", "z"), Quantity("why", "y")])
    assert (line.label, line.points) == ("why", [(1.0, 5.0), (2.0, 8.0), (4.0, 14.0)])


def test_a_table_shows_items_in_its_columns() -> None:
    columns = {"name": "{0.name}", "unit of it": "{0[2]:>3}"}
    assert table(columns, [Quantity("a", "b", "c")]) == {
        "columns": ("name", "unit of it"),
        "table": [("a", "  c")],
    }
    assert [figure_or_dash(value) for value in (None, 0.0, 1234.5)] == ["-", "0", "1,234"]


@pytest.mark.parametrize(
    ("answer", "found", "holds"),
    [(None, NO_FIGURES, None), (("twice", True), "twice", True), (("once", None), "once", None)],
)
def test_a_statement_without_figures_is_not_judged(
    answer: tuple[str, bool | None] | None, found: str, holds: bool | None
) -> None:
    assert claim("it grows", "Figure 1", ["y"], answer) == (
        "it grows",
        "Figure 1",
        found,
        holds,
        ["y"],
    )


def test_growth_lies_between_two_powers() -> None:
    results, _ = grid()
    power = results.power("y", "x", factor=3)
    assert power == pytest.approx(0.74, abs=0.01)
    own = results.of(factor=3)
    interval = own.power_interval("y", "x")
    assert interval is not None
    assert power is not None
    low, high = interval
    for least, most, holds in (
        (low - 0.1, high + 0.1, True),
        (high + 0.1, high + 1, False),
        (low - 1, low - 0.1, False),
        (power, high + 1, None),
    ):
        answer = as_power(own, "y", "x", least, most)
        assert answer is not None
        assert answer[1] is holds
    assert as_power(results.of(factor=9), "y", "x", 0, 1) is None
    assert results.power("y", "x", factor=3, x=2) is None


def test_means_and_totals_are_of_the_runs_that_there_are() -> None:
    results, _ = grid()
    assert (results.mean("y", factor=3, x=2), results.total("y", factor=3, x=2)) == (8.0, 16.0)
    assert results.mean("z") is None
    assert results.total("z") is None


def test_results_of_some_runs() -> None:
    results, _ = grid()
    some = results.of(factor=3)
    assert [run.key for run in some.runs] == [run.key for run in results.where(factor=3)]
    assert some.where(factor=2) == []
    assert [(x, part.values("y")) for x, part in some.by("x")] == [
        (1, [4.0, 6.0]),
        (2, [7.0, 9.0]),
        (4, [13.0, 15.0]),
    ]
    assert results.along("x", factor=2, x=1).places("x") == [1, 2, 4]
    assert results.along("seed", factor=2, x=1).places("x") == [1]
    assert results.share("y", "y", factor=3) == 1.0
    assert results.share("y", "z") is None
    assert results.share_line("part", "y", "y", "x").points == [(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)]
    assert results.ratio("y", "y", factor=3, x=2) == 1.0
    assert results.ratio("z", "y") is None
    assert len(results.runs) == 11
