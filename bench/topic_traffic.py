"""Traffic of a topic-based group (Nakayama 2017), as an observer who never publishes sees it.

Delays are 10 to 160 ms, clocks are off by up to 4 ms (Nakayama 2017, section 3, WAN; it states no
least delay). There are TOPICS topics; a member subscribes to 1 to 4 of them and publishes an event
about 1 to 4 of them every PERIOD_S on average. The observer's clock is read at every arrival, and
arrivals alone drive it; the others stamp and take over times as members do, and deliver nothing.
"""

from __future__ import annotations

import heapq
import random
from typing import Any

from antecede.clocks.bounds import Bounds
from antecede.clocks.nanoseconds import NS
from antecede.protocols.topics.delivery import TopicProtocol
from antecede.protocols.topics.subscriptions import Subscriptions
from bench.clocked import Arrival, Observer, Traffic, warmed

TOPICS = 20
MOST_TOPICS = 4
PERIOD_S = 1.0
WARM_UP_S = 1.0
BOUNDS: Bounds[int] = Bounds(accuracy_s=0.004, least_s=0.010, most_s=0.160)


def traffic(
    cls: type[TopicProtocol], members: int, messages: int, shares: tuple[float, ...]
) -> list[Traffic]:
    """Return for each share (`clocked.warmed`) a warm observer and `messages` events there."""
    rng = random.Random(1)
    chosen = {k: _topics(rng) for k in range(members)}
    options: dict[str, Any] = {"bounds": BOUNDS, "subscriptions": Subscriptions(chosen)}
    arrivals = _run(cls, members, messages, options, rng)
    return warmed(
        lambda: Observer(cls(0, range(members), **options), lambda member: member.tick(10**18)),
        arrivals,
        messages,
        shares,
    )


def _topics(rng: random.Random) -> list[str]:
    return rng.sample([f"t{k}" for k in range(TOPICS)], rng.randint(1, MOST_TOPICS))


def _run(
    cls: type[TopicProtocol], members: int, messages: int, options: Any, rng: random.Random
) -> list[Arrival]:
    """Let the group run until the observer has got what it needs; return its arrivals."""
    group = [cls(k, range(members), **options) for k in range(members)]
    events: list[tuple[float, int, int, Any]]
    events = [(rng.uniform(0, PERIOD_S), 0, member, None) for member in range(1, members)]
    heapq.heapify(events)
    count = 0
    arrivals: list[Arrival] = []
    warm = 0
    while len(arrivals) - warm < messages:
        now_s, _, at, message = heapq.heappop(events)
        if now_s < WARM_UP_S:
            warm = len(arrivals)
        if message is not None:
            if at == 0:
                arrivals.append(Arrival(message, round(now_s * NS)))
            else:
                group[at].take_over(message)
            continue
        for effect in group[at].send(b"", now=round(now_s * NS), topics=_topics(rng)):
            for target in effect.to:  # type: ignore[union-attr]
                count += 1
                delay_s = rng.uniform(BOUNDS.least_s, BOUNDS.most_s)
                heapq.heappush(events, (now_s + delay_s, count, target, effect.message))
        count += 1
        heapq.heappush(events, (now_s + rng.expovariate(1 / PERIOD_S), count, at, None))
    return arrivals
