"""What all studies share: quick runs all succeed, and findings stand whichever runs are missing."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from antecede.lab.report.model import Plot, Row, Section, Series, drop_empty_sections
from antecede.lab.reproductions.framework.deviation import describe_deviations
from antecede.lab.reproductions.framework.execute import SCHEMA
from antecede.lab.reproductions.framework.registry import STUDIES, load
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.reproductions.framework.summary import (
    findings_to_values,
    read_summary,
    write_summary,
)
from tests.lab.reproductions.conftest import Carried

ROW_KEYS = {"section", "figure", "quantity", "condition", "paper", "ours", "unit", "note", "ratio"}


def without(results: Results, keys: set[str]) -> Results:
    """Return the results as if these runs had failed."""
    rows: Any = results.table
    kept = [key not in keys for key in rows["run"].to_pylist()]
    return Results(rows.filter(kept), results.runs)


@pytest.mark.parametrize("name", STUDIES)
def test_every_quick_run_gives_figures(name: str, carried_out: Carried) -> None:
    done = carried_out(name)
    assert not done.findings.failed
    assert (done.left, done.stale, done.unreadable) == (0, 0, [])
    assert done.findings.sections
    assert "No run has" not in done.findings.finding
    assert (done.findings.study, load(name).name) == (name, name)


@pytest.mark.parametrize("name", STUDIES)
def test_the_summary_of_each_study(name: str, carried_out: Carried, tmp_path: Path) -> None:
    findings = carried_out(name).findings
    path = write_summary(findings, tmp_path)
    found = json.loads(path.read_text())
    assert findings_to_values(read_summary(path)) == found
    assert found["rows"]
    for row in found["rows"]:
        assert row.keys() == ROW_KEYS
        assert isinstance(row["ours"], (int, float))
        assert row["figure"]
        assert row["quantity"]
        assert row["condition"]
        if row["paper"]:
            assert row["ratio"] == pytest.approx(row["ours"] / row["paper"])
        else:
            assert row["ratio"] is None
    keys = [plot["key"] for section in found["sections"] for plot in section["plots"]]
    assert len(keys) == len(set(keys))  # they name files
    said = [
        (row["section"], row["figure"], row["quantity"], row["condition"]) for row in found["rows"]
    ]
    assert len(said) == len(set(said))


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_found_without_runs(name: str) -> None:
    study = load(name)
    found = study.findings(Results(SCHEMA.empty_table(), check_runs(study.runs(False))), False)
    assert not any(section.rows or section.table for section in found.sections)
    assert "no run has" in found.finding.lower() or "Too few runs" in found.finding
    findings_to_values(found)


@pytest.mark.parametrize("name", STUDIES)
def test_findings_stand_whichever_runs_are_missing(name: str, carried_out: Carried) -> None:
    results, study, chance = carried_out(name).results, load(name), random.Random(name)
    titles = {section.title for section in study.findings(results, True).sections}
    kinds = sorted({run.kind for run in results.runs})
    for _ in range(40):
        part = chance.choice((0.1, 0.5, 0.9, 0.98))
        lost = {run.key for run in results.runs if chance.random() < part}
        if chance.random() < 0.3:
            gone = chance.choice(kinds)
            lost |= {run.key for run in results.runs if run.kind == gone}
        found = study.findings(without(results, lost), True)
        json.dumps(findings_to_values(found), allow_nan=False)
        assert {section.title for section in found.sections} <= titles
        for section in found.sections:
            assert "defect" not in section.finding, lost
    for kind in kinds:
        lost = {run.key for run in results.runs if run.kind != kind}
        json.dumps(
            findings_to_values(study.findings(without(results, lost), True)), allow_nan=False
        )


def test_sections_that_show_nothing_are_left_out() -> None:
    plot = Plot("p", "P", "x", "y", [Series("l", [], [])])
    shown = Section("b", "", plots=[plot._replace(series=[Series("l", [1.0], [2.0])])])
    assert drop_empty_sections([Section("a", "", plots=[plot]), None, shown]) == [shown]
    assert (
        drop_empty_sections([Section("t", "", table=[["1"]]), Section("e", "All is well.")])[
            0
        ].title
        == "t"
    )


MANY = r"(?<![\d.,])1 (deliveries|runs|cases|figures|statements|comparisons|ratios|copies)\b"


@pytest.mark.parametrize("name", STUDIES)
def test_one_of_a_thing_stands_in_the_singular(name: str, carried_out: Carried) -> None:
    said = json.dumps(findings_to_values(carried_out(name).findings))
    assert re.search(MANY, said) is None


def test_a_tally_of_one() -> None:
    rows = [Row("Figure 1", "overhead", "anywhere", 2.0, ours) for ours in (2.0, 9.0)]
    assert describe_deviations(rows[:1]).startswith("1 of 1 published value is reproduced")
    assert describe_deviations([rows[0], *rows]).startswith(
        "2 of 3 published values are reproduced"
    )
