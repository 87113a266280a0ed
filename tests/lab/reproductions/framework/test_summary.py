"""`summary.json` says all that the page says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from antecede import __version__
from antecede.errors import InputError
from antecede.lab.report.model import Findings, Plot, Row, Section, Series
from antecede.lab.reproductions.framework.summary import (
    findings_to_values,
    read_summary,
    write_summary,
)

ROWS = (
    Row("Figure 4", "internal overhead", "900 peers", 12.5, 12.0, "bytes", "n"),
    Row("Figure 5", "idr overhead", "900 peers", None, 3.0),
)
PLOT = Plot(
    "p", "P", "x", "y", [Series("l", [1.0, 2.0], [3.0, 4.0], [0.1, 0.2], [(1.0, 3.5)])], x_log=True
)
FINDINGS = Findings(
    "s", "S", "Evropeytsev et al. 2016, section 3", "It grows.", ["as printed"], ["one seed"],
    [
        Section("Same", "First.", ROWS[:1], [PLOT]),
        Section("Same", "Second.", ROWS[1:], columns=["a"], table=[["1"]]),
    ],
    ["DS: 1.3 of the paper's"], ["k (seed 1): ValueError: no"],
)  # fmt: skip


def test_rows_stand_beside_the_papers_figures() -> None:
    found = findings_to_values(FINDINGS)
    assert [(r["figure"], r["paper"], r["ours"], r["ratio"]) for r in found["rows"]] == [
        ("Figure 4", 12.5, 12.0, 0.96),
        ("Figure 5", None, 3.0, None),
    ]
    told = (found[name] for name in ("study", "source", "finding", "not_reached", "failed"))
    assert [*told] == [*FINDINGS[:1], *FINDINGS[2:4], *FINDINGS[7:9]]
    assert (found["reading"], found["conditions"]) == (["as printed"], ["one seed"])
    assert found["version"] == __version__


def test_the_page_can_be_drawn_again_from_the_file(tmp_path: Path) -> None:
    path = write_summary(FINDINGS, tmp_path)
    read = read_summary(path)
    assert (
        findings_to_values(read)
        == json.loads(path.read_text())
        == json.loads(json.dumps(findings_to_values(FINDINGS)))
    )
    assert [list(section.rows) for section in read.sections] == [[ROWS[0]], [ROWS[1]]]
    assert list(read.sections[0].plots[0].series[0].x) == [1.0, 2.0]
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 3}', "\udcff"])
def test_a_file_that_is_no_summary(tmp_path: Path, text: str) -> None:
    path = tmp_path / "summary.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=r"summary\.json: not a valid summary"):
        read_summary(path)


def test_a_figure_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    bad = FINDINGS._replace(sections=[Section("t", "f", [ROWS[1]._replace(ours=float("nan"))])])
    with pytest.raises(ValueError, match="Out of range float"):
        write_summary(bad, tmp_path)
    assert list(tmp_path.iterdir()) == []
