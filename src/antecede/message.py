"""What a `Group` hands to the application: messages, packets, and what blocks them."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A message of the group as the application sees it."""

    sender: str
    seq: int
    """The sender's number for it, from 1."""
    payload: bytes
    missing: tuple[tuple[str, int], ...] = ()
    """Not empty when it was released although these messages never came (order "reply")."""


class Blocked(NamedTuple):
    """A message that is held back, and the (sender, number) pairs known to be missing for it."""

    message: Message
    waits_for: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        missing = ", ".join(f"{sender}'s message {seq}" for sender, seq in self.waits_for)
        return f"{self.message.sender}'s message {self.message.seq} waits for {missing}"


class Envelope(NamedTuple):
    """What the bytes of a message say: who sent it, what it waits for, what it carries."""

    sender: str
    seq: int
    causes: tuple[tuple[str, int], ...]
    payload: bytes


class Packet(NamedTuple):
    """Bytes for some of the members."""

    to: tuple[str, ...]
    wire: bytes
