"""Short helpers for groups and sent messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antecede.core.protocols.base import Transmit


def group(make: Callable[..., Any], size: int, **options: Any) -> list[Any]:
    """Return members 0 .. size - 1."""
    return [make(k, range(size), **options) for k in range(size)]


def send_one(member: Any, payload: object = None, **how: Any) -> Any:
    """Send from a member; return the one message that it transmits."""
    (effect,) = member.send(payload, **{"now": 0, **how})
    assert isinstance(effect, Transmit)
    assert effect.to == getattr(effect.message, "to", effect.to)
    return effect.message
