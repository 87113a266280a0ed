"""Microseconds per message of clock-based orders, at one receiver of 10 to 1,000 members.

    python -m bench.large_groups

Every other member sends 12.5 messages per second, copies take 50 to 150 ms, and clocks err by 1 ms.
A message is one `receive` and one `tick`. Measurement starts after two messages of every member.
The value is the least processor time of `REPEATS` runs, with the ratio to 10 members and the
maximum of held messages. Messages are created before and excluded from garbage collection.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from typing import Any

from antecede.core.clocks import NS, Bounds
from antecede.core.protocols import Protocol
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.messages import StampedMessage
from antecede.core.protocols.topics import Subscriptions
from antecede.core.protocols.topics.messages import TopicMessage
from antecede.core.protocols.topics.protocols import Htbc

MEMBERS = (10, 50, 200, 500, 1000)
MESSAGES = 3000
REPEATS = 7
PER_S = 12.5
BOUNDS: Bounds[int] = Bounds(accuracy_s=0.001, least_s=0.05, most_s=0.15)
Made = Callable[[int, int, int, int], Any]


def make_message(sender: int, seq: int, lt: int, pt_ns: int) -> StampedMessage:
    return StampedMessage(sender, seq, b"", seq - 1, lt, pt_ns)


def make_event(sender: int, seq: int, lt: int, pt_ns: int) -> TopicMessage:
    return TopicMessage(sender, seq, b"", ("x",), (("x", lt + 1),), lt + 1, pt_ns, 0)


def make_arrivals(members: int, made: Made) -> tuple[list[tuple[int, Any]], int]:
    rng, warm = random.Random(1), 2 * members + 500
    period_ns = round(NS / (PER_S * (members - 1)))
    seq = [0] * members
    found = []
    for k in range(warm + MESSAGES):
        sender, sent_ns = 1 + k % (members - 1), k * period_ns
        seq[sender] += 1
        delay_ns = round(rng.uniform(0.05, 0.15) * NS)
        found.append((sent_ns + delay_ns, k, made(sender, seq[sender], k, sent_ns)))
    return [(at, message) for at, _, message in sorted(found)], warm


def measure_us(make: Callable[[], Protocol], members: int, made: Made) -> tuple[float, int]:
    came, warm = make_arrivals(members, made)
    gc.collect()
    gc.freeze()
    best, most = float("inf"), 0
    for _ in range(REPEATS):
        member: Any = make()
        begin = 0.0
        for number, (at, message) in enumerate(came):
            if number == warm:
                begin = time.process_time()
            member.receive(message, now=at)
            member.tick(at)
        best = min(best, time.process_time() - begin)
    gc.unfreeze()
    member = make()
    for at, message in came:
        member.receive(message, now=at)
        member.tick(at)
        most = max(most, len(member.held))
    return best / MESSAGES * 1e6, most


def main() -> None:
    print(f"CPU time of the process a message, best of {REPEATS} runs of {MESSAGES} messages")
    print(f"{'':24}{'members':>8}{'us':>8}{'ratio':>8}{'held':>8}")
    kinds: dict[str, tuple[Callable[[int], Protocol], Made]] = {
        f"linear-physical, {delivery}": (
            lambda n, delivery=delivery: LinearPhysical(  # type: ignore[misc]
                0, range(n), bounds=BOUNDS, delivery=delivery
            ),
            make_message,
        )
        for delivery in ("null", "bound")
    }
    kinds["htbc"] = (
        lambda n: Htbc(
            0,
            range(n),
            bounds=BOUNDS,
            subscriptions=Subscriptions(dict.fromkeys(range(n), ("x",))),
        ),
        make_event,
    )
    for name, (make, made) in kinds.items():
        first = 0.0
        for members in MEMBERS:
            spent, most = measure_us(lambda n=members, make=make: make(n), members, made)  # type: ignore[misc]
            first = first or spent
            print(f"{name:24}{members:8}{spent:8.1f}{spent / first:8.2f}{most:8}", flush=True)


if __name__ == "__main__":
    main()
