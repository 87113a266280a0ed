"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from antecede.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_the_group_example_prints_what_the_readme_shows() -> None:
    (example,) = re.findall(r"```python\n(from antecede import Group.*?)```", README, re.DOTALL)
    expected = re.findall(r"```text\n(.*?)```", README.split(example)[1], re.DOTALL)[0]
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_the_counterexample_is_the_one_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    (command, line) = re.findall(
        r"```sh\nantecede (check .*?)\n```\n\n```text\n(.*?)\n```", README
    )[0]
    assert main(command.split()) == 1
    assert line in capsys.readouterr().out


def test_the_readme_is_one_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 120


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
@pytest.mark.parametrize(
    "name",
    [
        "docs/design/group.md",
        "docs/explanation/causal-order.md",
        "docs/questions.md",
        "docs/tutorials/group.md",
    ],
)
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


def test_the_tutorial_finds_the_bug_and_corrects_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "tutorials" / "protocol.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    refuted, drawn, correction, passed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "mine.py").write_text(program)
    assert main(["check", "mine.py:Mine"]) == 1
    shown = capsys.readouterr().out
    assert [line.rstrip() for line in shown.splitlines()] == refuted.splitlines()
    scenario = refuted.partition("as a scenario:\n")[2]
    (tmp_path / "wrong.scenario").write_text(scenario.replace("    ", ""))
    (draw,) = (name for name, one in COMMANDS.items() if one.module.endswith(".draw"))
    assert main([draw, "wrong.scenario", "--no-color"]) == 0
    assert drawn in capsys.readouterr().out
    line = "                self.delivered.add(done)\n"
    assert program.count(line) == 1
    (tmp_path / "mine.py").write_text(program.replace(line, line + correction))
    assert main(["check", "mine.py:Mine"]) == 0
    assert passed in capsys.readouterr().out


def test_the_headers_of_the_page_are_sent() -> None:
    page = (ROOT / "docs" / "how-to" / "headers.md").read_text()
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    sent: list[list[tuple[str, bytes]]] = []
    space = {
        "message": SimpleNamespace(headers=list),
        "producer": SimpleNamespace(produce=lambda *_, headers: sent.append(headers)),
        "request": SimpleNamespace(headers={}),
        "value": b"paid",
        "urllib": urllib,
        "url": "http://127.0.0.1/",
    }
    exec(program, space)
    named = re.findall(r"^\| `(antecede-\w+)` \|", page, re.MULTILINE)
    assert [name for name, _ in sent[0]] == named
