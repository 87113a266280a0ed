"""Text on deviations of rows from published values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antecede.formatting import pluralize
from antecede.lab.report import Row, Section

CLOSE, NEAR = 0.06, 0.10  # Limits of |ratio - 1| in the text


def count_within(rows: Iterable[Row], limit: float) -> int:
    """Return the number of rows with |ratio - 1| up to a limit."""
    return sum(row.ratio is not None and abs(row.ratio - 1) <= limit for row in rows)


def describe_deviations(rows: Sequence[Row]) -> str:
    """Return "N of M published values are reproduced within 10 %, K of them within 6 %"."""
    there = sum(row.ratio is not None for row in rows)
    if not there:
        return "no run has a published value"
    near = count_within(rows, NEAR)
    verb = "is" if near == 1 else "are"
    return (
        f"{near} of {pluralize(there, 'published value')} {verb} reproduced within 10 %, "
        f"{count_within(rows, CLOSE)} of them within 6 %"
    )


def describe_outliers(rows: Iterable[Row]) -> list[str]:
    """Return a line for each row that deviates by more than 10 %."""
    return [
        f"{row.figure}, {row.quantity}, {row.condition}: {row.ours:,.4g} "
        f"instead of {row.paper:,.4g} ({row.ratio:.2f} times)"
        for row in rows
        if row.ratio is not None and abs(row.ratio - 1) > NEAR
    ]


def describe_failed_claims(sections: Iterable[Section]) -> list[str]:
    """Return a line for each claim that does not hold."""
    return [
        f"{claim.where}: {claim.statement}: {claim.found}"
        for section in sections
        for claim in section.claims
        if claim.holds is False
    ]


def join_words(parts: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
