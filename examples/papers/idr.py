"""IDR (immediate dependency relation), the comparator of Evropeytsev et al. 2016, section 3.2.

A message carries CI, the (process, number) pairs of its immediate dependencies. P_j delivers the
message with number x of P_i when VT_j[i] = x - 1 and VT_j[k] >= t for each (k, t) of CI.
Then (i, x) replaces the pair of i in CI_j, and the pairs that CI implies leave CI_j.

The source does not write the rule out (docs/errata.md, E8). Its published sizes follow from it.
"""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A broadcast message with its immediate dependencies."""

    sender: int
    number: int
    CI: frozenset[tuple[int, int]]
    payload: object


class Process:
    """P_j with the numbers VT of delivered messages, CI, and the buffer of delayed messages."""

    def __init__(self, j: int, n: int) -> None:
        self.j = j
        self.VT = [0] * n
        self.CI: set[tuple[int, int]] = set()
        self.buffer: list[Message] = []

    def send(self, payload: object) -> Message:
        """Return the message to broadcast."""
        self.VT[self.j] += 1
        message = Message(self.j, self.VT[self.j], frozenset(self.CI), payload)
        self.CI = set()
        return message

    def receive(self, message: Message) -> list[Message]:
        """Return the messages that are delivered now, in order."""
        self.buffer.append(message)
        delivered: list[Message] = []
        while ready := [m for m in self.buffer if self.is_deliverable(m)]:
            m = ready[0]
            self.buffer.remove(m)
            self.VT[m.sender] = m.number
            implied = dict(m.CI)
            self.CI = {(k, t) for k, t in self.CI if k != m.sender and t > implied.get(k, 0)}
            self.CI.add((m.sender, m.number))
            delivered.append(m)
        return delivered

    def is_deliverable(self, m: Message) -> bool:
        """Return whether the message is the next of its sender and its dependencies are here."""
        return self.VT[m.sender] == m.number - 1 and all(self.VT[k] >= t for k, t in m.CI)
