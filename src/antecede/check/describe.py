"""The state of a member in the words and symbols of its source, for `state` in a scenario.

A protocol may say it itself with `describe() -> dict[str, str]`. For any other protocol, a user's
own too, its attributes are shown as they are, with members and messages by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antecede.check.world import World
from antecede.protocols.base import MessageId, Protocol

_PLAIN = (str, int, float, bool, type(None))


def describe(member: Protocol, world: World, at: int, names: Mapping[int, str]) -> dict[str, str]:
    """Return field -> value as text for the member at this address."""
    own = getattr(member, "describe", None)
    if own is not None:
        return {str(field): str(value) for field, value in own().items()}
    hidden = ("me", "members")
    return {
        field: _show(value, world, at, names)
        for field, value in vars(member).items()
        if field not in hidden
    }


def _show(value: Any, world: World, at: int, names: Mapping[int, str]) -> str:
    if isinstance(value, MessageId):
        return world.name(at, value)
    if hasattr(value, "payload"):
        return str(value.payload)
    if isinstance(value, _PLAIN):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, Mapping):
        pairs = (
            f"{names.get(key, key) if isinstance(key, int) else _show(key, world, at, names)}:"
            f" {_show(item, world, at, names)}"
            for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(_show(item, world, at, names) for item in value)) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_show(item, world, at, names) for item in value) + ")"
    return type(value).__name__
