"""Rules of wording."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import words

LONG, LONGER = ("Return" + " the value of a key" * count for count in (6, 9))


def test_texts_keep_the_rules() -> None:
    problems = words.find_problems([words.ROOT / path for path in words.CHECKED])
    assert [str(one) for one in problems] == []
    assert len(words.EXCEPTIONS) <= 10


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('"""What a row waits for."""', "first word"),
        ('def f():\n    """Whether a row waits."""', "first word"),
        ('X = 1\n"""How long a row waits."""', "first word"),
        ("# Somebody else is asked next.", "term"),
        ("# The member was put out\n# for good.", "term"),
        (f'"""{LONG}."""', "long sentence of 31 words"),
        (f'"""{LONGER}."""', "sentence of 46 words"),
        ("def told(): ...", "function name"),
        ("class A:\n    def made_of(self): ...", "function name"),
        ("def _blocking(): ...", "function name"),
        ("# See `docs/absent.md`.", "path"),
        ('"""Rows of `antecede.core.absent`."""', "path"),
    ],
)
def test_a_violation_is_found(tmp_path: Path, source: str, rule: str) -> None:
    (tmp_path / "a.py").write_text(source)
    assert [one.rule for one in words.find_problems([tmp_path])] == [rule]


@pytest.mark.parametrize(
    "source",
    [
        "def need_rows(): ...",
        "class A:\n    @property\n    def told(self): ...",
        'def find_rows():\n    """Return rows of `antecede.core.group`, as in `README.md`."""',
        '"""Rows.\n\nThey wait: each for its causes; see `tools/words.py`.\n"""',
        '"""Program.\n\n    ' + "word " * 60 + '\n\nEnd."""',
    ],
)
def test_plain_source_has_no_problem(tmp_path: Path, source: str) -> None:
    (tmp_path / "a.py").write_text(source)
    assert words.find_problems([tmp_path]) == []


def test_a_class_name_is_used_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("class Step: ...")
    (problem,) = words.find_problems([tmp_path])
    assert (problem.rule, problem.words) == ("duplicate class", f"Step also in {tmp_path / 'b.py'}")


def test_pages_are_read_without_code_and_tables(tmp_path: Path) -> None:
    page = "# What is it\n\n```python\nwhom = 1\n```\n\n| whom |\n|---|\n\nWhoever asks, waits.\n"
    (tmp_path / "a.md").write_text(page)
    (problem,) = words.find_problems([tmp_path])
    assert (problem.line, problem.rule) == (10, "term")
