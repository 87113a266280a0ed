"""Time that passes: one tick, or many of which most change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from antecede.core.clocks import Seconds, group_reading, reading_of
from antecede.core.group.effects import Effects
from antecede.core.group.message import Message
from antecede.core.group.state import NO_CALL, GroupState
from antecede.core.protocols import Effect, Transmit
from antecede.core.protocols.options import check_flags
from antecede.errors import LocalError, ProtocolError
from antecede.formatting import shown


class Time:
    """Tells the protocol what the own clock shows."""

    def __init__(self, state: GroupState, effects: Effects) -> None:
        self._state, self._effects = state, effects

    def tick(self, now: Seconds | None, now_ns: int | None) -> list[Message]:
        self._state.call = NO_CALL
        reading = reading_of(group_reading(now, now_ns), "tick")
        return self._ticked(reading, self._try(reading))

    def correct_clock(self, now: Seconds | None, now_ns: int | None) -> None:
        state = self._state
        state.call = NO_CALL
        reading = reading_of(group_reading(now, now_ns), "correct_clock")
        with state.named_errors():
            state.protocol.correct_clock(reading)
        state.record("correct_clock", reading)

    def pass_time(self, readings: range, notes: bool) -> tuple[int, list[Message]]:
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
