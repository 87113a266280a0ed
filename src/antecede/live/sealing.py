"""Signatures that let members relay batches of a third member without forging them.

Batches from their sender need none: the other end has presented its certificate.
"""

from __future__ import annotations

from typing import Protocol


class Signatures(Protocol):
    """Signer of own batches and verifier of relayed ones."""

    def owner(self, lane: str) -> bytes:
        """Return the proof of a sender id. Empty: unknown."""
        ...

    def learn(self, lane: str, owner: bytes) -> None:
        """Verify and keep the proof of a sender id. Raises DecodeError for an invalid one."""
        ...

    def recall(self, lane: str, owner: bytes) -> None:
        """Keep a proof that was verified before a restart."""
        ...

    def seal(self, number: int, wire: bytes) -> bytes:
        """Return the signature of an own batch."""
        ...

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        """Raise DecodeError unless the sender signed this batch."""
        ...


class NoSignatures:
    """No-op signer for groups without certificates."""

    def owner(self, lane: str) -> bytes:
        """Return an empty proof."""
        return b""

    def learn(self, lane: str, owner: bytes) -> None:
        """Accept any proof."""

    def recall(self, lane: str, owner: bytes) -> None:
        """Accept any proof."""

    def seal(self, number: int, wire: bytes) -> bytes:
        """Return an empty signature."""
        return b""

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        """Accept any batch."""
