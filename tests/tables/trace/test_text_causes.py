"""Causes in cells of CSV: words for null, lists in brackets, whole numbers with a point."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from antecede.tables.trace.arrow import read
from antecede.tables.trace.reader import Detail, ReadOptions
from antecede.tables.trace.schema import Event
from antecede.tables.trace.user_tables.list_separators import NULLS, parse_list, several_in_one
from antecede.tables.trace.user_tables.reader import TableReader
from tests.tables.trace.files import run_command, write_lines

pa: Any = pyarrow


def table(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "after"), *rows])
    return path


def causes_of(path: Path, options: ReadOptions | None = None) -> list[list[str]]:
    """Return the causes of each row; assert that both ways of reading agree."""
    trace = read([path], options=options)
    by_rows = [*TableReader().read(path, options or ReadOptions())]
    found: Any = trace.events["causes"].to_pylist()
    assert found == [list(one.causes) for one in by_rows if isinstance(one, Event)]
    counts = {one.name: one.value for one in by_rows if isinstance(one, Detail)}
    assert counts == trace.details
    return [list(names) for names in found]


@pytest.mark.parametrize(
    ("cell", "causes"),
    [
        ("['a', 'b']", ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("['a' 'b']", ["a", "b"]),
        ("['a'\n 'b']", ["a", "b"]),
        ("[a, b]", ["a", "b"]),
        ("{a,b}", ["a", "b"]),
        ('{"a",b}', ["a", "b"]),
        ("{'a', 'b'}", ["a", "b"]),
        ("('a',)", ["a"]),
        ("[]", []),
        ("{}", []),
        ("[ ]", []),
        ("['a', None, nan]", ["a"]),
        ("{a,NULL}", ["a"]),
        (r"['it\'s']", ["it's"]),
        ("[a b]", ["a b"]),
        ("[7 8]", ["7", "8"]),
        ('{"a": 1}', ['{"a": 1}']),
        ("['a'", ["['a'"]),
        ("[['a'], ['b']]", ["[['a'], ['b']]"]),
        ("a]", ["a]"]),
    ],
)
def test_lists_in_brackets(cell: str, causes: list[str], tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", [("a", ""), ("b", ""), ("c", cell)])
    assert causes_of(path)[2] == causes


@pytest.mark.parametrize("word", sorted(NULLS | {"NaN", "None", "NULL", r"\N", "<NA>", " null "}))
def test_words_for_null_are_no_causes(word: str, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", [("a", ""), ("b", word), ("c", "a")])
    assert causes_of(path) == [[], [], ["a"]]
    assert read([path]).details["causes_as_null"] == 1
    path = table(tmp_path / "id.csv", [(word.strip(), ""), ("b", word.strip())])
    assert causes_of(path) == [[], [word.strip()]]


def test_ids_that_begin_with_a_bracket_leave_cells_as_they_are(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", [("[a]", ""), ("b", "[a]"), ("c", "{b}")])
    assert causes_of(path) == [[], ["[a]"], ["b"]]


def test_numbers_with_a_point_name_whole_ids(tmp_path: Path) -> None:
    """Findings T12: pandas writes 1.0 for 1 if a column has nulls."""
    path = table(tmp_path / "t.csv", [("1", ""), ("2", "1.0"), ("3", "NaN"), ("4", "{1.0,2.0}")])
    assert causes_of(path) == [[], ["1"], [], ["1", "2"]]
    assert read([path]).details["causes_as_whole_numbers"] == 3
    path = table(tmp_path / "s.csv", [("1", ""), ("2", "1.0"), ("3", "1.0;2.0")])
    assert causes_of(path, ReadOptions(separator=";")) == [[], ["1"], ["1", "2"]]
    for rows in ([("1.0", ""), ("2", "1.0")], [("1", ""), ("2", "1.0"), ("3", "1.5")]):
        assert causes_of(table(tmp_path / "v.csv", rows))[1] == ["1.0"]


def test_what_is_read_otherwise_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    path = table(tmp_path / "t.csv", [("1", "None"), ("2", "1.0"), ("3", "{1.0}")])
    for words in (["audit"], ["false-causality"], ["order", "-o", str(tmp_path / "o.csv")]):
        shown = run_command(capsys, *words, str(path))
        assert "1 word for null among the causes" in shown
        assert "1 list in brackets among the causes" in shown
        assert "2 causes with a decimal point and zeros, such as 1.0" in shown


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("cell", "words", "remedy"),
    [
        ("None", "1 of these references is a word for null, as in 'None'", "save them as null"),
        ("1.0", "1 of these references is a whole number with a point", "whole numbers (pandas"),
        ("['1']", "1 of these references is a list as text", "save them as lists, or as JSON"),
    ],
)
def test_typed_tables_get_a_hint(
    format: str,
    cell: str,
    words: str,
    remedy: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / f"t.{format}"
    rows = [{"id": "1", "after": None}, {"id": "2", "after": cell}]
    if format == "jsonl":
        write_lines(path, rows)
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    assert causes_of(path) == [[], [cell]]
    for command in (["audit"], ["order", "-o", str(tmp_path / "o.csv")]):
        shown = run_command(capsys, *command, str(path))
        assert words in shown
        assert remedy in shown


def test_hints_name_the_most_frequent_kind() -> None:
    hint = several_in_one(["None", "nan", "1.0"], {"1", "2"})
    assert (hint["kind"], hint["references"], hint["example"]) == ("null", 2, "None")
    assert parse_list("a, b") == ["a", "b"]
    assert parse_list("'a', {") is None
