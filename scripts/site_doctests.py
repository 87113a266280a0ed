"""An extension of griffe: examples in docstrings become fenced blocks on the API page."""

from __future__ import annotations

from typing import Any

import griffe


def fence_examples(text: str) -> str:
    """Return a docstring with a fence around each run of `>>>` lines and what they print."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if not inside and line.startswith(">>>"):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Doctests(griffe.Extension):
    """Fences the doctests of everything that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Griffe calls this for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = fence_examples(obj.docstring.value)
