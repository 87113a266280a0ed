"""Tables whose columns have a heading of several lines, as narrow as the terminal wants them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from antecede.formatting import aligned

LEAST_WIDTH, MOST_WIDTH = 40, 120


class Column(NamedTuple):
    """A heading of lines, the last one the unit, and whether words (to the left) stand in it."""

    heading: tuple[str, ...]
    words: bool = False


def width_of_terminal() -> int:
    """Return the columns of the terminal, within reason."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, LEAST_WIDTH), MOST_WIDTH)


def columns(heads: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table; columns stand closer where the width asks for it."""
    lines = [[head.heading[k] for head in heads] for k in range(len(heads[0].heading))]
    lines += [list(row) for row in rows]
    return aligned(lines, [head.words for head in heads], within=width)


def explained(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield words and what they mean, aligned and wrapped."""
    first = max((len(word) for word, _ in pairs), default=0) + 2
    for word, meaning in pairs:
        indent = " " * first
        yield from textwrap.wrap(
            f"{word:{first}}{meaning}", width, subsequent_indent=indent, break_on_hyphens=False
        )


def short(value: float | None, digits: int = 1) -> str:
    """Return a number with so many digits after the point, fewer for large ones; a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        digits = 0
    shown = f"{value:,.{digits}f}"
    least = 10.0**-digits
    return shown if abs(value) >= least / 2 else f"<{least:g}"
