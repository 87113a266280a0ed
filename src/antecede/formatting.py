"""Text formatting of numbers, durations, tables and error values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_UNITS = (
    (0.001, 0.000001, "ns"),
    (1.0, 0.001, "µs"),
    (1_000.0, 1.0, "ms"),
    (60_000.0, 1_000.0, "s"),
    (3_600_000.0, 60_000.0, "min"),
    (86_400_000.0, 3_600_000.0, "h"),
    (float("inf"), 86_400_000.0, "days"),
)


def quote(value: object, max_length: int = 60) -> str:
    """Return the repr of a value, at most `max_length` characters; its type if the repr fails."""
    try:
        text = repr(value)
    except Exception:
        kind = type(value).__name__
        return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind} without a repr"
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


def count_and_part(count: int, total: int) -> str:
    """Return a count with its percentage, such as "41 (2.8 %)"."""
    return f"{count:,} ({count / total:.1%})" if count and total else f"{count:,}"


def pluralize(number: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as "1 peer", "2,000 peers"; `plural`: if irregular."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def were(number: int) -> str:
    """Return the verb for a count."""
    return "was" if number == 1 else "were"


def duration(milliseconds: float | None) -> str:
    """Return a duration in the best unit, such as "84 ms" or "2.1 h"; a dash for None."""
    if milliseconds is None:
        return "–"
    if milliseconds == 0:
        return "0"
    divisor, unit = next((d, name) for limit, d, name in _UNITS if milliseconds < limit)
    value = milliseconds / divisor
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Return aligned columns: the first left, all others right."""
    lines = [header, *rows]
    words = [k == 0 for k in range(len(header))]
    return "\n".join(align(lines, words, indent=indent))


def align(
    lines: Sequence[Sequence[str]],
    left_aligned: Sequence[bool],
    *,
    indent: str = "",
    within: int | None = None,
) -> Iterator[str]:
    """Yield lines of cells as columns, left or right aligned; narrower gaps beyond `within`."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    wide = within is not None and sum(widths) + 2 * (len(widths) - 1) + len(indent) > within
    gap = " " if wide else "  "
    for line in lines:
        cells = (
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(line, widths, left_aligned, strict=True)
        )
        yield (indent + gap.join(cells)).rstrip()


_CONTROLS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def harmless(text: str) -> str:
    """Escape control characters and text direction marks.

    >>> print(harmless("a\\x1b[2J")) a\\x1b[2J
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
