"""What `antecede study` prints: what was found, in aligned columns, and what became of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from antecede.studies.conduct import Conducted
from antecede.studies.findings import Row
from antecede.words import duration

SHOWN = 5
"""So many failed runs are printed; `summary.json` and the page have all."""


def report(done: Conducted, folder: Path, seconds: float, redraw: bool) -> None:
    """Print findings, counts of runs, and where the page is."""
    findings = done.findings
    print(f"{findings.title}\n{findings.source}\n\n{findings.finding}")
    for section in findings.sections:
        if section.rows:
            print(f"\n{section.title}: {section.finding}\n{rows_text(section.rows)}")
    if findings.not_reached:
        print("\nDoes not come out:")
        print("\n".join(f"  {text}" for text in findings.not_reached))
    print()
    earlier = f", {done.stored:,} were there before" if done.stored else ""
    left = f", {done.left:,} left out" if done.left else ""
    print(f"runs        {done.carried_out:,} in {duration(1000 * seconds)}{earlier}{left}")
    if done.failures:
        print(f"failed      {len(done.failures):,}; the same command tries them again")
        for text in findings.failed[:SHOWN]:
            print(f"            {text}")
        if len(findings.failed) > SHOWN:
            print(f"            and {len(findings.failed) - SHOWN:,} others: see summary.json")
    if done.stale:
        what = "used" if redraw else "not used"
        print(f"other code  made the results of {done.stale:,} runs here: {what}")
    for path in done.unreadable:
        print(f"set aside   {path}: no results that can be read")
    print(f"page        {folder / 'index.html'}")


def rows_text(rows: Sequence[Row]) -> str:
    """Return rows as aligned columns: words to the left, numbers to the right."""
    header = ("figure", "quantity", "condition", "paper", "ours", "ratio", "unit", "note")
    cells = [header, *(_cells(row) for row in rows)]
    kept = [k for k in range(len(header)) if any(line[k] for line in cells[1:])]
    widths = {k: max(len(line[k]) for line in cells) for k in kept}
    numbers = range(3, 6)
    return "\n".join(
        "  "
        + "  ".join(
            line[k].rjust(widths[k]) if k in numbers else line[k].ljust(widths[k]) for k in kept
        ).rstrip()
        for line in cells
    )


def _cells(row: Row) -> tuple[str, ...]:
    paper = "" if row.paper is None else _number(row.paper)
    ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
    words = (row.figure, row.quantity, row.condition)
    return (*words, paper, _number(row.ours), ratio, row.unit, row.note)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
