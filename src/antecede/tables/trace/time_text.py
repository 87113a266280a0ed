"""Reports on times and ids of traces, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antecede.formatting import counted

UNREADABLE, GUESSED = "unreadable_times", "guessed_time_unit"
"""Names of details: unreadable times; the unit guessed by size."""
UNKNOWN_ZONE = "unknown_zone:"
"""Prefix of names of details: times in the unknown zone that follows."""
WHAT_IS_READABLE = "times are numbers or ISO 8601 of 1677 to 2262; in mail as RFC 5322 says"
KNOWN_ZONES = "offsets, UT, GMT and EST to PDT are known (RFC 5322)"
TAKEN_AS, DECLARED = "spans_taken_as_", "span_unit"
"""Names of details: spans read in the unit that follows; the unit that their format declares."""
LOOKS_LIKE, READ_AS = "times_like_", "time_unit_read"
"""Names of details: times of a table that look like the unit that follows; the unit used."""
SPLIT, UNBOUND, UNENDED = "split_traces", "flows_without_slice", "slices_without_end"
"""Names of details: 64-bit trace ids that end a 128-bit one; of Chrome's trace events."""


def unreadable(details: Mapping[str, Any]) -> str:
    """Return how many times could not be read, or an empty text."""
    count = details.get(UNREADABLE, 0)
    return f"{counted(count, 'time')} not readable" if count else ""


def unknown_zones(details: Mapping[str, Any]) -> str:
    """Return how many times are in unknown zones, by zone."""
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
    """Return the guessed unit of times, or an empty text."""
    unit = details.get(GUESSED)
    guess = "a guess by their size; --time-unit says it"
    return f"given as numbers, taken as {unit}: {guess}" if unit else ""


def suspicions(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (finding, remedy) for suspicious times and ids of spans."""
    declared = details.get(DECLARED, "")
    for unit in ("s", "ms", "us", "ns"):
        if count := details.get(f"{TAKEN_AS}{unit}"):
            yield (
                f"{counted(count, 'span')} with times in {unit}, by their size, where the format "
                f"has {declared}: read as {unit}",
                f"correct the exporter's unit; --time-unit {unit} says that all times are in "
                f"{unit}, --time-unit {declared} reads them as declared",
            )
    for unit in ("s", "ms", "us"):
        if count := details.get(f"{LOOKS_LIKE}{unit}"):
            yield (
                f"{counted(count, 'time')} in {unit}, by their size, among others in "
                f"{details.get(READ_AS)}: read as {details.get(READ_AS)}, in January 1970",
                "bring all times to one unit, or name another column of times",
            )
    if count := details.get(SPLIT):
        yield (
            f"{counted(count, 'trace id')} of 64 bits that end an id of 128 bits: perhaps the same "
            "traces, read as others",
            "let all services propagate 128 bits, or shorten all trace ids to 16 digits",
        )
    if count := details.get(UNBOUND):
        yield (
            f"{counted(count, 'flow event')} without a slice, or without a start",
            "left out: no cause follows from them",
        )
    if count := details.get(UNENDED):
        yield (
            f"{counted(count, 'begin or end', 'begins or ends')} of a slice without the other",
            "the end is unknown",
        )


def notes(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on unreadable times, suspicious units, and a guessed unit."""
    if said := unreadable(details):
        yield f"{said}, left out: {WHAT_IS_READABLE}"
    if said := unknown_zones(details):
        yield f"{said}; left out: {KNOWN_ZONES}"
    if said := guessed(details):
        yield said
    for what, remedy in suspicions(details):
        yield f"{what} ({remedy})"
