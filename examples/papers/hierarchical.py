"""Internal group of the hierarchical protocol, Evropeytsev et al. 2016, Listings 1 and 3 to 8.

The super peer numbers all messages of its group 1, 2, 3, ... and returns them to all internal
peers. RV has the numbers that a peer received; DV has its immediate dependencies. Both are bit
vectors in the source and sets here.

Listing 6, line 3 has lost a NOT (docs/errata.md, E2): `DV := DV & m.DV`. Position 0 is always set.
"""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """m_int = (id, SN, Last, DV, Data)."""

    id: int
    SN: int
    Last: int
    DV: frozenset[int]
    Data: object


class InternalPeer:
    """An internal peer with SN, RV, DV and the buffer of delayed messages."""

    def __init__(self, id_int: int) -> None:
        self.id_int, self.SN = id_int, 0
        self.RV, self.DV = {0}, set[int]()
        self.buffer: list[Message] = []

    def send(self, Data: object) -> Message:
        """Return the message to the super peer (Listing 4)."""
        self.SN += 1
        m = Message(self.id_int, self.SN, 0, frozenset(self.DV), Data)
        self.DV = set()
        return m

    def receive(self, message: Message) -> list[Message]:
        """Return the messages that are delivered now, in order (Listings 5 and 6)."""
        self.buffer.append(message)
        delivered: list[Message] = []
        while ready := [m for m in self.buffer if m.Last in self.RV and m.DV <= self.RV]:
            m = ready[0]
            self.buffer.remove(m)
            self.RV.add(m.SN)
            if m.id != self.id_int:
                self.DV = (self.DV - m.DV - {m.Last}) | {m.SN}
                delivered.append(m)
        return delivered


class SuperPeer:
    """The super peer with its number of messages and LR, the last numbers of each peer."""

    def __init__(self) -> None:
        self.VT = 0
        self.LR: dict[int, tuple[int, int]] = {}
        self.buffer: list[Message] = []

    def receive(self, message: Message) -> list[Message]:
        """Return the numbered messages for all peers of the group (Listings 7 and 8)."""
        self.buffer.append(message)
        sent: list[Message] = []
        while ready := [m for m in self.buffer if m.SN == self.LR.get(m.id, (0, 0))[0] + 1]:
            m = ready[0]
            self.buffer.remove(m)
            self.VT += 1
            sent.append(m._replace(SN=self.VT, Last=self.LR.get(m.id, (0, 0))[1]))
            self.LR[m.id] = m.SN, self.VT
        return sent
