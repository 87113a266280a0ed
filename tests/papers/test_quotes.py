"""Every passage that tests read stands in its paper, where the papers are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[2] / "shared" / "sources"
NUMBERS = {"evropeytsev_2016": "000", "nakayama_2017": "004"}
"""Of the files beside a clone."""


def passages(name: str) -> list[str]:
    return (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def test_every_file_of_passages_is_looked_up() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == NUMBERS.keys()


@pytest.mark.parametrize("name", NUMBERS)
def test_passages_stand_in_their_paper(name: str) -> None:
    found = sorted(SOURCES.glob(f"{NUMBERS[name]}_*.txt"))
    if not found:
        pytest.skip("no ../shared/sources beside this clone: the papers are not part of it")
    text = found[0].read_text(encoding="utf-8")
    assert passages(name)
    assert [line for line in passages(name) if line not in text] == []
