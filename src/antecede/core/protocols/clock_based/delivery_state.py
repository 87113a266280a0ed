"""State of a delivery for its index and its receive buffer."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from antecede.core.protocols.base import MessageId
from antecede.core.protocols.clock_based.channel import AcceptedMessage, SenderChannels
from antecede.core.protocols.clock_based.messages import StampedMessage
from antecede.core.protocols.clock_based.relations import ClockRelation, LowerBound, Separation


class DeliveryState(Protocol):
    """State and decisions of a member, implemented by `ClockDelivery`."""

    carries_lt: ClassVar[bool]
    carries_pt: ClassVar[bool]
    channel: SenderChannels
    delivery: str
    as_published: frozenset[str]
    relation: ClockRelation
    separation: Separation
    held: dict[MessageId, AcceptedMessage]
    lower_bounds: dict[int, LowerBound]
    arrived_ns: dict[MessageId, int]
    gapped: dict[int, MessageId]

    @property
    def uses_default_hooks(self) -> bool: ...
    def identity(self, message: Any) -> MessageId: ...
    def wait_ns(self, sender: int) -> int:
        """Return the wait of a sender's message with delivery "bound"."""

    def _precedes(self, a: StampedMessage, b: StampedMessage) -> bool: ...
    def _rank(self, message: StampedMessage) -> tuple[int, int, int, int]: ...
    def _find_newest_hiding(self, message: StampedMessage) -> int | None: ...
