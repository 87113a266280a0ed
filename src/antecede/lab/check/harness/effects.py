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
from antecede.formatting import quote

MAX_EFFECTS = 10_000
"""Effects of one call above which it counts as endless."""
EFFECTS = (Transmit, Deliver, Hold, DeliverIncomplete, Discard)
_NAMES = "Transmit, Deliver, Hold, DeliverIncomplete and Discard"


class ContractError(Exception):
    """Violation of the contract of `core.protocols.base` by a class under test, with advice."""


class EndlessEffectsError(ContractError):
    """Endless effects of one call."""


def check_effects(
    returned: Any, member: Protocol, method: str, addresses: Collection[int]
) -> list[Effect]:
    """Return the effects of a call as a list; raises ContractError."""
    if returned is None:
        raise ContractError(
            f"{method} returned None; return a sequence of effects, () when there are none"
        )
    if isinstance(returned, EFFECTS):
        kind = type(returned).__name__
        raise ContractError(
            f"{method} returned a bare {kind}; return a sequence of effects: [{kind}(...)]"
        )
    if isinstance(returned, str | bytes | Mapping) or not isinstance(returned, Iterable):
        raise ContractError(
            f"{method} returned {_format_value(returned)}; return a sequence of effects ({_NAMES})"
        )
    effects = list(islice(returned, MAX_EFFECTS + 1))
    if len(effects) > MAX_EFFECTS:
        raise EndlessEffectsError(
            f"{method} returned more than {MAX_EFFECTS:,} effects, perhaps endlessly"
        )
    for effect in effects:
        _check_effect(effect, member, method, addresses)
    return effects


def check_transmitted(effects: Iterable[Effect], label: str, member: Protocol) -> None:
    """Raise ContractError if `send` transmits application messages without the payload."""
    sent = [one.message for one in effects if isinstance(one, Transmit)]
    own = [message for message in sent if not member.is_control(message)]
    if own and all(message.payload != label for message in own):
        raise ContractError(
            f"send received the payload {label!r} and transmitted {_format_value(own[0].payload)}: "
            "keep `payload` unchanged; put control information into other fields"
        )


def _check_effect(effect: Any, member: Protocol, method: str, addresses: Collection[int]) -> None:
    if not isinstance(effect, EFFECTS):
        more = "; return one flat sequence" if isinstance(effect, list | tuple) else ""
        more = "; leave it out" if effect is None else more
        raise ContractError(
            f"{method} returned {_format_value(effect)} among its effects, which are {_NAMES}{more}"
        )
    kind = type(effect).__name__
    _check_message(effect.message, f"{method} returned {kind}")
    if isinstance(effect, Transmit):
        _check_targets(effect.to, member, method, addresses)
    elif isinstance(effect, Hold | DeliverIncomplete):
        _check_missing(effect.missing, f"{method} returned {kind}")
    elif isinstance(effect, Discard) and not isinstance(effect.reason, str):
        raise ContractError(
            f"{method} returned Discard with the reason {_format_value(effect.reason)}, not a text"
        )


def _check_message(message: Any, where: str) -> None:
    if message is None:
        raise ContractError(f"{where} without a message (None)")
    for name in ("sender", "seq", "payload"):
        if not hasattr(message, name):
            raise ContractError(
                f"{where} with {_format_value(message)}, which has no {name}; "
                "a message is an immutable "
                "tuple (NamedTuple) with at least sender, seq and payload"
            )
    try:
        hash(message)
    except TypeError:
        raise ContractError(
            f"{where} with a mutable message: {_explain_mutable(message)}"
        ) from None
    kind: Any = type(message)
    if kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__:
        raise ContractError(
            f"{where} with a {kind.__name__}, which compares by identity: two copies of one "
            "message are not equal; make it a NamedTuple or a frozen dataclass"
        )


def _explain_mutable(message: Any) -> str:
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


def _check_targets(to: Any, member: Protocol, method: str, addresses: Collection[int]) -> None:
    if isinstance(to, str | bytes) or not isinstance(to, Iterable):
        raise ContractError(
            f"{method} returned Transmit(to={_format_value(to)}); `to` is a tuple of member numbers"
        )
    for target in to:
        if target == member.me:
            raise ContractError(
                f"{method} returned Transmit to the member itself ({target}): "
                "a sent message counts "
                "as delivered there; use self.others()"
            )
        if target not in addresses:
            raise ContractError(
                f"{method} returned Transmit to {_format_value(target)}, "
                "which was never in the group; "
                f"members are {', '.join(map(str, sorted(addresses)))}"
            )


def _check_missing(missing: Any, where: str) -> None:
    if isinstance(missing, MessageId | str) or not isinstance(missing, tuple | list):
        raise ContractError(
            f"{where} with missing={_format_value(missing)}; expected a tuple of MessageId, () for "
            "unknown causes"
        )
    for one in missing:
        if not (isinstance(one, tuple) and len(one) == 2):
            raise ContractError(
                f"{where} with {_format_value(one)} in `missing`; expected MessageId(sender, seq)"
            )


def _format_value(value: Any) -> str:
    return quote(value) if value is None else f"{quote(value)} ({type(value).__name__})"
