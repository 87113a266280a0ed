"""Conversion of protocol state to nested tuples and back.

`freeze` makes a value hashable and independent of the insertion order of sets and dictionaries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

LIST, DICT, SET, DEQUE, BYTES = "list", "dict", "set", "deque", "bytearray"
TAG = "\x00"


def freeze(value: Any) -> Hashable:
    """Return `value` as nested tuples; tuples, also named ones, are unchanged."""
    kind = type(value)
    if kind not in _FROZEN:
        _FROZEN[kind] = next((how for base, how in _CONTAINERS if issubclass(kind, base)), None)
    how = _FROZEN[kind]
    return value if how is None else how(value)


def _freeze_dict(value: dict[Any, Any]) -> Hashable:
    if not value:
        return _EMPTY_DICT
    pairs = [(freeze(key), freeze(item)) for key, item in value.items()]
    return (TAG, DICT, tuple(_sort(pairs)))


_CONTAINERS: tuple[tuple[type, Callable[[Any], Hashable]], ...] = (
    (dict, _freeze_dict),
    (list, lambda value: (TAG, LIST, tuple([freeze(item) for item in value]))),
    (set, lambda value: (TAG, SET, tuple(_sort([freeze(item) for item in value])))),
    (deque, lambda value: (TAG, DEQUE, tuple([freeze(item) for item in value]))),
    (bytearray, lambda value: (TAG, BYTES, bytes(value))),
)
_FROZEN: dict[type, Callable[[Any], Hashable] | None] = {}
"""Conversion by type, None: unchanged. A cache, since the checker freezes millions of values."""
_EMPTY_DICT = (TAG, DICT, ())


def thaw(state: Any) -> Any:
    """Return the value that was frozen, with new containers."""
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


def _sort(items: list[Any]) -> list[Any]:
    if len(items) > 1:
        items.sort(key=_order)
    return items


def _order(item: Any) -> tuple[str, str]:
    return type(item).__name__, repr(item)
