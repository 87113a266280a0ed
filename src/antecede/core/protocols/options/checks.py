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
    allowed,
    declared_types,
    option_text,
    options_of,
)
from antecede.errors import LocalError
from antecede.formatting import shown

ANYTHING = object()
"""Wildcard of `Requires.any_of`: any value except None and False."""
NEVER = object()
"""Default of `off`: no value equals leaving the option out."""


class Idle(NamedTuple):
    """Reason why an option has no effect, and what to do."""

    words: str
    advice: str


class Needs(NamedTuple):
    """Option that has an effect only together with another option."""

    option: str
    any_of: tuple[tuple[str, Any], ...]
    """Other options with a required value (or `ANY_VALUE`); one of them is enough."""
    off: Any = NEVER
    """Value that requests nothing and is therefore always accepted."""

    def lacking(self, made: Any, options: Mapping[str, Any]) -> Idle | None:
        """Return why the option has no effect beside these options, or None."""
        if any(_is(_value(made, options, other), value) for other, value in self.any_of):
            return None
        words = (
            other if value is ANYTHING else f"{other}={option_text(value)}"
            for other, value in self.any_of
        )
        return Idle(f"without {' or '.join(words)}", "leave it out, or give both")


class Excludes(NamedTuple):
    """Option that has no effect if a list option contains a word."""

    option: str
    other: str
    word: str
    off: Any = NEVER

    def lacking(self, made: Any, options: Mapping[str, Any]) -> Idle | None:
        words = _value(made, options, self.other) or ()
        if self.word not in words:
            return None
        return Idle(f"beside {self.other}={self.word}", "leave one of them out")


def refuse_former_name(made: object, former: str, name: str) -> None:
    """Raise LocalError if a subclass defines a method under its old name, which is never called."""
    if hasattr(made, former):
        raise LocalError(
            f"{type(made).__name__}.{former} has no effect; define {name} instead, in "
            "nanoseconds (an int)"
        )


def check_given(made: Any, options: Mapping[str, Any]) -> None:
    """Raise LocalError for an option of a wrong type or without an effect."""
    hints = _types(made)
    for name, value in options.items():
        if name in hints and not fits(value, hints[name]) and not _is_default(made, name, value):
            raise LocalError(f"{name} is {shown(value)}; {_words(hints[name])} is allowed")
    for name, why in idle(made, options).items():
        raise LocalError(f"{name} has no effect {why.words}: {why.advice}")


def idle(made: Any, options: Mapping[str, Any]) -> dict[str, Idle]:
    """Return the options without an effect, and why. Raises LocalError for an invalid class."""
    return {
        one.option: why
        for one in _dependent(made)
        if one.option in options
        and (one.off is NEVER or options[one.option] != one.off)
        and (why := one.lacking(made, options))
    }


def effective(made: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have an effect, without those that are turned off."""
    without = {one.option for one in _dependent(made) if one.lacking(made, options)}
    return {name: value for name, value in options.items() if name not in without}


def _dependent(made: Any) -> Sequence[Needs | Excludes]:
    found = getattr(made, "dependent_options", ())
    if isinstance(found, list | tuple) and all(isinstance(x, Needs | Excludes) for x in found):
        return found
    name = getattr(made, "__name__", repr(made))
    raise LocalError(
        f"dependent_options of {name} is {found!r}; expected a tuple of Requires(...) or "
        "Conflicts(...)"
    )


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with NumPy and Enum values converted to Python's own types."""
    return {name: plain(value) for name, value in options.items()}


def with_trial(made: Any, members: Sequence[int], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen options and those trial options that have an effect beside them."""
    asked = getattr(made, "trial_options", None)
    trial = {} if asked is None else asked(members)
    if not isinstance(trial, Mapping):
        name = getattr(made, "__name__", repr(made))
        raise LocalError(f"trial_options of {name} returns {trial!r}; expected options by name")
    both = {**trial, **plain_options(chosen)}
    without = idle(made, both).keys() - chosen.keys()
    return {name: value for name, value in both.items() if name not in without}


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value has a declared type; True for types that are not supported here."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return any(value == one and _alike(value, one) for one in get_args(hint))
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
        return _fits_items(value, kind, get_args(hint))
    try:
        return isinstance(value, kind) and _fits_pairs(value, get_args(hint))
    except TypeError:  # typing.Protocol, TypedDict: no isinstance
        return True


def is_word_set(hint: Any) -> bool:
    """Return whether a declared type is an unordered collection of words."""
    kind = get_origin(hint)
    ordered = not inspect.isclass(kind) or issubclass(kind, Sequence)
    return not ordered and issubclass(kind, Collection) and get_args(hint) == (str,)


def _fits_items(value: Any, kind: type, parts: tuple[Any, ...]) -> bool:
    """Check a list, tuple or set. Lists stand for tuples, since TOML has no tuples."""
    listed = isinstance(value, list | tuple) and issubclass(kind, Sequence)
    if not (listed or isinstance(value, kind)):
        return False
    if issubclass(kind, tuple) and parts and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(fits, value, parts))
    return not parts or all(fits(one, parts[0]) for one in value)


def _fits_pairs(value: Any, parts: tuple[Any, ...]) -> bool:
    if not isinstance(value, Mapping) or len(parts) != 2:
        return True
    return all(fits(key, parts[0]) and fits(item, parts[1]) for key, item in value.items())


def _alike(value: Any, one: Any) -> bool:
    return isinstance(value, bool) is isinstance(one, bool)


def check_flags(**flags: Any) -> None:
    """Raise LocalError for an argument other than True and False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise LocalError(f"{name} is {shown(value)}; True or False is allowed")


def _words(hint: Any) -> str:
    """Describe the allowed values for callers in Python."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    words = []
    for part in parts:
        kind = get_origin(part) or part
        known = inspect.isclass(kind) and dataclasses.is_dataclass(kind)
        words.append(f"{kind.__name__}(...)" if known else allowed(part))
    return " or ".join(dict.fromkeys(words))


@lru_cache(maxsize=1024)
def _types(made: Any) -> Mapping[str, Any]:
    return declared_types(made)


@lru_cache(maxsize=1024)
def _defaults(made: Any) -> Mapping[str, Any]:
    return {name: one.default for name, one in options_of(made).items() if not one.needed}


def _is_default(made: Any, name: str, value: Any) -> bool:
    """Return whether the value is the default, whose type may differ from the declared one."""
    return name in _defaults(made) and value is _defaults(made)[name]


def _value(made: Any, options: Mapping[str, Any], name: str) -> Any:
    return options[name] if name in options else _defaults(made).get(name)


def _is(value: Any, wanted: Any) -> bool:
    return value is not None and value is not False if wanted is ANYTHING else value == wanted
