"""Code of the page on matrix clocks: homework question 2 of Sahai et al. 2020."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[4] / "docs" / "protocols" / "matrix.md"


def test_the_example_of_the_page_runs() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert code.count("assert") == 4
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
