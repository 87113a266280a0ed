"""Arrivals at an observer that never sends: from `simulated` groups, and `synthetic` ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Protocol

LATE_PLACES = 50
LATE_NS = NS // 20


class MessageStream(NamedTuple):
    """Factory of warmed-up observers, and the messages that arrive then, in order."""

    make: Callable[[], Protocol]
    messages: list[Any]


class Arrival(NamedTuple):
    message: Any
    now_ns: int


Family = Callable[[int, int], MessageStream]
"""Messages of a protocol, by members and number of messages."""


def make_traffic(
    family: Family, members: int, messages: int, shares: Sequence[float]
) -> list[tuple[Protocol, list[Any]]]:
    """Return for each share an observer, and its messages with this share of them late."""
    stream = family(members, messages)
    return [(stream.make(), delay_messages(stream.messages, share)) for share in shares]


def delay_messages(messages: list[Any], share: float) -> list[Any]:
    """Delay a share of the messages by up to LATE_PLACES positions, or by up to LATE_NS."""
    rng = random.Random(1)
    moved: list[tuple[float, Any]] = []
    for place, one in enumerate(messages):
        by = rng.random() if rng.random() < share else 0.0
        if isinstance(one, Arrival):
            later = one._replace(now_ns=one.now_ns + round(by * LATE_NS))
            moved.append((later.now_ns, later))
        else:
            moved.append((place + by * LATE_PLACES, one))
    return [one for _, one in sorted(moved, key=lambda pair: pair[0])]
