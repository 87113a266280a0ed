"""Traffic of a group with semantic order, as one member sees it; run it to time `receive`.

    python bench/sb_traffic.py

All other members send in random turns; 7 of 10 messages answer one of the last 50, the others
begin a thread. A share of the messages comes up to 50 places late.
"""

from __future__ import annotations

import random
import time

from antecede.protocols.base import MessageId
from antecede.protocols.reply.messages import SbMessage
from antecede.protocols.reply.sb import SemanticOrder

RECENT = 50
ANSWERS = 0.7


def traffic(
    members: int, messages: int, reordered: float = 0.0, seed: int = 1
) -> tuple[SemanticOrder, list[SbMessage]]:
    """Return a fresh member 0 and what arrives at it, in the order of arrival."""
    rng = random.Random(seed)
    sent = [0] * members
    ids: list[MessageId] = []
    arrivals: list[tuple[float, SbMessage]] = []
    for place in range(messages):
        sender = rng.randrange(1, members)
        sent[sender] += 1
        parents = (rng.choice(ids[-RECENT:]),) if ids and rng.random() < ANSWERS else ()
        ids.append(MessageId(sender, sent[sender]))
        late = rng.uniform(1, RECENT) if rng.random() < reordered else 0
        arrivals.append((place + late, SbMessage(sender, sent[sender], parents, place)))
    arrivals.sort(key=lambda arrival: arrival[0])
    return SemanticOrder(0, range(members)), [message for _, message in arrivals]


def main() -> None:
    """Print microseconds a message, the best of 5 runs."""
    messages = 50_000
    for members in (100, 300):
        for reordered in (0.0, 0.1):
            best = min(_timed(members, messages, reordered) for _ in range(5))
            us = best / messages * 1e6
            print(f"sb  {members:3} members  {reordered:4.0%} reordered  {us:5.2f} us a message")


def _timed(members: int, messages: int, reordered: float) -> float:
    member, arrivals = traffic(members, messages, reordered)
    receive = member.receive
    start = time.perf_counter()
    for message in arrivals:
        receive(message)
    spent = time.perf_counter() - start
    if member.blocked_on() or any(len(bounds) > 2 for bounds in member.delivered.values()):
        raise RuntimeError("not everything was delivered")
    return spent


if __name__ == "__main__":
    main()
