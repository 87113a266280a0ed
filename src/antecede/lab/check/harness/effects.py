"""Checks of the effects that a member returns, with advice on common mistakes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from antecede.core.protocols import (
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    MessageId,
    Protocol,
    Transmit,
)
from antecede.formatting import shown

MOST_EFFECTS = 10_000
"""Effects of one call above which it counts as endless."""
EFFECTS = (Transmit, Deliver, Hold, DeliverIncomplete, Discard)
_NAMES = "Transmit, Deliver, Hold, DeliverIncomplete and Discard"


class MisuseError(Exception):
    """Violation of the contract of `core.protocols.base` by a class under test, with advice."""


class TooManyError(MisuseError):
    """Endless effects of one call."""


def effects_of(given: Any, member: Protocol, what: str, known: Collection[int]) -> list[Effect]:
    """Return the effects of a call as a list; raises ContractError.

    `method`: the called method ("send"); `addresses`: present and former members.
    """
    if given is None:
        raise MisuseError(
            f"{what} returned None; return a sequence of effects, () when there are none"
        )
    if isinstance(given, EFFECTS):
        kind = type(given).__name__
        raise MisuseError(
            f"{what} returned a bare {kind}; return a sequence of effects: [{kind}(...)]"
        )
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise MisuseError(
            f"{what} returned {_brief(given)}; return a sequence of effects ({_NAMES})"
        )
    effects = list(islice(given, MOST_EFFECTS + 1))
    if len(effects) > MOST_EFFECTS:
        raise TooManyError(f"{what} returned more than {MOST_EFFECTS:,} effects, perhaps endlessly")
    for effect in effects:
        _look(effect, member, what, known)
    return effects


def check_sent(effects: Iterable[Effect], label: str, member: Protocol) -> None:
    """Raise ContractError if `send` transmits application messages without the given payload.

    A protocol may transmit it later, and control messages before.
    """
    sent = [one.message for one in effects if isinstance(one, Transmit)]
    own = [message for message in sent if not member.is_note(message)]
    if own and all(message.payload != label for message in own):
        raise MisuseError(
            f"send was given the payload {label!r} and transmitted {_brief(own[0].payload)}: "
            "keep `payload` unchanged; put control information into other fields"
        )


def _look(effect: Any, member: Protocol, what: str, known: Collection[int]) -> None:
    if not isinstance(effect, EFFECTS):
        more = "; return one flat sequence" if isinstance(effect, list | tuple) else ""
        more = "; leave it out" if effect is None else more
        raise MisuseError(
            f"{what} returned {_brief(effect)} among its effects, which are {_NAMES}{more}"
        )
    kind = type(effect).__name__
    _message(effect.message, f"{what} returned {kind}")
    if isinstance(effect, Transmit):
        _targets(effect.to, member, what, known)
    elif isinstance(effect, Hold | DeliverIncomplete):
        _missing(effect.missing, f"{what} returned {kind}")
    elif isinstance(effect, Discard) and not isinstance(effect.reason, str):
        raise MisuseError(
            f"{what} returned Discard with the reason {_brief(effect.reason)}, not a text"
        )


def _message(message: Any, where: str) -> None:
    if message is None:
        raise MisuseError(f"{where} without a message (None)")
    for name in ("sender", "seq", "payload"):
        if not hasattr(message, name):
            raise MisuseError(
                f"{where} with {_brief(message)}, which has no {name}; a message is an immutable "
                "tuple (NamedTuple) with at least sender, seq and payload"
            )
    try:
        hash(message)
    except TypeError:
        raise MisuseError(f"{where} with a mutable message: {_mutable(message)}") from None
    kind: Any = type(message)
    if kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__:
        raise MisuseError(
            f"{where} with a {kind.__name__}, which compares by identity: two copies of one "
            "message are not equal; make it a NamedTuple or a frozen dataclass"
        )


def _mutable(message: Any) -> str:
    instead: dict[type, str] = {
        list: "tuple",
        dict: "tuple of pairs",
        set: "frozenset",
        bytearray: "bytes",
    }
    named = hasattr(message, "_asdict")
    fields = message._asdict() if named else getattr(message, "__dict__", {})
    for name, value in fields.items():
        try:
            hash(value)
        except TypeError:
            kind = type(value)
            use = f"; use a {instead[kind]}" if kind in instead else ""
            return f"its field {name} holds a {kind.__name__}{use}"
    return f"{type(message).__name__} is not hashable; make it a NamedTuple or a frozen dataclass"


def _targets(to: Any, member: Protocol, what: str, known: Collection[int]) -> None:
    if isinstance(to, str | bytes) or not isinstance(to, Iterable):
        raise MisuseError(
            f"{what} returned Transmit(to={_brief(to)}); `to` is a tuple of member numbers"
        )
    for target in to:
        if target == member.me:
            raise MisuseError(
                f"{what} returned Transmit to the member itself ({target}): a sent message counts "
                "as delivered there; use self.others()"
            )
        if target not in known:
            raise MisuseError(
                f"{what} returned Transmit to {_brief(target)}, which was never in the group; "
                f"members are {', '.join(map(str, sorted(known)))}"
            )


def _missing(missing: Any, where: str) -> None:
    if isinstance(missing, MessageId | str) or not isinstance(missing, tuple | list):
        raise MisuseError(
            f"{where} with missing={_brief(missing)}; expected a tuple of MessageId, () for "
            "unknown causes"
        )
    for one in missing:
        if not (isinstance(one, tuple) and len(one) == 2):
            raise MisuseError(
                f"{where} with {_brief(one)} in `missing`; expected MessageId(sender, seq)"
            )


def _brief(value: Any) -> str:
    return shown(value) if value is None else f"{shown(value)} ({type(value).__name__})"
