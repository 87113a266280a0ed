"""Small protocols with addressees, topics or clocks; each correct one with a broken one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import (
    DUPLICATE,
    Addressing,
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
from antecede.core.protocols.topics.subscriptions import Subscriptions


class Letter(NamedTuple):
    sender: int
    seq: int
    payload: Any
    to: tuple[int, ...]
    past: tuple[tuple[MessageId, tuple[int, ...]], ...]
    """Causal past, each message with its receivers."""


class Post(Protocol):
    """Causal order of addressed messages by whole sets: correct, large and slow."""

    addressing: ClassVar[Addressing] = Addressing.MEMBERS
    guarantee = Guarantee(Relation.BY_DELIVERY)

    def __init__(self, me: int, members: Sequence[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.known: dict[MessageId, tuple[int, ...]] = {}
        self.done: set[MessageId] = set()
        self.held: list[Letter] = []

    def send(self, payload: Any, *, to: Sequence[int] = (), **given: Any) -> Sequence[Effect]:
        self.sent += 1
        targets = tuple(to) or self.others()
        letter = Letter(self.me, self.sent, payload, targets, tuple(sorted(self.known.items())))
        self.known[MessageId(self.me, self.sent)] = targets
        return (Transmit(targets, letter),)

    def find_missing(self, letter: Letter) -> list[MessageId]:
        return [one for one, to in letter.past if self.me in to and one not in self.done]

    def receive(self, message: Letter, *, now: int | None = None) -> Sequence[Effect]:
        if message.sender == self.me or self.identity(message) in self.done or message in self.held:
            return (Discard(message, DUPLICATE),)
        self.held.append(message)
        effects: list[Effect] = []
        while free := [one for one in self.held if not self.find_missing(one)]:
            self.held.remove(free[0])
            self.done.add(self.identity(free[0]))
            self.known.update((*free[0].past, (self.identity(free[0]), free[0].to)))
            effects.append(Deliver(free[0]))
        if message in self.held:
            effects.append(Hold(message, tuple(self.find_missing(message))))
        return effects


class Forgetful(Post):
    """Forwards only direct causes."""

    def receive(self, message: Letter, *, now: int | None = None) -> Sequence[Effect]:
        before = dict(self.known)
        effects = super().receive(message)
        self.known = before
        return effects


class Gossip(Post):
    """Sends everything to all members."""

    def send(self, payload: Any, *, to: Sequence[int] = (), **given: Any) -> Sequence[Effect]:
        (transmit,) = super().send(payload, to=to)
        assert isinstance(transmit, Transmit)
        return (Transmit(self.others(), transmit.message),)


class Stamped(NamedTuple):
    sender: int
    seq: int
    payload: Any
    sent_ns: int
    topics: tuple[str, ...] = ()


class Patient(Protocol):
    """Waits until no earlier message can be in flight; then delivers by timestamp.

    Correct only because the minimum delay exceeds twice the accuracy.
    """

    guarantee = Guarantee(Relation.BY_RECEIPT, no_unnecessary_wait=False, needs_time=True)
    short_ns = 0

    def __init__(self, me: int, members: Sequence[int], *, bounds: Bounds[int]) -> None:
        super().__init__(me, members)
        self.bounds = bounds
        self.sent = 0
        self.seen: set[MessageId] = set()
        self.held: list[Stamped] = []

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        return {"bounds": Bounds(accuracy_s=1, least_s=3, most_s=4)}

    def send(self, payload: Any, *, now: int | None = None, **given: Any) -> Sequence[Effect]:
        assert now is not None
        self.sent += 1
        return (Transmit(self.others(), Stamped(self.me, self.sent, payload, now)),)

    def receive(self, message: Stamped, *, now: int | None = None) -> Sequence[Effect]:
        if message.sender == self.me or self.identity(message) in self.seen:
            return (Discard(message, DUPLICATE),)
        self.seen.add(self.identity(message))
        self.held.append(message)
        assert now is not None
        return (Hold(message, ()), *self.tick(now))

    def tick(self, now: int) -> Sequence[Effect]:
        wait_ns = self.bounds.most_ns + 2 * self.bounds.accuracy_ns - self.short_ns
        self.held.sort(key=lambda one: (one.sent_ns, one.sender, one.seq))
        due = [one for one in self.held if now - one.sent_ns > wait_ns]
        self.held = [one for one in self.held if one not in due]
        return tuple(Deliver(one) for one in due)


class Impatient(Patient):
    """Waits two seconds less."""

    short_ns = 2 * NS


class Hopeful(Patient):
    """Uses a promised minimum delay that does not separate a message from its effect."""

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        return {"bounds": Bounds(accuracy_s=1, least_s=1, most_s=2)}


class Stuck(Patient):
    """Ignores time."""

    def tick(self, now: int) -> Sequence[Effect]:
        return ()


class Topical(Patient):
    """The same with topics and subscribers."""

    addressing: ClassVar[Addressing] = Addressing.TOPICS
    guarantee = Guarantee(Relation.BY_TOPIC, no_unnecessary_wait=False, needs_time=True)

    def __init__(
        self,
        me: int,
        members: Sequence[int],
        *,
        bounds: Bounds[int],
        subscriptions: Subscriptions[int],
    ) -> None:
        super().__init__(me, members, bounds=bounds)
        self.subscriptions = subscriptions

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        topics: dict[int, Collection[str]] = {at: ("x", "y")[: 1 + at % 2] for at in members}
        bounds = Bounds[int](accuracy_s=1, least_s=3, most_s=4)
        return {"bounds": bounds, "subscriptions": Subscriptions(topics)}

    def send(
        self, payload: Any, *, now: int | None = None, topics: Sequence[str] = (), **given: Any
    ) -> Sequence[Effect]:
        assert now is not None
        self.sent += 1
        to = self.subscriptions.targets(topics, self.others())
        return (Transmit(to, Stamped(self.me, self.sent, payload, now, tuple(topics))),)


class Hasty(Topical):
    def receive(self, message: Stamped, *, now: int | None = None) -> Sequence[Effect]:
        if message.sender == self.me or self.identity(message) in self.seen:
            return (Discard(message, DUPLICATE),)
        self.seen.add(self.identity(message))
        return (Deliver(message),)


class Nobody(Subscriptions[int]):
    """Subscriptions that return no subscribers."""

    def targets(self, publication: Collection[str], members: Iterable[int]) -> tuple[int, ...]:
        return ()


class Deaf(Topical):
    """Uses wrong subscriptions, which the checker must not use."""

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        options = super().trial_options(members)
        return {**options, "subscriptions": Nobody(options["subscriptions"].topics)}


class Hearsay(Post):
    """Remembers only the pasts received from members 0 to 2."""

    def receive(self, message: Letter, *, now: int | None = None) -> Sequence[Effect]:
        before = dict(self.known)
        effects = super().receive(message)
        learnt = self.known.items() - before.items()
        direct = {e.message[:2] for e in effects if isinstance(e, Deliver)}
        self.known = before | {one: to for one, to in learnt if one.sender < 3 or one in direct}
        return effects
