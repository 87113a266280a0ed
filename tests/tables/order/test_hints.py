"""Hints of audit and order on columns and cells that they do not use."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.cli import main
from antecede.tables.audit import audit
from antecede.tables.trace.user_tables.list_separators import several_in_one


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["audit", "order"])
def test_the_most_frequent_separator_is_named_and_all_are_counted(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.tsv"
    rows = ["id\tafter", "a\t", "b\t", "c\ta;b", "d\ta,b", "e\tb, c", "f\ta;z"]
    path.write_text("\n".join(rows))
    out = ["-o", str(tmp_path / "out.csv")] if command == "order" else []
    words = said(capsys, command, str(path), *out)
    assert "3 of these references are several ids in one (2 with ',', 1 with ';')" in words
    assert "as in 'a,b': all of its parts exist" in words
    assert "give --list-separator ','; only one separator is supported" in words


def test_a_reference_counts_once_and_only_where_all_parts_are_there() -> None:
    assert several_in_one(["a;b", "x;y", "a"], {"a", "b"}) == {
        "separator": ";",
        "references": 1,
        "example": "a;b",
        "others": {},
    }
    assert several_in_one(["x;y"], {"a", "b"}) == {}


def test_an_order_without_causes_names_the_options_that_serve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("member,seq\np,1\nq,1\np,2\n")
    words = said(capsys, "order", str(path), "-o", str(tmp_path / "out.csv"))
    assert "the order is by ties" in words
    assert "causality_source: none" in words
    shown = " ".join(words.split())
    assert "give --after COLUMN (ids of causes) or --clock COLUMN (a vector clock)" in shown


def test_an_event_whose_only_cause_is_itself_is_a_root(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,after\na,a\nb,a\nc,\n")
    report = audit([path])
    assert (report.roots, report.self_causes, report.edges) == (2, 1, 1)


def test_one_place_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,after\nb,a\na,\n")
    assert "by up to 1 place (b before its cause a)" in said(capsys, "audit", str(path))


def test_the_counts_of_clocks_say_what_they_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"member": "p", "clock": {"p": 1}}\n{"member": "p", "clock": {"p": 2}}\n'
        '{"member": "q", "clock": {"q": 1, "p": 2}}\n'
    )
    lines = said(capsys, "audit", str(path)).splitlines()
    edges = next(line for line in lines if line.startswith("  edges"))
    assert edges.endswith("program order not included")
    assert edges.split()[1] == "1"
    steps = next(line for line in lines if line.startswith("  immediate dependencies"))
    assert steps.endswith("program order included")
    assert steps.split()[2] == "2"


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (["a,b", "b,a"], "(2 x is its own cause, by way of others)"),
        (["a,a;b", "b,c", "c,a"], "(3 x is its own cause, by way of others)"),
    ],
)
def test_an_order_of_nothing_is_an_error(
    rows: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("\n".join(["id,after", *rows]) + "\n")
    assert main(["order", str(path), "-o", str(out), "--list-separator", ";"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "no event has a position: all rows are quarantined (" in shown
    assert reason in shown
    assert not out.exists()
    assert len((tmp_path / "out.quarantine.csv").read_text().splitlines()) == 1 + len(rows)
