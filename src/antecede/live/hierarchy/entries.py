"""Log entries of the external group, and the numbering of members in them.

An entry is one byte for its kind, sender ids, and content:

    SAYS        message of an external peer: block(control information), payload
    FORWARDS    message of a super peer's group, or I alone (`Flush`)
    NOTE        membership change, from an external peer; SUPER_NOTE: from a super peer
    MOVED       an internal peer that moved to this super peer

Control information uses the sender's numbers of members. A sender numbers sender ids as it learns
them, and announces the new ones in its entries from an index on. So repeated announcements are
harmless, and a joining member can start in the middle of a log with its sponsor's table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.hierarchical import External, Flush
from antecede.errors import DecodeError, UnknownMemberError
from antecede.live import wire

MESH: Final = 1 << 24
"""Number of the first external member in the protocol; internal peers have lower ones."""
SAYS, NOTE, FORWARDS, SUPER_NOTE, MOVED = range(5)
BY_SUPER: Final = (FORWARDS, SUPER_NOTE, MOVED)


class Entry(bytes):
    """Entry of the own log, with its number."""

    seq: int


class Parts(NamedTuple):
    """Parsed entry, up to its content."""

    kind: int
    start: int
    names: list[str]
    said: ByteReader


def read(entry: bytes) -> Parts:
    """Return the parts of an entry. Raises DecodeError."""
    reader = ByteReader(entry)
    kind = reader.take(1)[0]
    if kind > MOVED:
        raise DecodeError(f"unknown entry kind {kind}")
    start, count = reader.varint(), reader.varint()
    if count > len(entry):
        raise DecodeError(f"{count} sender ids announced in {len(entry)} bytes")
    return Parts(kind, start, [wire.lane(reader) for _ in range(count)], reader)


def renumber(message: External | Flush, sender: int, number: Callable[[int], int]) -> Any:
    """Return a message of the external group with other member numbers."""
    if isinstance(message, Flush):
        return message._replace(sender=sender)
    counts = tuple(sorted((number(peer), seq) for peer, seq in message.counts))
    vectors = tuple(sorted((number(peer), window) for peer, window in message.vectors))
    return message._replace(sender=sender, counts=counts, vectors=vectors)


class Names:
    """Sender ids by number: by the own numbers, and by those of each other sender."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self.known: list[str] = []
        self._number_of: dict[str, int] = {}
        self.tables: dict[str, list[str]] = {}
        """Sender -> sender ids by its numbers, as far as announced."""
        self.told = 0
        """Number of own sender ids announced."""
        for lane in known:
            self.add(lane)

    def __contains__(self, lane: str) -> bool:
        return lane in self._number_of

    def add(self, lane: str) -> int:
        """Assign the next number to a sender; return its number in the protocol."""
        self._number_of[lane] = len(self.known)
        self.known.append(lane)
        return self.address(lane)

    def address(self, lane: str) -> int:
        return MESH + self._number_of[lane]

    def lane(self, address: int) -> str:
        return self.known[address - MESH]

    def head(self, kind: int) -> bytes:
        """Return the head of the next own entry, which announces new sender ids."""
        fresh = self.known[self.told :]
        names = b"".join(block(name.encode()) for name in fresh)
        head = bytes((kind,)) + varint(self.told) + varint(len(fresh)) + names
        self.told = len(self.known)
        return head

    def table_with(self, lane: str, entry: Parts) -> list[str]:
        """Return the numbering of a sender from an entry on. Raises DecodeError for a gap."""
        table, (_, start, names, _) = self.tables.get(lane, []), entry
        if start > len(table):
            raise DecodeError(f"{lane} announces sender ids from {start} on after {len(table)}")
        return [*table[:start], *names, *table[start + len(names) :]]

    def outward(self, message: External | Flush) -> Any:
        """Return an own message with announced numbers."""
        return renumber(message, 0, lambda address: address - MESH)

    def inward(self, message: External | Flush, sender: int, table: list[str]) -> Any:
        """Return a received message with protocol numbers. Raises UnknownMemberError for a sender
        that has not started, DecodeError for an unannounced one.
        """

        def here(number: int) -> int:
            name = wire.lookup_sender_id(number, table)
            if name not in self:
                raise UnknownMemberError(f"message refers to {name}, which has not started")
            return self.address(name)

        return renumber(message, sender, here)

    def all_tables(self, me: str) -> dict[str, list[str]]:
        """Return the tables of all senders and the own one."""
        return {**self.tables, me: self.known[: self.told]}
