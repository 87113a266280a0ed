"""Results of a `Group` for the application: messages, packets, and what blocks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

Id: TypeAlias = tuple[str, int]
"""Names a message: its sender, and the sender's number for it, from 1."""


def _text(ids: tuple[Id, ...]) -> str:
    return ", ".join(_named(sender, seq) for sender, seq in ids)


def _named(sender: str, seq: int) -> str:
    """Return what a message is called; number 0 is that of notes between protocols."""
    return f"{sender}'s message {seq}" if seq else f"a note of {sender}'s protocol"


class Message(NamedTuple):
    """A message of the group as the application sees it."""

    sender: str
    seq: int
    """The sender's number for it, from 1; 0 in `blocked_on` alone: a note between protocols."""
    payload: bytes
    missing: tuple[Id, ...] = ()
    """Not empty when it was delivered although these causes never came: they are lost
    (`Group.release`, order "reply" with patience), or assumed (`Group.begin_at`)."""
    reply_to: tuple[Id, ...] = ()
    """What it answers (order "reply")."""

    @property
    def id(self) -> Id:
        """Sender and number, as `reply_to`, `blocked_on` and `missing` name a message."""
        return self.sender, self.seq

    def __repr__(self) -> str:
        more = f", answers {_text(self.reply_to)}" if self.reply_to else ""
        more += f", without {_text(self.missing)}" if self.missing else ""
        return f"<{_named(self.sender, self.seq)}: {_short(self.payload)}{more}>"


class Sent(bytes):
    """The bytes of one's own message, for the transport, and what it is.

    It is bytes in every way; `id` and `message` let it be answered (`reply_to=`) and shown.
    """

    message: Message
    to: tuple[str, ...]
    """Whom it is for, by name."""

    def __new__(cls, wire: bytes, message: Message, to: tuple[str, ...]) -> Sent:
        """Return the bytes of a message."""
        made = super().__new__(cls, wire)
        made.message, made.to = message, to
        return made

    def __getnewargs__(self) -> tuple[bytes, Message, tuple[str, ...]]:  # type: ignore[override]
        """For pickle and copy."""
        return bytes(self), self.message, self.to

    @property
    def id(self) -> Id:
        """One's own name and the message's number."""
        return self.message.id

    @property
    def seq(self) -> int:
        """One's own number for the message."""
        return self.message.seq


class Blocked(NamedTuple):
    """A message that is held back, and what is known to be missing for it."""

    message: Message
    waits_for: tuple[Id, ...]
    silent: tuple[str, ...] = ()
    """Members from whom something must still be heard, whatever it is (orders by clocks)."""
    until_ns: int | None = None
    """What one's own clock shows when it may go at the earliest (orders by clocks)."""
    join: int = 0
    """Above 0: its sender knew so many joins more than were told here; `join` releases it."""
    reason: str = ""
    """What it waits for in words, where that is no message."""

    def __str__(self) -> str:
        reasons = [_text(self.waits_for)] if self.waits_for else []
        if self.silent:
            reasons.append(f"a word from {', '.join(self.silent)}")
        if self.until_ns is not None:
            reasons.append(f"the clock to show {self.until_ns} ns")
        if self.join:
            reasons.append(f"{self.join} join(s) that were not told here")
        if self.reason:
            reasons.append(self.reason)
        what = " and ".join(reasons) or "the next tick, or a held message that comes before it"
        return f"{_named(self.message.sender, self.message.seq)} waits for {what}"

    def __repr__(self) -> str:
        return f"<{self}>"


class Missing(NamedTuple):
    """What is not here at all of one sender, and how many held messages name it."""

    sender: str
    seq: int | None
    """The number of the message; None: anything new of the sender (orders by clocks)."""
    waiting: int
    first: int | None = None
    """Where all from a smaller number on to `seq` are not here: that number. None: `seq` alone, or
    an order in which the numbers before it may be for others."""

    def __str__(self) -> str:
        of = f"of {self.sender}"
        wait = f"{self.waiting} held message(s) wait for"
        if self.seq is None:
            return f"anything new {of} is not here; {wait} it"
        if self.first is None:
            return f"message {self.seq} {of} is not here; {wait} it"
        return f"messages {self.first} to {self.seq} {of} are not here; {wait} them"

    def __repr__(self) -> str:
        return f"<{self}>"


class Thread(NamedTuple):
    """A message and all that answers it, as far as it is known here."""

    id: Id
    here: bool
    """False: it was answered, and is not (or no longer) known itself."""
    answers: tuple[Thread, ...]
    forgotten: bool = False
    """Where it is not known: whether it was delivered or sent here, and is remembered no more."""

    def walk(self) -> Iterator[tuple[int, Thread]]:
        """Yield (depth, part) for this message and every answer below it, in reading order."""
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
        if self.here:
            return ""
        return " (was here, no longer remembered)" if self.forgotten else " (not here)"

    def __repr__(self) -> str:
        return f"<{self.id[0]}'s message {self.id[1]} and {sum(1 for _ in self.walk()) - 1} below>"


class Stats(NamedTuple):
    """Counters of a group; all are kept as things happen, so that asking costs O(1)."""

    members: int
    sent: int
    delivered: int
    """Handed over, released ones too."""
    released: int
    """Handed over although something was missing."""
    held: int
    """Held back by the protocol."""
    ahead: int
    """Held back by the group, notes too: their senders know of joins that were not told here."""
    oldest: Id | None
    """The message that has been held longest, by the order in which they came or, in total orders,
    were sent here."""
    held_since_ns: int | None
    """The reading that was given when it came or was sent; None: none was."""
    duplicates: int
    discarded: Mapping[str, int]
    """By reason, duplicates left out: what came and will not be delivered."""
    refused: Mapping[str, int]
    """By kind of error: what was not taken in at all."""


class Envelope(NamedTuple):
    """What the bytes of a message say: who sent it, what it waits for, what it carries."""

    sender: str
    seq: int
    """0: a note between protocols."""
    causes: tuple[Id, ...]
    """What must be delivered before, where the order's control information names it."""
    payload: bytes
    reply_to: tuple[Id, ...] = ()
    control_bytes: int = 0
    """Encoded control information; what a source counts by its own accounting may be less."""
    identity_bytes: int = 0
    """Room, options, view, incarnations and names: no control information."""


class GroupEffect(NamedTuple):
    """What a call of a `Group` brought about for one message."""

    kind: Literal["sent", "delivered", "released", "held", "discarded"]
    message: Message | None
    """None: a note between protocols (a heartbeat, a request)."""
    id: tuple[int, int] | None
    """What names the message at this member as long as it is here: see `Group.blocked_by_id`."""
    waits_for: tuple[Id, ...] = ()
    """Of what is held: what it lacks. Of what is released: what never came."""
    reason: str = ""
    """Of what is discarded: why. Of what is held: what it waits for where that is no message."""
    arrived: bool = False
    """Whether this is the message that came with this call."""


class Said(NamedTuple):
    """What was given to `Group.post`, read back from the bytes that came of it."""

    payload: bytes
    to: tuple[str, ...] | None = None
    """None: all, or the bytes do not tell (orders by clocks)."""
    topics: tuple[str, ...] = ()
    reply_to: tuple[Id, ...] = ()


class Packet(NamedTuple):
    """Bytes for some of the members."""

    to: tuple[str, ...]
    wire: bytes

    def __repr__(self) -> str:
        return f"<{len(self.wire)} bytes for {', '.join(self.to) or 'nobody'}>"


def _short(payload: bytes) -> str:
    return repr(payload) if len(payload) <= 40 else f"{payload[:37]!r}... ({len(payload)} bytes)"
