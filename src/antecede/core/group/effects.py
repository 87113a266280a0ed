"""Execution of protocol effects: counting, packing and handing over to the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antecede.core.group.frames.codec import Frames
from antecede.core.group.message import GroupEffect, Id, Message
from antecede.core.group.options import with_names
from antecede.core.group.state import GroupState
from antecede.core.protocols import Deliver, DeliverIncomplete, Discard, Effect, Hold, Transmit


class Effects:
    """Executes effects. The state keeps those of the last call."""

    def __init__(self, state: GroupState, frames: Frames) -> None:
        self._state, self._frames = state, frames

    def carry_out(self, effects: Sequence[Effect], now: int | None) -> list[Message]:
        """Queue packets, and return messages for the application."""
        state = self._state
        for effect in effects:
            if isinstance(effect, Transmit):
                state.outbox.append(self._frames.packet(effect))
        found = self.deliver(effects, now)
        if not state.inbox:
            return found
        before, state.inbox = state.inbox, []
        return before + found

    def deliver(self, effects: Sequence[Effect], now: int | None) -> list[Message]:
        """Count effects, and return messages for the application, in order."""
        state, found = self._state, []
        if state.assumptions is not None and state.assumptions.marks:
            effects = state.assumptions.marked(effects)
        state.call = state.call[0], (*state.call[1], *effects)
        for effect in effects:
            if isinstance(effect, Transmit):
                continue
            if state.has_notes and state.protocol.is_note(effect.message):
                continue
            self._count(effect, now)
            if isinstance(effect, Deliver | DeliverIncomplete):
                found.append(self._delivered(effect))
        return found

    def _count(self, effect: Deliver | DeliverIncomplete | Hold | Discard, now: int | None) -> None:
        tally, protocol = self._state.tally, self._state.protocol
        if isinstance(effect, Deliver) and not tally.since:  # it was not held
            tally.delivered += 1
            return
        key = protocol.identity(effect.message)
        if isinstance(effect, Hold):
            if protocol.application:  # forwarding roles have no effect for the end of a hold
                tally.wait(key, now)
        elif isinstance(effect, Discard):
            tally.discard(key, with_names(effect.reason, self._state.roster.names))
        else:
            tally.since.pop(key, None)
            tally.delivered += 1
            tally.released += isinstance(effect, DeliverIncomplete)

    def _delivered(self, effect: Deliver | DeliverIncomplete) -> Message:
        state, of = self._state, effect.message
        name = state.roster.names.get(of.sender)
        if name is None or state.renumbers or state.by_reply:
            message = state.message(of)
        else:  # fast path
            message = Message(name, of.seq, of.payload)
        if isinstance(effect, DeliverIncomplete):
            message = message._replace(missing=state.named(effect.missing))
        if state.by_reply:
            state.threads.add(message.id, message.reply_to)
        return message

    def told(self) -> list[GroupEffect]:
        """Return the effects of the last call, with member names."""
        state = self._state
        carried, effects = state.call
        arrived = None
        if carried is not None and not state.is_note(carried):
            arrived = state.protocol.identity(carried)
        return [self._told(effect, arrived) for effect in effects]

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
            reason = with_names(effect.reason, state.roster.names)
        return GroupEffect(
            kind, state.message(message), (key.sender, key.seq), missing, reason, key == arrived
        )


class Part:
    """Base of the parts of `Group`, which share one state."""

    _state: GroupState
    _frames: Frames
    _effects: Effects


KINDS: dict[type, Any] = {
    Transmit: "sent",
    Deliver: "delivered",
    DeliverIncomplete: "delivered_incomplete",
    Hold: "held",
    Discard: "discarded",
}
