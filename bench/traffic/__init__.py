"""What comes at an observer who never sends: `running` groups, and messages `made` by a rule."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Protocol

LATE_PLACES = 50
LATE_NS = NS // 20


class MessageStream(NamedTuple):
    """What makes observers that are warm, and what arrives at them then, in order."""

    make: Callable[[], Protocol]
    messages: list[Any]


class Arrival(NamedTuple):
    """A message and what the observer's clock shows when it arrives."""

    message: Any
    now_ns: int


Family = Callable[[int, int], MessageStream]
"""The stream of a protocol, by members and number of messages."""


def make_traffic(
    family: Family, members: int, messages: int, shares: Sequence[float]
) -> list[tuple[Protocol, list[Any]]]:
    """Return for each share an observer, and its messages with this share of them late."""
    stream = family(members, messages)
    return [(stream.make(), delay_messages(stream.messages, share)) for share in shares]


def delay_messages(messages: list[Any], share: float) -> list[Any]:
    """Return the messages with this share of them up to LATE_PLACES places later.

    Where arrivals have a time, up to LATE_NS later, beyond what the bounds allow.
    """
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
