"""Traffic of a group with messages for some members, as an observer who never sends sees it.

All members begin with the same knowledge, as after everything sent before has arrived: some
hundred messages a channel. Then a random member sends to the observer and two others, to whom
it arrives at once; the observer gets its copies in that order, or some of them late.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Any

from antecede.clocks.lanes import pack
from antecede.protocols.base import Protocol
from antecede.protocols.multicast.rst import Rst
from antecede.protocols.multicast.ses import Ses
from bench.counting_traffic import late

LANES = 60_000
"""The number of messages goes down as the group grows: a message costs what the lanes cost."""
COUNTS = (100, 120)

Start = Callable[[int, random.Random], Callable[[int], Protocol]]


def traffic(
    start: Start, members: int, messages: int, reordered: tuple[float, ...], seed: int = 1
) -> list[tuple[Protocol, list[Any]]]:
    """Return for each share a warm observer and its messages as they arrive there."""
    make = start(members, random.Random(seed))
    draw = random.Random(seed)
    group: list[Any] = [make(k) for k in range(members)]
    stream = []
    for _ in range(min(messages, LANES // members)):
        sender, *others = draw.sample(range(1, members), 3)
        message = group[sender].send(None, to=(0, *others))[0].message
        for other in others:
            group[other].receive(message)
        stream.append(message)
    return [(make(0), late(stream, share, seed)) for share in reordered]


def sent(members: int, draw: random.Random) -> Callable[[int], Protocol]:
    """Return what makes members that have the same matrix."""
    matrix = tuple(
        pack((d, draw.randint(*COUNTS)) for d in range(members) if d != k) for k in range(members)
    )

    def make(me: int) -> Protocol:
        return _begun(Rst(me, range(members)), COUNTS[1] * members, matrix)

    return make


def ses(members: int, draw: random.Random) -> Callable[[int], Protocol]:
    """Return what makes members that have the same C; V is a little behind it."""
    clock = [draw.randint(*COUNTS) * members for _ in range(members)]
    behind = [
        (d, pack((k, count - draw.randint(0, 3)) for k, count in enumerate(clock)))
        for d in range(members)
    ]

    def make(me: int) -> Protocol:
        entries = tuple((d, vector) for d, vector in behind if d != me)
        own = pack(enumerate(clock)), entries, False, ()
        return _begun(Ses(me, range(members)), clock[me], own)

    return make


def _begun(member: Protocol, count: int, own: Hashable) -> Protocol:
    member.restore(((member.me, member.members, count, (), ()), own))
    return member
