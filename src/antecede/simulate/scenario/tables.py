"""Tables of a file read into dataclasses; what is wrong is said with its dotted key.

A dataclass is described by `Fields`: for each key of its table, how the value is read and
written, and the attribute where it has another name. The dataclasses themselves say what is
impossible, in messages that begin with the attribute's name; the dotted key is put in front.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from antecede.errors import ScenarioError

Made = TypeVar("Made")
Read = Callable[[Any, str], Any]
"""Value and dotted key -> what the dataclass takes. Raises ScenarioError."""


class Field(NamedTuple):
    """One key of a table."""

    read: Read
    write: Callable[[Any], Any] = lambda value: value
    attribute: str = ""
    """Of the dataclass, where it is not the key."""


Fields = Mapping[str, Field]
LARGEST = 2**53
"""Whole numbers beyond are no longer exact as a float."""


def fault(key: str, what: str) -> ScenarioError:
    """Return the error that says what is wrong at a dotted key."""
    return ScenarioError(f"{key}: {what}")


def build(make: Callable[..., Made], values: Any, key: str, fields: Fields) -> Made:
    """Return the dataclass that a table describes. Raises ScenarioError with the dotted key."""
    given = table(values, key)
    check_keys(given, key, fields)
    for one in dataclasses.fields(make):  # type: ignore[arg-type]
        needed = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        name = next((k for k, field in fields.items() if (field.attribute or k) == one.name), "")
        if needed and name and name not in given:
            raise fault(f"{key}.{name}", "is missing")
    made = {
        fields[name].attribute or name: fields[name].read(value, f"{key}.{name}")
        for name, value in given.items()
    }
    names = {field.attribute or name: f"{key}.{name}" for name, field in fields.items()}
    with under(key, names):
        return make(**made)


@contextmanager
def under(key: str, names: Mapping[str, str]) -> Iterator[None]:
    """Put the dotted key in front of an error; `names`: attribute -> its dotted key."""
    try:
        yield
    except ScenarioError as error:
        head, colon, rest = error.message.partition(": ")
        if colon and head in names:
            raise fault(names[head], rest) from error
        raise fault(key, error.message) from error


def unbuild(value: Any, fields: Fields) -> dict[str, Any]:
    """Return the table of a dataclass; what is None is left out."""
    found = {name: getattr(value, field.attribute or name) for name, field in fields.items()}
    return {name: fields[name].write(one) for name, one in found.items() if one is not None}


def check_keys(given: Collection[str], key: str, allowed: Collection[str]) -> None:
    """Raise ScenarioError for a key that is not allowed."""
    for name in given:
        if name not in allowed:
            dotted = f"{key}.{name}" if key else name
            kind = "key" if key else "table"
            raise fault(dotted, f"no such {kind}; {choices(name, allowed)}")


def choices(name: str, allowed: Collection[str]) -> str:
    """Return what there is, the nearest to a wrong name first."""
    near = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    listed = f"there are {', '.join(allowed)}" if allowed else "there are none"
    return f"did you mean {near[0]}? {listed}" if near else listed


def wrong(value: Any, key: str, wanted: str) -> ScenarioError:
    """Return the error for a value of another type."""
    shown = repr(value)
    return fault(key, f"{shown if len(shown) <= 60 else shown[:57] + '...'} is not {wanted}")


# -- readers --------------------------------------------------------------------------------


def table(value: Any, key: str) -> Mapping[str, Any]:
    """Read a table."""
    if not isinstance(value, Mapping):
        raise wrong(value, key, "a table" if key else "a file of tables")
    return value


def text(value: Any, key: str) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise wrong(value, key, "a text in quotes")
    return value


def flag(value: Any, key: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise wrong(value, key, "true or false")
    return value


def whole(value: Any, key: str) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(value, key, "a whole number")
    if abs(value) > LARGEST:
        raise wrong(value, key, f"a number up to {LARGEST:,}")
    return value


def number(value: Any, key: str) -> float:
    """Read a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(value, key, "a number")
    if isinstance(value, int):
        return float(whole(value, key))
    if not math.isfinite(value):
        raise wrong(value, key, "a finite number")
    return value


def listed(read: Read) -> Read:
    """Return the reader of a list of what `read` reads; it gives a tuple."""

    def all_of(value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise wrong(value, key, "a list in brackets")
        return tuple(read(one, f"{key}[{number}]") for number, one in enumerate(value, start=1))

    return all_of
