"""Monotonic local clock that continues after a restart.

A synchronized clock may be set back within its accuracy lambda (condition (1) of Tsuneizumi et
al.). It then shows up to 2 lambda less, and the last reading stays valid until the clock catches
up. A larger fall breaks the bounds. Readings that travel as physical time are then rejected.
Readings that only measure time-outs continue from the last one, as after a restart of a process.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.core.clocks.nanoseconds import LONGEST_NS, check_reading, seconds_text
from antecede.errors import LocalError


class MonotonicClock(NamedTuple):
    """Last reading, and offset of readings since the clock restarted, ns."""

    read_ns: int | None = None
    shift_ns: int = 0

    def onward(self, now: int | None) -> MonotonicClock | None:
        """Return the clock after a reading without fall or offset; None: call `advance`."""
        read_ns, shift_ns = self
        if read_ns is None or shift_ns or type(now) is not int:
            return None
        if now == read_ns:
            return self
        return MonotonicClock(now) if read_ns < now <= LONGEST_NS else None

    def reset_to(self, now: int) -> MonotonicClock:
        """Return a clock that was ahead, reset to `now`. Raise LocalError unless `now` is lower."""
        given = check_reading(now, "correct_clock")
        if self.read_ns is None or given + self.shift_ns >= self.read_ns:
            raise LocalError(
                f"correct_clock: reading {seconds_text(given)} s is not below the last one; "
                "no correction is needed"
            )
        return MonotonicClock(given + self.shift_ns, self.shift_ns)

    def at(
        self, now: int | None, user: str, *, error_ns: int | None = None, physical: bool = False
    ) -> tuple[int, MonotonicClock]:
        """Return the effective reading and the clock after it.

        `accuracy_ns`: None without bound. `physical`: readings travel as physical time. Raises
        LocalError if the reading is missing or invalid, or falls further than bounds allow.
        """
        shown = check_reading(now, user)
        reading = shown + self.shift_ns
        last = reading if self.read_ns is None else self.read_ns
        if reading >= last:
            return reading, MonotonicClock(reading, self.shift_ns)
        fall = last - reading
        if error_ns is not None and fall <= 2 * error_ns:
            return last, self
        if physical:
            raise LocalError(
                f"clock reading {seconds_text(shown)} s is {seconds_text(fall)} s below the last "
                f"one, more than twice the accuracy of {seconds_text(error_ns or 0)} s; set the "
                "clock, or if it was ahead before, call correct_clock() or wait until it shows "
                f"{seconds_text(last - self.shift_ns)} s"
            )
        return last, MonotonicClock(last, self.shift_ns + fall)
