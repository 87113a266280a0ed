"""Simulated groups: every other member sends to all, or to subscribers, repeatedly.

Recording starts when control information is steady. In clock-based and topic-based groups the other
members update their clocks and deliver nothing. All members send, so no null message is needed. The
observer's clock is read at every arrival.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Deliver, Protocol
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.messages import Gone, NullMessage
from antecede.core.protocols.topics.delivery import TopicProtocol
from antecede.core.protocols.topics.subscriptions import Subscriptions
from bench.traffic import Arrival, MessageStream

Make = Callable[[int, Iterable[int]], Protocol]
MS = NS // 1000
WARM_UP_NS = NS
PERIOD_MS = 80
EVENTS_MS = 1000
CLOCKS: Bounds[int] = Bounds(accuracy_s=0.010, least_s=0.050, most_s=0.250)
TOPICS = [f"t{number}" for number in range(20)]
MAX_TOPICS = 4
WAN: Bounds[int] = Bounds(accuracy_s=0.004, least_s=0.010, most_s=0.160)
"""Nakayama 2017, section 3, WAN; the source states no least delay."""


def run_counting(make: Make, members: int, messages: int) -> MessageStream:
    """Return FIFO or causal broadcast, in the observer's delivery order.

    Every member sends every N(80, 5) ms; delays are N(150, 50) ms clipped to 50 .. 250 (the middle
    scenario of Evropeytsev et al. 2016).
    """
    rng = random.Random(1)
    group = [make(k, range(members)) for k in range(members)]
    delays = [round(min(max(rng.gauss(150, 50), 50), 250)) * MS for _ in range(1 << 14)]
    end_ns = WARM_UP_NS + (messages // members + 2) * PERIOD_MS * MS
    delivered: list[Any] = []
    copies = _generate_copies(
        members,
        PERIOD_MS,
        lambda at, now: group[at].send(None),
        lambda: round(rng.gauss(PERIOD_MS, 5)) * MS,
        lambda: rng.choice(delays),
    )
    for now, at, message in copies:
        if now > end_ns:
            break
        effects = group[at].receive(message)
        if at == 0:
            delivered += [e.message for e in effects if isinstance(e, Deliver)]
    before, after = delivered[:-messages], delivered[-messages:]
    return MessageStream(lambda: _warm_observer(make(0, range(members)), before), after)


def run_clocks(
    cls: type[ClockOrdered], delivery: str, members: int, messages: int
) -> MessageStream:
    """Return messages of a clock-based group (Tsuneizumi et al.), every N(80, 5) ms."""
    rng = random.Random(1)
    # No plausibility limits, because `_settle` announces very late times.
    unlimited = {"max_clock_lead": None} if cls.carries_lt else {}
    unlimited |= {"max_ahead_s": None} if cls.carries_pt else {}
    options: dict[str, Any] = {"bounds": CLOCKS, "delivery": delivery, **unlimited}
    group = [cls(k, range(members), **options) for k in range(members)]
    copies = _generate_copies(
        members,
        PERIOD_MS,
        lambda at, now: group[at].send(b"", now=now),
        lambda: round(rng.gauss(PERIOD_MS, 5) * MS),
        lambda: rng.randint(CLOCKS.least_ns, CLOCKS.most_ns),
    )
    make = partial(cls, 0, range(members), **options)
    return _collect_arrivals(
        copies, lambda at, m: group[at]._advance(m.lt), make, _settle, messages
    )


def run_topics(cls: type[TopicProtocol], members: int, messages: int) -> MessageStream:
    """Return events (Nakayama 2017): one per second and member, about 1 to 4 of 20 topics."""
    rng = random.Random(1)

    def some() -> list[str]:
        return rng.sample(TOPICS, rng.randint(1, MAX_TOPICS))

    options: dict[str, Any] = {
        "bounds": WAN,
        "subscriptions": Subscriptions({k: some() for k in range(members)}),
    }
    group = [cls(k, range(members), **options) for k in range(members)]
    copies = _generate_copies(
        members,
        EVENTS_MS,
        lambda at, now: group[at].send(b"", now=now, topics=some()),
        lambda: round(rng.expovariate(1 / EVENTS_MS) * MS),
        lambda: rng.randint(WAN.least_ns, WAN.most_ns),
    )
    make = partial(cls, 0, range(members), **options)
    return _collect_arrivals(
        copies,
        lambda at, message: group[at].take_over(message),
        make,
        lambda member: member.tick(10**18),
        messages,
    )


class Observer(Protocol):
    """Member whose clock is read from its arrivals; `settle` ends waits for time."""

    def __init__(self, inner: Protocol, settle: Callable[[Any], object]) -> None:
        super().__init__(inner.me, inner.members)
        self.inner = inner
        self.settle = settle
        self.snapshot, self.restore = inner.snapshot, inner.restore  # type: ignore[method-assign]
        self.decode = inner.decode  # type: ignore[method-assign]

    def receive(self, message: Any, *, now: int | None = None) -> Any:
        return self.inner.receive(message.message, now=message.now_ns)

    def encode(self, message: Any) -> bytes:
        return self.inner.encode(message.message)

    def list_held(self) -> Any:
        """Return the messages that are still held after `settle`."""
        self.settle(self.inner)
        return self.inner.list_held()


def _settle(member: ClockOrdered) -> None:
    """Announce that no other member will send any more."""
    for sender, last in member.channel.high.items():
        member.receive(Gone(sender, 0, b"", last), now=10**18)
        member.receive(NullMessage(sender, 0, b"", last, 1 << 60, 10**18), now=10**18)
    member.tick(2 * 10**18)


def _collect_arrivals(
    copies: Iterator[tuple[int, int, Any]],
    learn: Callable[[int, Any], object],
    make: Callable[[], Protocol],
    settle: Callable[[Any], object],
    messages: int,
) -> MessageStream:
    """Run the group until the observer has received the messages after its warm-up."""
    arrivals: list[Arrival] = []
    warm = 0
    for now, at, message in copies:
        if at:
            learn(at, message)
            continue
        warm += now < WARM_UP_NS
        arrivals.append(Arrival(message, now))
        if len(arrivals) == warm + messages:
            break
    return MessageStream(
        lambda: _warm_observer(Observer(make(), settle), arrivals[:warm]), arrivals[warm:]
    )


def _warm_observer(observer: Protocol, before: list[Any]) -> Protocol:
    for message in before:
        observer.receive(message)
    return observer


def _generate_copies(
    members: int,
    period_ms: int,
    send: Callable[[int, int], Sequence[Any]],
    gap: Callable[[], int],
    delay: Callable[[], int],
) -> Iterator[tuple[int, int, Any]]:
    """Let all but the observer send; yield each copy: time, receiver, message."""
    due: list[int] = []
    happens: dict[int, list[tuple[int, Any]]] = {}

    def put(when: int, at: int, message: Any) -> None:
        if when not in happens:
            happens[when] = []
            heapq.heappush(due, when)
        happens[when].append((at, message))

    for at in range(1, members):
        put(at * 7919 % period_ms * MS, at, None)  # distributed over a period
    while True:
        now = heapq.heappop(due)
        for at, message in happens.pop(now):
            if message is not None:
                yield now, at, message
                continue
            for effect in send(at, now):
                for target in effect.to:
                    put(now + delay(), target, effect.message)
            put(now + gap(), at, None)
