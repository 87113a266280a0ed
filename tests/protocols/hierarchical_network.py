"""An adversarial network for the hierarchical protocol, judged by causal pasts kept as sets."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from antecede.clocks.nanoseconds import NS
from antecede.protocols.base import Deliver, Effect, Hold, Protocol, Transmit
from antecede.protocols.hierarchical.external import ExternalPeer
from antecede.protocols.hierarchical.internal import InternalPeer
from antecede.protocols.hierarchical.messages import Downward, External
from antecede.protocols.hierarchical.super_peer import SuperPeer


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

    def send(self, at: int, label: str) -> None:
        self.past[label] = frozenset(self.seen[at])
        self.seen[at].add(label)
        self.owed[label] = {m for m, p in self.members.items() if p.application} - {at}
        self._carry_out(at, self.members[at].send(label, now=round(self.now * NS)))

    def step(self) -> None:
        self.now, _, _, target, message = heapq.heappop(self.queue)
        if target not in self.members:
            return
        self._carry_out(target, self.members[target].receive(message, now=round(self.now * NS)))
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

    # -- membership -------------------------------------------------------------------------

    def join_internal(self, newcomer: InternalPeer) -> None:
        """Let an internal peer join, with the frontier of its super peer, a group with peers."""
        super_peer = self.members[newcomer.super_peer]
        assert isinstance(super_peer, SuperPeer)
        newcomer.adopt(super_peer.frontier())
        for at in super_peer.group:
            self.members[at].join(newcomer.me)
        super_peer.join(newcomer.me)
        forwarded = {
            m.payload for at, m in self.carried if at == super_peer.me and isinstance(m, Downward)
        }
        self._enter(newcomer, forwarded)

    def join_external(self, newcomer: ExternalPeer, sponsor: int) -> None:
        """Let an external peer join with the frontier of another one.

        The transport owes it what the frontier does not cover: it gets everything again.
        """
        newcomer.adopt(self.members[sponsor].frontier())
        for member in self.members.values():
            if isinstance(member, SuperPeer):
                member.join_external(newcomer.me)
            elif isinstance(member, ExternalPeer):
                member.join(newcomer.me)
        self._enter(newcomer, self.seen[sponsor])
        for source, message in tuple(self.carried):
            if isinstance(message, External):
                self.put(source, newcomer.me, message)

    def _enter(self, newcomer: Protocol, covered: set[str]) -> None:
        at = newcomer.me
        self.members[at] = newcomer
        self.seen[at], self.order[at], self.held[at] = set(covered), [], set()
        for label, owed in self.owed.items():
            if label not in covered:
                owed.add(at)

    def leave(self, at: int) -> None:
        """Let a member go: copies to it vanish, copies from it still arrive."""
        gone = self.members.pop(at)
        for member in self.members.values():
            if isinstance(gone, ExternalPeer) and not isinstance(member, InternalPeer):
                member.leave(at, gone.number)
            elif isinstance(gone, InternalPeer) and gone.super_peer in (
                member.me,
                getattr(member, "super_peer", None),
            ):
                member.leave(at, gone.sn)

    def stuck(self) -> list[tuple[int, str]]:
        """Return (member, label) that should have been delivered by now."""
        return [
            (at, label)
            for label, owed in self.owed.items()
            for at in sorted(owed)
            if at in self.members and label not in self.seen[at]
        ]

    def chatter(
        self, messages: int, rate: float = 1.0, between: Callable[[int], None] = lambda number: None
    ) -> None:
        """Let random members send `messages` messages while copies travel, then drain.

        `between` is called before each sending with its number.
        """
        for number in range(messages):
            between(number)
            senders = [at for at, p in self.members.items() if p.application]
            at = self.random.choice(senders)
            self.send(at, f"{at}#{number}")
            until = self.now + self.random.expovariate(rate)
            while self.queue and self.queue[0][0] <= until:
                self.step()
            self.now = until
        self.drain()
