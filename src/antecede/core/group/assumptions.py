"""Assumed causes: messages that count as delivered although they never came here.

Theory of operation
-------------------
Marks. A message that is delivered without such a cause names it (`Message.missing`). A held message
gets its mark when the cause is assumed. Lost messages (`Group.release`) mark what names them.

Beginning at the first message heard (`Group.begin_at`), without sponsor and frontier. The first
message heard of a member is its beginning: earlier ones count as delivered. So do the causes that a
message names of members that were not heard yet; it is marked with them. Once a member has been
heard, all that follows of it is waited for.

That keeps the order because a message names all that must come before it
(`Protocol.check_listening`): what comes later and precedes an assumed cause is a duplicate.
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
    """Marks by message; of members by number: what is assumed of them, and who was heard."""

    SHAPE: ClassVar[Shape] = (
        BOOL,
        Many((NUMBER, NUMBER, BOOL)),
        Many(((NUMBER, NUMBER), Many((NUMBER, NUMBER)))),
    )
    """Of what `state` returns."""

    def __init__(self, *, listens: bool = False) -> None:
        self.listens = listens
        """True if the group began at the first message heard."""
        self.floors: dict[int, int] = {}
        self.heard: set[int] = set()
        self.marks: dict[MessageId, _Ids] = {}
        """By message that is not delivered yet: its assumed causes."""

    def state(self) -> tuple[Any, ...]:
        """Return everything as plain tuples."""
        known = sorted(self.floors.keys() | self.heard)
        rows = tuple((k, self.floors.get(k, 0), k in self.heard) for k in known)
        marks = tuple((tuple(one), tuple(map(tuple, ids))) for one, ids in self.marks.items())
        return self.listens, rows, marks

    @classmethod
    def of(cls, state: Any) -> Assumptions:
        """Return what `state` returned, of shape `SHAPE`."""
        listens, rows, marks = state
        made = cls(listens=listens)
        made.floors = {member: floor for member, floor, _ in rows if floor}
        made.heard = {member for member, _, heard in rows if heard}
        made.marks = {MessageId(*one): tuple(MessageId(*c) for c in ids) for one, ids in marks}
        return made

    def begin(self, protocol: Protocol, message: Any) -> tuple[dict[int, int], _Ids]:
        """Return the numbers that a message makes this member assume, and its assumed causes."""
        sender, is_first = message.sender, message.sender not in self.heard
        causes = [
            cause
            for cause in protocol.causes(message)
            if cause.sender != protocol.me
            and (cause.sender not in self.heard or (is_first and cause.sender == sender))
        ]
        if is_first and protocol.addressing is Addressing.ALL:  # else it may be for others
            causes.append(MessageId(sender, message.seq - 1))
        floors: dict[int, int] = {}
        for member, number in causes:
            if number > max(self.floors.get(member, 0), floors.get(member, 0)):
                floors[member] = number
        named = [c for c in causes if is_first or c.seq > self.floors.get(c.sender, 0)]
        return floors, tuple(sorted({cause for cause in named if cause.seq}))

    def note(
        self, message: Any, floors: dict[int, int], assumed: _Ids, effects: Sequence[Effect]
    ) -> None:
        """Take over what `begin` returned, when these effects came of the message."""
        self.heard.add(message.sender)
        self.floors.update(floors)
        here = any(isinstance(e, Deliver | Hold) and e.message == message for e in effects)
        if assumed and here:
            self.marks[MessageId(message.sender, message.seq)] = assumed

    def lose(self, protocol: Protocol, lost: Collection[MessageId]) -> None:
        """Mark what is held and names one of these messages."""
        for held in protocol.blocked_on():
            causes = set(protocol.causes(held.message)).intersection(lost)
            if causes:
                key = MessageId(held.message.sender, held.message.seq)
                self.marks[key] = tuple(sorted(causes.union(self.marks.get(key, ()))))

    def marked(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        """Return effects in which a message with assumed causes is delivered with their names."""
        found: list[Effect] = []
        for effect in effects:
            done = isinstance(effect, Discard) and effect.reason != DUPLICATE
            if done or isinstance(effect, Deliver | DeliverIncomplete):
                key = MessageId(effect.message.sender, effect.message.seq)
                missing = self.marks.pop(key, ())
                if missing and isinstance(effect, Deliver):
                    effect = DeliverIncomplete(effect.message, missing)
            found.append(effect)
        return found
