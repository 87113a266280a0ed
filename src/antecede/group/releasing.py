"""Lost messages: releasing what waits for messages that nobody has any more."""

from __future__ import annotations

from collections.abc import Iterable

from antecede.errors import LocalError
from antecede.group.assumptions import Assumptions
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
        state, protocol = self._state, self._state.protocol
        state.call = NO_CALL
        if state.renumbers:
            raise LocalError(
                f"order {state.order!r} numbers messages anew on their way, so none can be named "
                "as lost here"
            )
        named = state.ids(lost, "lost")
        numbers = [MessageId(state.number(sender), seq) for sender, seq in named]
        assumptions = None
        if not state.by_reply and numbers:  # there the protocol marks what it releases
            assumptions = state.assumptions or Assumptions()
            before = dict(assumptions.marks)
            assumptions.lose(protocol, numbers)
        try:
            with state.named_errors():
                effects = protocol.never_come(numbers)
        except LocalError:
            if assumptions is not None:
                assumptions.marks = before
            raise
        if assumptions is not None and assumptions.marks:
            state.assumptions = assumptions
        state.record("release", named)
        return self._effects.carry_out(effects, None)
