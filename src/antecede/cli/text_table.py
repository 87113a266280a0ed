"""Tables with headings of several lines, as wide as the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from antecede.formatting import align

LEAST_WIDTH, MOST_WIDTH = 40, 120


class Column(NamedTuple):
    """Lines of a heading (the last is the unit), and whether the cells are text (left-aligned)."""

    heading: tuple[str, ...]
    words: bool = False


def width_of_terminal() -> int:
    """Return the columns of the terminal, 40 to 120."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, LEAST_WIDTH), MOST_WIDTH)


def columns(heads: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table, with narrower gaps if the width requires it."""
    lines = [[head.heading[k] for head in heads] for k in range(len(heads[0].heading))]
    lines += [list(row) for row in rows]
    return align(lines, [head.words for head in heads], within=width)


def explain_terms(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield terms and their meaning, aligned and wrapped."""
    first = max((len(word) for word, _ in pairs), default=0) + 2
    for word, meaning in pairs:
        indent = " " * first
        yield from textwrap.wrap(
            f"{word:{first}}{meaning}", width, subsequent_indent=indent, break_on_hyphens=False
        )


def short(value: float | None, digits: int = 1) -> str:
    """Return a number with `digits` decimals, none from 1000 up; a dash for None."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        digits = 0
    shown = f"{value:,.{digits}f}"
    least = 10.0**-digits
    return shown if abs(value) >= least / 2 else f"<{least:g}"
