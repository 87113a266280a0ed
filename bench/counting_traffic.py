"""Traffic of a group with FIFO or causal broadcast, as an observer who never sends sees it.

Every other member runs the real protocol and sends every N(80, 5) ms to all; delays are
N(150, 50) ms clipped to 50 .. 250, drawn for every message and receiver (the middle scenario
of Evropeytsev et al. 2016). The group runs until its control information is steady before anything
is recorded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from antecede.protocols.base import Deliver, Protocol

PERIOD_MS = 80
WARM_UP_MS = 1000
LATE_PLACES = 50
DELAYS = 1 << 14

Make = Callable[[int, Iterable[int]], Protocol]
Traffic = tuple[Protocol, list[Any]]


def traffic(
    make: Make, members: int, messages: int, reordered: tuple[float, ...], seed: int = 1
) -> list[Traffic]:
    """Return for each share a warm observer and `messages` messages as they arrive there.

    In order means the order in which the observer delivered them; a share of 0.1 lets one in
    ten come up to LATE_PLACES places later.
    """
    end_ms = WARM_UP_MS + messages * PERIOD_MS // members + 2 * PERIOD_MS
    delivered = _run(make, members, end_ms, random.Random(seed))
    before, stream = delivered[:-messages], delivered[-messages:]
    return [(_warm(make, members, before), late(stream, share, seed)) for share in reordered]


def _run(make: Make, members: int, end_ms: int, rng: random.Random) -> list[Any]:
    """Let the group run; return the messages in the order of the observer's deliveries."""
    group = [make(k, range(members)) for k in range(members)]
    delays = [round(min(max(rng.gauss(150, 50), 50), 250)) for _ in range(DELAYS)]
    sends: list[list[int]] = [[] for _ in range(end_ms)]
    arrivals: list[list[tuple[int, Any]]] = [[] for _ in range(end_ms + 251)]
    for member in range(1, members):
        at = rng.uniform(0, PERIOD_MS)
        while at < end_ms:
            sends[int(at)].append(member)
            at += min(max(rng.gauss(PERIOD_MS, 5), PERIOD_MS - 10), PERIOD_MS + 10)
    delivered = []
    for now in range(end_ms):
        for target, message in arrivals[now]:
            effects = group[target].receive(message)
            if target == 0:
                delivered += [e.message for e in effects if isinstance(e, Deliver)]
        arrivals[now] = []
        for member in sends[now]:
            message = group[member].send(None)[0].message
            first = rng.randrange(DELAYS)
            for target in range(members):
                if target != member:
                    delay = delays[(first + target) % DELAYS]
                    arrivals[now + delay].append((target, message))
    return delivered


def _warm(make: Make, members: int, before: list[Any]) -> Protocol:
    observer = make(0, range(members))
    for message in before:
        observer.receive(message)
    return observer


def late(stream: list[Any], share: float, seed: int) -> list[Any]:
    """Return the messages with this share of them up to LATE_PLACES places later."""
    rng = random.Random(seed)
    places = [
        place + (rng.uniform(1, LATE_PLACES) if rng.random() < share else 0)
        for place in range(len(stream))
    ]
    return [stream[place] for place in sorted(range(len(stream)), key=places.__getitem__)]
