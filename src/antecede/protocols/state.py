"""Turn the state of a protocol into nested tuples and back.

`freeze` makes a value hashable and independent of insertion order of sets; dictionaries keep
their order out of the result too, so that two states that behave alike compare equal. A
protocol that relies on the order of a dictionary must keep that order in a list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

LIST, DICT, SET, DEQUE, BYTES = "list", "dict", "set", "deque", "bytearray"
TAG = "\x00"


def freeze(value: Any) -> Hashable:
    """Return `value` as nested tuples; tuples, also named ones, stay as they are."""
    if isinstance(value, dict):
        pairs = [(freeze(key), freeze(item)) for key, item in value.items()]
        return (TAG, DICT, tuple(sorted(pairs, key=_order)))
    if isinstance(value, list):
        return (TAG, LIST, tuple(freeze(item) for item in value))
    if isinstance(value, set):
        return (TAG, SET, tuple(sorted((freeze(item) for item in value), key=_order)))
    if isinstance(value, deque):
        return (TAG, DEQUE, tuple(freeze(item) for item in value))
    if isinstance(value, bytearray):
        return (TAG, BYTES, bytes(value))
    return value  # type: ignore[no-any-return]


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


def _order(item: Any) -> tuple[str, str]:
    return type(item).__name__, repr(item)
