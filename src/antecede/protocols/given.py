"""Options as a caller gave them: of their type, and none that has no effect beside the others.

`Protocol.__new__` asks `check_given` before any constructor runs, so every way to make a member
(a `Group`, the command line, a scenario, a class by hand) refuses the same. A class says in
`dependent_options` which of its options do nothing without another one.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from antecede.errors import LocalError
from antecede.protocols.options import allowed, declared_types, option_text, options_of
from antecede.words import shown

ANYTHING = object()
"""In `Needs.any_of`: set at all, that is neither None nor false."""
NEVER = object()
"""In `Needs.off`: there is no value that says the same as leaving the option out."""


class Needs(NamedTuple):
    """An option that has an effect only beside another one."""

    option: str
    any_of: tuple[tuple[str, Any], ...]
    """Other options and the values that they must have, one of them: or `ANYTHING`."""
    off: Any = NEVER
    """The value that is no request for anything, so that it may stand alone."""

    def words(self) -> str:
        """Return what is needed, as one would write it."""
        return " or ".join(
            other if value is ANYTHING else f"{other}={option_text(value)}"
            for other, value in self.any_of
        )


def check_given(made: Any, options: Mapping[str, Any]) -> None:
    """Raise LocalError for an option that is not of its declared type, or has no effect.

    Options that do not exist are left to the constructor, and types that nobody declared too.
    """
    hints = _types(made)
    for name, value in options.items():
        if name in hints and not fits(value, hints[name]):
            raise LocalError(f"{name} is {shown(value)}; {_words(hints[name])} is allowed")
    for name, words in idle(made, options).items():
        raise LocalError(f"{name} has no effect without {words}: leave it out, or give both")


def idle(made: Any, options: Mapping[str, Any]) -> dict[str, str]:
    """Return which of these options have no effect beside the others, and what they need."""
    needs: Sequence[Needs] = getattr(made, "dependent_options", ())
    return {
        one.option: one.words()
        for one in needs
        if one.option in options
        and (one.off is NEVER or options[one.option] != one.off)
        and not any(_is(_value(made, options, other), value) for other, value in one.any_of)
    }


def with_trial(made: Any, members: Sequence[int], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return chosen options, and those that a protocol is tried with where nothing is chosen.

    Of the latter, what has no effect beside the chosen ones is left out.
    """
    asked = getattr(made, "trial_options", None)
    both = {**({} if asked is None else asked(members)), **chosen}
    without = idle(made, both).keys() - chosen.keys()
    return {name: value for name, value in both.items() if name not in without}


def fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is of a declared type; True for types that nothing here knows."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kind = get_origin(hint) or hint
    if kind is Any or not inspect.isclass(kind):
        return True
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:  # seconds are taken as exactly as they are given
        return isinstance(value, Real | Decimal) and not isinstance(value, bool)
    if issubclass(kind, Collection) and kind is not str and get_args(hint) == (str,):
        texts = isinstance(value, Collection) and not isinstance(value, str | bytes)
        return texts and all(isinstance(one, str) for one in value)
    try:
        return isinstance(value, kind)
    except TypeError:  # a typing.Protocol, a TypedDict: types that cannot be asked
        return True


def check_flags(**flags: Any) -> None:
    """Raise LocalError for an argument that is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise LocalError(f"{name} is {shown(value)}; True or False is allowed")


def _words(hint: Any) -> str:
    """Return in words what is allowed, where values are given in Python."""
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
    return {name: option.default for name, option in options_of(made).items()}


def _value(made: Any, options: Mapping[str, Any], name: str) -> Any:
    return options[name] if name in options else _defaults(made).get(name)


def _is(value: Any, wanted: Any) -> bool:
    return value is not None and value is not False if wanted is ANYTHING else value == wanted
