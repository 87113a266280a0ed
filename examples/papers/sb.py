"""S_b, the semantic order of Bhavanasi and Iyer, sections IV and VI.

A message <mid, mid_p, data> names the message mid_p that it answers. P_j delivers it when mid_p is
in the ordering tree OT_j, and keeps it in OSMS_j, the store of out-of-sequence messages, until
then. Ordering lists pack OT_j: the delivered numbers of each sender as nodes [L, H].

Algorithms 1 and 2 are misprinted (docs/errata.md, E39 and E40). The rules here are as meant.
"""

from __future__ import annotations

from typing import NamedTuple

Mid = tuple[int, int]


class Message(NamedTuple):
    """A message; mid_p is None where it answers nothing."""

    mid: Mid
    mid_p: Mid | None
    data: object


class Process:
    """P_j with its ordering lists OL and its store OSMS."""

    def __init__(self, j: int, n: int) -> None:
        self.j, self.seqno = j, 0
        self.OL: list[list[list[int]]] = [[] for _ in range(n)]
        self.OSMS: list[Message] = []

    def send(self, data: object, mid_p: Mid | None = None) -> Message:
        """Return the message to broadcast."""
        self.seqno += 1
        self.add((self.j, self.seqno))
        return Message((self.j, self.seqno), mid_p, data)

    def receive(self, message: Message) -> list[Message]:
        """Return the messages that are delivered now, in order (Algorithm 3)."""
        self.OSMS.append(message)
        delivered: list[Message] = []
        while ready := [m for m in self.OSMS if m.mid_p is None or self.is_present(m.mid_p)]:
            self.OSMS.remove(ready[0])
            self.add(ready[0].mid)
            delivered.append(ready[0])
        return delivered

    def is_present(self, mid: Mid) -> bool:
        """Return whether a node [L, H] has L <= seqno <= H (Algorithm 1)."""
        sender, seqno = mid
        return any(low <= seqno <= high for low, high in self.OL[sender])

    def add(self, mid: Mid) -> None:
        """Put a number into its list and join adjacent nodes (Algorithm 2)."""
        sender, seqno = mid
        nodes = self.OL[sender]
        nodes.append([seqno, seqno])
        nodes.sort()
        for k in range(len(nodes) - 1, 0, -1):
            if nodes[k - 1][1] + 1 == nodes[k][0]:
                nodes[k - 1][1] = nodes.pop(k)[1]
