"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_the_page_of_group_prints_what_it_says() -> None:
    page = (ROOT / "docs/design/group.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    example = "".join(text for kind, text in blocks if kind == "python")
    expected = "".join(text for kind, text in blocks if kind == "text")
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")
