"""Traffic of a group that orders by clocks (Tsuneizumi et al.), as an observer who never sends
sees it.

Every other member broadcasts every N(80, 5) ms; delays are 50 to 250 ms, clocks err by up to
10 ms. The observer's clock is read at every arrival, and arrivals alone drive it; the others
stamp and let their linear time follow what arrives, and deliver nothing. Everybody talks, so
no null message is needed.
"""

from __future__ import annotations

import heapq
import random
from typing import Any

from antecede.clocks.bounds import Bounds
from antecede.clocks.nanoseconds import NS
from antecede.protocols.base import Transmit
from antecede.protocols.timed.base import ClockOrdered
from antecede.protocols.timed.messages import Gone, NullMessage
from bench.clocked import Arrival, Observer, Traffic, warmed

PERIOD_S = 0.08
WARM_UP_S = 1.0
BOUNDS: Bounds[int] = Bounds(accuracy_s=0.010, least_s=0.050, most_s=0.250)


def settle(member: ClockOrdered) -> None:
    """Say of every other member that nothing more will come from it."""
    for sender, last in member.channel.high.items():
        member.receive(Gone(sender, 0, b"", last), now=10**18)
        member.receive(NullMessage(sender, 0, b"", last, 1 << 60, 10**18), now=10**18)
    member.tick(2 * 10**18)


def traffic(
    cls: type[ClockOrdered],
    delivery: str,
    members: int,
    messages: int,
    shares: tuple[float, ...],
) -> list[Traffic]:
    """Return for each share (`clocked.warmed`) a warm observer and `messages` arrivals there."""
    # No limit of what is believed: `settle` says that nothing comes for ages.
    unlimited = {"max_jump": None} if cls.carries_lt else {}
    unlimited |= {"max_ahead_s": None} if cls.carries_pt else {}
    options: dict[str, Any] = {"bounds": BOUNDS, "delivery": delivery, **unlimited}
    arrivals = _run(cls, members, messages, options)
    return warmed(
        lambda: Observer(cls(0, range(members), **options), settle), arrivals, messages, shares
    )


def _run(cls: type[ClockOrdered], members: int, messages: int, options: Any) -> list[Arrival]:
    """Return the observer's arrivals in time: those that warm it, then `messages`."""
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
                arrivals.append(Arrival(message, round(now_s * NS)))
            else:
                group[at]._advance(message.lt)
            continue
        (effect,) = group[at].send(b"", now=round(now_s * NS))
        assert isinstance(effect, Transmit)
        for target in effect.to:
            count += 1
            delay_s = rng.uniform(BOUNDS.least_s, BOUNDS.most_s)
            heapq.heappush(events, (now_s + delay_s, count, target, effect.message))
        count += 1
        heapq.heappush(events, (now_s + rng.gauss(PERIOD_S, 0.005), count, at, None))
    return arrivals
