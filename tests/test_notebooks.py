"""The notebooks of the site print what stands in them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.notebooks import read_printed
from scripts.site_pictures import on_page_content

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FOLDER = DOCS / "notebooks"


SOURCES = {
    "causal_order_and_global_states": "Sahai et al. 2020",
    "hierarchical": "Evropeytsev et al. 2016",
    "linear_and_physical_clocks": "Tsuneizumi et al.",
    "semantic_order": "Bhavanasi and Iyer",
    "topic_order": "Nakayama 2017",
}
"""Notebook -> the source that it goes through, as docs/sources.md cites it."""


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.notebooks", "--check", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.slow
def test_notebooks_print_what_stands_in_them() -> None:
    done = checked(FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(".ipynb") == len([*FOLDER.glob("*.ipynb")]) >= 3 + len(SOURCES)


def notebook(*outputs: Mapping[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(cells=[SimpleNamespace(cell_type="code", outputs=outputs)])


def test_a_picture_says_its_words_and_not_their_places() -> None:
    def shown(x: int, label: str) -> list[str]:
        svg = f'<svg><title>T</title><text class="a" x="{x}">{label}</text><path d="M1"/></svg>'
        data = {"image/svg+xml": svg, "text/plain": "a -> b"}
        return read_printed(notebook({"output_type": "execute_result", "data": data}))

    assert shown(1, "a") == shown(2, "a") == ["a -> b\nT\na"]
    assert shown(1, "a") != shown(1, "b")
    streams = ({"output_type": "stream", "text": text} for text in ("1\n", "2\n"))
    assert read_printed(notebook(*streams)) == ["1\n2\n"]


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_has_a_notebook_with_pictures_questions_and_errata(name: str) -> None:
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    text, code = "\n".join(texts), [cell for cell in cells if cell["cell_type"] == "code"]
    assert text.count("**Question") >= 4
    assert {"## The model", "## What the print gets wrong"} <= set(text.splitlines())
    pictures = sum(
        "image/svg+xml" in out.get("data", {}) for cell in code for out in cell["outputs"]
    )
    assert pictures >= 5
    assert sum("".join(cell["source"]).count("assert ") for cell in code) >= 15
    # Every misprint of the source stands in it.
    part = (DOCS / "errata.md").read_text().split(f"## {SOURCES[name]}", 1)[1].split("\n## ", 1)[0]
    numbers = re.findall(r"^### (E\d+)\.", part, re.MULTILINE)
    assert numbers
    assert [number for number in numbers if not re.search(rf"\b{number}\b", text)] == []


def test_every_notebook_is_on_the_site_and_those_of_sources_with_the_sources() -> None:
    nav, sources = (ROOT / "mkdocs.yml").read_text(), (DOCS / "sources.md").read_text()
    names = {path.name for path in FOLDER.glob("*.ipynb")}
    assert {name for name in names if f"notebooks/{name}" not in nav} == set()
    rows = {cited: f"(notebooks/{name}.ipynb)" for name, cited in SOURCES.items()}
    for cited, link in rows.items():
        row = next(line for line in sources.splitlines() if line.startswith(f"| {cited} | "))
        assert link in row


def page_of(html: str, source: str = "notebooks/a.ipynb") -> str:
    """Return what the site's hook makes of the HTML of a page."""
    here = SimpleNamespace(src_uri=source)
    there = SimpleNamespace(url_relative_to=lambda file: "../../errata/")
    files = SimpleNamespace(get_file_from_path={"errata.md": there}.get)
    return on_page_content(html, page=SimpleNamespace(file=here), files=files)


def test_the_site_shows_our_pictures_in_the_page_and_others_as_they_are() -> None:
    def image(svg: str) -> str:
        encoded = base64.b64encode(svg.encode()).decode()
        return f'<img alt="" src="data:image/svg+xml;base64,{encoded}">'

    ours = ('<svg class="ac">1</svg>', '<svg xmlns="x" class="ac-plot" style="">2</svg>')
    others = image("<svg><script/></svg>")
    assert page_of(image(ours[0]) + image(ours[1]) + others) == ours[0] + ours[1] + others
    assert page_of(image(ours[0]), "guide.md") == image(ours[0])


def test_links_of_notebooks_lead_to_pages_or_are_told(caplog: pytest.LogCaptureFixture) -> None:
    assert page_of('<a href="../errata.md#e1">') == '<a href="../../errata/#e1">'
    assert page_of('<a href="https://a.example/b.md">') == '<a href="https://a.example/b.md">'
    assert not caplog.records
    assert page_of('<a href="../gone.md">') == '<a href="../gone.md">'
    assert "notebooks/a.ipynb links to gone.md, which is no page" in caplog.text


@pytest.mark.slow
def test_a_notebook_that_prints_something_else_is_found(tmp_path: Path) -> None:
    kept = (FOLDER / "peers.ipynb").read_text()
    assert kept.count("carol reads 'lunch?' from alice") == 1
    (tmp_path / "peers.ipynb").write_text(kept.replace("carol reads 'lunch?'", "carol eats"))
    done = checked(tmp_path)
    assert done.returncode == 1
    assert "peers.ipynb, cell of code 3: \"carol reads 'lunch?' from alice" in done.stdout
