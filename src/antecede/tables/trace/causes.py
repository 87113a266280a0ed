"""What declared causes hold beside causes: counted the same way wherever they are left out.

The rule is that of `tables.trace.rows`; readers that make a list of names of a cell follow it
already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from antecede.formatting import counted
from antecede.tables.trace.identities import IDS_ARE

CAUSE_COLUMNS, TOLD_BY = "columns", "told_by"
"""Names of details: the columns of a user's table, and which of them could tell causality."""
REPEATED, BLANK = "repeated_causes", "blank_causes"
"""Names of details: what readers leave out already, counted by the same rule."""
UNREAD = "unread_reply_headers"
"""Name of a detail: headers of mail that should name an answered mail and from which none is
read."""
AMBIGUOUS = "ambiguous_causes"
"""Name of a detail: causes whose id several events have, as ids are unique within a source."""
ROUNDED_CAUSES, ROUNDED_IN = "rounded_causes", "rounded_causes_in"
"""Names of details: causes that are floating-point numbers from 2**53 on, and in which columns."""
PARTIAL = "partial_causes"
"""Name of a detail: causes that lack parts of which the ids are made."""
AS_NULL, AS_LIST, AS_WHOLE = "causes_as_null", "causes_as_lists", "causes_as_whole_numbers"
"""Names of details: cells of CSV that were read otherwise than as one id (`tables.text_causes`)."""
NOTES = {
    AS_NULL: ("word for null", "words for null", " among the causes", "read as no cause"),
    AS_LIST: ("list", "lists", " in brackets among the causes", "read as several causes"),
    AS_WHOLE: (
        *("cause", "causes", " written with a point and zeros, as in 1.0"),
        "read as whole numbers, as the ids are",
    ),
    PARTIAL: (
        *("cause", "causes", " without all parts of which the ids are made"),
        "matched with no event: say --after once for each part, in the order of --id",
    ),
}
"""Words of reports about counted causes: singular, plural, the rest, and their treatment."""
UNREADABLE_CAUSES, UNREADABLE_IN = "unreadable_causes", "unreadable_causes_in"
"""Names of details: causes that are numbers but no ids, and in which columns."""


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
    unread: int = 0
    """Headers of replies that name no mail."""
    ambiguous: int = 0
    """Causes whose id events of several sources have."""
    unreadable: int = 0
    """Causes that are numbers with a fraction, or infinite."""
    unreadable_in: str = ""
    """The columns that hold them."""
    read: tuple[tuple[str, int], ...] = ()
    """Counts of readers, by the names in `NOTES`."""

    def plus(self, other: Causes) -> Causes:
        """Return the counts of two disjoint parts of a trace."""
        return Causes(
            self.self_named + other.self_named,
            self.repeated + other.repeated,
            self.blank + other.blank,
            self.rounded + other.rounded,
            self.rounded_in or other.rounded_in,
            self.unread + other.unread,
            self.ambiguous + other.ambiguous,
            self.unreadable + other.unreadable,
            self.unreadable_in or other.unreadable_in,
            tuple((Counter(dict(self.read)) + Counter(dict(other.read))).items()),
        )

    def with_read(self, details: Mapping[str, Any]) -> Causes:
        """Return these counts with what a reader left out before."""

        def count(name: str) -> int:
            return int(details.get(name, 0))

        def columns(name: str) -> str:
            return str(details.get(name, ""))

        more = Causes(
            repeated=count(REPEATED),
            blank=count(BLANK),
            rounded=count(ROUNDED_CAUSES),
            rounded_in=columns(ROUNDED_IN),
            unread=count(UNREAD),
            ambiguous=count(AMBIGUOUS),
            unreadable=count(UNREADABLE_CAUSES),
            unreadable_in=columns(UNREADABLE_IN),
            read=tuple((name, count(name)) for name in NOTES),
        )
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
        if self.unread:
            yield (
                f"{counted(self.unread, 'reply header')} (In-Reply-To, References) without an id",
                "left out: such a mail may answer another; no cause of it is known",
            )
        if self.ambiguous:
            yield (
                f"{counted(self.ambiguous, 'cause')} whose id several sources have",
                "matched with no event: ids are unique within a source, and a cause names none",
            )
        if self.unreadable:
            yield (
                f"{counted(self.unreadable, 'cause')} not readable as an id, in column "
                f"{self.unreadable_in}: {IDS_ARE}",
                "matched with no event",
            )
        for name, count in self.read:
            if count:
                single, several, rest, fate = NOTES[name]
                yield counted(count, single, several) + rest, fate
