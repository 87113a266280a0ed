"""Which held-back messages may go, where an order is a relation and not a count of causes.

Tsuneizumi et al. and Nakayama 2017 order messages by relations on their timestamps. A message may
go when its time has come (nothing that precedes it can still be under way) and nothing that
precedes it is held.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)


def released(
    held: MutableMapping[Key, Any],
    may_go: Callable[[Any], bool],
    precedes: Callable[[Any, Any], bool],
    rank: Callable[[Any], Any],
) -> list[Any]:
    """Take out of `held` all messages that may go, and return them in their order.

    `precedes(a, b)` must not be cyclic on what is held, else a cycle stays held for ever: test
    a relation before it is used here. `rank` breaks ties between messages that are free to go
    at the same time; with a rank that `precedes` respects, one pass finds them all.
    O(h^2) calls of `precedes` for h messages held.
    """
    free: list[Any] = []
    found = True
    while found:
        found = False
        for key, message in sorted(held.items(), key=lambda item: rank(item[1])):
            others = (other for other in held.values() if other is not message)
            if may_go(message) and not any(precedes(other, message) for other in others):
                del held[key]
                free.append(message)
                found = True
    return free
