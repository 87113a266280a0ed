"""Rules of the package's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import layout

ROOT = Path(__file__).resolve().parents[2]


def test_the_package_keeps_the_rules() -> None:
    assert layout.find_problems(ROOT / "src") == []
    assert len(layout.read_imports(ROOT / "src")) > 600


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {"core/a.py": "from antecede.tables.b import x", "tables/b.py": "x = 1"},
            "upward import: antecede.core.a imports antecede.tables.b",
        ),
        (
            {"live/a.py": "import antecede.spark.b", "spark/b.py": ""},
            "upward import: antecede.live.a imports antecede.spark.b",
        ),
        (
            {
                "core/p/a.py": "def f():\n    from antecede.core.p import b",
                "core/p/b.py": "if TYPE_CHECKING:\n    from antecede.core.p.a import f",
            },
            "import cycle: antecede.core.p.a, antecede.core.p.b",
        ),
        (
            {
                "core/a/x.py": "from antecede.core.b import y",
                "core/a/z.py": "",
                "core/b/y.py": "from antecede.core.a.z import z",
            },
            "cycle of packages: core.a, core.b",
        ),
        (
            {f"core/m{k}.py": "" for k in range(15)} | {"core/p/m.py": ""},
            "16 entries in antecede/core",
        ),
        ({f"core/m{k}.py": "" for k in range(15)}, None),
        ({"live/a.py": "import antecede.live.b", "live/b.py": "import antecede.live.a"}, None),
    ],
)
def test_each_rule_finds_its_violation(
    files: dict[str, str], problem: str | None, tmp_path: Path
) -> None:
    for name, text in {"errors.py": "", **files}.items():
        path = tmp_path / "antecede" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    problems = layout.find_problems(tmp_path)
    assert [found for found in problems if problem is None or not found.startswith(problem)] == []
    assert len(problems) == (problem is not None)
