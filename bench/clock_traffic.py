"""Traffic of a group that orders by clocks (002), as an observer who never sends sees it.

Every other member broadcasts every N(80, 5) ms; delays are 50 to 250 ms, clocks err by up to
10 ms. The observer's clock is read at every arrival, and arrivals alone drive it; the others
stamp and let their linear time follow what arrives, and deliver nothing. Everybody talks, so
no null message is needed.
"""

from __future__ import annotations

import heapq
import random
from typing import Any, NamedTuple

from antecede.clocks.bounds import Bounds
from antecede.protocols.base import Protocol, Transmit
from antecede.protocols.clock_ordered import ClockOrdered
from antecede.protocols.transmission_messages import Gone, NullMessage

PERIOD_S = 0.08
WARM_UP_S = 1.0
LATE_S = 0.05
BOUNDS: Bounds[int] = Bounds(accuracy_s=0.010, least_s=0.050, most_s=0.250)

Traffic = tuple[Protocol, list[Any]]


class Arrival(NamedTuple):
    """A message and what the observer's clock shows when it arrives."""

    message: Any
    now_s: float


class Observer(Protocol):
    """A member whose clock is read from its arrivals."""

    def __init__(self, inner: ClockOrdered) -> None:
        super().__init__(inner.me, inner.members)
        self.inner = inner
        self.snapshot, self.restore = inner.snapshot, inner.restore  # type: ignore[method-assign]
        self.decode = inner.decode  # type: ignore[method-assign]

    def receive(self, message: Any, *, now: float = 0.0) -> Any:
        return self.inner.receive(message.message, now=message.now_s)

    def encode(self, message: Any) -> bytes:
        return self.inner.encode(message.message)

    def blocked_on(self) -> Any:
        """Return what is still held when nothing that is under way at the end will come."""
        for member, last in self.inner.high.items():
            self.inner.receive(Gone(member, 0, b"", last), now=1e9)
            self.inner.receive(NullMessage(member, 0, b"", last, 1 << 60, 1e9), now=1e9)
        self.inner.tick(2e9)
        return self.inner.blocked_on()


def traffic(
    cls: type[ClockOrdered],
    delivery: str,
    members: int,
    messages: int,
    shares: tuple[float, ...],
) -> list[Traffic]:
    """Return for each share a warm observer and `messages` messages as they arrive there.

    A share of 0.1 lets one in ten arrive up to LATE_S later than the bounds allow.
    """
    options: dict[str, Any] = {"bounds": BOUNDS, "delivery": delivery}
    arrivals, warm = _run(cls, members, messages, options)
    found: list[Traffic] = []
    for share in shares:
        observer = Observer(cls(0, range(members), **options))
        late = random.Random(2)
        moved = [
            one._replace(now_s=one.now_s + late.uniform(0, LATE_S))
            if late.random() < share
            else one
            for one in arrivals
        ]
        moved.sort(key=lambda one: one.now_s)
        for one in moved[:warm]:
            observer.receive(one)
        found.append((observer, moved[warm:]))
    return found


def _run(
    cls: type[ClockOrdered], members: int, messages: int, options: Any
) -> tuple[list[Arrival], int]:
    """Return the observer's arrivals in time, and how many of them are there to warm it."""
    rng = random.Random(1)
    group = [cls(k, range(members), **options) for k in range(members)]
    events: list[tuple[float, int, int, Any]]
    events = [(rng.uniform(0, PERIOD_S), 0, member, None) for member in range(1, members)]
    heapq.heapify(events)
    arrivals: list[Arrival] = []
    count = warm = 0
    while len(arrivals) - warm < messages:
        now_s, _, at, message = heapq.heappop(events)
        if now_s < WARM_UP_S:
            warm = len(arrivals)
        if message is not None:
            if at == 0:
                arrivals.append(Arrival(message, now_s))
            else:
                group[at]._advance(message.lt)
            continue
        (effect,) = group[at].send(b"", now=now_s)
        assert isinstance(effect, Transmit)
        for target in effect.to:
            count += 1
            delay_s = rng.uniform(BOUNDS.least_s, BOUNDS.most_s)
            heapq.heappush(events, (now_s + delay_s, count, target, effect.message))
        count += 1
        heapq.heappush(events, (now_s + rng.gauss(PERIOD_S, 0.005), count, at, None))
    return arrivals, warm
