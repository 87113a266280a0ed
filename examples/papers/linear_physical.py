"""Orders by linear and physical clocks, in the notation of Tsuneizumi et al., sections 4 and 5.

A message m carries the linear time m.LT and the physical time m.PT of its source. The clock of
each peer errs by at most lambda, and each message takes delta_min to delta. m_i is ordered before
m_j (m_i |-> m_j) if

    linear            m_i.LT < m_j.LT
    physical          m_j.PT - m_i.PT >= delta_min - 2 lambda
    linear_physical   both

The source writes delta for delta_min, and LT := max(LT, m.LT) on receipt. Either misses causal
pairs (docs/errata.md, E24, E26 to E28).
"""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """The times of a message."""

    src: int
    seq: int
    LT: int
    PT: int


class Peer:
    """p_i with its linear time LT and its number SEQ of messages."""

    def __init__(self, i: int) -> None:
        self.i = i
        self.LT = self.SEQ = 0

    def send(self, now: int) -> Message:
        """Return the message that is sent when the clock of p_i shows now."""
        self.SEQ += 1
        m = Message(self.i, self.SEQ, self.LT, now)
        self.LT += 1
        return m

    def receive(self, m: Message) -> None:
        """Pass the linear time of the message."""
        self.LT = max(self.LT, m.LT + 1)


def linear(m_i: Message, m_j: Message) -> bool:
    """Return whether m_i comes before m_j by linear time."""
    return m_i.LT < m_j.LT


def physical(m_i: Message, m_j: Message, delta_min: int, lambda_: int) -> bool:
    """Return whether m_i comes before m_j by physical time."""
    return m_j.PT - m_i.PT >= delta_min - 2 * lambda_


def linear_physical(m_i: Message, m_j: Message, delta_min: int, lambda_: int) -> bool:
    """Return whether m_i comes before m_j by both."""
    return linear(m_i, m_j) and physical(m_i, m_j, delta_min, lambda_)
