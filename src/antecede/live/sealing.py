"""Seals: what lets a member hand on another's batches, and no member forge them.

What comes over a link of its owner needs none: the link's other end has shown a certificate.
"""

from __future__ import annotations

from typing import Protocol


class Signatures(Protocol):
    """Seals one's own batches, and checks those of others that somebody hands on."""

    def owner(self, lane: str) -> bytes:
        """Return what shows whose lane it is; empty: nothing is known."""
        ...

    def learn(self, lane: str, owner: bytes) -> None:
        """Take what shows whose lane it is. Raises DecodeError where it does not."""
        ...

    def recall(self, lane: str, owner: bytes) -> None:
        """Take up again what was learnt, and checked, before a restart."""
        ...

    def seal(self, number: int, wire: bytes) -> bytes:
        """Return the seal of a batch of one's own."""
        ...

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        """Raise DecodeError unless the owner of the lane sealed this batch."""
        ...


class NoSignatures:
    """No seals: whoever hands something on is believed. For groups without certificates."""

    def owner(self, lane: str) -> bytes:
        """Return nothing."""
        return b""

    def learn(self, lane: str, owner: bytes) -> None:
        """Believe."""

    def recall(self, lane: str, owner: bytes) -> None:
        """Believe."""

    def seal(self, number: int, wire: bytes) -> bytes:
        """Return nothing."""
        return b""

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        """Believe."""
