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
OF_READERS = {
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
NOTES = {
    "self_named": (
        *("reference of an event to itself", "references of events to themselves", ""),
        "left out: the event and its other causes count",
    ),
    "repeated": ("cause", "causes", " named again by the same event", "left out: each counts once"),
    "blank": ("blank", "blanks", " among the causes", "left out: a blank names none"),
    "rounded": (
        *("cause", "causes"),
        " that may be one of several ids: in column {rounded} floating-point numbers from 2**53 "
        "on, which several whole numbers become",
        "matched with no event: save ids as text or int64",
    ),
    "unread": (
        *("reply header", "reply headers", " (In-Reply-To, References) without an id"),
        "left out: such a mail may answer another; no cause of it is known",
    ),
    "ambiguous": (
        *("cause", "causes", " whose id several sources have"),
        "matched with no event: ids are unique within a source, and a cause names none",
    ),
    "unreadable": (
        *("cause", "causes", f" not readable as an id, in column {{unreadable}}: {IDS_ARE}"),
        "matched with no event",
    ),
    **OF_READERS,
}
"""Words of reports on counted causes: singular, plural, the rest, treatment."""
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
    """Counts of readers, by the names in `OF_READERS`."""

    def plus(self, other: Causes) -> Causes:
        """Return the counts of two disjoint parts of a trace."""
        mine, theirs = self._asdict(), other._asdict()
        both = {
            name: one + theirs[name] if isinstance(one, int) else one or theirs[name]
            for name, one in mine.items()
        }
        read = Counter(dict(self.read)) + Counter(dict(other.read))
        return Causes(**both | {"read": tuple(read.items())})

    def with_read(self, details: Mapping[str, Any]) -> Causes:
        """Return these counts with what a reader left out before."""
        more = Causes(
            repeated=details.get(REPEATED, 0),
            blank=details.get(BLANK, 0),
            rounded=details.get(ROUNDED_CAUSES, 0),
            rounded_in=details.get(ROUNDED_IN, ""),
            unread=details.get(UNREAD, 0),
            ambiguous=details.get(AMBIGUOUS, 0),
            unreadable=details.get(UNREADABLE_CAUSES, 0),
            unreadable_in=details.get(UNREADABLE_IN, ""),
            read=tuple((name, details.get(name, 0)) for name in OF_READERS),
        )
        return self.plus(more)

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield (what, what became of it) in words; nothing where there was nothing."""
        counts = self._asdict() | dict(self.read)
        for name, (single, several, rest, fate) in NOTES.items():
            if count := counts.get(name):
                rest = rest.format(rounded=self.rounded_in, unreadable=self.unreadable_in)
                yield counted(count, single, several) + rest, fate
