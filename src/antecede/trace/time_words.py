"""What reading found out about times, in words: the same wherever a trace is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antecede.formatting import counted

UNREADABLE, GUESSED = "unreadable_times", "guessed_time_unit"
"""Names of details: times that are null as they cannot be read; the unit that sizes told."""
WHAT_IS_READABLE = "times are numbers or ISO 8601 of 1677 to 2262"


def unreadable(details: Mapping[str, Any]) -> str:
    """Return how many times could not be read; "" where all could."""
    count = details.get(UNREADABLE, 0)
    return f"{counted(count, 'time')} not readable" if count else ""


def guessed(details: Mapping[str, Any]) -> str:
    """Return which unit was taken where nobody said one; "" where none was guessed."""
    unit = details.get(GUESSED)
    guess = "a guess by their size; --time-unit says it"
    return f"given as numbers, taken as {unit}: {guess}" if unit else ""


def notes(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on times that could not be read, and on a unit that was guessed."""
    if said := unreadable(details):
        yield f"{said}, left out: {WHAT_IS_READABLE}"
    if said := guessed(details):
        yield said
