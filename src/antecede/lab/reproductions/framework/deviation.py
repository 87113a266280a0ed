"""Distance of rows from the figures of the paper, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antecede.formatting import counted
from antecede.lab.report import Row, Section

CLOSE, NEAR = 0.06, 0.10
"""Parts of the paper's figure by which ours may differ to be called so."""


def within(rows: Iterable[Row], part: float) -> int:
    """Return how many rows differ from the paper by at most this part."""
    return sum(row.ratio is not None and abs(row.ratio - 1) <= part for row in rows)


def tally(rows: Sequence[Row]) -> str:
    """Return "N of M figures within 10 % of the paper's, K of them within 6 %"."""
    there = sum(row.ratio is not None for row in rows)
    if not there:
        return "no run gave a figure that the paper has"
    near = within(rows, NEAR)
    come = "comes" if near == 1 else "come"
    return (
        f"{near} of {counted(there, 'figure')} {come} out within 10 % of the paper's, "
        f"{within(rows, CLOSE)} of them within 6 %"
    )


def beyond(rows: Iterable[Row]) -> list[str]:
    """Return a line for each row more than 10 % away from the paper's figure."""
    return [
        f"{row.figure}, {row.quantity}, {row.condition}: {row.ours:,.4g} "
        f"where the paper has {row.paper:,.4g} ({row.ratio:.2f} times)"
        for row in rows
        if row.ratio is not None and abs(row.ratio - 1) > NEAR
    ]


def unmet(sections: Iterable[Section]) -> list[str]:
    """Return a line for each statement that the figures do not bear out."""
    return [
        f"{claim.where}: {claim.statement}: {claim.found}"
        for section in sections
        for claim in section.claims
        if claim.holds is False
    ]


def listed(parts: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
