"""Shared state of the parts of a `Group`, and its log of inputs.

A protocol is deterministic, so a snapshot and the inputs since then determine the state. Each call
with a change is a record of its arguments, whose size does not grow with the state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from antecede.core.clocks.encoding import ByteReader
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.counters import GroupCounters
from antecede.core.group.frames.format import Incarnation
from antecede.core.group.incarnations import IncarnationTable, Roster
from antecede.core.group.message import Id, Message, Packet, Sent, Thread
from antecede.core.group.options import Limits, insert_names, is_id
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
from antecede.formatting import quote


class Threads:
    """Reply relations of at most `max_messages` messages; the oldest are dropped."""

    def __init__(self, max_messages: int, links: Iterable[tuple[Id, tuple[Id, ...]]] = ()) -> None:
        self.max_messages = max_messages
        self.parents: OrderedDict[Id, tuple[Id, ...]] = OrderedDict()
        """Message -> answered messages, in order of delivery."""
        self.replies: dict[Id, list[Id]] = {}
        for message, parents in links:
            self.add(message, parents)

    def add(self, message: Id, parents: tuple[Id, ...]) -> None:
        """Add a delivered or sent message."""
        if not self.max_messages or message in self.parents:
            return
        self.parents[message] = parents
        for parent in parents:
            self.replies.setdefault(parent, []).append(message)
        if len(self.parents) > self.max_messages:
            oldest, above = self.parents.popitem(last=False)
            for parent in above:
                self.replies[parent].remove(oldest)
                if not self.replies[parent]:
                    del self.replies[parent]

    def root(self, message: Id) -> Id:
        """Return the first known message of a thread, following the first parent."""
        while parents := self.parents.get(message):
            message = parents[0]
        return message

    def tree(self, root: Id, was_here: Callable[[Id], bool] | None = None) -> Thread:
        """Return a message with all replies, without recursion; `was_here` marks forgotten ones."""
        order = [root]
        for message in order:
            order += [
                answer
                for answer in self.replies.get(message, ())
                if self._is_child(answer, message)
            ]
        done: dict[Id, Thread] = {}
        for message in reversed(order):
            below = [
                answer
                for answer in self.replies.get(message, ())
                if self._is_child(answer, message)
            ]
            is_known = message in self.parents
            answers = tuple(done[answer] for answer in below)
            forgotten = not is_known and was_here is not None and was_here(message)
            done[message] = Thread(message, is_known, answers, forgotten)
        return done[root]

    def _is_child(self, answer: Id, parent: Id) -> bool:
        return self.parents[answer][0] == parent

    def __contains__(self, message: object) -> bool:
        return message in self.parents or message in self.replies

    def state(self) -> tuple[tuple[Id, tuple[Id, ...]], ...]:
        """Return a serializable state."""
        return tuple(self.parents.items())


READING: Shape = OneOf(None, SIGNED)
IDS: Shape = Many((TEXT, NUMBER))
NAMES: Shape = Many(TEXT)

INPUT_SHAPES: dict[str, Shape] = {
    "receive": (BYTES, READING),
    "post": (BYTES, OneOf(None, NAMES), NAMES, IDS, READING),
    "tick": (SIGNED,),
    "correct_clock": (SIGNED,),
    "join": (TEXT,),
    "leave": OneOf((TEXT, NUMBER), (TEXT, NUMBER, BOOL)),
    "forget": (TEXT,),
    "start_from": (OneOf(None, IDS),),
    "subscribe": (TEXT, NAMES),
    "release": (IDS,),
    "outgoing": (),
    "delivered": (),
}
"""Schemas of the records by kind, version 1."""


def encode_input(kind: str, *values: Any) -> bytes:
    """Return an input as bytes."""
    return pack_state((kind, values))


def replay_input(data: bytes, handlers: Mapping[str, Callable[..., Any]]) -> None:
    """Call the handler of a record. Raise DecodeError."""
    kind, values = unpack_state(data, 2)
    if misfit(kind, TEXT) or kind not in INPUT_SHAPES:
        raise DecodeError(f"unknown kind of record: {kind!r:.40}")
    if where := misfit(values, INPUT_SHAPES[kind]):
        raise DecodeError(f"invalid record of {kind!r}: {where}")
    handlers[kind](*values)


NO_CALL: tuple[Any, Sequence[Effect]] = None, NOTHING
"""Value at the start of a call, and after an error."""
MAX_RECENT = 4096
"""Messages whose digest is kept, to detect a number used twice."""


class GroupState:
    """State of a group: protocol, member table, incarnations, counters and queues."""

    def __init__(
        self,
        order: str,
        protocol: Protocol,
        members: Roster,
        is_open: bool,
        *,
        room: int,
        options: int,
        limits: Limits | None = None,
        keep_log: bool = False,
    ) -> None:
        self.order, self.is_open = order, is_open
        self.protocol, self.roster = protocol, members
        self.room, self.options = room, options
        self.limits, self.keep_log = limits or Limits(), keep_log
        relation = protocol.guarantee.relation
        self.renumbers = protocol.renumbers
        self.by_reply = relation is Relation.BY_REPLY
        self.is_total = relation is Relation.TOTAL
        self.names_causes = type(protocol).causes is not Protocol.causes
        self.has_control = type(protocol).is_control is not Protocol.is_control
        self.records: list[bytes] = []
        self.incarnation = Incarnation(0, 0)
        self.incarnations = IncarnationTable()
        self.counters = GroupCounters()
        self.threads = Threads(self.limits.threads)
        self.recent: OrderedDict[tuple[str, int], int] = OrderedDict()
        self.newer_view_frames: dict[bytes, tuple[Message, int, int | None]] = {}
        """Frame of a newer view -> message, joins needed, clock reading."""
        self.last_call: tuple[Any, Sequence[Effect]] = NO_CALL
        """Received message and effects of the last call."""
        self.assumptions: Assumptions | None = None
        """Causes that count as delivered; None: there are none."""
        self.sent = 0
        self.outbox: list[Packet] = []
        self.inbox: list[Message] = []

    def start_incarnation(self, incarnation: Incarnation) -> None:
        """Use this incarnation from now on."""
        self.incarnation = incarnation
        self.incarnations.add(self.name, incarnation)

    def record(self, kind: str, *values: Any) -> None:
        """Append an input to the log, if there is one."""
        if self.keep_log:
            self.records.append(encode_input(kind, *values))

    @property
    def held(self) -> int:
        """Number of messages that wait for causes or a join."""
        return self.protocol.count_held() + len(self.newer_view_frames)

    # -- names ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of this member."""
        return self.roster.names[self.protocol.me]

    def number(self, name: str) -> int:
        """Return a member's number. Raise LocalError for an unknown name."""
        numbers = self.roster.numbers
        try:
            return numbers[name]
        except (KeyError, TypeError, ValueError):  # unhashable values are unknown too
            raise LocalError(f"unknown member {quote(name)}; choose from {list(numbers)}") from None

    def name_ids(self, ids: Iterable[MessageId]) -> tuple[Id, ...]:
        """Return ids with names in place of numbers."""
        return tuple([(self.roster.name(sender), seq) for sender, seq in ids])

    def to_message(self, message: Any) -> Message:
        """Return a protocol message as a `Message`. Raise DecodeError."""
        if self.renumbers:
            return _read_original(message.payload)
        name = self.roster.name(message.sender)
        if self.by_reply:
            answered = self.name_ids(self.protocol.causes(message))
            return Message(name, message.seq, message.payload, (), answered)
        return Message(name, message.seq, message.payload)

    def is_control(self, message: Any) -> bool:
        """Return whether a message is a control message."""
        return self.has_control and self.protocol.is_control(message)

    def find_causes(self, message: Any) -> tuple[Id, ...]:
        """Return the causes that a message names, by name."""
        return self.name_ids(self.protocol.causes(message)) if self.names_causes else ()

    def check_reply_to(self, reply_to: Any, what: str = "reply_to") -> tuple[Id, ...]:
        """Return the ids in `reply_to` (`what`: its name). Raise LocalError."""
        parents = self.check_ids(reply_to, what)
        if parents and not self.by_reply:
            raise LocalError(f"order {self.order!r} does not support reply_to=; omit it")
        return parents

    def check_ids(self, reply_to: Any, what: str) -> tuple[Id, ...]:
        """Return the distinct ids of an argument. Raise LocalError."""
        if isinstance(reply_to, Message | Sent) or is_id(reply_to):
            reply_to = (reply_to,)
        if isinstance(reply_to, str | bytes) or not isinstance(reply_to, Iterable):
            raise LocalError(
                f"{what} is {type(reply_to).__name__}; expected a delivered Message, a result of "
                "send, (sender, number), or a list of these"
            )
        parents = []
        for item in reply_to:
            key = item.id if isinstance(item, Message | Sent) else item
            if not is_id(key):
                raise LocalError(f"{what} has {quote(item)}; expected a message id")
            parents.append((key[0], key[1]))
        return tuple(dict.fromkeys(parents))

    # -- errors -----------------------------------------------------------------------------

    def insert_names(self, error: ProtocolError, names: Mapping[int, str] | None = None) -> None:
        """Replace member numbers in an error of the protocol by names."""
        if error.args and isinstance(error.args[0], str):
            table = self.roster.names if names is None else names
            error.args = (insert_names(error.args[0], table), *error.args[1:])

    @contextmanager
    def translate_errors(self, names: Mapping[int, str] | None = None) -> Iterator[None]:
        """Replace member numbers in errors of the block."""
        try:
            yield
        except ProtocolError as error:
            self.insert_names(error, names)
            raise

    @contextmanager
    def rollback_on_error(self) -> Iterator[None]:
        """Restore the group's state if the block raises."""
        protocol, roster = self.protocol.snapshot(), self.roster
        tally, outbox, inbox = self.counters.copy(), list(self.outbox), list(self.inbox)
        self.roster = roster.copy()
        try:
            yield
        except Exception:
            self.protocol.restore(protocol)
            self.roster, self.outbox, self.inbox = roster, outbox, inbox
            self.counters = tally
            raise


def _read_original(payload: bytes) -> Message:
    """Return the message inside a renumbered one; inverse of `FrameCodec.wrap_original`."""
    reader = ByteReader(payload)
    try:
        sender, seq = reader.block().decode(), reader.varint()
    except UnicodeDecodeError as error:
        raise DecodeError("name of the original sender is not UTF-8") from error
    return Message(sender, seq, reader.rest())
