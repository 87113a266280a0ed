"""What the page about topics shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "live" / "topics.md"
RECIPES = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)


def test_every_recipe_has_its_output() -> None:
    assert len(RECIPES) == PAGE.read_text(encoding="utf-8").count("```python") == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("which", range(3))
def test_a_recipe_does_what_it_says(which: int) -> None:
    code, expected = RECIPES[which]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected
