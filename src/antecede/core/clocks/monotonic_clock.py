"""The own clock as a protocol goes by it: it never falls, and it goes on after a restart.

A synchronized clock may be set back inside its accuracy lambda (condition (1) of Tsuneizumi et
al. allows it): it then shows up to 2 lambda less than before, and the last reading stands until
it has caught up. More than that no clock that keeps its bounds does: where readings travel as
physical time the call is refused. Where only differences of one's own readings count (time-outs),
such a fall is a clock that began again, as a monotonic one does in a new process: it goes on from
the last reading.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.core.clocks.nanoseconds import LONGEST_NS, reading_of, seconds_text
from antecede.errors import LocalError


class OwnClock(NamedTuple):
    """What was read last, and what is added to readings since the clock began again."""

    read_ns: int | None = None
    shift_ns: int = 0

    def onward(self, now: int | None) -> OwnClock | None:
        """Return the clock after a reading that needs no judging; None where `at` is to judge."""
        read_ns, shift_ns = self
        if read_ns is None or shift_ns or type(now) is not int:
            return None
        if now == read_ns:
            return self
        return OwnClock(now) if read_ns < now <= LONGEST_NS else None

    def corrected(self, now: int) -> OwnClock:
        """Return a clock that was ahead, from `now` on. Raises LocalError unless it is less."""
        shown = reading_of(now, "correct_clock")
        if self.read_ns is None or shown + self.shift_ns >= self.read_ns:
            raise LocalError(
                f"the clock shows {seconds_text(shown)} s, which is not less than before: it needs "
                "no correction"
            )
        return OwnClock(shown + self.shift_ns, self.shift_ns)

    def at(
        self, now: int | None, whose: str, *, error_ns: int | None = None, physical: bool = False
    ) -> tuple[int, OwnClock]:
        """Return the reading to go by and the clock after it.

        `error_ns`: the accuracy of the clock, None where none is promised. `physical`: readings
        travel as physical time. Raises LocalError when the time is not told (`whose` needs it), is
        no reading, or falls by more than bounds allow.
        """
        shown = reading_of(now, whose)
        reading = shown + self.shift_ns
        last = reading if self.read_ns is None else self.read_ns
        if reading >= last:
            return reading, OwnClock(reading, self.shift_ns)
        fall = last - reading
        if error_ns is not None and fall <= 2 * error_ns:
            return last, self
        if physical:
            raise LocalError(
                f"the clock shows {seconds_text(shown)} s, {seconds_text(fall)} s less than "
                f"before: with an accuracy of {seconds_text(error_ns or 0)} s it can fall by twice "
                "that at most. If it is wrong now, set it right. If it was ahead before, messages "
                f"may carry that time: go on when it shows {seconds_text(last - self.shift_ns)} s, "
                "or call correct_clock()"
            )
        return last, OwnClock(last, self.shift_ns + fall)
