"""BSS (Birman, Schiper, Stephenson), in the notation of Sahai et al. 2020.

P_i increments C_i[i] and sends m with the timestamp t = C_i. P_j delays a message from P_i until

1. C_j[i] = t[i] - 1, and
2. C_j[k] >= t[k] for all k other than i.

The source prints `C_j[k] <= t[k]` in condition 2 (docs/errata.md, E14). Its example needs `>=`.
"""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A broadcast message with its vector timestamp."""

    sender: int
    t: tuple[int, ...]
    payload: object


class Process:
    """P_j with its vector clock C and the buffer of delayed messages."""

    def __init__(self, j: int, n: int) -> None:
        self.j = j
        self.C = [0] * n
        self.buffer: list[Message] = []

    def send(self, payload: object) -> Message:
        """Return the message to broadcast."""
        self.C[self.j] += 1
        return Message(self.j, tuple(self.C), payload)

    def receive(self, message: Message) -> list[Message]:
        """Return the messages that are delivered now, in order."""
        self.buffer.append(message)
        delivered: list[Message] = []
        while ready := [m for m in self.buffer if self.is_deliverable(m)]:
            m = ready[0]
            self.buffer.remove(m)
            self.C[m.sender] = m.t[m.sender]
            delivered.append(m)
        return delivered

    def is_deliverable(self, m: Message) -> bool:
        """Return whether both conditions hold."""
        i, t = m.sender, m.t
        return self.C[i] == t[i] - 1 and all(self.C[k] >= t[k] for k in range(len(t)) if k != i)
