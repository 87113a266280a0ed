"""Traffic of an internal group as one of its peers sees it; run it to time `receive`.

    python bench/hierarchical_traffic.py

All other peers send in random turns and name what they delivered since their last message, as
far as the super peer had numbered it 50 messages before. A share of the messages comes up to
50 places late.
"""

from __future__ import annotations

import random
import time

from antecede.protocols.hierarchical.internal import InternalPeer, follow
from antecede.protocols.hierarchical.messages import EMPTY, Downward, Window

LAG = 50
SUPER_PEER = 0


def traffic(
    members: int, messages: int, reordered: float = 0.0, seed: int = 1
) -> tuple[InternalPeer, list[Downward]]:
    """Return a fresh peer 1 and what arrives at it, in the order of arrival.

    A sender has delivered all but the last `LAG` messages of the group; its DV is computed by the
    rule that real peers follow, from where it stood when it last sent.
    """
    rng = random.Random(seed)
    sent: list[Downward] = []
    arrivals: list[tuple[float, Downward]] = []
    last = [0] * (members + 1)
    seen = [0] * (members + 1)
    for seq in range(1, messages + 1):
        sender = rng.randrange(2, members + 1)
        dv: Window = EMPTY
        upto = max(0, seq - LAG)
        for earlier in sent[max(seen[sender], upto - 4 * members) : upto]:
            if earlier.sender != sender:
                dv = follow(dv, earlier)
        seen[sender] = upto
        message = Downward(sender, seq, last[sender], dv, seq)
        last[sender] = seq
        sent.append(message)
        late = rng.uniform(1, LAG) if rng.random() < reordered else 0
        arrivals.append((seq + late, message))
    arrivals.sort(key=lambda arrival: arrival[0])
    peer = InternalPeer(1, range(members + 1), SUPER_PEER)
    return peer, [message for _, message in arrivals]


def main() -> None:
    """Print microseconds a message, the best of 5 runs."""
    messages = 20_000
    for members in (100, 300):
        for reordered in (0.0, 0.1):
            peer, arrivals = traffic(members, messages, reordered)
            start = peer.snapshot()
            best = min(_timed(peer, start, arrivals) for _ in range(5))
            us = best / messages * 1e6
            name = f"hierarchical internal  {members:3} peers  {reordered:4.0%} reordered"
            print(f"{name}  {us:5.2f} us a message")


def _timed(peer: InternalPeer, start: object, arrivals: list[Downward]) -> float:
    peer.restore(start)
    receive = peer.receive
    before = time.perf_counter()
    for message in arrivals:
        receive(message)
    spent = time.perf_counter() - before
    if peer.blocked_on() or peer.base != len(arrivals):
        raise RuntimeError("not everything was delivered")
    return spent


if __name__ == "__main__":
    main()
