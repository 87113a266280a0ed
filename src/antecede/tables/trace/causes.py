"""Counts of names that are left out of declared causes (rule: `tables.trace.rows`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from antecede.formatting import counted
from antecede.tables.trace.identities import IDS_ARE

CAUSE_COLUMNS, TOLD_BY = "columns", "told_by"
"""Names of details: columns of a user's table, and those of them that could tell causality."""
REPEATED, BLANK = "repeated_causes", "blank_causes"
"""Names of details: counts of readers that leave these out already."""
UNREAD = "unread_reply_headers"
"""Name of a detail: reply headers of mail without a readable id."""
AMBIGUOUS = "ambiguous_causes"
"""Name of a detail: causes whose id several sources have."""
ROUNDED_CAUSES, ROUNDED_IN = "rounded_causes", "rounded_causes_in"
"""Names of details: floating-point causes from 2**53 on, and their columns."""
PARTIAL = "partial_causes"
"""Name of a detail: causes without all parts of an id."""
AS_NULL, AS_LIST, AS_WHOLE = "causes_as_null", "causes_as_lists", "causes_as_whole_numbers"
"""Names of details: cells of CSV that are read otherwise than as one id (`text_causes`)."""
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
"""Names of details: causes that are numbers but no ids, and their columns."""


class Causes(NamedTuple):
    """Counts of names among the causes that are left out."""

    self_named: int = 0
    """Events that name themselves."""
    repeated: int = 0
    """Ids that an event names again."""
    blank: int = 0
    """Names that are empty, or blanks, or null."""

    rounded: int = 0
    """Causes that may be one of several ids."""
    rounded_in: str = ""
    unread: int = 0
    """Reply headers without an id."""
    ambiguous: int = 0
    """Causes whose id events of several sources have."""
    unreadable: int = 0
    """Causes that are numbers with a fraction, or infinite."""
    unreadable_in: str = ""
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
        """Return these counts with those of a reader."""
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
        """Yield (finding, treatment) in words for each count above zero."""
        counts = self._asdict() | dict(self.read)
        for name, (single, several, rest, fate) in NOTES.items():
            if count := counts.get(name):
                rest = rest.format(rounded=self.rounded_in, unreadable=self.unreadable_in)
                yield counted(count, single, several) + rest, fate
