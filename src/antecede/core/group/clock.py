"""Time that passes: one tick, or many of which most change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from antecede.core.clocks import Seconds, group_reading, reading_of
from antecede.core.group.effects import Part
from antecede.core.group.message import Message
from antecede.core.group.state import NO_CALL
from antecede.core.protocols import Effect, Transmit
from antecede.core.protocols.options import check_flags
from antecede.errors import LocalError, ProtocolError
from antecede.formatting import shown


class Time(Part):
    """Tells the protocol what the own clock shows."""

    def tick(self, now: Seconds | None = None, *, now_ns: int | None = None) -> list[Message]:
        """Let time pass; return what is released by it.

        `now` (seconds) or `now_ns` is the own clock's reading. Raises LocalError without.
        """
        self._state.call = NO_CALL
        reading = reading_of(group_reading(now, now_ns), "tick")
        return self._ticked(reading, self._try(reading))

    def correct_clock(self, now: Seconds | None = None, *, now_ns: int | None = None) -> None:
        """The own clock was ahead and is set right; everything goes on from this reading.

        The state is kept, and `receive` and `tick` go on at once. `send` raises EarlyError until
        the clock is past all that others may have believed: their `max_ahead_s` (60 s), or the last
        reading before. Messages that were refused as too far ahead are sent again where recovery is
        on (`retry_s`); otherwise their receivers are to `release` them. Deliveries while the clock
        was ahead may have come too early. Raises LocalError in orders whose messages carry no
        physical time, where the clock was not ahead, and with `max_ahead_s=None`.
        """
        state = self._state
        state.call = NO_CALL
        reading = reading_of(group_reading(now, now_ns), "correct_clock")
        with state.named_errors():
            state.protocol.correct_clock(reading)
        state.record("correct_clock", reading)

    def pass_time(self, readings: range, *, notes: bool = True) -> tuple[int, list[Message]]:
        """Let time pass as if `tick` were called at each of these readings (nanoseconds).

        Ends with the first at which something happens; returns that, or the last, and what is
        released.

        The first reading is told to the order in any case. The others are searched by bisection,
        which is right where a tick at which nothing happens changes nothing later. `notes`: whether
        a heartbeat alone is something; where it is not, those between the first reading and the
        returned one are left out. A log of inputs holds these two readings. Raises LocalError for a
        range that is none, empty or falling, or holds no readings.
        """
        self._state.call = NO_CALL
        _check_readings(readings)
        check_flags(notes=notes)
        protocol = self._state.protocol
        before = protocol.snapshot() if len(readings) > 1 else None
        try:
            # From the first reading on silence counts, and gaps that were not asked for. So it is
            # told whatever happens at it; only then does a tick without effects change nothing.
            effects = self._try(readings[0])
            if before is None or _heeded(effects, notes):
                return readings[0], self._ticked(readings[0], effects)
            place, found = self._first(readings, notes)
        except ProtocolError:
            if before is not None:
                protocol.restore(before)
            raise
        released = self._ticked(readings[0], effects)
        return readings[place], released + self._ticked(readings[place], found)

    def _first(self, readings: range, notes: bool) -> tuple[int, Sequence[Effect]]:
        """Tick at the first reading after [0] at which something happens, or at the last."""
        protocol = self._state.protocol
        before = protocol.snapshot() if len(readings) > 2 else None
        low, high = 1, len(readings) - 1
        effects = self._try(readings[high])
        if before is None or not _heeded(effects, notes):
            return high, effects
        while low < high:
            middle = (low + high) // 2
            protocol.restore(before)
            if _heeded(self._try(readings[middle]), notes):
                high = middle
            else:
                low = middle + 1
        protocol.restore(before)
        return high, self._try(readings[high])

    def _try(self, reading: int) -> Sequence[Effect]:
        try:
            return self._state.protocol.tick(reading)
        except ProtocolError as error:
            self._state.say_names(error)
            raise

    def _ticked(self, reading: int, effects: Sequence[Effect]) -> list[Message]:
        self._state.record("tick", reading)
        return self._effects.carry_out(effects, reading)


def _check_readings(readings: range) -> None:
    """Raise LocalError for what is no range of readings, or one of a clock that does not go on."""
    if not isinstance(readings, range):
        raise LocalError(
            f"readings are a range of nanoseconds, as in range(first, past_last, step), not "
            f"{shown(readings)}"
        )
    if not readings or readings.step < 0:
        raise LocalError(f"{shown(readings)} are no readings of a clock that goes on")
    for reading in (readings[0], readings[-1]):
        reading_of(reading, "pass_time")


def _heeded(effects: Sequence[Effect], notes: bool) -> bool:
    """Tell whether something happened; without `notes`, to a message that is here."""
    return any(notes or not isinstance(effect, Transmit) for effect in effects)
