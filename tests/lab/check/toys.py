"""Small protocols, each with one defect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from antecede.core.protocols.base import (
    DUPLICATE,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    Hold,
    MessageId,
    Protocol,
    Relation,
    Transmit,
)


class Note(NamedTuple):
    sender: int
    seq: int
    payload: Any
    past: frozenset[MessageId]


class Causal(Protocol):
    """Causal order by whole sets of ids: correct, large and slow."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY)

    def __init__(self, me: int, members: Sequence[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.done: frozenset[MessageId] = frozenset()
        self.arrived: frozenset[MessageId] = frozenset()
        self.held: tuple[Note, ...] = ()

    def past(self) -> frozenset[MessageId]:
        return self.done

    def send(self, payload: Any, *, now: int | None = None, **given: Any) -> Sequence[Effect]:
        past = self.past()
        self.sent += 1
        self.done |= {MessageId(self.me, self.sent)}
        return (Transmit(self.others(), Note(self.me, self.sent, payload, past)),)

    def ready(self, note: Note) -> bool:
        return note.past <= self.done

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        if self.identity(message) in self.arrived or message.sender == self.me:
            return (Discard(message, DUPLICATE),)
        self.arrived |= {self.identity(message)}
        self.held = (*self.held, message)
        effects = self.flush()
        if message in self.held:
            effects.append(Hold(message, tuple(sorted(message.past - self.done))))
        return effects

    def flush(self) -> list[Effect]:
        effects: list[Effect] = []
        while ready := [note for note in self.held if self.ready(note)]:
            self.held = tuple(note for note in self.held if note != ready[0])
            self.done |= {self.identity(ready[0])}
            effects.append(Deliver(ready[0]))
        return effects


class Eager(Causal):
    def ready(self, note: Note) -> bool:
        return True


class Lazy(Causal):
    """Checks held messages only at the next arrival."""

    def flush(self) -> list[Effect]:
        newest = self.held[-1]
        self.held = self.held[:-1]
        effects = super().flush()
        self.held = (*self.held, newest)
        return effects


class Lossy(Causal):
    """Drops undeliverable messages."""

    guarantee = Guarantee(Relation.BY_DELIVERY, no_unnecessary_wait=False)

    def flush(self) -> list[Effect]:
        effects = super().flush()
        if self.held:
            self.held = ()
        return effects


class Twice(Causal):
    """Delivers a second copy."""

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        effects = super().receive(message)
        return [*effects, *(e for e in effects if isinstance(e, Deliver))]


class Ghost(Causal):
    """Delivers a message that was never sent."""

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        return [Deliver(message._replace(payload="ghost"))]


class Raises(Causal):
    """Fails on the second message of a member."""

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        if message.seq == 2:
            raise ZeroDivisionError("two is too much")
        return super().receive(message)


class Receipt(Causal):
    """Causal order by receipt: depends on what has arrived."""

    guarantee = Guarantee(Relation.BY_RECEIPT)

    def past(self) -> frozenset[MessageId]:
        known = self.done | self.arrived
        return known.union(*(note.past for note in self.held))


class Forgetful(Causal):
    """Loses held messages in its snapshot."""

    def snapshot(self) -> Any:
        return self.sent, self.done, self.arrived

    def restore(self, state: Any) -> None:
        self.sent, self.done, self.arrived = state
        self.held = ()


class Garbled(Causal):
    """Its wire encoding loses the causes."""

    def encode(self, message: Note) -> bytes:
        return bytes((message.sender, message.seq))

    def decode(self, control: bytes, payload: Any) -> Note:
        return Note(control[0], control[1], payload, frozenset())


class Mute(Causal):
    """Omits the Hold effect."""

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        return [e for e in super().receive(message) if not isinstance(e, Hold)]


class Liar(Causal):
    """Reports the whole past as missing, delivered or not."""

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        effects = super().receive(message)
        past = tuple(sorted(message.past)) if isinstance(message, Note) else ()
        return [Hold(e.message, past) if isinstance(e, Hold) else e for e in effects]


class Replies(Eager):
    """Promises reply order and delivers everything at once."""

    guarantee = Guarantee(Relation.BY_REPLY)


class Drifting(Causal):
    """Counts restorations in its state; otherwise correct."""

    def __init__(self, me: int, members: Sequence[int]) -> None:
        super().__init__(me, members)
        self.restored = 0

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.restored += 1


class Echoing(Causal):
    """Transmits to all members including itself."""

    def send(self, payload: Any, *, now: int | None = None, **given: Any) -> Sequence[Effect]:
        (effect,) = super().send(payload)
        assert isinstance(effect, Transmit)
        return (Transmit(self.members, effect.message),)


class PassingOn(Causal):
    """Forwards every copy to all others, endlessly."""

    def receive(self, message: Note, *, now: int | None = None) -> Sequence[Effect]:
        return [*super().receive(message), Transmit(self.others(), message)]
