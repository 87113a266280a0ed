"""What a protocol asks for, carried out: counted, packed, handed to the application, told again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antecede.group.frames import Frames
from antecede.group.message import GroupEffect, Id, Message
from antecede.group.state import GroupState
from antecede.protocols.base import (
    NOTHING,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    Transmit,
)


class Effects:
    """Carries effects out; it keeps those of the last call, to say what became of which message."""

    def __init__(self, state: GroupState, frames: Frames) -> None:
        self._state, self._frames = state, frames
        self._last: Sequence[Effect] = NOTHING
        self._arrived: Any = None

    def begin(self) -> None:
        """Forget the last call: another one begins."""
        self._last, self._arrived = NOTHING, None

    def arrive(self, message: Any) -> None:
        """Remember which message the bytes of this call carried."""
        self._arrived = message

    def count(self, effects: Sequence[Effect], now: int | None) -> None:
        """Count effects, and keep them for `told`."""
        self._last = (*self._last, *effects) if self._last else effects
        self._state.tally.count(self._state.protocol, effects, now)

    def carry_out(self, effects: Sequence[Effect], now: int | None) -> list[Message]:
        """Put into the outbox what is to be sent; return what the application gets."""
        state = self._state
        self.count(effects, now)
        for effect in effects:
            if isinstance(effect, Transmit):
                state.outbox.append(self._frames.packet(effect))
        if not state.inbox:
            return self.messages(effects)
        before, state.inbox = state.inbox, []
        return before + self.messages(effects)

    def messages(self, effects: Sequence[Effect]) -> list[Message]:
        """Return what effects hand to the application, in order."""
        state, found = self._state, []
        for effect in effects:
            if isinstance(effect, Deliver):
                message = state.message(effect.message)
            elif isinstance(effect, DeliverIncomplete):
                message = state.message(effect.message)
                message = message._replace(missing=state.named(effect.missing))
            else:
                continue
            if state.by_reply:
                state.threads.add(message.id, message.reply_to)
            found.append(message)
        return found

    def told(self) -> list[GroupEffect]:
        """Return what the last call brought about, by names."""
        state, arrived = self._state, None
        if self._arrived is not None and not state.is_note(self._arrived):
            arrived = state.protocol.identity(self._arrived)
        return [self._told(effect, arrived) for effect in self._last]

    def _told(self, effect: Effect, arrived: Any) -> GroupEffect:
        state, message = self._state, effect.message
        kind = KINDS[type(effect)]
        if state.is_note(message):
            return GroupEffect(kind, None, None)
        key = state.protocol.identity(message)
        missing: tuple[Id, ...] = ()
        reason = ""
        if isinstance(effect, Hold | DeliverIncomplete):
            missing = state.named(effect.missing)
        if isinstance(effect, Hold | Discard):
            reason = effect.reason
        return GroupEffect(
            kind, state.message(message), (key.sender, key.seq), missing, reason, key == arrived
        )


KINDS: dict[type, Any] = {
    Transmit: "sent",
    Deliver: "delivered",
    DeliverIncomplete: "released",
    Hold: "held",
    Discard: "discarded",
}
