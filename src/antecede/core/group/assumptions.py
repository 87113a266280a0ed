"""Assumed causes: messages that count as delivered although they never arrived.

A message that is delivered without such a cause names it (`Message.missing_ids`). A held message is
marked when the cause is assumed. `Group.declare_lost` marks the dependents of lost messages.

`Group.start_from` without frontier begins at the first message heard of each member. Earlier ones
count as delivered. So do causes of members that were not heard yet. Everything that follows of a
heard member is awaited. This keeps the order since a message names all its causes
(`Protocol.check_listening`): a later message that precedes an assumed cause is a duplicate.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from antecede.core.protocols import (
    DUPLICATE,
    Addressing,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    MessageId,
    Protocol,
)
from antecede.core.protocols.serialization import BOOL, NUMBER, Many, Shape

_Ids = tuple[MessageId, ...]


class Assumptions:
    """Assumed sequence numbers and heard members, by member number; marks by message."""

    SHAPE: ClassVar[Shape] = (
        BOOL,
        Many((NUMBER, NUMBER, BOOL)),
        Many(((NUMBER, NUMBER), Many((NUMBER, NUMBER)))),
    )

    def __init__(self, *, starts_at_first_heard: bool = False) -> None:
        self.starts_at_first_heard = starts_at_first_heard
        self.assumed_seqs: dict[int, int] = {}
        self.heard_members: set[int] = set()
        self.missing_causes: dict[MessageId, _Ids] = {}
        """Undelivered message -> its assumed causes."""

    def state(self) -> tuple[Any, ...]:
        """Return a serializable state."""
        known = sorted(self.assumed_seqs.keys() | self.heard_members)
        rows = tuple((k, self.assumed_seqs.get(k, 0), k in self.heard_members) for k in known)
        marks = tuple(
            (tuple(message), tuple(map(tuple, ids))) for message, ids in self.missing_causes.items()
        )
        return self.starts_at_first_heard, rows, marks

    @classmethod
    def from_state(cls, state: Any) -> Assumptions:
        """Return the object of a `state`."""
        listens, rows, marks = state
        assumptions = cls(starts_at_first_heard=listens)
        assumptions.assumed_seqs = {member: floor for member, floor, _ in rows if floor}
        assumptions.heard_members = {member for member, _, heard in rows if heard}
        assumptions.missing_causes = {
            MessageId(*one): tuple(MessageId(*c) for c in ids) for one, ids in marks
        }
        return assumptions

    def find_assumed(self, protocol: Protocol, message: Any) -> tuple[dict[int, int], _Ids]:
        """Return the numbers that a message makes this member assume, and its assumed causes."""
        sender, is_first = message.sender, message.sender not in self.heard_members
        causes = [
            cause
            for cause in protocol.causes(message)
            if cause.sender != protocol.me
            and (cause.sender not in self.heard_members or (is_first and cause.sender == sender))
        ]
        if (
            is_first and protocol.addressing is Addressing.ALL
        ):  # otherwise earlier messages may have other receivers
            causes.append(MessageId(sender, message.seq - 1))
        floors: dict[int, int] = {}
        for member, number in causes:
            if number > max(self.assumed_seqs.get(member, 0), floors.get(member, 0)):
                floors[member] = number
        assumed = [c for c in causes if is_first or c.seq > self.assumed_seqs.get(c.sender, 0)]
        return floors, tuple(sorted({cause for cause in assumed if cause.seq}))

    def record(
        self, message: Any, assumed_seqs: dict[int, int], causes: _Ids, effects: Sequence[Effect]
    ) -> None:
        """Record results of `find_assumed` after the message had these effects."""
        self.heard_members.add(message.sender)
        self.assumed_seqs.update(assumed_seqs)
        is_here = any(isinstance(e, Deliver | Hold) and e.message == message for e in effects)
        if causes and is_here:
            self.missing_causes[MessageId(message.sender, message.seq)] = causes

    def mark_lost(self, protocol: Protocol, lost: Collection[MessageId]) -> None:
        """Mark held messages that depend on lost ones."""
        for held in protocol.list_held():
            causes = set(protocol.causes(held.message)).intersection(lost)
            if causes:
                key = MessageId(held.message.sender, held.message.seq)
                self.missing_causes[key] = tuple(
                    sorted(causes.union(self.missing_causes.get(key, ())))
                )

    def mark_deliveries(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        """Return effects, with deliveries of marked messages turned into incomplete ones."""
        marked: list[Effect] = []
        for effect in effects:
            done = isinstance(effect, Discard) and effect.reason != DUPLICATE
            if done or isinstance(effect, Deliver | DeliverIncomplete):
                key = MessageId(effect.message.sender, effect.message.seq)
                missing = self.missing_causes.pop(key, ())
                if missing and isinstance(effect, Deliver):
                    effect = DeliverIncomplete(effect.message, missing)
            marked.append(effect)
        return marked
