"""One network for the tests of protocols: any run of a group, judged at every step by `Truth`.

Copies take as long as a `Delay` draws, come twice, go astray or are lost, and pass as bytes.
Members join with a sponsor's frontier and leave; each of the others hears of it at a time of its
own. Now and then another object goes on from a member's snapshot. With bounds, clocks are off by
as much as they allow, and every member ticks.

The payload of a message is its name, (sender, number), because its number may change on the way.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, Self

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import (
    DUPLICATE,
    OWN,
    Addressing,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Held,
    Hold,
    Transmit,
)
from antecede.core.protocols.multicast.base import NOT_ADDRESSED
from antecede.errors import UnknownMemberError
from tests.core.protocols.seconds import s
from tests.helpers.truth import Early, Id, Truth

Make = Callable[[int, Iterable[int]], Any]
Delay = Callable[[random.Random, int, int, Any], int]
"""Nanoseconds that a copy takes: by a draw, from whom, to whom, and what it is."""

ORIGIN_NS = s(Decimal("1700000000.1"))
TICK_NS = s(0.5)
FOREVER_S = 10**6
"""Until nothing is under way, where nobody ticks."""


def anyhow(draw: random.Random, source: int, target: int, message: Any) -> int:
    """Return a delay without bound; it has no memory, so any copy on its way can be the next."""
    return round(draw.expovariate(1.0) * NS)


def within(bounds: Bounds[int]) -> Delay:
    """Return delays in the bounds of each channel, often exactly the least or the largest."""

    def delay(draw: random.Random, source: int, target: int, message: Any) -> int:
        least = bounds.least_delay_ns(source, target)
        most = bounds.most_delay_ns(source, target)
        return draw.choice((least, most, draw.randint(least, most)))

    return delay


class Clocks:
    """What members' clocks show: off by at most their accuracy, often by all of it."""

    def __init__(self, draw: random.Random, bounds: Bounds[int]) -> None:
        self.draw, self.bounds = draw, bounds
        self.off_ns: dict[int, int] = {}
        self.shown_ns: Counter[int] = Counter()

    def reading(self, at: int, now_ns: int) -> int:
        """Return what a clock shows; it wanders from one end to the other, but never goes back."""
        if at not in self.off_ns or self.draw.random() < 0.1:
            error = self.bounds.error_ns(at)
            self.off_ns[at] = self.draw.choice((-error, error, self.draw.randint(-error, error)))
        self.shown_ns[at] = max(ORIGIN_NS + now_ns + self.off_ns[at], self.shown_ns[at])
        return self.shown_ns[at]


class News(NamedTuple):
    """Who still has to hear that somebody joined, or left after its last message."""

    at: int
    whom: int
    last: int | None


