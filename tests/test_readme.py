"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_the_socket_example_prints_what_the_readme_says() -> None:
    example, expected = re.findall(r"```(?:python|text)\n(.*?)```", README, re.DOTALL)[1:3]
    assert "socket" in example
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())
        if not link.startswith("http") and not (page.parent / link).exists()
    ]
    assert broken == []


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["docs/design/group.md", "docs/questions.md"])
def test_a_page_prints_what_it_says(name: str) -> None:
    page = (ROOT / name).read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    example = "".join(text for kind, text in blocks if kind == "python")
    # Text that follows a program is what it prints.
    kinds = [kind for kind, _ in blocks]
    expected = "".join(
        text for k, (kind, text) in enumerate(blocks) if kind == "text" and kinds[k - 1] == "python"
    )
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")
