"""Public names, one version, and the check of the wheel."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import antecede

ROOT = Path(__file__).parents[1]
PROMISED = (
    *(
        "antecede",
        "antecede.tables.audit",
        "antecede.tables.causality",
        "antecede.live",
        "antecede.core.propagation",
    ),
    "antecede.tables.trace",
)


@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_name_is_there_once_and_said_to_be(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__ == sorted(set(module.__all__), key=module.__all__.index)
    for public in module.__all__:
        assert getattr(module, public) is not None, public


@pytest.mark.parametrize("name", PROMISED)
def test_nothing_else_is_promised(name: str) -> None:
    space: dict[str, object] = {}
    exec(f"from {name} import *", space)
    assert set(space) - {"__builtins__"} == set(importlib.import_module(name).__all__)


def test_the_version_is_one() -> None:
    script = ROOT / "scripts" / "version.py"
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == antecede.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.M) == [antecede.__version__]
    metadata = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{antecede.__version__}"' in metadata


def test_the_pages_of_the_site_are_all_there() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    named = set(re.findall(r"\S+\.md", site))
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert named == there


def test_the_api_page_names_what_exists() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    named = re.findall(r"^::: (\S+)$", page, re.M)
    assert len(named) > 10
    for module in named:
        if module != "antecede.spark":  # needs pyspark; tests/spark asks it
            importlib.import_module(module)
