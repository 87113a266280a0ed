"""Report texts on times and trace ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antecede.formatting import pluralize

UNREADABLE_TIMES, GUESSED_UNIT = "unreadable_times", "guessed_time_unit"
"""Names of details: unreadable times; the unit guessed by size."""
UNKNOWN_ZONE = "unknown_zone:"
"""Prefix of names of details: times in the zone that follows."""
WHAT_IS_READABLE = "expected numbers or ISO 8601 from 1677 to 2262, in mail RFC 5322"
KNOWN_ZONES = "expected an offset, UT, GMT, or EST to PDT (RFC 5322)"
SPANS_READ_AS, DECLARED_UNIT = "spans_taken_as_", "span_unit"
"""Names of details: prefix of spans by the unit used; the unit that their format declares."""
TIMES_LIKE, TABLE_UNIT = "times_like_", "time_unit_read"
"""Names of details: prefix of times of a table by their likely unit; the unit used."""
SPLIT_TRACES, UNBOUND_FLOWS, UNENDED_SLICES = (
    "split_traces",
    "flows_without_slice",
    "slices_without_end",
)
"""Names of details: 64-bit trace ids that end a 128-bit id; defects of Chrome's trace events."""


def unreadable(details: Mapping[str, Any]) -> str:
    """Return the text on unreadable times, or ""."""
    count = details.get(UNREADABLE_TIMES, 0)
    return f"{pluralize(count, 'time')} not readable" if count else ""


def unknown_zones(details: Mapping[str, Any]) -> str:
    """Return the text on times in unknown zones, or ""."""
    found = {
        name.removeprefix(UNKNOWN_ZONE): count
        for name, count in details.items()
        if name.startswith(UNKNOWN_ZONE)
    }
    if not found:
        return ""
    each = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{zone} ({count:,})" for zone, count in each)
    return f"{pluralize(sum(found.values()), 'time')} in unknown zones: {shown}"


def describe_guessed_unit(details: Mapping[str, Any]) -> str:
    """Return the text on the guessed unit of times, or ""."""
    unit = details.get(GUESSED_UNIT)
    guess = "guessed by their size; --time-unit sets it"
    return f"given as numbers, read as {unit}: {guess}" if unit else ""


def suspicions(details: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (finding, remedy) for suspicious times and trace ids."""
    declared = details.get(DECLARED_UNIT, "")
    for unit in ("s", "ms", "us", "ns"):
        if count := details.get(f"{SPANS_READ_AS}{unit}"):
            yield (
                f"{pluralize(count, 'span')} with times in {unit} by their size, but the format "
                f"declares {declared}: read as {unit}",
                f"correct the exporter's unit, or set it: --time-unit {unit} for all times in "
                f"{unit}, --time-unit {declared} to read them as declared",
            )
    for unit in ("s", "ms", "us"):
        if count := details.get(f"{TIMES_LIKE}{unit}"):
            yield (
                f"{pluralize(count, 'time')} in {unit} by their size, but other times are in "
                f"{details.get(TABLE_UNIT)}: read as {details.get(TABLE_UNIT)}, in January 1970",
                "convert all times to one unit, or name another column of times",
            )
    if count := details.get(SPLIT_TRACES):
        yield (
            f"{pluralize(count, 'trace id')} of 64 bits that end an id of 128 bits: possibly the "
            "same traces, read as different ones",
            "propagate 128 bits in all services, or shorten all trace ids to 16 digits",
        )
    if count := details.get(UNBOUND_FLOWS):
        yield (
            f"{pluralize(count, 'flow event')} without a slice, or without a start",
            "ignored as causes",
        )
    if count := details.get(UNENDED_SLICES):
        yield (
            f"{pluralize(count, 'begin or end', 'begins or ends')} of a slice without the other",
            "the end time is unknown",
        )


def notes(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield texts on unreadable times, unknown zones, the guessed unit, and suspicions."""
    if finding := unreadable(details):
        yield f"{finding}, read as null: {WHAT_IS_READABLE}"
    if finding := unknown_zones(details):
        yield f"{finding}, read as null: {KNOWN_ZONES}"
    if finding := describe_guessed_unit(details):
        yield finding
    for finding, remedy in suspicions(details):
        yield f"{finding} ({remedy})"
