"""State that all parts of a `Group` share.

It names things: members by number, messages of the protocol as the application sees them, errors.
It decides nothing; `core.group.receiver`, `core.group.sender` and their neighbours do.

The log of a group's inputs: what has come in since a snapshot, as small records.

A protocol is deterministic, so a snapshot and the inputs since then are the state. A record is
written for each call that changed something, and holds what the call was given: its cost does not
grow with the state, where a snapshot with a thousand held messages does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from antecede.core.clocks.encoding import Reader
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.counters import Tallies
from antecede.core.group.frames.format import Incarnation
from antecede.core.group.incarnations import Lives, Roster
from antecede.core.group.message import Id, Message, Packet, Sent, Thread
from antecede.core.group.options import Limits, is_id, with_names
from antecede.core.protocols import NOTHING, Effect, MessageId, Protocol, Relation
from antecede.core.protocols.serialization import (
    BOOL,
    BYTES,
    NUMBER,
    SIGNED,
    TEXT,
    Many,
    OneOf,
    Shape,
    misfit,
    pack_state,
    unpack_state,
)
from antecede.errors import DecodeError, LocalError, ProtocolError
from antecede.formatting import shown


class Threads:
    """The links of at most `most` messages, the oldest forgotten first."""

    def __init__(self, most: int, links: Iterable[tuple[Id, tuple[Id, ...]]] = ()) -> None:
        self.most = most
        self.parents: OrderedDict[Id, tuple[Id, ...]] = OrderedDict()
        """By message, in the order of their delivery."""
        self.answers: dict[Id, list[Id]] = {}
        for message, parents in links:
            self.add(message, parents)

    def add(self, message: Id, parents: tuple[Id, ...]) -> None:
        """Remember a message that was delivered or sent."""
        if not self.most or message in self.parents:
            return
        self.parents[message] = parents
        for parent in parents:
            self.answers.setdefault(parent, []).append(message)
        if len(self.parents) > self.most:
            oldest, above = self.parents.popitem(last=False)
            for parent in above:
                self.answers[parent].remove(oldest)
                if not self.answers[parent]:
                    del self.answers[parent]

    def root(self, message: Id) -> Id:
        """Return where a thread begins, as far as remembered; of several parents the first."""
        while parents := self.parents.get(message):
            message = parents[0]
        return message

    def tree(self, root: Id, was_here: Callable[[Id], bool] | None = None) -> Thread:
        """Return a message with everything below it; without recursion, as threads can be deep.

        `was_here`: whether a message that is not remembered was delivered or sent here (unknown).
        """
        order = [root]
        for one in order:
            order += [answer for answer in self.answers.get(one, ()) if self._under(answer, one)]
        done: dict[Id, Thread] = {}
        for one in reversed(order):
            below = [answer for answer in self.answers.get(one, ()) if self._under(answer, one)]
            here = one in self.parents
            answers = tuple(done[answer] for answer in below)
            forgotten = not here and was_here is not None and was_here(one)
            done[one] = Thread(one, here, answers, forgotten)
        return done[root]

    def _under(self, answer: Id, parent: Id) -> bool:
        """Tell whether an answer stands below this parent: the first that it names."""
        return self.parents[answer][0] == parent

    def __contains__(self, message: object) -> bool:
        return message in self.parents or message in self.answers

    def state(self) -> tuple[tuple[Id, tuple[Id, ...]], ...]:
        """Return the links as plain tuples."""
        return tuple(self.parents.items())


READING: Shape = OneOf(None, SIGNED)
IDS: Shape = Many((TEXT, NUMBER))
NAMES: Shape = Many(TEXT)

KINDS: dict[str, Shape] = {
    "receive": (BYTES, READING),
    "post": (BYTES, OneOf(None, NAMES), NAMES, IDS, READING),
    "tick": (SIGNED,),
    "correct_clock": (SIGNED,),
    "join": (TEXT,),
    "leave": OneOf((TEXT, NUMBER), (TEXT, NUMBER, BOOL)),
    "forget": (TEXT,),
    "begin_at": (OneOf(None, IDS),),
    "subscribe": (TEXT, NAMES),
    "release": (IDS,),
    "outgoing": (),
    "delivered": (),
}
"""What a record of each kind holds, version 1."""


def input_record(kind: str, *values: Any) -> bytes:
    """Return one input as bytes."""
    return pack_state((kind, values))


def replay_input(data: bytes, doors: Mapping[str, Callable[..., Any]]) -> None:
    """Do again what a record says, through the door of its kind. Raises DecodeError."""
    kind, values = unpack_state(data, 2)
    if misfit(kind, TEXT) or kind not in KINDS:
        raise DecodeError(f"a record of an unknown kind: {kind!r:.40}")
    if where := misfit(values, KINDS[kind]):
        raise DecodeError(f"a record of {kind!r} that cannot be: {where}")
    doors[kind](*values)


NO_CALL: tuple[Any, Sequence[Effect]] = None, NOTHING
"""Where a call begins, and what is left of one that was refused."""
RECENT = 4096
"""Messages whose content is remembered, to tell a copy from another message with its number."""


class GroupState:
    """One protocol, names and numbers, what waits here, and in which life the member speaks."""

    def __init__(
        self,
        order: str,
        protocol: Protocol,
        roster: Roster,
        is_open: bool,
        *,
        room: int,
        options: int,
        limits: Limits | None = None,
        keep_log: bool = False,
    ) -> None:
        self.order, self.open = order, is_open
        self.protocol, self.roster = protocol, roster
        self.room, self.options = room, options
        self.limits, self.keep_log = limits or Limits(), keep_log
        relation = protocol.guarantee.relation
        self.renumbers = protocol.renumbers
        self.by_reply = relation is Relation.BY_REPLY
        self.is_total = relation is Relation.TOTAL
        self.names_causes = type(protocol).causes is not Protocol.causes
        """Whether control information says what must come before."""
        self.has_notes = type(protocol).is_note is not Protocol.is_note
        self.records: list[bytes] = []
        self.life = Incarnation(0, 0)
        self.lives = Lives()
        self.tally = Tallies()
        self.threads = Threads(self.limits.threads)
        self.recent: OrderedDict[tuple[str, int], int] = OrderedDict()
        self.ahead: dict[bytes, tuple[Message, int, int | None]] = {}
        """Frames of later views -> what they hold, the joins they need, the reading then."""
        self.call: tuple[Any, Sequence[Effect]] = NO_CALL
        """Of the last call: the message that its bytes carried, and what came of it."""
        self.assumptions: Assumptions | None = None
        """Causes that count as delivered and never came, where there may be any."""
        self.sent = 0
        self.outbox: list[Packet] = []
        self.inbox: list[Message] = []
        """Own messages whose turn came when they were sent (total order)."""

    def begin(self, life: Incarnation) -> None:
        """Speak as this incarnation from now on."""
        self.life = life
        self.lives.learn(self.name, life)

    def record(self, kind: str, *values: Any) -> None:
        """Keep an input for the log, where one is kept."""
        if self.keep_log:
            self.records.append(input_record(kind, *values))

    @property
    def held(self) -> int:
        """How many messages wait, for causes or for a join."""
        return self.protocol.held_count() + len(self.ahead)

    # -- names ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """One's own name."""
        return self.roster.names[self.protocol.me]

    def number(self, name: str) -> int:
        """Return a member's number. Raises LocalError for who never was in the group."""
        numbers = self.roster.numbers
        try:
            return numbers[name]
        except (KeyError, TypeError, ValueError):  # what cannot be hashed is no name either
            raise LocalError(f"{shown(name)} is not in the group {list(numbers)}") from None

    def named(self, ids: Iterable[MessageId]) -> tuple[Id, ...]:
        """Return ids with names in place of numbers."""
        return tuple([(self.roster.name(sender), seq) for sender, seq in ids])

    def message(self, message: Any) -> Message:
        """Return a message of the protocol as the application sees it. Raises DecodeError."""
        if self.renumbers:
            return _original(message.payload)
        name = self.roster.name(message.sender)
        if self.by_reply:
            answered = self.named(self.protocol.causes(message))
            return Message(name, message.seq, message.payload, (), answered)
        return Message(name, message.seq, message.payload)

    def is_note(self, message: Any) -> bool:
        """Tell whether a message is between protocols only."""
        return self.has_notes and self.protocol.is_note(message)

    def causes(self, message: Any) -> tuple[Id, ...]:
        """Return what a message says it needs, by name; nothing where it names no causes."""
        return self.named(self.protocol.causes(message)) if self.names_causes else ()

    def answered(self, reply_to: Any, what: str = "reply_to") -> tuple[Id, ...]:
        """Return the ids in `reply_to` (`what`: its name). Raises LocalError for no message."""
        parents = self.ids(reply_to, what)
        if parents and not self.by_reply:
            raise LocalError(f"order {self.order!r} keeps no answers: leave out reply_to=")
        return parents

    def ids(self, reply_to: Any, what: str) -> tuple[Id, ...]:
        """Return the ids that an argument names, each once; raises LocalError."""
        if isinstance(reply_to, Message | Sent) or is_id(reply_to):
            reply_to = (reply_to,)
        if isinstance(reply_to, str | bytes) or not isinstance(reply_to, Iterable):
            raise LocalError(
                f"{what} is a delivered Message, what send returned, (sender, number), "
                f"or a list of these, not {type(reply_to).__name__}"
            )
        parents = []
        for one in reply_to:
            key = one.id if isinstance(one, Message | Sent) else one
            if not is_id(key):
                raise LocalError(f"{what} has {shown(one)}, which names no message")
            parents.append((key[0], key[1]))
        return tuple(dict.fromkeys(parents))

    # -- errors -----------------------------------------------------------------------------

    def say_names(self, error: ProtocolError, names: Mapping[int, str] | None = None) -> None:
        """Let an error of the protocol say names instead of members' numbers."""
        if error.args and isinstance(error.args[0], str):
            table = self.roster.names if names is None else names
            error.args = (with_names(error.args[0], table), *error.args[1:])

    @contextmanager
    def named_errors(self, names: Mapping[int, str] | None = None) -> Iterator[None]:
        """Let errors of the protocol say names, in what follows."""
        try:
            yield
        except ProtocolError as error:
            self.say_names(error, names)
            raise

    @contextmanager
    def unchanged_by_errors(self) -> Iterator[None]:
        """Become what the group was before, when what follows raises anything."""
        protocol, roster = self.protocol.snapshot(), self.roster
        tally, outbox, inbox = self.tally.copy(), list(self.outbox), list(self.inbox)
        self.roster = roster.copy()
        try:
            yield
        except Exception:
            self.protocol.restore(protocol)
            self.roster, self.outbox, self.inbox = roster, outbox, inbox
            self.tally = tally
            raise


def _original(payload: bytes) -> Message:
    """Return the message inside one that a protocol renumbers: `Frames.wrapped` read back."""
    reader = Reader(payload)
    try:
        sender, seq = reader.block().decode(), reader.varint()
    except UnicodeDecodeError as error:
        raise DecodeError("the name of the original sender is not UTF-8") from error
    return Message(sender, seq, reader.rest())
