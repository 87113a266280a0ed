"""The page in front of several studies: a card for each, with the first plot of its page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from antecede.lab.report.drawing import inlined
from antecede.lab.report.page import render
from antecede.lab.report.study import look


def write_overview(folder: Path, studies: Iterable[tuple[str, str, str, Path]]) -> Path:
    """Write folder/index.html and return its path.

    `studies`: name, title, finding, and the path of the page. The picture of a card is the first
    plot of that page (`figures/` beside it), if any.
    """
    cards = [
        {
            "study": study,
            "title": title,
            "finding": finding,
            "link": quote(Path(os.path.relpath(page, folder)).as_posix()),
            "svg": _first_plot(page, f"card{k}"),
        }
        for k, (study, title, finding, page) in enumerate(studies)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(render("overview.html", cards=cards, **look()), encoding="utf-8")
    return path


def _first_plot(page: Path, prefix: str) -> str:
    linked = re.search(r'href="(figures/[^"/]+\.svg)"', page.read_text(encoding="utf-8"))
    if linked is None or not (page.parent / linked[1]).exists():
        return ""
    return inlined((page.parent / linked[1]).read_text(encoding="utf-8"), prefix)
