"""What traffic of protocols that read a clock has in common: arrivals with their times."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antecede.clocks.nanoseconds import NS
from antecede.protocols.base import Protocol

LATE_S = 0.05

Traffic = tuple[Protocol, list[Any]]


class Arrival(NamedTuple):
    """A message and what the observer's clock shows when it arrives."""

    message: Any
    now_ns: int


class Observer(Protocol):
    """A member whose clock is read from its arrivals; `settle` lets go what time holds."""

    def __init__(self, inner: Protocol, settle: Callable[[Any], None]) -> None:
        super().__init__(inner.me, inner.members)
        self.inner = inner
        self.settle = settle
        self.snapshot, self.restore = inner.snapshot, inner.restore  # type: ignore[method-assign]
        self.decode = inner.decode  # type: ignore[method-assign]

    def receive(self, message: Any, *, now: int | None = None) -> Any:
        return self.inner.receive(message.message, now=message.now_ns)

    def encode(self, message: Any) -> bytes:
        return self.inner.encode(message.message)

    def blocked_on(self) -> Any:
        """Return what is still held when nothing that is under way at the end will come."""
        self.settle(self.inner)
        return self.inner.blocked_on()


def warmed(
    make: Callable[[], Observer],
    arrivals: Sequence[Arrival],
    messages: int,
    shares: Sequence[float],
) -> list[Traffic]:
    """Return for each share an observer, and the last `messages` arrivals that it has not seen.

    A share of 0.1 lets one in ten arrive up to LATE_S later than the bounds allow.
    """
    found: list[Traffic] = []
    for share in shares:
        observer, late = make(), random.Random(2)
        moved = [
            one._replace(now_ns=one.now_ns + round(late.uniform(0, LATE_S) * NS))
            if late.random() < share
            else one
            for one in arrivals
        ]
        moved.sort(key=lambda one: one.now_ns)
        for one in moved[:-messages]:
            observer.receive(one)
        found.append((observer, moved[-messages:]))
    return found