class Network:
    """Members by number; every delivery is judged at once, `finish` judges the end."""

    def __init__(
        self,
        make: Make,
        members: int | Iterable[int],
        seed: int,
        bounds: Bounds[int] | None = None,
        *,
        delay: Delay | None = None,
        losses: float = 0.0,
        copies: float = 0.15,
        restarts: float = 0.1,
        narrow: float = 0.7,
        widest: int | None = None,
        tolerant: bool = False,
    ) -> None:
        self.make, self.bounds = make, bounds
        self.random = random.Random(seed)
        self.delay = delay or (within(bounds) if bounds else anyhow)
        self.clocks = Clocks(self.random, bounds or Bounds())
        self.losses, self.copies, self.restarts = losses, copies, restarts
        self.narrow, self.widest = narrow, widest
        """How many messages are for some members only, where one can choose; for how many."""
        self.tolerant = tolerant
        """Whether early deliveries and needless waits are collected: some variants have them."""
        self.now_ns = 0
        self.events: list[tuple[int, float, Callable[[], object]]] = []
        self.members: dict[int, Any] = {}
        self.numbers: Counter[int] = Counter()
        self.sent: dict[Id, Any] = {}
        self.carried: list[tuple[int, Any]] = []
        """Everything put on channels, and by whom."""
        self.news: list[News] = []
        self.early: list[Early] = []
        self.idle: list[tuple[int, Id]] = []
        """What was seen to be held although its past is there, where that may be."""
        self.holds = 0
        self.discards: Counter[str] = Counter()
        numbers = range(members) if isinstance(members, int) else tuple(members)
        made = {at: make(at, numbers) for at in numbers}
        one = made[numbers[0]]
        self.truth = Truth(one.guarantee.relation, for_all=one.addressing is Addressing.ALL)
        for at, member in made.items():
            self.enter(at, member)

    def enter(self, at: int, member: Any, known: Iterable[Id] = (), has: Iterable[Id] = ()) -> None:
        """Let a member begin, with what its frontier covers."""
        self.truth.enters(at, known, has)
        self.members[at] = member
        if self.bounds:
            self.at(self.now_ns + self.random.randrange(TICK_NS), partial(self.tick, at))

    # -- time ---------------------------------------------------------------------------------

    def at(self, when_ns: int, act: Callable[[], object]) -> None:
        """Let something happen; what happens at one time happens in random order."""
        heapq.heappush(self.events, (when_ns, self.random.random(), act))

    def next(self) -> None:
        """Let the next thing happen."""
        self.now_ns, _, act = heapq.heappop(self.events)
        act()

    def steps(self, count: int, *, sends: float = 0.3) -> Self:
        """Let so many things happen: this share of them sendings, the others what is next."""
        for _ in range(count):
            if self.events and self.random.random() > sends:
                self.next()
            else:
                self.send(self.anyone())
        return self

    def run(self, seconds: float) -> Self:
        """Let so much time pass, and nobody send."""
        until_ns = self.now_ns + s(seconds)
        while self.events and self.events[0][0] <= until_ns:
            self.next()
        self.now_ns = until_ns
        return self

    def finish(self, patience_s: float = 60.0) -> Self:
        """Let everything arrive and waits end; then everybody has all that is for it."""
        self.tell()
        self.run(patience_s if self.bounds else FOREVER_S)
        for at, member in self.members.items():
            assert member.list_held() == ()
            lacking = self.truth.owes(at, self.truth.past) if member.application else ()
            assert not lacking, f"{at} lacks {lacking}"
        return self

    def reading(self, at: int) -> int:
        """Return what a member's clock shows."""
        return self.clocks.reading(at, self.now_ns)

    def tick(self, at: int) -> None:
        """Tell a member the time, every TICK_NS."""
        if at in self.members:
            reading = self.reading(at)
            self.carry_out(at, self.members[at].tick(reading))
            for line in self.members[at].list_held():
                self.judge_reason(at, line, reading)
            self.restart(at)
            self.at(self.now_ns + TICK_NS, partial(self.tick, at))

    # -- messages -----------------------------------------------------------------------------

    def anyone(self) -> int:
        """Return a member that can send."""
        return self.random.choice(sorted(at for at, m in self.members.items() if m.application))

    def whom(self, at: int) -> dict[str, Any]:
        """Draw whom a message is for, as its protocol lets one say."""
        member = self.members[at]
        others = [k for k in member.others() if k in self.members]
        narrow = self.widest or self.random.random() < self.narrow
        if member.addressing is not Addressing.MEMBERS or not others or not narrow:
            return {}
        most = min(self.widest or len(others), len(others))
        return {"to": self.random.sample(others, self.random.randint(1, most))}

    def send(self, at: int) -> Id:
        """Let a member send; return the name of its message."""
        member, whom = self.members[at], self.whom(at)
        self.numbers[at] += 1
        key = (at, self.numbers[at])
        effects = member.send(key, now=self.reading(at), **whom)
        sent = [effect for effect in effects if isinstance(effect, Transmit)]
        assert len(sent) == 1 or self.bounds  # who needs time may tell newcomers something else
        assert all(self.key(effect.message) == key for effect in sent)
        self.truth.sends(key, (target for effect in sent for target in effect.to))
        if member.addressing is not Addressing.TOPICS and not member.renumbers:
            assert self.truth.to[key] == set(whom.get("to", member.others()))
        if sent:
            self.sent[key] = sent[0].message
        self.carry_out(at, effects)
        return key

    def key(self, message: Any) -> Id:
        """Return the name of a message of an application."""
        key: Id = message.payload
        assert (message.sender, message.seq) == key or self.members[min(self.members)].renumbers
        return key

    def transmit(self, at: int, to: Sequence[int], message: Any) -> None:
        """Put copies on their way, now and then one to somebody whom the message does not name."""
        self.carried.append((at, message))
        assert at not in to
        strangers = sorted(self.members.keys() - {at, *getattr(message, "to", self.members)})
        if strangers and self.random.random() < 0.1:
            self.put(at, self.random.choice(strangers), message)
        for target in to:
            self.put(at, target, message)

    def put(self, source: int, target: int, message: Any) -> None:
        """Put a copy on its way, or two; it may be lost."""
        if self.random.random() < self.losses:
            return
        for _ in range(1 + (self.random.random() < self.copies)):
            delay_ns = self.delay(self.random, source, target, message)
            self.at(self.now_ns + delay_ns, partial(self.arrive, source, target, message))

    def arrive(self, source: int, target: int, message: Any) -> None:
        """Give a message to a member; it comes again when the member can not judge it yet."""
        if target not in self.members:
            return
        member = self.members[target]
        read = member.decode(self.members.get(source, member).encode(message), message.payload)
        assert read == message
        untold = any(one.at == target and one.last is None for one in self.news)
        before = member.snapshot() if untold else None
        here = self.truth.has[target] | self.held(target).keys()
        try:
            effects = member.receive(read, now=self.reading(target))
        except UnknownMemberError:
            assert untold
            assert member.snapshot() == before
            self.put(source, target, message)
            return
        if not member.is_control(read):
            self.truth.arrives(target, self.key(read))
            if member.application:
                again = self.key(read) in here and read.payload[0] != target
                self.judge_arrival(read, effects, again=again)
        self.carry_out(target, effects)
        self.restart(target)

    def restart(self, at: int) -> None:
        """Now and then let another object go on from a member's snapshot."""
        if self.random.random() >= self.restarts:
            return
        old = self.members[at]
        state = old.snapshot()
        fresh = self.make(at, [at, *self.members])
        fresh.restore(state)
        assert fresh.snapshot() == state
        assert hash(fresh.snapshot()) == hash(state)
        assert fresh.storage_bytes() == old.storage_bytes()
        assert fresh.list_held() == old.list_held()
        self.members[at] = fresh

    # -- joins and leaves ---------------------------------------------------------------------

    def join(self, newcomer: int, sponsor: int) -> None:
        """Let a sponsor take a newcomer in; the others hear of it when they are told.

        With bounds they hear of it at once, and the newcomer begins when an invitation is there.
        """
        made = self.make(newcomer, [newcomer])
        host = self.members[sponsor]
        told_first = self.random.random() < 0.5
        for tell in (told_first, not told_first):
            if tell:
                assert not host.join(newcomer)
                continue
            frontier = host.join_state()
            hash(frontier)
            made.install_join_state(frontier)
        assert made.members == host.members
        known, has = set(self.truth.known[sponsor]), set(self.truth.has[sponsor])
        self.news += [News(other, newcomer, None) for other in self.members if other != sponsor]
        if self.bounds:
            self.tell()
            self.run(self.bounds.least_s)
        self.enter(newcomer, made, known, has)
        covered = [] if self.bounds else sorted(has)  # copies of what it has
        for key in self.random.sample(covered, min(3, len(covered))):
            self.put(key[0], newcomer, self.sent[key])
        self.bring(newcomer, self.sent)

    def bring(self, newcomer: int, keys: Iterable[Id]) -> None:
        """Bring what a newcomer's frontier lacks, as a transport without losses owes it."""
        for key in sorted(self.truth.owes(newcomer, keys)):
            if not self.losses:
                self.put(key[0], newcomer, self.sent[key])

    def leave(self, member: int) -> None:
        """Let a member go; with bounds the others hear of it within a second."""
        del self.members[member]
        self.news = [one for one in self.news if one.at != member]
        news = [News(other, member, self.numbers[member]) for other in self.members]
        self.news += news
        for one in news if self.bounds else ():
            wait_ns = self.random.choice((0, self.random.randrange(NS)))
            self.at(self.now_ns + wait_ns, partial(self.hear, one))

    def tell(self) -> None:
        """Let everybody hear the news, in random order but a join before a leave."""
        self.random.shuffle(self.news)
        for one in sorted(self.news, key=lambda one: one.last is not None):
            self.hear(one)

    def hear(self, one: News) -> None:
        """Let a member hear something, unless it has; what it sent before is owed a newcomer."""
        if one not in self.news:
            return
        self.news.remove(one)
        member = self.members[one.at]
        if one.last is not None:
            self.carry_out(one.at, member.leave(one.whom, one.last))
            return
        assert not member.join(one.whom)
        if one.whom in self.members:
            self.bring(one.whom, [key for key in self.sent if key[0] == one.at])

    # -- judgement ----------------------------------------------------------------------------

    def lacks(self, at: int, key: Id) -> set[Id]:
        """Return what a member must be handed before a message, and has not been."""
        return self.truth.owes(at, self.truth.past[key])

    def held(self, at: int) -> dict[Id, Any]:
        """Return by name what a member holds back, and what it says is missing."""
        held: Iterable[Held] = self.members[at].list_held()
        return {self.key(line.message): line.missing for line in held}

    def carry_out(self, at: int, effects: Iterable[Effect]) -> None:
        """Do what a member asks for, and judge it."""
        for effect in effects:
            if isinstance(effect, Transmit):
                self.transmit(at, effect.to, effect.message)
            elif isinstance(effect, Deliver | DeliverIncomplete):
                self.deliver(at, effect)
            elif not self.members[at].application:
                continue
            elif isinstance(effect, Hold):
                self.hold(at, effect)
            else:
                self.discard(at, effect)
        self.judge_waits(at)

    def deliver(self, at: int, effect: Deliver | DeliverIncomplete) -> None:
        """Judge a delivery."""
        key = self.key(effect.message)
        assert self.truth.for_all or at in self.truth.to[key], "delivered to somebody else"
        assert key not in self.truth.has[at], "delivered twice"
        missing = self.lacks(at, key)
        if missing and isinstance(effect, Deliver):
            assert self.tolerant, f"delivered early: {key} at {at} before {missing}"
            self.early.append(Early(at, key, missing))
        self.truth.delivers(at, key)

    def hold(self, at: int, effect: Hold) -> None:
        """Judge that a message is held back."""
        self.holds += 1
        if self.is_exact(at):
            key = self.key(effect.message)
            assert self.lacks(at, key), "held without need"
            assert effect.missing == self.held(at)[key]

    def discard(self, at: int, effect: Discard) -> None:
        """Judge that a message is not delivered; where time counts, it may be given up."""
        self.discards[effect.reason] += 1
        if effect.reason == DUPLICATE:
            assert self.key(effect.message) in self.truth.has[at] | self.held(at).keys()
        elif effect.reason == NOT_ADDRESSED:
            assert at not in self.truth.to[self.key(effect.message)]
        elif effect.reason == OWN:
            assert effect.message.payload[0] == at
        else:
            assert self.bounds, effect.reason

    def judge_arrival(self, message: Any, effects: Sequence[Effect], *, again: bool) -> None:
        """Something becomes of a message; of a copy of what is delivered or held nothing does."""
        assert message in [getattr(effect, "message", None) for effect in effects]
        assert not again or list(effects) == [Discard(message, DUPLICATE)]

    def judge_waits(self, at: int) -> None:
        """What is held lacks a message of its past, where the protocol promises that."""
        member = self.members[at]
        exact = self.is_exact(at)
        if not member.application or (self.bounds and not exact):
            return
        for line in member.list_held():
            key = self.key(line.message)
            lacks = self.lacks(at, key)
            self.judge_reason(at, line)
            if not lacks:
                self.idle.append((at, key))
            if exact:
                assert lacks, "not released"
                assert line.missing
                assert set(line.missing) <= lacks or not self.truth.for_all or member.renumbers

    def is_exact(self, at: int) -> bool:
        """Tell whether a member must hold nothing without need."""
        return self.members[at].guarantee.no_unnecessary_wait and not self.tolerant

    def judge_reason(self, at: int, line: Held, reading: int = 0) -> None:
        """What is held waits for messages, for members, or for a reading still to come."""
        assert line.missing or line.silent or line.until_ns is not None, line
        assert line.until_ns is None or line.until_ns > reading, line
        assert self.members[at].identity(line.message) not in line.missing


def play(make: Make, seed: int, *, members: int = 4, steps: int = 60, **how: Any) -> Network:
    """Run a group of constant membership to its end."""
    return Network(make, members, seed, **how).steps(steps).finish()


def play_with_churn(make: Make, seed: int, *, rounds: int = 4) -> Network:
    """Run a group in which members join and leave, told late, to its end."""
    network = Network(make, 3, seed)
    for newcomer in range(3, 3 + rounds):
        network.steps(network.random.randrange(15))
        network.join(newcomer, network.anyone())
        network.steps(network.random.randrange(15))
        if network.random.random() < 0.5:
            network.tell()
            network.leave(network.anyone())
            network.steps(network.random.randrange(10))
        network.tell()
    return network.finish()
