"""Results of a `Group`: messages, packets, effects, statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

Id: TypeAlias = tuple[str, int]
"""Message id: sender and its sequence number, from 1."""


def _format_ids(ids: tuple[Id, ...]) -> str:
    return ", ".join(_describe_id(sender, seq) for sender, seq in ids)


def _describe_id(sender: str, seq: int) -> str:
    return f"{sender}'s message {seq}" if seq else f"a control message of {sender}"


class Message(NamedTuple):
    """Message of the application."""

    sender: str
    seq: int
    """Sequence number of the sender, from 1; 0 in `Blocked`: a control message."""
    payload: bytes
    missing: tuple[Id, ...] = ()
    """Causes not delivered before: lost (`Group.declare_lost`) or assumed (`Group.start_from`)."""
    reply_to: tuple[Id, ...] = ()

    @property
    def id(self) -> Id:
        """Sender and sequence number."""
        return self.sender, self.seq

    def __repr__(self) -> str:
        more = f", answers {_format_ids(self.reply_to)}" if self.reply_to else ""
        more += f", without {_format_ids(self.missing)}" if self.missing else ""
        return f"<{_describe_id(self.sender, self.seq)}: {_shorten(self.payload)}{more}>"


class Sent(bytes):
    """Bytes of an own message, with its `id` and `message`; valid as `reply_to=`."""

    message: Message
    to: tuple[str, ...]

    def __new__(cls, wire: bytes, message: Message, to: tuple[str, ...]) -> Sent:
        """Return `wire` with its message and receivers."""
        sent = super().__new__(cls, wire)
        sent.message, sent.to = message, to
        return sent

    def __getnewargs__(self) -> tuple[bytes, Message, tuple[str, ...]]:  # type: ignore[override]
        return bytes(self), self.message, self.to

    @property
    def id(self) -> Id:
        """Own name and sequence number."""
        return self.message.id

    @property
    def seq(self) -> int:
        """Sequence number."""
        return self.message.seq


class HeldMessage(NamedTuple):
    """Held message and what it waits for."""

    message: Message
    waits_for: tuple[Id, ...]
    silent: tuple[str, ...] = ()
    """Members from which any message is awaited (orders by clocks)."""
    until_ns: int | None = None
    """Local clock reading at which it may be delivered (orders by clocks)."""
    unseen_joins: int = 0
    """Joins that its sender knows of and this member does not. Each `Group.join` reduces it."""
    reason: str = ""

    def __str__(self) -> str:
        reasons = [_format_ids(self.waits_for)] if self.waits_for else []
        if self.silent:
            reasons.append(f"any message from {', '.join(self.silent)}")
        if self.until_ns is not None:
            reasons.append(f"clock reading {self.until_ns} ns")
        if self.unseen_joins:
            reasons.append(f"{self.unseen_joins} join(s) that were not reported here")
        if self.reason:
            reasons.append(self.reason)
        condition = " and ".join(reasons) or "the next tick, or a held message ordered before it"
        return f"{_describe_id(self.message.sender, self.message.seq)} waits for {condition}"

    def __repr__(self) -> str:
        return f"<{self}>"


class Missing(NamedTuple):
    """Missing messages of one sender, and the number of held messages that depend on them."""

    sender: str
    seq: int | None
    """Highest missing number; None: any new message of the sender (orders by clocks)."""
    dependents: int
    first: int | None = None
    """First missing number of a gap up to `seq`; None: only `seq`, or messages have chosen
    receivers."""

    def __str__(self) -> str:
        of_sender = f"of {self.sender}"
        wait = f"{self.dependents} held message(s) wait for"
        if self.seq is None:
            return f"a new message {of_sender} is missing; {wait} it"
        if self.first is None:
            return f"message {self.seq} {of_sender} is missing; {wait} it"
        return f"messages {self.first} to {self.seq} {of_sender} are missing; {wait} them"

    def __repr__(self) -> str:
        return f"<{self}>"


class Thread(NamedTuple):
    """Message and its known replies, as a tree."""

    id: Id
    is_known: bool
    """False: only its replies are known here."""
    answers: tuple[Thread, ...]
    is_forgotten: bool = False
    """True: it was delivered or sent here, and is no longer kept."""

    def walk(self) -> Iterator[tuple[int, Thread]]:
        """Yield (depth, thread) of this message and all replies, in reading order."""
        waiting = [(0, self)]
        while waiting:
            depth, part = waiting.pop()
            yield depth, part
            waiting += [(depth + 1, answer) for answer in reversed(part.answers)]

    def __str__(self) -> str:
        lines = (
            f"{'  ' * depth}{part.id[0]}'s message {part.id[1]}{part._remark()}"
            for depth, part in self.walk()
        )
        return "\n".join(lines)

    def _remark(self) -> str:
        if self.is_known:
            return ""
        return " (no longer kept)" if self.is_forgotten else " (unknown)"

    def __repr__(self) -> str:
        return f"<{self.id[0]}'s message {self.id[1]} and {sum(1 for _ in self.walk()) - 1} below>"


class Stats(NamedTuple):
    """Counters of a group, O(1) to read."""

    members: int
    sent: int
    delivered: int
    """Includes `delivered_incomplete`."""
    released: int
    """Delivered although a cause was missing."""
    held: int
    ahead: int
    """Held since the sender has a newer view; includes control messages."""
    oldest: Id | None
    """Message held longest, by arrival or, in total orders, by sending."""
    held_since_ns: int | None
    """Clock reading at that time; None: none was given."""
    duplicates: int
    discarded: Mapping[str, int]
    """Messages that will not be delivered, by reason; without duplicates."""
    rejected: Mapping[str, int]
    """Rejected messages, by error class."""


class Envelope(NamedTuple):
    """Content of an encoded message: sender, causes, payload and sizes."""

    sender: str
    seq: int
    """0: a control message."""
    causes: tuple[Id, ...]
    """Causes, if the control information names them."""
    payload: bytes
    reply_to: tuple[Id, ...] = ()
    control_bytes: int = 0
    """Encoded control information. A source's own accounting may be lower."""
    identity_bytes: int = 0


class GroupEffect(NamedTuple):
    """Effect of a call on one message."""

    kind: Literal["sent", "delivered", "delivered_incomplete", "held", "discarded"]
    message: Message | None
    """None: a control message."""
    id: tuple[int, int] | None
    """Id of the message at this member, as in `Group.map_held_by_id`."""
    waits_for: tuple[Id, ...] = ()
    """Missing causes of a held or incompletely delivered message."""
    reason: str = ""
    """Reason of a discarded message, or other condition of a held one."""
    arrived: bool = False
    """True for the message that this call received."""


class SendArguments(NamedTuple):
    """Arguments of `Group.send_packets`, decoded from own bytes."""

    payload: bytes
    to: tuple[str, ...] | None = None
    """None: all, or the bytes do not contain it (orders by clocks)."""
    topics: tuple[str, ...] = ()
    reply_to: tuple[Id, ...] = ()


class Packet(NamedTuple):
    """Bytes for some of the members."""

    to: tuple[str, ...]
    wire: bytes

    def __repr__(self) -> str:
        return f"<{len(self.wire)} bytes for {', '.join(self.to) or 'no member'}>"


def _shorten(payload: bytes) -> str:
    return repr(payload) if len(payload) <= 40 else f"{payload[:37]!r}... ({len(payload)} bytes)"
