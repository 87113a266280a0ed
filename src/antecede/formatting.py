"""Numbers, durations and tables in words, for terminals and pages; values in errors."""

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


def shown(value: object, most: int = 60) -> str:
    """Return a value as Python writes it, for an error's text: cut where it is longer than `most`.

    What cannot be written (a number of thousands of digits, a broken `__repr__`) is told by type.
    """
    try:
        text = repr(value)
    except Exception:
        kind = type(value).__name__
        return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind} that cannot be written out"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def count_and_part(count: int, total: int) -> str:
    """Return a count with its part of the whole, as in "41 (2.8 %)"."""
    return f"{count:,} ({count / total:.1%})" if count and total else f"{count:,}"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Return a number of things, as in "1 peer", "2,000 peers"; `things`: the plural, if no "s"."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def were(number: int) -> str:
    """Return the verb after a count."""
    return "was" if number == 1 else "were"


def duration(milliseconds: float | None) -> str:
    """Return a duration in the unit that reads best, as in "84 ms", "2.1 h"; a dash for None."""
    if milliseconds is None:
        return "–"
    if milliseconds == 0:
        return "0"
    divisor, unit = next((d, name) for limit, d, name in _UNITS if milliseconds < limit)
    value = milliseconds / divisor
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> str:
    """Return aligned columns: the first to the left, all others to the right."""
    lines = [header, *rows]
    words = [k == 0 for k in range(len(header))]
    return "\n".join(aligned(lines, words, indent=indent))


def aligned(
    lines: Sequence[Sequence[str]],
    words: Sequence[bool],
    *,
    indent: str = "",
    within: int | None = None,
) -> Iterator[str]:
    """Yield lines of cells [lines, columns] as columns: words to the left, the rest to the right.

    Columns stand two blanks apart, or one where they would be wider than `within` characters.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    wide = within is not None and sum(widths) + 2 * (len(widths) - 1) + len(indent) > within
    gap = " " if wide else "  "
    for line in lines:
        cells = (
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(line, widths, words, strict=True)
        )
        yield (indent + gap.join(cells)).rstrip()


_MOVING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Spell out what moves a terminal's cursor or turns its text: names in a log may hold it.

    >>> print(harmless("a\\x1b[2J"))
    a\\x1b[2J
    """
    return _MOVING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
