"""Size of control information: by Evropeytsev et al. 2016, as encoded, and its lower bound.

    python -m bench.encodings [SHARE]      share of the peers in the largest groups (default: 1)

The three delay scenarios of the source at their largest groups: every peer sends every N(80, 5) ms,
with one super peer and half of the peers internal. When control information is steady, the messages
of MEASURED_S are encoded. `encoded` is the control information in the message, `message` the whole
output of `encode`. `entropy` is the bound: log2 of n over k for a bit vector of n positions with k
set. For pairs it is that of the set of members, plus the entropy of the counters' differences from
their mean.

All peers take ten minutes of processor time and 2 GiB; half of the peers take an eighth.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.core.clocks.encoding import counters, windows
from antecede.core.clocks.lanes import columns
from antecede.core.protocols import Idr, IdrMessage, Protocol, Transmit
from antecede.core.protocols.hierarchical import Downward, External, Topology, hierarchical

PERIOD_MS = (80, 5)
MEASURED_S = 0.1
TICKS_PER_MS = 20
DELAYS = 1 << 14
SEED = 1


class DelayScenario(NamedTuple):
    """Delays in ms, peers of the largest group, and warm-up time."""

    low_ms: int
    high_ms: int
    peers: int
    warm_s: float


SCENARIOS = (
    DelayScenario(0, 50, 900, 0.3),
    DelayScenario(50, 250, 500, 1.1),
    DelayScenario(50, 550, 400, 1.7),
)
"""Steady from 0.2, 1 and 1.5 s."""


class MessageSizes(NamedTuple):
    """Mean bytes of one kind of message in one scenario."""

    quantity: str
    messages: int
    accounting: float
    encoded: float
    message: float
    entropy: float


def simulate_traffic(
    members: Mapping[int, Protocol], senders: Sequence[int], config: DelayScenario
) -> list[Any]:
    rng = random.Random(SEED)
    warm, end = (
        round(s * 1000 * TICKS_PER_MS) for s in (config.warm_s, config.warm_s + MEASURED_S)
    )
    sends = _draw_sends(rng, senders, end)
    delays = _draw_delays(rng, config)
    arrivals: list[list[tuple[int, Any]]] = [[] for _ in range(end + max(delays) + 1)]
    found = []

    def carry_out(now: int, effects: Sequence[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                if now >= warm:
                    found.append(effect.message)
                first = rng.randrange(DELAYS)
                for place, to in enumerate(effect.to, first):
                    arrivals[now + delays[place % DELAYS]].append((to, effect.message))

    for now in range(end):
        for sender in sends[now]:
            carry_out(now, members[sender].send(None))
        for target, message in arrivals[now]:  # grows while it is walked, by delays of 0
            carry_out(now, members[target].receive(message))
        arrivals[now] = []
    return found


def _draw_sends(rng: random.Random, senders: Sequence[int], end: int) -> list[list[int]]:
    sends: list[list[int]] = [[] for _ in range(end)]
    mean, spread = PERIOD_MS
    for sender in senders:
        at = rng.uniform(0, mean)
        while at * TICKS_PER_MS < end:
            sends[int(at * TICKS_PER_MS)].append(sender)
            at += min(max(rng.gauss(mean, spread), mean - 2 * spread), mean + 2 * spread)
    return sends


def _draw_delays(rng: random.Random, config: DelayScenario) -> list[int]:
    """Draw delays from N(middle, a quarter of the width), clipped (Evropeytsev et al. 2016)."""
    middle, sigma = (
        (config.low_ms + config.high_ms) / 2,
        (config.high_ms - config.low_ms) / 4,
    )
    drawn = (rng.gauss(middle, sigma) for _ in range(DELAYS))
    return [round(min(max(ms, config.low_ms), config.high_ms) * TICKS_PER_MS) for ms in drawn]


# -- what the messages take ------------------------------------------------------------------


def count_choice_bytes(n: int, k: int) -> float:
    """Return log2 of n over k, in bytes."""
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2) / 8


def compute_window_entropy(bits: int) -> float:
    """Return the mean bytes of any code for windows of this shape."""
    span = bits.bit_length() - (bits & -bits).bit_length() + 1 if bits else 0
    return count_choice_bytes(span, bits.bit_count())


class PairSets:
    def __init__(self) -> None:
        self.members = 0.0
        self.apart: Counter[int] = Counter()

    def add(self, members: Sequence[int], numbers: Sequence[int]) -> int:
        if members:
            self.members += count_choice_bytes(members[-1] - members[0] + 1, len(members))
            mean = round(sum(numbers) / len(numbers))
            self.apart.update(number - mean for number in numbers)
        return len(counters.encode(members, numbers))

    def compute_entropy(self) -> float:
        count = self.apart.total()
        bits = -sum(n * math.log2(n / count) for n in self.apart.values())
        return self.members + bits / 8


def measure_idr(config: DelayScenario) -> Iterator[MessageSizes]:
    group = {me: Idr(me, range(config.peers)) for me in range(config.peers)}
    messages: list[IdrMessage] = simulate_traffic(group, range(config.peers), config)
    pairs = PairSets()
    encoded = sum(pairs.add(*columns(message.causes)) for message in messages)
    yield _average_sizes("IDR", group[0], messages, encoded, pairs.compute_entropy())


def measure_hierarchy(config: DelayScenario) -> Iterator[MessageSizes]:
    inside = range(1, 1 + config.peers // 2)
    outside = range(1 + config.peers // 2, 1 + config.peers)
    group = hierarchical(Topology({0: tuple(inside)}, tuple(outside)))
    messages = simulate_traffic(group, (*inside, *outside), config)
    downward = [message for message in messages if isinstance(message, Downward)]
    encoded = sum(len(windows.encode(*m.dv, near=m.seq)) for m in downward)
    entropy = sum(compute_window_entropy(message.dv[1]) for message in downward)
    yield _average_sizes("internal", group[1], downward, encoded, entropy)
    external = [message for message in messages if isinstance(message, External)]
    encoded, entropy, pairs = 0, 0.0, PairSets()
    for message in external:
        members, numbers = zip(*message.counts, strict=True) if message.counts else ((), ())
        encoded += pairs.add(members, numbers)
        for _, (base, bits) in (*message.vectors, (0, message.translated)):
            encoded += len(windows.encode(base, bits))
            entropy += compute_window_entropy(bits)
    yield _average_sizes(
        "external", group[config.peers], external, encoded, entropy + pairs.compute_entropy()
    )


def _average_sizes(
    quantity: str, role: Protocol, messages: Sequence[Any], encoded: int, entropy: float
) -> MessageSizes:
    count = len(messages)
    accounting = sum(role.control_bytes(message) for message in messages)
    whole = sum(len(role.encode(message)) for message in messages)
    return MessageSizes(
        quantity, count, *(n / count for n in (accounting, encoded, whole, entropy))
    )


def main(arguments: Sequence[str]) -> None:
    share = float(arguments[0]) if arguments else 1.0
    print(f"{'delays':>12}{'peers':>6} {'quantity':9}{'messages':>9}{'accounting':>11}", end="")
    print(f"{'encoded':>9}{'message':>9}{'entropy':>9}  encoded/accounting  encoded/entropy")
    for config in SCENARIOS:
        of = config._replace(peers=round(config.peers * share))
        for row in (*measure_idr(of), *measure_hierarchy(of)):
            print(f"{of.low_ms:5} to {of.high_ms:3}{of.peers:6} {row.quantity:9}", end="")
            print(f"{row.messages:9}{row.accounting:11.1f}{row.encoded:9.1f}", end="")
            print(f"{row.message:9.1f}{row.entropy:9.1f}", end="")
            print(f"{row.encoded / row.accounting:20.3f}", end="")
            print(f"{row.encoded / row.entropy:17.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
