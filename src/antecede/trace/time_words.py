"""What reading found out about times, in words: the same wherever a trace is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antecede.formatting import counted

UNREADABLE, GUESSED = "unreadable_times", "guessed_time_unit"
"""Names of details: times that are null as they cannot be read; the unit that sizes told."""
UNKNOWN_ZONE = "unknown_zone:"
"""Prefix of names of details: times that are null as their zone, named behind it, is unknown."""
WHAT_IS_READABLE = "times are numbers or ISO 8601 of 1677 to 2262; in mail as RFC 5322 says"
KNOWN_ZONES = "offsets, UT, GMT and EST to PDT are known (RFC 5322)"


def unreadable(details: Mapping[str, Any]) -> str:
    """Return how many times could not be read; "" where all could."""
    count = details.get(UNREADABLE, 0)
    return f"{counted(count, 'time')} not readable" if count else ""


def unknown_zones(details: Mapping[str, Any]) -> str:
    """Return how many times are in unknown zones, by zone; "" where none is."""
    found = {
        name.removeprefix(UNKNOWN_ZONE): count
        for name, count in details.items()
        if name.startswith(UNKNOWN_ZONE)
    }
    if not found:
        return ""
    each = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{zone} ({count:,})" for zone, count in each)
    return f"{counted(sum(found.values()), 'time')} in unknown zones: {shown}"


def guessed(details: Mapping[str, Any]) -> str:
    """Return which unit was taken where nobody said one; "" where none was guessed."""
    unit = details.get(GUESSED)
    guess = "a guess by their size; --time-unit says it"
    return f"given as numbers, taken as {unit}: {guess}" if unit else ""


def notes(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on times that could not be read, and on a unit that was guessed."""
    if said := unreadable(details):
        yield f"{said}, left out: {WHAT_IS_READABLE}"
    if said := unknown_zones(details):
        yield f"{said}; left out: {KNOWN_ZONES}"
    if said := guessed(details):
        yield said
