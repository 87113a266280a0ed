"""Clock input of a `Group`: single ticks, and ranges of ticks of which most change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from antecede.core.clocks import Seconds, check_reading, parse_reading
from antecede.core.group.effects import GroupPart
from antecede.core.group.message import Message
from antecede.core.group.state import NO_CALL
from antecede.core.protocols import Effect, Transmit
from antecede.core.protocols.options import check_flags
from antecede.errors import LocalError, ProtocolError
from antecede.formatting import quote


class TickHandler(GroupPart):
    """Passes local clock readings to the protocol."""

    def tick(self, now: Seconds | None = None, *, now_ns: int | None = None) -> list[Message]:
        """Advance time; return messages that become deliverable. Raise LocalError without a
        reading.
        """
        self._state.last_call = NO_CALL
        reading = check_reading(parse_reading(now, now_ns), "tick")
        return self._finish_tick(reading, self._tick_protocol(reading))

    def correct_clock(self, now: Seconds | None = None, *, now_ns: int | None = None) -> None:
        """Reset the local clock, which was ahead, to this reading.

        State is kept, and `receive` and `tick` continue. `send` raises EarlyError until the clock
        passes the times that other members accepted: `max_ahead_s` (60 s) ahead, or the last
        reading. Messages rejected as too far ahead are sent again with `retry_s`; otherwise call
        `declare_lost` at their receivers. Raises LocalError in orders without physical time, if the
        clock was not ahead, and with `max_ahead_s=None`.
        """
        state = self._state
        state.last_call = NO_CALL
        reading = check_reading(parse_reading(now, now_ns), "correct_clock")
        with state.translate_errors():
            state.protocol.correct_clock(reading)
        state.record("correct_clock", reading)

    def tick_range(self, readings: range, *, notes: bool = True) -> tuple[int, list[Message]]:
        """Advance time as by `tick` at each of these readings, until the first with an effect.

        Returns that reading (or the last one) and messages that become deliverable. Other readings
        than the first are found by bisection, since a tick without effect changes nothing later.
        Without `include_control`, a control message alone is no effect, and those in between are
        omitted. The log of inputs contains the first and the returned reading.

        Raises LocalError unless `readings` is a nonempty ascending range.
        """
        self._state.last_call = NO_CALL
        _check_readings(readings)
        check_flags(notes=notes)
        protocol = self._state.protocol
        before = protocol.snapshot() if len(readings) > 1 else None
        try:
            # Silence and gaps are measured from the first reading, so the protocol always gets it.
            # Only after it a tick without effects changes nothing.
            effects = self._tick_protocol(readings[0])
            if before is None or _has_change(effects, notes):
                return readings[0], self._finish_tick(readings[0], effects)
            index, found_effects = self._find_first_change(readings, notes)
        except ProtocolError:
            if before is not None:
                protocol.restore(before)
            raise
        released = self._finish_tick(readings[0], effects)
        return readings[index], released + self._finish_tick(readings[index], found_effects)

    def _find_first_change(
        self, readings: range, include_control: bool
    ) -> tuple[int, Sequence[Effect]]:
        protocol = self._state.protocol
        before = protocol.snapshot() if len(readings) > 2 else None
        low, high = 1, len(readings) - 1
        effects = self._tick_protocol(readings[high])
        if before is None or not _has_change(effects, include_control):
            return high, effects
        while low < high:
            middle = (low + high) // 2
            protocol.restore(before)
            if _has_change(self._tick_protocol(readings[middle]), include_control):
                high = middle
            else:
                low = middle + 1
        protocol.restore(before)
        return high, self._tick_protocol(readings[high])

    def _tick_protocol(self, reading: int) -> Sequence[Effect]:
        try:
            return self._state.protocol.tick(reading)
        except ProtocolError as error:
            self._state.insert_names(error)
            raise

    def _finish_tick(self, reading: int, effects: Sequence[Effect]) -> list[Message]:
        self._state.record("tick", reading)
        return self._effects.carry_out(effects, reading)


def _check_readings(readings: range) -> None:
    if not isinstance(readings, range):
        raise LocalError(
            f"readings is {quote(readings)}; expected a range of nanoseconds, as in "
            "range(first, past_last, step)"
        )
    if not readings or readings.step < 0:
        raise LocalError(f"readings is {quote(readings)}; expected a nonempty ascending range")
    for reading in (readings[0], readings[-1]):
        check_reading(reading, "tick_range")


def _has_change(effects: Sequence[Effect], include_control: bool) -> bool:
    """Return whether there is an effect, without `include_control` on a message received here."""
    return any(include_control or not isinstance(effect, Transmit) for effect in effects)
