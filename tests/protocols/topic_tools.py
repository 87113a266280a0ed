"""A network in true time that keeps bounds of clocks and delays, and an oracle of plain sets.

Time is whole seconds. Each copy takes a delay in the bounds of its channel, drawn when it is
sent, the ends more often than the middle; what happens in one second happens in random order.
A clock is off by as much as its accuracy allows and may wander from one end to the other, but
never goes back. The oracle is told of sends, arrivals and deliveries alone.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from antecede.clocks.bounds import Bounds
from antecede.clocks.nanoseconds import NS
from antecede.protocols.base import (
    DUPLICATE,
    Deliver,
    Discard,
    Effect,
    Hold,
    Transmit,
)
from antecede.protocols.topics.delivery import TopicProtocol
from antecede.protocols.topics.messages import Parts, TopicMessage, stamp
from antecede.protocols.topics.protocols import Htbc, Tv, TvLt, TvPt, TvVt
from antecede.protocols.topics.relations import Stamp
from antecede.protocols.topics.state import NOT_SUBSCRIBED
from antecede.protocols.topics.subscriptions import Subscriptions
from tests.protocols.seconds import s

Id = tuple[int, int]
ORIGIN_NS = s(Decimal("1700000000.1"))
TOPICS = "xyz"
CLASSES: dict[str, type[TopicProtocol]] = {
    "tv": Tv,
    "tv-lt": TvLt,
    "tv-pt": TvPt,
    "htbc": Htbc,
    "tv-vt": TvVt,
}


class AllTimes(TopicProtocol):
    """Carries every time, so that one run gives stamps for all relations."""

    parts = Parts(linear=True, physical=True, vector=True)


class Early(NamedTuple):
    """A delivery before a related cause, by the oracle."""

    member: int
    event: Id
    missing: frozenset[Id]


LAN_WAN: Bounds[int] = Bounds(
    accuracy_s=1,
    least_s=1,
    most_s=2,
    channels={(a, b): (1, 6) for a in (0, 1) for b in (2, 3)}
    | {(b, a): (3, 6) for a in (0, 1) for b in (2, 3)},
)
"""Two subgroups, fast inside and slow between, slower at the least in one direction."""
UNLIKE: Bounds[int] = Bounds(
    accuracy_s=2,
    least_s=0,
    most_s=3,
    clocks={0: 0, 3: 1},
    channels={(0, 1): (4, 5), (1, 2): (1, 1), (2, 0): (0, 7)},
)
GROUPS: dict[str, Bounds[int]] = {
    "alike, clocks off by a delay": Bounds(accuracy_s=1, least_s=1, most_s=2),
    "alike, exact clocks": Bounds(accuracy_s=0, least_s=0, most_s=3),
    "alike, good clocks": Bounds(accuracy_s=1, least_s=3, most_s=5),
    "LAN and WAN": LAN_WAN,
    "all unlike": UNLIKE,
}


class TopicNetwork:
    """Peers by number; `early` collects what the oracle objects to."""

    def __init__(
        self,
        cls: type[TopicProtocol],
        seed: int,
        *,
        bounds: Bounds[int] = LAN_WAN,
        members: int = 4,
        wander: bool = True,
        topics: str = TOPICS,
        restarts: bool = True,
        **options: Any,
    ) -> None:
        self.random = random.Random(seed)
        self.bounds, self.wander, self.topics, self.restarts = bounds, wander, topics, restarts
        chosen = {k: self.random.sample(topics, self.random.randint(1, 3)) for k in range(9)}
        self.options = {"subscriptions": Subscriptions(chosen), "bounds": bounds, **options}
        self.cls = cls
        self.members = {k: cls(k, range(members), **self.options) for k in range(members)}
        self.now_s = 0
        self.readings = {k: ORIGIN_NS + self._offset(k) for k in self.members}
        self.flight: list[tuple[int, int, Id]] = []
        self.sent: dict[Id, TopicMessage] = {}
        self.addressed: dict[Id, tuple[int, ...]] = {}
        self.past: dict[Id, frozenset[Id]] = {}
        self.known: dict[int, set[Id]] = {k: set() for k in self.members}
        """What has arrived at or was sent by each member."""
        self.delivered: dict[int, list[Id]] = {k: [] for k in self.members}
        self.given_up: dict[int, set[Id]] = {k: set() for k in self.members}
        """What arrived when the member did not subscribe to it any more."""
        self.early: list[Early] = []
        self.holds = self.duplicates = 0

    # -- time -------------------------------------------------------------------------------

    def _offset(self, member: int) -> int:
        accuracy = self.bounds.error_ns(member)
        return self.random.choice((-accuracy, self.random.randint(-accuracy, accuracy), accuracy))

    def second(self, sends: float = 0.5) -> None:
        """Let one second pass and everything happen that happens in it."""
        self.now_s += 1
        for member in self.members:
            true_ns = ORIGIN_NS + self.now_s * NS
            off = self.readings[member] + NS - true_ns
            if self.wander and self.random.random() < 0.3:
                off = self._offset(member)
            self.readings[member] = max(self.readings[member], true_ns + off)
        acts: list[Any] = [("tick", member) for member in self.members]
        acts += [("arrive", copy) for copy in self.flight if copy[0] <= self.now_s]
        acts += [("send", k) for k in self.members if self.random.random() < sends]
        if self.sent and self.random.random() < 0.2:
            acts.append(("again", self.random.choice(sorted(self.sent))))
        self.random.shuffle(acts)
        for kind, what in acts:
            if kind == "tick":
                self.tick(what)
            elif kind == "arrive":
                self.flight.remove(what)
                if what[1] in self.members:
                    self.arrive(what[1], what[2])
            elif kind == "again":
                self._again(what)
            else:
                most = self.random.randint(1, len(self.topics))
                self.send(what, self.random.sample(self.topics, most))
        # What an event of this second sent on without delay arrives in this second too.
        for copy in [copy for copy in self.flight if copy[0] <= self.now_s]:
            self.flight.remove(copy)
            if copy[1] in self.members:
                self.arrive(copy[1], copy[2])

    def run(self, seconds: int, sends: float = 0.3) -> TopicNetwork:
        for _ in range(seconds):
            self.second(sends)
        return self

    def finish(self) -> TopicNetwork:
        """Let everything arrive and all waits end; then everybody has what it is owed."""
        while self.flight:
            self.second(0)
        self.run(40, 0)
        for at, member in self.members.items():
            assert member.blocked_on() == ()
            owed = {key for key, to in self.addressed.items() if at in to}
            assert set(self.delivered[at]) == owed - self.given_up[at]
        return self

    # -- what happens -----------------------------------------------------------------------

    def tick(self, at: int) -> None:
        member = self.members[at]
        self.judge(at, member.tick(self.readings[at]))
        for held in member.blocked_on():
            assert held.missing or held.until_ns is not None, held
            assert held.until_ns is None or held.until_ns > self.readings[at]

    def send(self, at: int, topics: Collection[str]) -> Id:
        member = self.members[at]
        effects = member.send("e", now=self.readings[at], topics=list(topics))
        key = (at, member.sent)
        self.past[key] = self.known_past(at)
        self.known[at].add(key)
        self.addressed[key] = ()
        for effect in effects:
            assert isinstance(effect, Transmit)
            self.sent[key] = effect.message
            self.addressed[key] = effect.to
            for target in effect.to:
                delay = self.delay(at, target)
                self.flight.append((self.now_s + delay, target, key))
        return key

    def delay(self, source: int, target: int) -> int:
        least = self.bounds.least_delay_ns(source, target) // NS
        most = self.bounds.most_delay_ns(source, target) // NS
        return self.random.choice((least, most, self.random.randint(least, most)))

    def known_past(self, at: int) -> frozenset[Id]:
        known = self.known[at]
        return frozenset(known).union(*(self.past[key] for key in known))

    def arrive(self, at: int, key: Id) -> None:
        member, message = self.members[at], self.sent[key]
        message = member.decode(member.encode(message), message.payload)
        assert message == self.sent[key]
        self.known[at].add(key)
        self.judge(at, member.receive(message, now=self.readings[at]))
        if self.restarts and self.random.random() < 0.1:
            self.restart(at)

    def _again(self, key: Id) -> None:
        """Bring a copy of what arrived before once more."""
        at = self.random.choice(sorted(self.members))
        if key in self.known[at] and key[0] != at:
            self.duplicates += 1
            effects = self.members[at].receive(self.sent[key], now=self.readings[at])
            assert effects == (Discard(self.sent[key], DUPLICATE),)

    def restart(self, at: int) -> None:
        state = self.members[at].snapshot()
        fresh = self.cls(at, [at, *self.members], **self.options)
        fresh.restore(state)
        assert fresh.snapshot() == state
        assert hash(state) == hash(fresh.snapshot())
        assert fresh.storage_bytes() == self.members[at].storage_bytes()
        assert fresh.blocked_on() == self.members[at].blocked_on()
        self.members[at] = fresh

    # -- who is there -----------------------------------------------------------------------

    def change(self) -> None:
        """Let somebody join, leave or subscribe anew; everybody hears of it at once."""
        choice = self.random.choice(("join", "leave", "subscribe", "subscribe"))
        at = self.random.choice(sorted(self.members))
        if choice == "join" and len(self.readings) < 9:
            self.join(len(self.readings), at)
        elif choice == "leave" and len(self.members) > 2:
            self.leave(at)
        elif choice == "subscribe":
            topics = self.random.sample(self.topics, self.random.randint(1, len(self.topics)))
            for other, member in self.members.items():
                self.judge(other, member.subscribe(at, topics))

    def join(self, newcomer: int, sponsor: int) -> None:
        frontier = self.members[sponsor].frontier()
        hash(frontier)
        for member in self.members.values():
            assert member.join(newcomer) == ()
        made = self.cls(newcomer, [newcomer], **self.options)
        made.adopt(frontier)
        assert made.members == self.members[sponsor].members
        self.members[newcomer] = made
        self.readings[newcomer] = ORIGIN_NS + self.now_s * NS + self._offset(newcomer)
        self.known[newcomer], self.delivered[newcomer] = set(), []
        self.given_up[newcomer] = set()

    def leave(self, gone: int) -> None:
        last = self.members.pop(gone).sent
        for member in self.members.values():
            assert member.leave(gone, last) == ()

    # -- judgement --------------------------------------------------------------------------

    def needed(self, at: int, key: Id) -> frozenset[Id]:
        """Return the causes that `at` must have delivered first: related, and sent to it."""
        subscription = self.members[at].subscriptions.of(at)
        return frozenset(
            cause
            for cause in self.past[key]
            if at in self.addressed[cause]
            and cause not in self.given_up[at]
            and subscription & set(self.topics_of(cause)) & set(self.topics_of(key))
        )

    def topics_of(self, key: Id) -> tuple[str, ...]:
        return self.sent[key].topics if key in self.sent else ()

    def judge(self, at: int, effects: Collection[Effect]) -> None:
        for effect in effects:
            assert not isinstance(effect, Transmit)
            key = (effect.message.sender, effect.message.seq)
            if isinstance(effect, Deliver):
                assert key not in self.delivered[at], "delivered twice"
                assert at in self.addressed[key], "delivered to a stranger"
                missing = self.needed(at, key) - set(self.delivered[at])
                if missing:
                    self.early.append(Early(at, key, missing))
                self.delivered[at].append(key)
            elif isinstance(effect, Hold):
                self.holds += 1
                assert effect.missing == ()
            else:
                assert isinstance(effect, Discard)
                assert effect.reason == NOT_SUBSCRIBED
                self.given_up[at].add(key)

    def stamps(self) -> Mapping[Id, Stamp]:
        return {key: stamp(message) for key, message in self.sent.items()}


EVERYTHING: Subscriptions[int] = Subscriptions(dict.fromkeys(range(9), ("x", "y", "z")))
EXACT: Bounds[int] = Bounds(accuracy_s=0, least_s=1, most_s=3)
"""A cause of an event of 0 is with 1 at most 3 - 0 - 1 = 2 s after the event."""


def group(name: str, *subscribed: str, bounds: Bounds[int] = EXACT) -> list[TopicProtocol]:
    """Return members 0 .. n - 1 with these subscriptions, a letter a topic."""
    subscriptions = Subscriptions(dict(enumerate(subscribed)))
    members = range(len(subscribed))
    return [CLASSES[name](k, members, subscriptions=subscriptions, bounds=bounds) for k in members]


def published(
    member: TopicProtocol, topics: str, now: int = 0, payload: object = b""
) -> TopicMessage:
    (effect,) = member.send(payload, now=now, topics=list(topics))
    assert isinstance(effect, Transmit)
    message: TopicMessage = effect.message
    return message
