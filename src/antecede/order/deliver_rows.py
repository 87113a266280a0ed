"""Rows on their way through an `Observer`, the recorder of effects, and own messages read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from antecede import frame
from antecede.clocks.wire import Reader
from antecede.errors import UnknownMemberError
from antecede.group import Group
from antecede.message import Message
from antecede.order.deliver_spec import DeliverStatus
from antecede.protocols.base import NOTHING, Addressing, Effect, Protocol, Relation


class Arrival(NamedTuple):
    """One row of an observer; `at` is its time (see `Observer`), `ticket` its own number."""

    ticket: int
    at: int
    wire: bytes | None
    sent: bool = False
    to: tuple[str, ...] | None = None
    """Whom an own message was for, where its bytes do not say."""
    topics: tuple[str, ...] | None = None
    """Topics of an own message of which there are no bytes."""


class Outcome(NamedTuple):
    """What became of a row; None where there is nothing to say."""

    ticket: int
    status: DeliverStatus
    position: int | None = None
    waited_ms: float | None = None
    waits_for: tuple[str, ...] | None = None
    reason: str | None = None
    sender: str | None = None
    seq: int | None = None
    payload: bytes | None = None


class Waiting(NamedTuple):
    """A held row: its ticket, when it came, and what it waited for then.

    `reason` is what is to be said of it in any case, when it leaves.
    """

    ticket: int
    since: int
    waits_for: tuple[str, ...]
    reason: str | None = None


class Recorder:
    """A protocol that keeps the effects of its last call; all else passes through."""

    def __init__(self, inner: Protocol) -> None:
        self.inner = inner
        self.message: Any = None
        self.effects: Sequence[Effect] = NOTHING

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def send(self, payload: Any, **chosen: Any) -> Sequence[Effect]:
        """Send and keep the effects."""
        self.effects = self.inner.send(payload, **chosen)
        return self.effects

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        """Receive and keep message and effects."""
        self.message = message
        self.effects = self.inner.receive(message, now=now)
        return self.effects

    def tick(self, now: int) -> Sequence[Effect]:
        """Let time pass and keep the effects."""
        self.effects = self.inner.tick(now)
        return self.effects


class Said(NamedTuple):
    """What an application gave to `Group.post`, read from the bytes that came of it."""

    payload: bytes
    chosen: dict[str, Any]


def own_message(group: Group, wire: bytes) -> Said | None:
    """Return what one's own bytes were made of; None for what the protocol sends by itself.

    Raises DecodeError.
    """
    protocol = group._protocol
    parts = frame.unpack(group.order, wire)
    if not protocol.application:
        return None
    if protocol.renumbers:  # what one receives there looks different: only the payload tells
        if not parts.payload:
            return None
        reader = Reader(parts.payload)  # `Group` puts block(name), varint(number) in front
        reader.block(), reader.varint()
        return Said(reader.rest(), {})
    message = protocol.decode(parts.control, parts.payload)
    if protocol.is_note(message):
        return None
    chosen: dict[str, Any] = {}
    names = parts.names if group.open else group._names
    if protocol.guarantee.relation is Relation.BY_REPLY:
        parents = protocol.causes(message)
        chosen["reply_to"] = tuple(Message(_named(names, p.sender), p.seq, b"") for p in parents)
    to = getattr(
        message, "to", None
    )  # Tsuneizumi et al. give each receiver other bytes, without a list
    if protocol.addressing is Addressing.MEMBERS and to and set(to) != set(protocol.others()):
        chosen["to"] = tuple(_named(names, number) for number in to)
    if protocol.addressing is Addressing.TOPICS:
        chosen["topics"] = message.topics
    return Said(parts.payload, chosen)


def _named(names: Mapping[int, str], number: int) -> str:
    if number not in names:
        raise UnknownMemberError(f"an own message that speaks of member {number}, a stranger")
    return names[number]
