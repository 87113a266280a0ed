"""What `antecede study` prints: what was found, in aligned columns, and what became of the runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from antecede.studies.conduct import Conducted
from antecede.studies.findings import Findings, Row
from antecede.words import duration

SHOWN = 5
"""So many failed runs are printed; `summary.json` and the page have all."""
ROWS = 12
"""So many rows of a section."""


def report(done: Conducted, folder: Path, seconds: float, redraw: bool, width: int = 80) -> None:
    """Print findings, counts of runs, and where the page is."""
    print("\n".join(_findings(done.findings, width)))
    print()
    earlier = f", {done.stored:,} were there before" if done.stored else ""
    left = f", {done.left:,} left out" if done.left else ""
    print(f"runs        {done.carried_out:,} in {duration(1000 * seconds)}{earlier}{left}")
    if done.failures:
        print(f"failed      {len(done.failures):,}; the same command tries them again")
        for text in done.findings.failed[:SHOWN]:
            print(f"            {text}")
        if len(done.findings.failed) > SHOWN:
            print(f"            and {len(done.findings.failed) - SHOWN:,} others: see summary.json")
    if done.stale:
        what = "used" if redraw else "not used"
        print(f"other code  made the results of {done.stale:,} runs here: {what}")
    for path in done.unreadable:
        print(f"set aside   {path}: no results that can be read")
    print(f"page        {folder / 'index.html'}")


def _findings(findings: Findings, width: int) -> Iterator[str]:
    yield from _wrapped(findings.title, width)
    yield from _wrapped(findings.source, width)
    yield ""
    yield from _wrapped(findings.finding, width)
    for section in findings.sections:
        if not section.rows:
            continue
        yield ""
        yield from _wrapped(f"{section.title}: {section.finding}", width)
        # What the source says comes first: that is what a reader compares.
        rows = sorted(section.rows, key=lambda row: row.paper is None)[:ROWS]
        yield rows_text(rows, width)
        left = len(section.rows) - len(rows)
        if left:
            yield f"  and {left:,} more: on the page, and in summary.json"
    if findings.not_reached:
        yield ""
        yield "Does not come out:"
        for text in findings.not_reached:
            yield from _wrapped(text, width, "  ")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def rows_text(rows: Sequence[Row], width: int = 80) -> str:
    """Return rows as aligned columns: words to the left, numbers to the right.

    What all rows have in common stands in a line before them. Where they are too wide, the last
    columns of words go, then the words that are left are cut.
    """
    cells = [HEADER, *(_cells(row) for row in rows)]
    kept = [k for k in range(len(HEADER)) if any(line[k] for line in cells[1:])]
    alike = [k for k in kept if k in COMMON and len({line[k] for line in cells[1:]}) == 1]
    common = ", ".join(cells[1][k] for k in alike) if len(rows) > 1 else ""
    if common:
        kept = [k for k in kept if k not in alike]
    for k in COMMON[::-1]:
        if k in kept and _width(cells, kept) > width:
            kept.remove(k)
    most = {k: max(len(line[k]) for line in cells) for k in kept}
    for k in (2, 1):
        over = INDENT + sum(most.values()) + GAP * (len(most) - 1) - width
        if k in most and over > 0:
            most[k] = max(most[k] - over, LEAST_WORDS)
    lines = [f"  {_cut(common, width - INDENT - 1)}:"] if common else []
    for line in cells:
        shown = (
            line[k].rjust(most[k]) if k in NUMBERS else _cut(line[k], most[k]).ljust(most[k])
            for k in kept
        )
        lines.append(" " * INDENT + (" " * GAP).join(shown).rstrip())
    return "\n".join(lines)


HEADER = ("figure", "quantity", "condition", "paper", "ours", "ratio", "unit", "note")
NUMBERS = range(3, 6)
COMMON = (0, 6, 7)
"""Columns of words that may be the same in all rows, and go first where there is no room."""
INDENT, GAP, LEAST_WORDS = 2, 2, 12


def _width(cells: Sequence[Sequence[str]], kept: Sequence[int]) -> int:
    widest = (max(len(line[k]) for line in cells) for k in kept)
    return INDENT + sum(widest) + GAP * (len(kept) - 1)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _cells(row: Row) -> tuple[str, ...]:
    paper = "" if row.paper is None else _number(row.paper)
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    words = (row.figure, row.quantity, row.condition)
    return (*words, paper, _number(row.ours), ratio, row.unit, row.note)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
