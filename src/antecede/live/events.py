"""What a live peer hands to the application: messages, and who came or went.

A *lane* is what one life of a member sends: the member's name, "~", and eight letters or digits
that were drawn when that life began. With a store a life goes on after a restart; without one
the next life has another lane.
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
"""Of a member's name; a lane has nine more."""
LIFE_LENGTH = 8


def member_of(lane: str) -> str:
    """Return the name of the member whose lane it is."""
    return lane.rpartition("~")[0]


def lane_of(name: str, life: str) -> str:
    """Return the lane of one life of a member. Raises LocalError for what cannot be one."""
    lane = f"{checked_name(name)}~{life}"
    if not is_lane(lane):
        raise LocalError(f"a life is {LIFE_LENGTH} letters or digits, not {life!r:.40}")
    return lane


def is_lane(text: str) -> bool:
    """Tell whether a text can be a lane."""
    name, tilde, life = text.rpartition("~")
    sound = len(life) == LIFE_LENGTH and life.isascii() and life.isalnum()
    return bool(tilde) and sound and is_name(name)


def is_name(text: str) -> bool:
    """Tell whether a text can be a member's name: printable, without "~"."""
    return 0 < len(text.encode()) <= MAX_NAME_BYTES and text.isprintable() and "~" not in text


def checked_name(name: str) -> str:
    """Return a member's name. Raises LocalError for what cannot be one."""
    if not isinstance(name, str) or not is_name(name):
        raise LocalError(
            f"a member's name is 1 to {MAX_NAME_BYTES} bytes of printable text without '~', "
            f"not {name!r:.60}"
        )
    return name


class Id(NamedTuple):
    """Names a message in its group, for good: a lane, and a number in it, from 1."""

    lane: str
    """NAME~LIFE of the run of its sender."""
    number: int
    """Of the message among those of its lane, from 1."""

    @property
    def sender(self) -> str:
        """Name of the member who sent it."""
        return member_of(self.lane)

    def __str__(self) -> str:
        return f"{self.lane}:{self.number}"

    @property
    def token(self) -> str:
        """The id as `antecede.core.propagation` has it in headers: str() of it, percent-encoded
        where needed.

        Raises LimitError where the member's name is too long for a header's id.
        """
        return stamps.token(self.lane, self.number)

    @classmethod
    def of(cls, text: str) -> Id:
        """Return the id that `str` wrote, as in `Id.of("alice~0a1b2c3d:7")`.

        Raises LocalError for another text.
        """
        lane, _, number = text.rpartition(":")
        if not is_lane(lane) or not number.isdecimal() or not number.isascii() or int(number) < 1:
            raise LocalError(f"{text!r:.80} names no message: an id is NAME~LIFE:NUMBER")
        return cls(lane, int(number))


class Message(NamedTuple):
    """A message for the application."""

    lane: str
    """NAME~LIFE of the run of its sender, as in `id`."""
    number: int
    """Of the message among those of its lane, from 1."""
    payload: bytes
    """Bytes that the sender gave to `send`."""
    reply_to: tuple[Id, ...] = ()
    """What it answers (order "reply")."""
    missing: tuple[Id, ...] = ()
    """Those of them that nobody in the group has any more: they died with their senders."""
    topics: tuple[str, ...] = ()
    """What it is about, sorted (orders by topics)."""
    is_history: bool = False
    """True if it was sent before this member joined and came from its sponsor (`history=`).

    It needs no acknowledgement.
    """

    @property
    def sender(self) -> str:
        """Name of the member who sent it."""
        return member_of(self.lane)

    @property
    def id(self) -> Id:
        """What names it; str() of it is one text."""
        return Id(self.lane, self.number)

    @property
    def past(self) -> CausalContext:
        """Causal past of the message, for `antecede.core.propagation`."""
        return stamps.past_of((self.lane, self.number), self.reply_to)

    def __repr__(self) -> str:
        data = self.payload if len(self.payload) <= 40 else self.payload[:37] + b"..."
        more = f", answers {', '.join(map(str, self.reply_to))}" if self.reply_to else ""
        more += f", without {', '.join(map(str, self.missing))}" if self.missing else ""
        return f"<{self.lane}:{self.number} {data!r}{more}>"


