"""Counts of ignored and unmatched causes (rule: `tables.trace.rows`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from antecede.formatting import pluralize
from antecede.tables.trace.identities import ID_RULE

CAUSE_COLUMNS, TOLD_BY = "columns", "candidate_columns"
"""Names of details: columns of a user's table, and candidates for the source of causality."""
REPEATED, BLANK = "repeated_causes", "blank_causes"
"""Names of details: counts of causes that readers drop."""
UNREAD_REPLIES = "unread_reply_headers"
"""Name of a detail: reply headers of mail without a readable id."""
AMBIGUOUS_CAUSES = "ambiguous_causes"
ROUNDED_CAUSES, ROUNDED_IN = "rounded_causes", "rounded_causes_in"
"""Names of details: floating-point causes from 2**53 on, and their columns."""
PARTIAL_CAUSES = "partial_causes"
AS_NULL, AS_LIST, AS_WHOLE = "causes_as_null", "causes_as_lists", "causes_as_whole_numbers"
"""Names of details: cells of CSV that are not read as one id (`list_separators.TextCauses`)."""
READER_FOOTNOTES = {
    AS_NULL: ("word for null", "words for null", " among the causes", "read as no cause"),
    AS_LIST: ("list", "lists", " in brackets among the causes", "read as several causes"),
    AS_WHOLE: (
        *("cause", "causes", " with a decimal point and zeros, such as 1.0"),
        "read as whole numbers, like the ids",
    ),
    PARTIAL_CAUSES: (
        *("cause", "causes", " with fewer parts than the ids"),
        "match no event; give --after once for each part, in the order of --id",
    ),
}
FOOTNOTES = {
    "self_named": (
        *("reference of an event to itself", "references of events to themselves", ""),
        "ignored; the event and its other causes are kept",
    ),
    "repeated": ("cause", "causes", " repeated within an event", "ignored; each counts once"),
    "blank": ("blank", "blanks", " among the causes", "ignored"),
    "rounded": (
        *("cause", "causes"),
        " that may stand for several ids: column {rounded} has floating-point numbers of 2**53 or "
        "more, which are rounded",
        "match no event; save ids as text or int64",
    ),
    "unread": (
        *("reply header", "reply headers", " (In-Reply-To, References) without an id"),
        "ignored; the cause of such a mail is unknown",
    ),
    "ambiguous": (
        *("cause", "causes", " with an id that exists in several sources"),
        "match no event; ids are unique only within a source, and a cause has no source",
    ),
    "unreadable": (
        *("cause", "causes", f" not readable as an id, in column {{unreadable}}: {ID_RULE}"),
        "match no event",
    ),
    **READER_FOOTNOTES,
}
"""Texts of reports by field of `Causes`: singular, plural, suffix, treatment."""
UNREADABLE_CAUSES, UNREADABLE_IN = "unreadable_causes", "unreadable_causes_in"
"""Names of details: numeric causes that are not ids, and their columns."""


class Causes(NamedTuple):
    """Counts of ignored and unmatched causes, by reason."""

    self_named: int = 0
    """Events that list themselves as a cause."""
    repeated: int = 0
    blank: int = 0
    rounded: int = 0
    """Floating-point causes of 2**53 or more, which are rounded."""
    rounded_in: str = ""
    unread: int = 0
    ambiguous: int = 0
    unreadable: int = 0
    """Causes that are fractions or infinite."""
    unreadable_in: str = ""
    reader_counts: tuple[tuple[str, int], ...] = ()
    """Counts of a reader, by the keys of `READER_FOOTNOTES`."""

    def plus(self, other: Causes) -> Causes:
        """Return the sum of the counts of two disjoint parts of a trace."""
        mine, theirs = self._asdict(), other._asdict()
        both = {
            name: one + theirs[name] if isinstance(one, int) else one or theirs[name]
            for name, one in mine.items()
        }
        read = Counter(dict(self.reader_counts)) + Counter(dict(other.reader_counts))
        return Causes(**both | {"reader_counts": tuple(read.items())})

    def with_read(self, details: Mapping[str, Any]) -> Causes:
        """Return the sum of these counts and those in the details of a reader."""
        more = Causes(
            repeated=details.get(REPEATED, 0),
            blank=details.get(BLANK, 0),
            rounded=details.get(ROUNDED_CAUSES, 0),
            rounded_in=details.get(ROUNDED_IN, ""),
            unread=details.get(UNREAD_REPLIES, 0),
            ambiguous=details.get(AMBIGUOUS_CAUSES, 0),
            unreadable=details.get(UNREADABLE_CAUSES, 0),
            unreadable_in=details.get(UNREADABLE_IN, ""),
            reader_counts=tuple((name, details.get(name, 0)) for name in READER_FOOTNOTES),
        )
        return self.plus(more)

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield (finding, treatment) as texts for each count above zero."""
        counts = self._asdict() | dict(self.reader_counts)
        for name, (single, several, rest, treatment) in FOOTNOTES.items():
            if count := counts.get(name):
                rest = rest.format(rounded=self.rounded_in, unreadable=self.unreadable_in)
                yield pluralize(count, single, several) + rest, treatment
