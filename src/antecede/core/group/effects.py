"""Execution of protocol effects: counting, packing and handing over to the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antecede.core.group.frames.codec import FrameCodec
from antecede.core.group.message import GroupEffect, Id, Message
from antecede.core.group.options import insert_names
from antecede.core.group.state import GroupState
from antecede.core.protocols import Deliver, DeliverIncomplete, Discard, Effect, Hold, Transmit


class Effects:
    """Executes effects. The state keeps those of the last call."""

    def __init__(self, state: GroupState, frames: FrameCodec) -> None:
        self._state, self._codec = state, frames

    def carry_out(self, effects: Sequence[Effect], now: int | None) -> list[Message]:
        """Queue packets, and return messages for the application."""
        state = self._state
        for effect in effects:
            if isinstance(effect, Transmit):
                state.outbox.append(self._codec.make_packet(effect))
        delivered = self.deliver(effects, now)
        if not state.inbox:
            return delivered
        before, state.inbox = state.inbox, []
        return before + delivered

    def deliver(self, effects: Sequence[Effect], now: int | None) -> list[Message]:
        """Count effects, and return messages for the application, in order."""
        state, delivered = self._state, []
        if state.assumptions is not None and state.assumptions.missing_causes:
            effects = state.assumptions.mark_deliveries(effects)
        state.last_call = state.last_call[0], (*state.last_call[1], *effects)
        for effect in effects:
            if isinstance(effect, Transmit):
                continue
            if state.has_control and state.protocol.is_control(effect.message):
                continue
            self._count(effect, now)
            if isinstance(effect, Deliver | DeliverIncomplete):
                delivered.append(self._make_message(effect))
        return delivered

    def _count(self, effect: Deliver | DeliverIncomplete | Hold | Discard, now: int | None) -> None:
        tally, protocol = self._state.counters, self._state.protocol
        if isinstance(effect, Deliver) and not tally.held_since:  # it was not held
            tally.delivered += 1
            return
        key = protocol.identity(effect.message)
        if isinstance(effect, Hold):
            if protocol.application:  # forwarding roles have no effect for the end of a hold
                tally.record_hold(key, now)
        elif isinstance(effect, Discard):
            tally.record_discard(key, insert_names(effect.reason, self._state.roster.names))
        else:
            tally.held_since.pop(key, None)
            tally.delivered += 1
            tally.delivered_incomplete += isinstance(effect, DeliverIncomplete)

    def _make_message(self, effect: Deliver | DeliverIncomplete) -> Message:
        state, inner = self._state, effect.message
        name = state.roster.names.get(inner.sender)
        if name is None or state.renumbers or state.by_reply:
            message = state.to_message(inner)
        else:  # fast path
            message = Message(name, inner.seq, inner.payload)
        if isinstance(effect, DeliverIncomplete):
            message = message._replace(missing=state.name_ids(effect.missing))
        if state.by_reply:
            state.threads.add(message.id, message.reply_to)
        return message

    def list_effects(self) -> list[GroupEffect]:
        """Return the effects of the last call, with member names."""
        state = self._state
        carried, effects = state.last_call
        arrived = None
        if carried is not None and not state.is_control(carried):
            arrived = state.protocol.identity(carried)
        return [self._to_group_effect(effect, arrived) for effect in effects]

    def _to_group_effect(self, effect: Effect, arrived: Any) -> GroupEffect:
        state, message = self._state, effect.message
        kind = EFFECT_KINDS[type(effect)]
        if state.is_control(message):
            return GroupEffect(kind, None, None)
        key = state.protocol.identity(message)
        missing: tuple[Id, ...] = ()
        reason = ""
        if isinstance(effect, Hold | DeliverIncomplete):
            missing = state.name_ids(effect.missing)
        if isinstance(effect, Hold | Discard):
            reason = insert_names(effect.reason, state.roster.names)
        return GroupEffect(
            kind, state.to_message(message), (key.sender, key.seq), missing, reason, key == arrived
        )


class GroupPart:
    """Base of the parts of `Group`, which share one state."""

    _state: GroupState
    _codec: FrameCodec
    _effects: Effects


EFFECT_KINDS: dict[type, Any] = {
    Transmit: "sent",
    Deliver: "delivered",
    DeliverIncomplete: "delivered_incomplete",
    Hold: "held",
    Discard: "discarded",
}