class Said(NamedTuple):
    """What a member said with the same causes, one message after the other.

    A peer delivers in these; what makes a `Message` of each waits until somebody asks, since a
    hundred thousand tuples that wait are work for the garbage collector.
    """

    lane: str
    first: int
    """Number of the first; the others follow it without gaps."""
    payloads: list[bytes]
    reply_to: tuple[Id, ...] = ()
    missing: tuple[Id, ...] = ()
    topics: tuple[str, ...] = ()
    is_history: bool = False
    """See `Message`."""

    @property
    def sender(self) -> str:
        """Name of the member who said it."""
        return member_of(self.lane)

    @property
    def live_count(self) -> int:
        """Number of its messages that this member delivered itself: all, or none of the history."""
        return 0 if self.is_history else len(self.payloads)

    def messages(self, payloads: Iterable[bytes] | None = None) -> Iterator[Message]:
        """Return the messages; `payloads`: an iterator over one's own, for who wants to see how
        many are left.
        """
        lane, first, own, *same = self
        payloads = own if payloads is None else payloads
        rest = map(repeat, same)
        fields = zip(repeat(lane), count(first), payloads, *rest, strict=False)
        return map(_new_message, fields)

    def tail(self, count: int) -> Said:
        """Return the last so many of it."""
        skip = len(self.payloads) - count
        if not skip:
            return self
        return Said(self.lane, self.first + skip, self.payloads[skip:], *self[3:])


class ChangeKind(IntEnum):
    """How the members of a group change."""

    JOINED = 0
    LEFT = 1
    PUT_OUT = 2
    SUBSCRIBED = 3


class Change(NamedTuple):
    """Somebody came or went."""

    kind: ChangeKind
    """How: it joined, left, was put out, or subscribes to other topics."""
    lane: str
    """NAME~LIFE of the member that it is about."""
    detail: str = ""
    """Where a newcomer is reached ("HOST:PORT"); why somebody was put out; the topics to which
    somebody subscribes from now on, sorted, a line each."""

    @property
    def member(self) -> str:
        """Name of the member."""
        return member_of(self.lane)

    @property
    def topics(self) -> tuple[str, ...]:
        """To what the member subscribes from now on."""
        return tuple(self.detail.splitlines()) if self.kind is ChangeKind.SUBSCRIBED else ()

    def __str__(self) -> str:
        if self.kind is ChangeKind.SUBSCRIBED:
            return f"{self.member} subscribes to {', '.join(self.topics) or 'nothing'}"
        words = ("joined", "left", "was put out")[self.kind]
        why = f": {self.detail}" if self.kind is ChangeKind.PUT_OUT and self.detail else ""
        return f"{self.member} {words}{why}"


class View(NamedTuple):
    """Members of the group from here on, and the change that led to them.

    Views do not come again after a restart: read `Peer.members` at the start.
    """

    lanes: tuple[str, ...]
    """NAME~LIFE of each member, sorted, oneself included."""
    change: Change
    """Name of the member that came, left, or changed its topics."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, oneself included, sorted."""
        return tuple(sorted(map(member_of, self.lanes)))


class GivenUp(NamedTuple):
    """What had come of a member that is gone, and is delivered by nobody: it depends on what
    nobody in the group has, since that died with its sender. It does not come again after a
    restart; `Status.given_up` counts since the start.
    """

    lane: str
    """NAME~LIFE of the member that is gone."""
    batches: int
    """How many of its batches, the last ones; order "reply": the answers, each a batch."""
    lacking: tuple[str, ...]
    """Lanes of which something is missing."""


Event = Message | View | GivenUp
"""What the application sees."""
Delivery = Said | View | GivenUp
"""The same, as it is handed over."""
_new_message = partial(tuple.__new__, Message)
"""As `Message._make`, which takes half as long again: a million times a second."""
new_id = partial(tuple.__new__, Id)
"""As `Id._make`, likewise."""
