"""Griffe extension: examples in docstrings become fenced blocks on the API page."""

from __future__ import annotations

from typing import Any

import griffe


def fence_examples(text: str) -> str:
    """Put a fence around each run of `>>>` lines with their output."""
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
    """Extension that fences the examples of all docstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of an object; called by griffe."""
        if obj.docstring:
            obj.docstring.value = fence_examples(obj.docstring.value)
