"""Events of a live peer for the application: messages and changes of the group.

A *sender id* names the sender log of one incarnation of a member: the member's name, "~", and eight
random letters or digits. With a store an incarnation continues after a restart. Without a store a
restart begins the next incarnation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import partial
from itertools import count, repeat
from typing import NamedTuple

from antecede.core.propagation import CausalContext
from antecede.errors import LocalError
from antecede.live import stamps

MAX_NAME_BYTES = 200
"""A sender id has nine bytes more."""
INCARNATION_LENGTH = 8


def member_of(lane: str) -> str:
    """Return the name of the member with a sender id."""
    return lane.rpartition("~")[0]


def lane_of(name: str, life: str) -> str:
    """Return the sender id of an incarnation of a member. Raises LocalError for an invalid part."""
    lane = f"{check_name(name)}~{life}"
    if not is_lane(lane):
        raise LocalError(
            f"invalid incarnation {life!r:.40}; expected {INCARNATION_LENGTH} letters or digits"
        )
    return lane


def is_lane(text: str) -> bool:
    """Return whether a text is a valid sender id."""
    name, tilde, life = text.rpartition("~")
    sound = len(life) == INCARNATION_LENGTH and life.isascii() and life.isalnum()
    return bool(tilde) and sound and is_name(name)


def is_name(text: str) -> bool:
    """Return whether a text is a valid member name: printable, without "~"."""
    return 0 < len(text.encode()) <= MAX_NAME_BYTES and text.isprintable() and "~" not in text


def check_name(name: str) -> str:
    """Return a member's name. Raises LocalError for an invalid one."""
    if not isinstance(name, str) or not is_name(name):
        raise LocalError(
            f"invalid member name {name!r:.60}; expected 1 to {MAX_NAME_BYTES} bytes of printable "
            "text without '~'"
        )
    return name


class Id(NamedTuple):
    """Permanent id of a message in its group."""

    sender_id: str
    """NAME~INCARNATION of the sender."""
    number: int
    """Number in the sender log, from 1."""

    @property
    def sender(self) -> str:
        """Name of the member that sent it."""
        return member_of(self.sender_id)

    def __str__(self) -> str:
        return f"{self.sender_id}:{self.number}"

    def encode(self) -> str:
        """Return the id for headers of `antecede.core.propagation`, percent-encoded where needed.
        Raises LimitError for a name that is too long.
        """
        return stamps.encode_id(self.sender_id, self.number)

    @classmethod
    def from_text(cls, text: str) -> Id:
        """Return the id of a text such as "alice~0a1b2c3d:7". Raises LocalError for other texts."""
        lane, _, number = text.rpartition(":")
        if not is_lane(lane) or not number.isdecimal() or not number.isascii() or int(number) < 1:
            raise LocalError(f"invalid message id {text!r:.80}; expected NAME~INCARNATION:NUMBER")
        return cls(lane, int(number))


class Message(NamedTuple):
    """Message for the application."""

    sender_id: str
    """NAME~INCARNATION of the sender, as in `id`."""
    number: int
    """Number in the sender log, from 1."""
    payload: bytes
    """Bytes that the sender gave to `send`."""
    reply_to: tuple[Id, ...] = ()
    """Messages that it replies to (order "reply")."""
    missing_ids: tuple[Id, ...] = ()
    """Parents in `reply_to` that no member has: they were lost with their senders."""
    topics: tuple[str, ...] = ()
    """Topics, sorted (orders by topics)."""
    is_history: bool = False
    """True if it was sent before this member joined and came from its sponsor (`history=`). It
    needs no acknowledgement."""

    @property
    def sender(self) -> str:
        """Name of the member that sent it."""
        return member_of(self.sender_id)

    @property
    def id(self) -> Id:
        """Id; its text is str()."""
        return Id(self.sender_id, self.number)

    @property
    def causal_context(self) -> CausalContext:
        """Causal past of the message, for `antecede.core.propagation`."""
        return stamps.past_of((self.sender_id, self.number), self.reply_to)

    def __repr__(self) -> str:
        data = self.payload if len(self.payload) <= 40 else self.payload[:37] + b"..."
        more = f", replies to {', '.join(map(str, self.reply_to))}" if self.reply_to else ""
        more += f", without {', '.join(map(str, self.missing_ids))}" if self.missing_ids else ""
        return f"<{self.sender_id}:{self.number} {data!r}{more}>"


