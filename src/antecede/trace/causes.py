"""What declared causes hold beside causes: counted the same way wherever they are left out.

The rule is that of `trace.rows`; readers that make a list of names of a cell follow it already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from antecede.words import counted

REPEATED, BLANK = "repeated_causes", "blank_causes"
"""Names of details: what readers leave out already, counted by the same rule."""


class Causes(NamedTuple):
    """What declared causes hold beside causes."""

    self_named: int = 0
    """Events that name themselves."""
    repeated: int = 0
    """Ids that an event names again."""
    blank: int = 0
    """Names that are empty, or blanks, or null."""

    def with_read(self, details: Mapping[str, Any]) -> Causes:
        """Return these counts with what a reader left out before."""
        repeated, blank = (int(details.get(name, 0)) for name in (REPEATED, BLANK))
        return Causes(self.self_named, self.repeated + repeated, self.blank + blank)

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
