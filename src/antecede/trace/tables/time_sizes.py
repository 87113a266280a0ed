"""Sizes of times that are numbers: which look like another unit than the one they are read in.

A time is suspected if it lies in 1970 as it is read, and from 2000 to 2100 in a coarser unit. It
counts only if another time of the table is from 2000 to 2100 as it is read: small numbers alone
may be simulated times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from antecede.trace.text import nanoseconds

_FIRST, _LAST = 946_684_800 * 10**9, 4_102_444_800 * 10**9
"""2000 and 2100 in nanoseconds since 1970."""
_UNITS = {unit: nanoseconds(1, unit) or 1 for unit in ("s", "ms", "us", "ns")}


class TimeSizes:
    """Counts of suspected times by unit."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._has_dates = False

    def note(self, times: Any, unit: str) -> None:
        """Count times, in nanoseconds, that were read in a unit: a list, or an Arrow array."""
        if not isinstance(times, list):
            times = times.drop_null()
        values = np.asarray(times, np.int64)
        self._has_dates |= bool(((values >= _FIRST) & (values < _LAST)).any())
        for coarser, size in _UNITS.items():
            ratio = size // _UNITS[unit]
            if ratio > 1:
                found = (values >= -(-_FIRST // ratio)) & (values < _LAST // ratio)
                self._counts[coarser] = self._counts.get(coarser, 0) + int(found.sum())

    def misfits(self) -> dict[str, int]:
        """Return how many times look like each coarser unit; empty if all fit."""
        if not self._has_dates:
            return {}
        return {unit: count for unit, count in self._counts.items() if count}
