"""The page of the bench as one file, from its own modules and those that it shares with `view`."""

from __future__ import annotations

from functools import cache
from importlib import resources

from antecede.pages.joining import as_title, filled, joined

MODULES = "modules.txt"
"""Names the modules, in the order in which they import from each other."""


def page(title: str) -> str:
    """Return the page; it asks the server that it comes from for everything else."""
    return filled(
        _read("bench.html"), code(), _read("bench.css"), "'self'", {"TITLE": as_title(title)}
    )


@cache
def code() -> str:
    """Return the modules as one script; what the bench has not, the page of a trace has."""
    return joined(_read(name) for name in _read(MODULES).split())


def _read(name: str) -> str:
    for floor in ("play", "view"):  # without importing the latter, which needs pyarrow
        file = resources.files("antecede") / floor / "page" / name
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(f"the page lacks {name}: install antecede again")
