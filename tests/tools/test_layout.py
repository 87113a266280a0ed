"""Tests of the layout rules."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from antecede.lazy import lazy_names
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
                "core/a/__init__.py": "",
                "core/b/__init__.py": "from antecede.core.b.y import y",
                "core/a/z.py": "",
                "core/b/y.py": "from antecede.core.a import z",
            },
            "cycle of packages: core.a, core.b",
        ),
        (
            {"core/a/x.py": "x = 1", "tables/b/y.py": "from antecede.core.a.x import x"},
            "import past an interface: antecede.tables.b.y imports from antecede.core.a.x",
        ),
        (
            {
                "core/a/__init__.py": "",
                "core/a/x.py": "x = 1",
                "tables/b/y.py": "from antecede.core.a import x",
                "lab/c.py": "from antecede.errors import E",
            },
            None,
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


INTERFACES = [
    path for path in (ROOT / "src").rglob("__init__.py") if "lazy_names" in path.read_text()
]


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.parent.name)
def test_an_interface_gives_the_names_that_type_checkers_see(path: Path) -> None:
    package = ".".join(path.parent.relative_to(ROOT / "src").parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and node.orelse)
    seen = {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (homes,) = (node for node in ast.walk(block) if isinstance(node, ast.Dict))
    given = {
        name: f"{package}.{module}"
        for module, names in ast.literal_eval(homes).items()
        for name in names.split()
    }
    assert given == seen
    for name, module in seen.items():
        home = importlib.import_module(module)
        assert getattr(importlib.import_module(package), name) is getattr(home, name)


def test_dir_lists_the_names_before_their_first_use() -> None:
    packages = [".".join(path.parent.relative_to(ROOT / "src").parts) for path in INTERFACES]
    code = f"""
import importlib
for package in {packages}:
    module = importlib.import_module(package)
    missing = set(getattr(module, "__all__", ())) - set(dir(module))
    assert not missing, (package, missing)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_no_module_has_is_no_attribute() -> None:
    get, _ = lazy_names("antecede.core", {"oracle": "History"})
    with pytest.raises(AttributeError, match=r"module 'antecede.core' has no attribute 'Histori'"):
        get("Histori")
