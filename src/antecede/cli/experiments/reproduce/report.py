"""Output of `antecede reproduce`: findings in aligned columns, and counts of runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from antecede.formatting import align, duration, pluralize
from antecede.lab.report import Findings, Row
from antecede.lab.reproductions.framework import Conducted

SHOWN = 5
"""Limit of printed failures; `summary.json` and the page have all."""
ROWS = 12


def report(
    done: Conducted, folder: Path, seconds: float, report_only: bool, width: int = 80
) -> None:
    """Print findings, counts of runs, and the path of the page."""
    print("\n".join(_findings(done.findings, width)))
    print()
    print_runs(done, seconds, report_only)
    print(f"page        {folder / 'index.html'}")


def print_runs(done: Conducted, seconds: float, report_only: bool) -> None:
    """Print the counts of runs by outcome."""
    earlier = f", {done.stored:,} from the cache" if done.stored else ""
    left = f", {done.left:,} filtered out" if done.left else ""
    print(f"runs        {done.carried_out:,} in {duration(1000 * seconds)}{earlier}{left}")
    if done.failures:
        print(f"failed      {len(done.failures):,}; the same command retries them")
        for text in done.findings.failed[:SHOWN]:
            print(f"            {text}")
        if len(done.findings.failed) > SHOWN:
            more = pluralize(len(done.findings.failed) - SHOWN, "other")
            print(f"            and {more}: see summary.json")
    if done.stale:
        use = "used" if report_only else "not used"
        print(f"other code  wrote the cached results of {pluralize(done.stale, 'run')}: {use}")
    for path in done.unreadable:
        print(f"ignored     {path}: unreadable results")


def _findings(findings: Findings, width: int) -> Iterator[str]:
    yield from wrap(findings.title, width)
    yield from wrap(findings.source, width)
    yield ""
    yield from wrap(findings.finding, width)
    for section in findings.sections:
        if not (section.rows or section.claims or (section.finding and section.reads)):
            continue
        yield ""
        yield from wrap(f"{section.title}: {section.finding or section.about}", width)
        for claim in section.claims:
            mark = f"  {claim.verdict:<14}"
            words = f"{claim.statement} ({claim.where}): {claim.found}"
            yield from wrap(words, width, mark, " " * len(mark))
        if not section.rows:
            continue
        # Rows with a published value first.
        rows = sorted(section.rows, key=lambda row: row.paper is None)[:ROWS]
        yield rows_text(rows, width)
        left = len(section.rows) - len(rows)
        if left:
            yield f"  and {left:,} more on the page and in summary.json"
    if findings.not_reached:
        yield ""
        yield "Not reproduced:"
        for text in findings.not_reached:
            yield from wrap(text, width, "  ")


def wrap(text: str, width: int, indent: str = "", then: str | None = None) -> list[str]:
    """Return the lines of a text; `then`: indent of all lines but the first."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if then is None else then,
        break_on_hyphens=False,
    )


def rows_text(rows: Sequence[Row], width: int = 80) -> str:
    """Return rows as aligned columns: text to the left, numbers to the right.

    Cells that all rows share are in a line before them. Too wide rows lose the last columns of
    text, then text is shortened.
    """
    cells = [HEADER, *(_cells(row) for row in rows)]
    kept = [k for k in range(len(HEADER)) if any(line[k] for line in cells[1:])]
    alike = [k for k in kept if k in COMMON and len({line[k] for line in cells[1:]}) == 1]
    common = ", ".join(cells[1][k] for k in alike) if len(rows) > 1 else ""
    if common:
        kept = [k for k in kept if k not in alike]
    most = {k: max(len(line[k]) for line in cells) for k in kept}
    for k in (*COMMON[::-1], 2, 1):
        over = INDENT + sum(most.values()) + GAP * (len(most) - 1) - width
        if k not in most or over <= 0:
            continue
        if k in COMMON:
            del most[k]
        else:
            most[k] = max(most[k] - over, LEAST_WORDS)
    lines = [f"  {_shorten(common, width - INDENT - 1)}:"] if common else []
    shown = [[_shorten(line[k], size) for k, size in most.items()] for line in cells]
    lines += align(shown, [k not in NUMBERS for k in most], indent=" " * INDENT)
    return "\n".join(lines)


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, keep: int) -> str:
    """Return a table with numbers to the right and wrapped headings.

    A too wide table is divided; all parts have the first `keep` columns.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    heads = [textwrap.wrap(name, HEAD) or [""] for name in columns]
    widths = [
        max(*(len(part) for part in head), *(len(row[k]) for row in cells))
        for k, head in enumerate(heads)
    ]
    parts: list[list[int]] = [[]]
    fixed = sum(widths[:keep]) + GAP * keep + INDENT
    for k in range(keep, len(columns)):
        if parts[-1] and fixed + sum(widths[j] + GAP for j in [*parts[-1], k]) > width + GAP:
            parts.append([])
        parts[-1].append(k)
    return "\n\n".join(_part([*range(keep), *part], heads, cells) for part in parts)


HEAD = 14
"""Width of a heading, characters."""


def _part(
    chosen: Sequence[int],
    heads: Sequence[Sequence[str]],
    cells: Sequence[Sequence[str]],
) -> str:
    tall = max(len(heads[k]) for k in chosen)
    lines = [
        [([""] * (tall - len(heads[k])) + list(heads[k]))[at] for k in chosen] for at in range(tall)
    ]
    lines += [[row[k] for k in chosen] for row in cells]
    return "\n".join(align(lines, [False] * len(chosen), indent=" " * INDENT))


HEADER = ("figure", "quantity", "condition", "paper", "ours", "ratio", "unit", "note")
NUMBERS = range(3, 6)
COMMON = (0, 6, 7)
"""Columns of text that may be the same in all rows, and are dropped first."""
INDENT, GAP, LEAST_WORDS = 2, 2, 12


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _cells(row: Row) -> tuple[str, ...]:
    paper = "" if row.paper is None else _number(row.paper)
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    words = (row.figure, row.quantity, row.condition)
    return (*words, paper, _number(row.ours), ratio, row.unit, row.note)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
