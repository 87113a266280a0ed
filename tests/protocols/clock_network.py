"""A network with clocks and delays within bounds, and an oracle of plain sets, by receipt.

True time runs from event to event, in nanoseconds. Each clock is off by a constant of its own, at
most its accuracy, and often by all of it. Each copy takes as long as a draw says between the bounds
of its channel, often exactly the least or the largest; it may be lost, or come twice. A newcomer
begins with its sponsor's frontier one least delay after that was taken, as an invitation would
bring it.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from antecede.clocks.bounds import Bounds
from antecede.clocks.nanoseconds import NS
from antecede.protocols.base import (
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    Protocol,
    Transmit,
)
from antecede.protocols.timed.base import ClockOrdered
from tests.protocols.seconds import s

Make = Callable[[int, Iterable[int]], ClockOrdered]
Id = tuple[int, int]
TICK_NS = s(0.5)
ORIGIN_NS = s(Decimal("1700000000.1"))


def says_why(member: Protocol, reading: int) -> None:
    """After a tick every held message waits for messages, members, or a reading still to come."""
    for held in member.blocked_on():
        later = held.until_ns is not None and held.until_ns > reading
        assert held.missing or held.silent or later, held
        assert member.identity(held.message) not in held.missing


class Network:
    """Members by number; every delivery is judged at once, `finish` judges the end."""

    def __init__(
        self,
        make: Make,
        members: int,
        seed: int,
        bounds: Bounds[int],
        *,
        losses: float = 0.0,
        selective: bool = True,
    ) -> None:
        self.make, self.bounds, self.losses, self.selective = make, bounds, losses, selective
        self.random = random.Random(seed)
        self.now_ns = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.members: dict[int, ClockOrdered] = {}
        self.offsets: dict[int, int] = {}
        self.known: dict[int, set[Id]] = {}
        """What each member sent or what arrived at it, with all of its past."""
        self.delivered: dict[int, list[Id]] = {}
        self.past: dict[Id, frozenset[Id]] = {}
        self.audience: dict[Id, frozenset[int]] = {}
        self.messages: dict[Id, Any] = {}
        self.last: dict[int, int] = {}
        self.holds = self.requests = self.nulls = self.overruns = 0
        for member in range(members):
            self.start(member, make(member, range(members)), set())

    # -- members and time ---------------------------------------------------------------------

    def start(self, at: int, member: ClockOrdered, known: set[Id]) -> None:
        accuracy = self.bounds.error_ns(at)
        self.offsets[at] = self.random.choice((accuracy, -accuracy, 0))
        self.members[at] = member
        self.known[at], self.delivered[at] = known, []
        self.at(self.now_ns + self.random.randrange(TICK_NS), lambda: self.tick(at))

    def at(self, when_ns: int, act: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when_ns, next(self.order), act))

    def reading(self, at: int) -> int:
        return ORIGIN_NS + self.now_ns + self.offsets[at]

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        until_ns = self.now_ns + s(seconds)
        while self.events and self.events[0][0] <= until_ns:
            self.now_ns, _, act = heapq.heappop(self.events)
            act()
        self.now_ns = until_ns

    def tick(self, at: int) -> None:
        if at in self.members:
            self.carry_out(at, self.members[at].tick(self.reading(at)))
            says_why(self.members[at], self.reading(at))
            self.at(self.now_ns + TICK_NS, lambda: self.tick(at))

    # -- messages -----------------------------------------------------------------------------

    def send(self, at: int, to: Iterable[int] | None = None) -> Id:
        member = self.members[at]
        if to is None and self.selective and self.random.random() < 0.6:
            others = [k for k in member.others() if k in self.members]
            to = self.random.sample(others, self.random.randint(1, len(others))) if others else None
        effects = member.send(f"from {at}", now=self.reading(at), to=to)
        key = (at, member.channel.sent)
        self.last[at] = member.channel.sent
        self.past[key] = frozenset(self.known[at])
        self.known[at].add(key)
        self.audience[key] = frozenset(k for e in effects if isinstance(e, Transmit) for k in e.to)
        self.carry_out(at, effects)
        return key

    def put(self, source: int, target: int, message: Any) -> None:
        if self.losses and self.random.random() < self.losses:
            return
        least = self.bounds.least_delay_ns(source, target)
        most = self.bounds.most_delay_ns(source, target)
        draw = self.random.choice((0.0, 1.0, self.random.random()))
        for _ in range(1 + (self.random.random() < 0.1)):
            arrival = self.now_ns + least + round(draw * (most - least))
            self.at(arrival, lambda: self.arrive(target, message))
            draw = max(draw, self.random.random())

    def arrive(self, target: int, message: Any) -> None:
        if target not in self.members:
            return
        member = self.members[target]
        control = member.encode(message)
        assert member.decode(control, message.payload) == message
        if not member.is_note(message):
            key = (message.sender, message.seq)
            self.known[target] |= {key, *self.past[key]}
        if self.random.random() < 0.1:
            fresh = self.make(target, member.members)
            fresh.restore(member.snapshot())
            assert fresh.snapshot() == member.snapshot()
            self.members[target] = member = fresh
        self.carry_out(target, member.receive(message, now=self.reading(target)))

    def carry_out(self, at: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                assert at not in effect.to
                self.nulls += type(effect.message).__name__ == "NullMessage"
                self.requests += type(effect.message).__name__ == "Request"
                for target in effect.to:
                    self.put(at, target, effect.message)
            elif isinstance(effect, Deliver | DeliverIncomplete):
                self.judge(at, effect)
            elif isinstance(effect, Hold):
                self.holds += 1
            elif isinstance(effect, Discard):
                self.overruns += effect.reason == "receipt buffer overrun"

    def judge(self, at: int, effect: Deliver | DeliverIncomplete) -> None:
        key = (effect.message.sender, effect.message.seq)
        assert at in self.audience[key]
        assert key not in self.delivered[at], "delivered twice"
        needed = {k for k in self.past[key] if at in self.audience[k]}
        if isinstance(effect, Deliver):
            missing = needed - set(self.delivered[at])
            assert not missing, f"{key} at {at} before {missing}"
        self.delivered[at].append(key)

    # -- membership ---------------------------------------------------------------------------

    def join(self, at: int, sponsor: int) -> None:
        newcomer = self.make(at, [at])
        newcomer.adopt(self.members[sponsor].frontier())
        known = set(self.known[sponsor])
        for member in self.members.values():
            assert member.join(at) == ()
        self.at(self.now_ns + self.bounds.least_ns, lambda: self.start(at, newcomer, known))

    def leave(self, at: int) -> None:
        del self.members[at]
        for other in list(self.members):
            wait = self.random.choice((0.0, self.random.random()))
            self.at(self.now_ns + round(wait * NS), lambda other=other: self.tell(other, at))  # type: ignore[misc]

    def tell(self, other: int, gone: int) -> None:
        if other in self.members:
            self.carry_out(other, self.members[other].leave(gone, self.last.get(gone, 0)))

    # -- whole runs ---------------------------------------------------------------------------

    def talk(self, messages: int, *, pace_s: float = 1.0) -> None:
        for _ in range(messages):
            self.send(self.random.choice(sorted(self.members)))
            self.run(self.random.choice((0, round(pace_s * self.random.random(), 9))))

    def finish(self, patience_s: float = 60.0) -> None:
        """Let time pass; then everybody has everything that is for it, and nobody waits."""
        self.run(patience_s)
        for at, member in self.members.items():
            assert member.blocked_on() == ()
            owed = {key for key, to in self.audience.items() if at in to}
            assert set(self.delivered[at]) == owed, f"{at} lacks {owed - set(self.delivered[at])}"
