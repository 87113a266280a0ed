"""Serialized state of an `Ordering`, without batches."""

from __future__ import annotations

from typing import Any, NamedTuple

from antecede.core.protocols.serialization import (
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
from antecede.errors import DecodeError
from antecede.live.events import Id, Message, SentBatch

IDS: Shape = Many((TEXT, NUMBER))
MESSAGE: Shape = (TEXT, NUMBER, BYTES, IDS, IDS, Many(TEXT))
STATE: tuple[Shape, ...] = (
    *(TEXT, BYTES, BYTES, Many((TEXT, NUMBER, NUMBER, NUMBER)), Many((TEXT, TEXT)), Many(TEXT)),
    *(NUMBER, NUMBER, Many(MESSAGE), Many((TEXT, TEXT)), Many((TEXT, BYTES, Many((TEXT, NUMBER))))),
    *(IDS, Many(MESSAGE), IDS, OneOf(None, SIGNED), Many(TEXT)),
)


class State(NamedTuple):
    """Fields in the order of storage, with the meaning of `Ordering`'s."""

    me: str
    invitation: bytes
    group: bytes
    lanes: tuple[tuple[str, int, int, int], ...]
    members: tuple[tuple[str, str], ...]
    gone: tuple[str, ...]
    place: int
    said: int
    open: tuple[Message, ...]
    spoiled: tuple[tuple[str, str], ...]
    guests: tuple[tuple[str, bytes, tuple[tuple[str, int], ...]], ...]
    cuts: tuple[tuple[str, int], ...]
    history: tuple[Message, ...]
    aside: tuple[Id, ...]
    """Dropped messages (order "reply")."""
    reading: int | None
    left: tuple[str, ...]


def pack(state: State) -> bytes:
    """Return a state as bytes."""
    fields: dict[str, Any] = state._asdict()
    fields["open"] = tuple(map(_plain, state.open))
    fields["history"] = tuple(map(_plain, state.history))
    fields["aside"] = tuple(map(tuple, state.aside))
    return pack_state(tuple(fields.values()))


def unpack(data: bytes) -> State:
    """Return the state of `pack`. Raises DecodeError."""
    fields = unpack_state(data, len(STATE))
    if where := misfit(fields, STATE):
        raise DecodeError(f"invalid state of a live peer: {where}")
    was = State(*fields)
    return was._replace(
        open=tuple(_message(*one) for one in was.open),
        history=tuple(_message(*one) for one in was.history),
        aside=tuple(Id(*one) for one in was.aside),
    )


def as_said(message: Message) -> SentBatch:
    """Return a message as a batch of one."""
    return SentBatch(message.sender_id, message.number, [message.payload], *message[3:6])


def _plain(message: Message) -> tuple[Any, ...]:
    ids = (tuple(map(tuple, some)) for some in (message.reply_to, message.missing_ids))
    return (*message[:3], *ids, message.topics)


def _message(lane: str, number: int, payload: bytes, *more: Any) -> Message:
    *ids, topics = more
    answers, missing = (tuple([Id(*one) for one in some]) for some in ids)
    return Message(lane, number, payload, answers, missing, topics)


__all__ = ["State", "as_said", "pack", "unpack"]
