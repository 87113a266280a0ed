"""State that members share although each should have its own.

A snapshot is the state of one member; what lies outside (an attribute of the class, a variable
of its module, a list that a default value hands to everybody) is neither saved nor separate, and
a group in one process would behave otherwise than one on a network.
"""

from __future__ import annotations

import copy
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from antecede.protocols.base import Protocol

_MUTABLE = (list, dict, set, bytearray, deque)


class SharedState:
    """What can be changed in a class and its module, as it was when this was made."""

    def __init__(self, cls: type[Protocol]) -> None:
        self.cls = cls
        self.before: dict[str, tuple[Any, Any]] = {}
        for name, value in _outside(cls):
            try:
                self.before[name] = value, copy.deepcopy(value)
            except Exception:  # what cannot be copied is not watched
                continue

    def changed(self) -> str:
        """Say what was changed since, and what to do; empty when nothing was."""
        for name, (value, before) in self.before.items():
            if value != before:
                return (
                    f"{name} changed while members acted, and all have the same one; "
                    "set it in __init__, as an attribute of self"
                )
        return ""


def _outside(cls: type[Protocol]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what is mutable in the class, its bases and its module."""
    own = [base for base in cls.__mro__ if not base.__module__.startswith("antecede.")]
    for base in own:
        for name, value in vars(base).items():
            if isinstance(value, _MUTABLE) and not name.startswith("__"):
                yield f"the class attribute {base.__name__}.{name}", value
    for module in {base.__module__: sys.modules.get(base.__module__) for base in own}.values():
        for name, value in vars(module).items() if module is not None else ():
            if isinstance(value, _MUTABLE) and not name.startswith("__"):
                yield f"the variable {name} of its module", value


def shared_by(members: Mapping[int, Protocol], names: Mapping[int, str]) -> str:
    """Say which mutable object two members of a new group have in common; empty: none."""
    seen: dict[int, tuple[int, str]] = {}
    for at, member in members.items():
        for field, value in vars(member).items():
            if not isinstance(value, _MUTABLE):
                continue
            other, _ = seen.setdefault(id(value), (at, field))
            if other != at:
                return (
                    f"{names[other]} and {names[at]} have one and the same "
                    f"{type(value).__name__} as self.{field}; make a new one in __init__ "
                    "(a default value or a list of the caller's is one object for all)"
                )
    return ""
