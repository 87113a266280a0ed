"""Entries of the lanes of a mesh, and by which numbers each lane speaks of the others.

An entry is a byte for its kind, names, and what it says:

    SAYS        an external peer's message: block(control information), payload
    FORWARDS    a super peer's: a message of its group, or I alone (`Flush`)
    NOTE        who came or went, said by an external peer; SUPER_NOTE: by a super peer
    MOVED       a peer inside that has come to this super peer from another one

Numbers in control information are the sender's own: it numbers the lanes that it knows as it learns
of them, and tells in its lane the names that are new, from a place on. So what was told twice does
no harm, and who begins amid a lane needs no more than what its sponsor was told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.hierarchical import External, Flush
from antecede.errors import DecodeError, UnknownMemberError
from antecede.live import wire

MESH: Final = 1 << 24
"""Number of the first member of the mesh in the protocol; those below are of peers inside."""
SAYS, NOTE, FORWARDS, SUPER_NOTE, MOVED = range(5)
BY_SUPER: Final = (FORWARDS, SUPER_NOTE, MOVED)


class Entry(bytes):
    """An entry of one's own lane, and its number."""

    seq: int


class Parts(NamedTuple):
    """An entry that was read, up to what it says."""

    kind: int
    start: int
    names: list[str]
    said: ByteReader


def read(entry: bytes) -> Parts:
    """Return the parts of an entry. Raises DecodeError."""
    reader = ByteReader(entry)
    kind = reader.take(1)[0]
    if kind > MOVED:
        raise DecodeError(f"an entry of a lane of the mesh of an unknown kind, {kind}")
    start, count = reader.varint(), reader.varint()
    if count > len(entry):
        raise DecodeError(f"{count} names announced in {len(entry)} bytes")
    return Parts(kind, start, [wire.lane(reader) for _ in range(count)], reader)


def renumbered(message: External | Flush, sender: int, number: Callable[[int], int]) -> Any:
    """Return a message of the mesh with other numbers for its members."""
    if isinstance(message, Flush):
        return message._replace(sender=sender)
    counts = tuple(sorted((number(peer), seq) for peer, seq in message.counts))
    vectors = tuple(sorted((number(peer), window) for peer, window in message.vectors))
    return message._replace(sender=sender, counts=counts, vectors=vectors)


class Names:
    """Lanes of a mesh by number: by one's own, and by those of every other lane."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self.known: list[str] = []
        self._number_of: dict[str, int] = {}
        self.tables: dict[str, list[str]] = {}
        """Lane -> lanes by the numbers that it gives them, as far as it has told."""
        self.told = 0
        """So many of one's own were told."""
        for lane in known:
            self.add(lane)

    def __contains__(self, lane: str) -> bool:
        return lane in self._number_of

    def add(self, lane: str) -> int:
        """Give a lane the next number; returns it as the protocol counts."""
        self._number_of[lane] = len(self.known)
        self.known.append(lane)
        return self.address(lane)

    def address(self, lane: str) -> int:
        """Return the number of a lane in the protocol."""
        return MESH + self._number_of[lane]

    def lane(self, address: int) -> str:
        """Return the lane of a number in the protocol."""
        return self.known[address - MESH]

    def head(self, kind: int) -> bytes:
        """Return how one's own next entry begins: it tells the names that are new."""
        fresh = self.known[self.told :]
        names = b"".join(block(name.encode()) for name in fresh)
        head = bytes((kind,)) + varint(self.told) + varint(len(fresh)) + names
        self.told = len(self.known)
        return head

    def table_with(self, lane: str, entry: Parts) -> list[str]:
        """Return by which numbers a lane speaks from an entry on. Raises DecodeError for a gap."""
        table, (_, start, names, _) = self.tables.get(lane, []), entry
        if start > len(table):
            raise DecodeError(f"{lane} tells names from {start} on, and {len(table)} were told")
        return [*table[:start], *names, *table[start + len(names) :]]

    def outward(self, message: External | Flush) -> Any:
        """Return a message of one's own with the numbers that one tells the others."""
        return renumbered(message, 0, lambda address: address - MESH)

    def inward(self, message: External | Flush, sender: int, table: list[str]) -> Any:
        """Return another's message with the numbers of the protocol here.

        Raises UnknownMemberError where it names who has not begun, DecodeError who was not named.
        """

        def here(number: int) -> int:
            name = wire.named(number, table)
            if name not in self:
                raise UnknownMemberError(f"a message names {name}, who has not begun")
            return self.address(name)

        return renumbered(message, sender, here)

    def all_tables(self, me: str) -> dict[str, list[str]]:
        """Return the tables of all lanes, one's own too."""
        return {**self.tables, me: self.known[: self.told]}
