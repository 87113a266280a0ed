"""What declared causes hold beside causes: counted the same way wherever they are left out.

The rule is that of `trace.rows`; readers that make a list of names of a cell follow it already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from antecede.formatting import counted

COLUMNS, TOLD_BY = "columns", "told_by"
"""Names of details: the columns of a user's table, and which of them could tell causality."""
REPEATED, BLANK = "repeated_causes", "blank_causes"
"""Names of details: what readers leave out already, counted by the same rule."""
ROUNDED, ROUNDED_IN = "rounded_causes", "rounded_causes_in"
"""Names of details: causes that are floating-point numbers from 2**53 on, and in which columns."""


class Causes(NamedTuple):
    """What declared causes hold beside causes."""

    self_named: int = 0
    """Events that name themselves."""
    repeated: int = 0
    """Ids that an event names again."""
    blank: int = 0
    """Names that are empty, or blanks, or null."""

    rounded: int = 0
    """Causes of which nobody can tell which id they were."""
    rounded_in: str = ""
    """The columns that hold them."""

    def plus(self, other: Causes) -> Causes:
        """Return the counts of two disjoint parts of a trace."""
        return Causes(
            self.self_named + other.self_named,
            self.repeated + other.repeated,
            self.blank + other.blank,
            self.rounded + other.rounded,
            self.rounded_in or other.rounded_in,
        )

    def with_read(self, details: Mapping[str, Any]) -> Causes:
        """Return these counts with what a reader left out before."""
        repeated, blank, rounded = (
            int(details.get(name, 0)) for name in (REPEATED, BLANK, ROUNDED)
        )
        more = Causes(0, repeated, blank, rounded, str(details.get(ROUNDED_IN, "")))
        return self.plus(more)

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield (what, what became of it) in words; nothing where there was nothing."""
        if self.self_named:
            yield (
                counted(self.self_named, "reference of an event", "references of events")
                + (" to itself" if self.self_named == 1 else " to themselves"),
                "left out: the event and its other causes count",
            )
        if self.repeated:
            again = counted(self.repeated, "cause", "causes")
            yield f"{again} named again by the same event", "left out: each counts once"
        if self.blank:
            yield f"{counted(self.blank, 'blank')} among the causes", "left out: a blank names none"
        if self.rounded:
            yield (
                f"{counted(self.rounded, 'cause')} that may be one of several ids: in column "
                f"{self.rounded_in} floating-point numbers from 2**53 on, which several whole "
                "numbers become",
                "matched with no event: save ids as text or int64",
            )