class SentBatch(NamedTuple):
    """Consecutive messages of one sender with the same causes. A peer delivers these and makes a
    `Message` of each on demand: many waiting tuples cost garbage collection.
    """

    sender_id: str
    first: int
    """Number of the first message; the others follow without gaps."""
    payloads: list[bytes]
    reply_to: tuple[Id, ...] = ()
    missing_ids: tuple[Id, ...] = ()
    topics: tuple[str, ...] = ()
    is_history: bool = False
    """See `Message`."""

    @property
    def sender(self) -> str:
        """Name of the member that sent it."""
        return member_of(self.sender_id)

    @property
    def live_count(self) -> int:
        """Number of messages that this member delivered itself: all, or 0 for history."""
        return 0 if self.is_history else len(self.payloads)

    def messages(self, payloads: Iterable[bytes] | None = None) -> Iterator[Message]:
        """Return the messages. `payloads`: iterator over the own payloads, whose rest the caller
        counts.
        """
        lane, first, own, *same = self
        payloads = own if payloads is None else payloads
        rest = map(repeat, same)
        fields = zip(repeat(lane), count(first), payloads, *rest, strict=False)
        return map(_new_message, fields)

    def tail(self, count: int) -> SentBatch:
        """Return the last `count` messages."""
        skip = len(self.payloads) - count
        if not skip:
            return self
        return SentBatch(self.sender_id, self.first + skip, self.payloads[skip:], *self[3:])


class ChangeKind(IntEnum):
    """Kinds of membership changes."""

    JOINED = 0
    LEFT = 1
    EVICTED = 2
    SUBSCRIBED = 3


class Change(NamedTuple):
    """Change of the group's members."""

    kind: ChangeKind
    """Joined, left, evicted, or subscribed to other topics."""
    sender_id: str
    """NAME~INCARNATION of the member in question."""
    detail: str = ""
    """Address of a joining member ("HOST:PORT"); reason of an eviction; or the new topics, sorted,
    one a line."""

    @property
    def member(self) -> str:
        """Name of the member."""
        return member_of(self.sender_id)

    @property
    def topics(self) -> tuple[str, ...]:
        """New topics of the member."""
        return tuple(self.detail.splitlines()) if self.kind is ChangeKind.SUBSCRIBED else ()

    def __str__(self) -> str:
        if self.kind is ChangeKind.SUBSCRIBED:
            return f"{self.member} subscribes to {', '.join(self.topics) or 'nothing'}"
        words = ("joined", "left", "was evicted")[self.kind]
        why = f": {self.detail}" if self.kind is ChangeKind.EVICTED and self.detail else ""
        return f"{self.member} {words}{why}"


class View(NamedTuple):
    """Members of the group from here on, and the change that led to them. Views are not repeated
    after a restart: read `Peer.members` at the start.
    """

    sender_ids: tuple[str, ...]
    """NAME~INCARNATION of each member, this one included, sorted."""
    change: Change
    """Change that led to this view."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, this one included, sorted."""
        return tuple(sorted(map(member_of, self.sender_ids)))


class MessagesAbandoned(NamedTuple):
    """Batches that no member will deliver: their causes were lost with a departed sender. Not
    repeated after a restart; `Status.abandoned` counts them since the start.
    """

    sender_id: str
    """NAME~INCARNATION of the departed sender."""
    batches: int
    """Number of its batches, the last ones. Order "reply": replies, one a batch."""
    missing_sender_ids: tuple[str, ...]
    """Sender ids of the logs with missing batches."""


Event = Message | View | MessagesAbandoned
"""Event for the application."""
Delivery = SentBatch | View | MessagesAbandoned
"""Event as the ordering hands it over."""
_new_message = partial(tuple.__new__, Message)
"""`Message._make` in two thirds of its time."""
new_id = partial(tuple.__new__, Id)
"""`Id._make` in two thirds of its time."""
