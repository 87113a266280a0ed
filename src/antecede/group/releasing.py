"""Releasing what waits for messages that nobody has any more (order "reply")."""

from __future__ import annotations

from collections.abc import Iterable

from antecede.errors import LocalError
from antecede.group.effects import Effects
from antecede.group.message import Id, Message
from antecede.group.state import NO_CALL, GroupState
from antecede.protocols.base import MessageId


class Releasing:
    """Tells the protocol what never comes."""

    def __init__(self, state: GroupState, effects: Effects) -> None:
        self._state, self._effects = state, effects

    def release(self, lost: Iterable[Id]) -> list[Message]:
        """See `Group.release`."""
        state = self._state
        state.call = NO_CALL
        change = getattr(state.protocol, "never_come", None)
        if change is None:
            raise LocalError(f"with order {state.order!r} nothing is released without its causes")
        named = state.answered(lost, "lost")
        numbers = [MessageId(state.number(sender), seq) for sender, seq in named]
        effects = change(numbers)
        state.record("release", named)
        return self._effects.carry_out(effects, None)
