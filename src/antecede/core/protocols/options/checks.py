"""Checks of given options: types, and options without an effect beside the others.

`Protocol.__new__` calls `check_options` before any constructor runs. So `Group`, the command line,
simulation configs and direct calls reject the same options.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Collection, Mapping, Sequence, Set
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from antecede.core.clocks import plain
from antecede.core.protocols.options.declared import (
    describe_type,
    find_option_types,
    option_text,
    options_of,
)
from antecede.errors import LocalError
from antecede.formatting import quote

ANY_VALUE = object()
"""Wildcard of `Requires.any_of`: any value except None and False."""
NO_VALUE = object()
"""Default of `off`: no value equals leaving the option out."""


class Ineffective(NamedTuple):
    """Reason why an option has no effect, and what to do."""

    words: str
    advice: str


class Requires(NamedTuple):
    """Option that has an effect only together with another option."""

    option: str
    any_of: tuple[tuple[str, Any], ...]
    """Other options with a required value (or `ANY_VALUE`); one of them is enough."""
    off: Any = NO_VALUE
    """Value that requests nothing and is therefore always accepted."""

    def explain_ineffective(self, factory: Any, options: Mapping[str, Any]) -> Ineffective | None:
        """Return why the option has no effect beside these options, or None."""
        if any(
            _is_satisfied(_find_value(factory, options, other), value)
            for other, value in self.any_of
        ):
            return None
        words = (
            other if value is ANY_VALUE else f"{other}={option_text(value)}"
            for other, value in self.any_of
        )
        return Ineffective(f"without {' or '.join(words)}", "leave it out, or give both")


class Conflicts(NamedTuple):
    """Option that has no effect if a list option contains a word."""

    option: str
    other: str
    word: str
    off: Any = NO_VALUE

    def explain_ineffective(self, factory: Any, options: Mapping[str, Any]) -> Ineffective | None:
        words = _find_value(factory, options, self.other) or ()
        if self.word not in words:
            return None
        return Ineffective(f"beside {self.other}={self.word}", "leave one of them out")


def reject_old_name(instance: object, old_name: str, name: str) -> None:
    """Raise LocalError if a subclass defines a method under its old name, which is never called."""
    if hasattr(instance, old_name):
        raise LocalError(
            f"{type(instance).__name__}.{old_name} has no effect; define {name} instead, in "
            "nanoseconds (an int)"
        )


def check_options(factory: Any, options: Mapping[str, Any]) -> None:
    """Raise LocalError for an option of a wrong type or without an effect."""
    hints = _find_types(factory)
    for name, value in options.items():
        if (
            name in hints
            and not matches_type(value, hints[name])
            and not _is_default(factory, name, value)
        ):
            raise LocalError(f"{name} is {quote(value)}; {_describe_types(hints[name])} is allowed")
    for name, why in idle(factory, options).items():
        raise LocalError(f"{name} has no effect {why.words}: {why.advice}")


def idle(factory: Any, options: Mapping[str, Any]) -> dict[str, Ineffective]:
    """Return the options without an effect, and why. Raises LocalError for an invalid class."""
    return {
        one.option: why
        for one in _list_dependent_options(factory)
        if one.option in options
        and (one.off is NO_VALUE or options[one.option] != one.off)
        and (why := one.explain_ineffective(factory, options))
    }


def select_effective(factory: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have an effect, without those that are turned off."""
    without = {
        one.option
        for one in _list_dependent_options(factory)
        if one.explain_ineffective(factory, options)
    }
    return {name: value for name, value in options.items() if name not in without}


def _list_dependent_options(factory: Any) -> Sequence[Requires | Conflicts]:
    found = getattr(factory, "dependent_options", ())
    if isinstance(found, list | tuple) and all(isinstance(x, Requires | Conflicts) for x in found):
        return found
    name = getattr(factory, "__name__", repr(factory))
    raise LocalError(
        f"dependent_options of {name} is {found!r}; expected a tuple of Requires(...) or "
        "Conflicts(...)"
    )


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with NumPy and Enum values converted to Python's own types."""
    return {name: plain(value) for name, value in options.items()}


