"""Time that passes: one tick, or many of which most change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antecede.clocks.nanoseconds import Seconds, group_reading, reading_of
from antecede.errors import LocalError, ProtocolError
from antecede.group_effects import Effects
from antecede.group_state import GroupState
from antecede.message import Message
from antecede.protocols.base import Effect, Transmit


class Time:
    """Tells the protocol what the own clock shows."""

    def __init__(self, state: GroupState, effects: Effects) -> None:
        self._state, self._effects = state, effects

    def tick(self, now: Seconds | None, now_ns: int | None) -> list[Message]:
        """See `Group.tick`."""
        self._effects.begin()
        reading = reading_of(group_reading(now, now_ns), "tick")
        return self._ticked(reading, self._try(reading))

    def pass_time(self, readings: range, notes: bool) -> tuple[int, list[Message]]:
        """See `Group.pass_time`."""
        self._effects.begin()
        if not readings or readings.step < 0:
            raise LocalError(f"{readings} are no readings of a clock that goes on")
        before = self._state.protocol.snapshot() if len(readings) > 1 else None
        try:
            place, effects = self._first(readings, before, notes)
        except ProtocolError:
            if before is not None:
                self._state.protocol.restore(before)
            raise
        return readings[place], self._ticked(readings[place], effects)

    def _first(self, readings: range, before: Any, notes: bool) -> tuple[int, Sequence[Effect]]:
        """Tick at the first reading at which something happens, or at the last."""
        low, high = 0, len(readings) - 1
        effects = self._try(readings[high])
        if not high or not _heeded(effects, notes):
            return high, effects
        while low < high:
            middle = (low + high) // 2
            self._state.protocol.restore(before)
            if _heeded(self._try(readings[middle]), notes):
                high = middle
            else:
                low = middle + 1
        self._state.protocol.restore(before)
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


def _heeded(effects: Sequence[Effect], notes: bool) -> bool:
    """Tell whether something happened; without `notes`, to a message that is here."""
    return any(notes or not isinstance(effect, Transmit) for effect in effects)
