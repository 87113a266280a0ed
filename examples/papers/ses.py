"""SES (Schiper, Eggli, Sandoz), in the notation of Sahai et al. 2020, for messages to one process.

P_i increments C_i[i] and sends m to P_j with t = C_i and V_m = V_i. Then V_i[j] := t.
P_j delays m until V_m[j] is uninitialized or V_m[j] <= C_j. On delivery, P_j takes the maximum of
V_j and V_m for every process but itself, and C_j := max(C_j, t).

The source has examples only. They take over V in three ways (docs/errata.md, E17 to E19).
"""

from __future__ import annotations

from typing import NamedTuple

Vector = tuple[int, ...]


def maximum(a: Vector, b: Vector) -> Vector:
    """Return the maximum of each component."""
    return tuple(map(max, a, b))


class Message(NamedTuple):
    """A message to one process; V holds the vectors of processes, if initialized."""

    sender: int
    to: int
    t: Vector
    V: dict[int, Vector]
    payload: object


class Process:
    """P_i with its clock C, its vectors V and the buffer of delayed messages."""

    def __init__(self, i: int, n: int) -> None:
        self.i = i
        self.C: Vector = (0,) * n
        self.V: dict[int, Vector] = {}
        self.buffer: list[Message] = []

    def send(self, payload: object, to: int) -> Message:
        """Return the message to a process."""
        self.C = tuple(c + (k == self.i) for k, c in enumerate(self.C))
        message = Message(self.i, to, self.C, dict(self.V), payload)
        self.V[to] = self.C
        return message

    def receive(self, message: Message) -> list[Message]:
        """Return the messages that are delivered now, in order."""
        self.buffer.append(message)
        delivered: list[Message] = []
        while ready := [m for m in self.buffer if self.is_deliverable(m)]:
            m = ready[0]
            self.buffer.remove(m)
            for k, vector in m.V.items():
                if k != self.i:
                    self.V[k] = maximum(self.V.get(k, vector), vector)
            self.C = maximum(self.C, m.t)
            delivered.append(m)
        return delivered

    def is_deliverable(self, m: Message) -> bool:
        """Return whether no earlier message to this process is missing."""
        return self.i not in m.V or all(a <= b for a, b in zip(m.V[self.i], self.C, strict=True))
