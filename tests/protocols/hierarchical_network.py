"""An adversarial network for the hierarchical protocol, judged by causal pasts kept as sets."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from antecede.protocols.base import Deliver, Effect, Hold, Protocol, Transmit


class Early(NamedTuple):
    """A violation: `label` was delivered at `at` before `missing`, which is in its past."""

    at: int
    label: str
    missing: frozenset[str]


class Network:
    """Carries copies with a delay drawn per copy; keeps the exact relation by delivery.

    `seen[at]` is what a member has sent or delivered; `past[label]` what its sender had seen.
    """

    def __init__(
        self,
        members: Mapping[int, Protocol],
        seed: int,
        *,
        slow: Callable[[int, int], float] = lambda source, target: 1.0,
        copies: float = 0.0,
    ) -> None:
        self.members = dict(members)
        self.random = random.Random(seed)
        self.slow = slow
        self.copies = copies
        self.queue: list[tuple[float, int, int, int, Any]] = []
        self.count = 0
        self.now = 0.0
        self.past: dict[str, frozenset[str]] = {}
        self.seen: dict[int, set[str]] = {at: set() for at in members}
        self.order: dict[int, list[str]] = {at: [] for at in members}
        self.early: list[Early] = []
        self.idle: list[tuple[int, str]] = []
        self.held: dict[int, set[str]] = {at: set() for at in members}
        self.owed: dict[str, set[int]] = {}
        self.carried: list[tuple[int, Any]] = []
        self.on_effects: Callable[[int], None] = lambda at: None

    def send(self, at: int, label: str) -> None:
        self.past[label] = frozenset(self.seen[at])
        self.seen[at].add(label)
        self.owed[label] = {m for m, p in self.members.items() if p.application} - {at}
        self._carry_out(at, self.members[at].send(label, now=self.now))

    def step(self) -> None:
        self.now, _, _, target, message = heapq.heappop(self.queue)
        if target not in self.members:
            return
        self._carry_out(target, self.members[target].receive(message, now=self.now))
        self._judge_waits(target)

    def drain(self) -> None:
        while self.queue:
            self.step()

    def _judge_waits(self, at: int) -> None:
        """Note messages held although all of their past is delivered."""
        for label in self.held[at]:
            if self.past[label] <= self.seen[at]:
                self.idle.append((at, label))

    def _carry_out(self, at: int, effects: Any) -> None:
        for effect in effects:
            self._one(at, effect)
        self.on_effects(at)

    def _one(self, at: int, effect: Effect) -> None:
        if isinstance(effect, Transmit):
            self.carried.append((at, effect.message))
            for target in effect.to:
                self.put(at, target, effect.message)
        elif isinstance(effect, Deliver):
            label = effect.message.payload
            assert label not in self.seen[at], f"{label} delivered twice at {at}"
            missing = self.past[label] - self.seen[at]
            if missing:
                self.early.append(Early(at, label, missing))
            self.seen[at].add(label)
            self.order[at].append(label)
            self.held[at].discard(label)
        elif isinstance(effect, Hold) and self.members[at].application:
            assert effect.missing
            self.held[at].add(effect.message.payload)

    def put(self, source: int, target: int, message: Any) -> None:
        for _ in range(1 + (self.random.random() < self.copies)):
            delay = self.random.expovariate(1.0) * self.slow(source, target)
            self.count += 1
            heapq.heappush(self.queue, (self.now + delay, self.count, source, target, message))

    def stuck(self) -> list[tuple[int, str]]:
        """Return (member, label) that should have been delivered by now."""
        return [
            (at, label)
            for label, owed in self.owed.items()
            for at in sorted(owed)
            if at in self.members and label not in self.seen[at]
        ]

    def chatter(self, messages: int, rate: float = 1.0) -> None:
        """Let random members send `messages` messages while copies travel, then drain."""
        senders = [at for at, p in self.members.items() if p.application]
        for number in range(messages):
            at = self.random.choice(senders)
            self.send(at, f"{at}#{number}")
            until = self.now + self.random.expovariate(rate)
            while self.queue and self.queue[0][0] <= until:
                self.step()
            self.now = until
        self.drain()
