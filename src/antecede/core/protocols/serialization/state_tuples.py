"""Turn the state of a protocol into nested tuples and back.

`freeze` makes a value hashable and independent of insertion order of sets; dictionaries keep
their order out of the result too, so that two states that behave alike compare equal. A
protocol that relies on the order of a dictionary must keep that order in a list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

LIST, DICT, SET, DEQUE, BYTES = "list", "dict", "set", "deque", "bytearray"
TAG = "\x00"


def freeze(value: Any) -> Hashable:
    """Return `value` as nested tuples; tuples, also named ones, stay as they are."""
    kind = type(value)
    if kind not in _FROZEN:
        _FROZEN[kind] = next((how for base, how in _CONTAINERS if issubclass(kind, base)), None)
    how = _FROZEN[kind]
    return value if how is None else how(value)


def _freeze_dict(value: dict[Any, Any]) -> Hashable:
    if not value:
        return _EMPTY_DICT
    pairs = [(freeze(key), freeze(item)) for key, item in value.items()]
    return (TAG, DICT, tuple(_sorted(pairs)))


_CONTAINERS: tuple[tuple[type, Callable[[Any], Hashable]], ...] = (
    (dict, _freeze_dict),
    (list, lambda value: (TAG, LIST, tuple([freeze(item) for item in value]))),
    (set, lambda value: (TAG, SET, tuple(_sorted([freeze(item) for item in value])))),
    (deque, lambda value: (TAG, DEQUE, tuple([freeze(item) for item in value]))),
    (bytearray, lambda value: (TAG, BYTES, bytes(value))),
)
_FROZEN: dict[type, Callable[[Any], Hashable] | None] = {}
"""How values of a type are frozen, None: they stay. The checker freezes millions of values."""
_EMPTY_DICT = (TAG, DICT, ())


def thaw(state: Any) -> Any:
    """Return the value that `freeze` was given, with new containers."""
    if type(state) is not tuple or len(state) != 3 or state[0] != TAG:
        return state
    kind, items = state[1], state[2]
    if kind == DICT:
        return {thaw(key): thaw(item) for key, item in items}
    if kind == LIST:
        return [thaw(item) for item in items]
    if kind == SET:
        return {thaw(item) for item in items}
    if kind == DEQUE:
        return deque(thaw(item) for item in items)
    return bytearray(items)


def _sorted(items: list[Any]) -> list[Any]:
    if len(items) > 1:
        items.sort(key=_order)
    return items


def _order(item: Any) -> tuple[str, str]:
    return type(item).__name__, repr(item)
