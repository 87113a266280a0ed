"""A group behind a super peer that sends nothing while months of messages arrive from outside.

    python -m bench.silent_group [MESSAGES]

One external peer sends, another and the silent group receive; all effects are executed. Each line
is a quarter of a million messages (an eighth, if there are fewer). It shows the time per message,
the storage of the super peer, the span of I, and the size of VTx at the receiving peer. Finally the
silent peer sends; its message must be delivered outside.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence

from antecede.core.protocols import Deliver, Effect, Protocol, Transmit
from antecede.core.protocols.hierarchical import (
    ExternalPeer,
    Flush,
    SuperPeer,
    Topology,
    hierarchical,
)

SUPER, SENDER, RECEIVER, SILENT = 1, 2, 3, 4
MESSAGES = 2_000_000
STEP = 250_000


def carry(members: Mapping[int, Protocol], effects: Iterable[Effect]) -> tuple[int, int]:
    """Execute effects until none is pending; return deliveries, and bytes of flushes."""
    delivered = flushed = 0
    left = list(effects)
    while left:
        effect = left.pop()
        if isinstance(effect, Deliver):
            delivered += 1
        elif isinstance(effect, Transmit):
            if isinstance(effect.message, Flush):
                flushed += len(effect.to) * members[SUPER].control_bytes(effect.message)
            for target in effect.to:
                left += members[target].receive(effect.message)
    return delivered, flushed


def main(args: Sequence[str]) -> None:
    messages = int(args[0]) if args else MESSAGES
    step = min(STEP, max(1, messages // 8))
    members = hierarchical(Topology({SUPER: (SILENT,)}, (SENDER, RECEIVER)))
    super_peer, receiver = members[SUPER], members[RECEIVER]
    assert isinstance(super_peer, SuperPeer)
    assert isinstance(receiver, ExternalPeer)
    sender, flushed = members[SENDER], 0
    print("messages   us each   super peer stores   I spans   VTx window   flushes, bytes each")
    for done in range(step, messages + 1, step):
        start = time.perf_counter()
        for _ in range(step):
            flushed += carry(members, sender.send(b""))[1]
        each = (time.perf_counter() - start) / step * 1e6
        spans = super_peer.table.fresh[1].bit_length()
        vtx = receiver.clock.vectors[SUPER][1].bit_length()
        stored = super_peer.storage_bytes()
        row = f"{done:9,} {each:9.1f} {stored:19,} {spans:9,} {vtx:12,} {flushed / done:21.3f}"
        print(row, flush=True)
    (upward,) = members[SILENT].send(b"hello")
    assert isinstance(upward, Transmit)
    effects = super_peer.receive(upward.message)
    outward = next(e for e in effects if isinstance(e, Transmit) and RECEIVER in e.to).message
    size = f"{super_peer.control_bytes(outward):,} bytes, {len(super_peer.encode(outward))} encoded"
    delivered, _ = carry(members, effects)
    print(f"then the group speaks: {size}, delivered at {delivered} of 2 external peers")


if __name__ == "__main__":
    main(sys.argv[1:])