def with_trial(factory: Any, members: Sequence[int], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen options and those trial options that have an effect beside them."""
    asked = getattr(factory, "trial_options", None)
    trial = {} if asked is None else asked(members)
    if not isinstance(trial, Mapping):
        name = getattr(factory, "__name__", repr(factory))
        raise LocalError(f"trial_options of {name} returns {trial!r}; expected options by name")
    both = {**trial, **plain_options(options)}
    without = idle(factory, both).keys() - options.keys()
    return {name: value for name, value in both.items() if name not in without}


def matches_type(value: Any, hint: Any) -> bool:
    """Return whether a value has a declared type; True for types that are not supported here."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(matches_type(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return any(value == one and _is_same_kind(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is Any or not inspect.isclass(kind):
        return True
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:  # seconds may be any exact number
        return isinstance(value, Real | Decimal) and not isinstance(value, bool)
    if get_origin(hint) is not None and issubclass(kind, Collection) and get_args(hint) == (str,):
        texts = isinstance(value, Collection) and not isinstance(value, str | bytes)
        return texts and all(isinstance(one, str) for one in value)
    if issubclass(kind, Sequence | Set) and not issubclass(kind, str | bytes):
        return _matches_items(value, kind, get_args(hint))
    try:
        return isinstance(value, kind) and _matches_pairs(value, get_args(hint))
    except TypeError:  # typing.Protocol, TypedDict: no isinstance
        return True


def is_word_set(hint: Any) -> bool:
    """Return whether a declared type is an unordered collection of words."""
    kind = get_origin(hint)
    ordered = not inspect.isclass(kind) or issubclass(kind, Sequence)
    return not ordered and issubclass(kind, Collection) and get_args(hint) == (str,)


def _matches_items(value: Any, kind: type, parts: tuple[Any, ...]) -> bool:
    """Check a list, tuple or set. Lists stand for tuples, since TOML has no tuples."""
    listed = isinstance(value, list | tuple) and issubclass(kind, Sequence)
    if not (listed or isinstance(value, kind)):
        return False
    if issubclass(kind, tuple) and parts and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(matches_type, value, parts))
    return not parts or all(matches_type(one, parts[0]) for one in value)


def _matches_pairs(value: Any, parts: tuple[Any, ...]) -> bool:
    if not isinstance(value, Mapping) or len(parts) != 2:
        return True
    return all(
        matches_type(key, parts[0]) and matches_type(item, parts[1]) for key, item in value.items()
    )


def _is_same_kind(value: Any, other: Any) -> bool:
    return isinstance(value, bool) is isinstance(other, bool)


def check_flags(**flags: Any) -> None:
    """Raise LocalError for an argument other than True and False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise LocalError(f"{name} is {quote(value)}; True or False is allowed")


def _describe_types(hint: Any) -> str:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    words = []
    for part in parts:
        kind = get_origin(part) or part
        known = inspect.isclass(kind) and dataclasses.is_dataclass(kind)
        words.append(f"{kind.__name__}(...)" if known else describe_type(part))
    return " or ".join(dict.fromkeys(words))


@lru_cache(maxsize=1024)
def _find_types(factory: Any) -> Mapping[str, Any]:
    return find_option_types(factory)


@lru_cache(maxsize=1024)
def _find_defaults(factory: Any) -> Mapping[str, Any]:
    return {name: one.default for name, one in options_of(factory).items() if not one.needed}


def _is_default(factory: Any, name: str, value: Any) -> bool:
    return name in _find_defaults(factory) and value is _find_defaults(factory)[name]


def _find_value(factory: Any, options: Mapping[str, Any], name: str) -> Any:
    return options[name] if name in options else _find_defaults(factory).get(name)


def _is_satisfied(value: Any, required: Any) -> bool:
    return value is not None and value is not False if required is ANY_VALUE else value == required
