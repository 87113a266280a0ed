"""Readers of a file's tables into dataclasses. Errors contain the dotted key.

`Fields` has a reader for each key of a table. Range checks of the dataclasses raise messages that
begin with the attribute's name, which the dotted key replaces.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from antecede.errors import ConfigError

Made = TypeVar("Made")
Reader = Callable[[Any, str], Any]
"""Value and dotted key -> value for the dataclass. Raises ConfigError."""


Fields = Mapping[str, Reader]  # key of a table -> reader of its value
ATTRIBUTE_KEYS = {"source": "from", "target": "to"}
"""Attributes with other key names, since `from` is a Python keyword."""
MAX_INTEGER = 2**53  # Larger integers are not exact as a float


def make_error(key: str, what: str) -> ConfigError:
    """Return an error for a dotted key."""
    return ConfigError(f"{key}: {what}")


def build_dataclass(make: Callable[..., Made], values: Any, key: str, fields: Fields) -> Made:
    """Return the dataclass that a table describes. Raises ConfigError with the dotted key."""
    given = read_table(values, key)
    check_keys(given, key, fields)
    attributes = {
        ATTRIBUTE_KEYS.get(field.name, field.name): field
        for field in dataclasses.fields(make)  # type: ignore[arg-type]
    }
    for name, field in attributes.items():
        needed = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        if needed and name not in given:
            raise make_error(f"{key}.{name}", "missing")
    read = {name: fields[name](value, f"{key}.{name}") for name, value in given.items()}
    with prefix_errors(key, {field.name: f"{key}.{name}" for name, field in attributes.items()}):
        return make(**{attributes[name].name: value for name, value in read.items()})


@contextmanager
def prefix_errors(key: str, names: Mapping[str, str]) -> Iterator[None]:
    """Put the dotted key in front of an error. `names`: attribute -> its dotted key."""
    try:
        yield
    except ConfigError as error:
        head, colon, rest = error.message.partition(": ")
        if colon and head in names:
            raise make_error(names[head], rest) from error
        raise make_error(key, error.message) from error


def to_plain(value: Any) -> Any:
    """Return a dataclass as a table, without None values and with tuples as lists."""
    if dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            ATTRIBUTE_KEYS.get(name, name): to_plain(one)
            for name, one in found.items()
            if one is not None
        }
    return [to_plain(one) for one in value] if isinstance(value, list | tuple) else value


def check_keys(given: Collection[str], key: str, allowed: Collection[str]) -> None:
    """Raise ConfigError for an unknown key."""
    for name in given:
        if name not in allowed:
            dotted = f"{key}.{name}" if key else name
            kind = "key" if key else "table"
            raise make_error(dotted, f"unknown {kind}; {choices(name, allowed)}")


def choices(name: str, allowed: Collection[str]) -> str:
    """Return a text with the nearest name and all allowed names."""
    near = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    listed = f"choose from {', '.join(allowed)}" if allowed else "there are none"
    return f"did you mean {near[0]}? {listed}" if near else listed


def make_type_error(value: Any, key: str, expected: str) -> ConfigError:
    """Return the error for a value of another type."""
    shown = repr(value)
    return make_error(
        key, f"{shown if len(shown) <= 60 else shown[:57] + '...'}; expected {expected}"
    )


def read_table(value: Any, key: str) -> Mapping[str, Any]:
    """Read a table."""
    if not isinstance(value, Mapping):
        raise make_type_error(value, key, "a table" if key else "a file with tables")
    return value


def read_text(value: Any, key: str) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise make_type_error(value, key, "a string in quotes")
    return value


def read_flag(value: Any, key: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise make_type_error(value, key, "true or false")
    return value


def read_integer(value: Any, key: str) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise make_type_error(value, key, "an integer")
    if abs(value) > MAX_INTEGER:
        raise make_type_error(value, key, f"a number up to {MAX_INTEGER:,}")
    return value


def read_number(value: Any, key: str) -> float:
    """Read a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise make_type_error(value, key, "a number")
    if isinstance(value, int):
        return float(read_integer(value, key))
    if not math.isfinite(value):
        raise make_type_error(value, key, "a finite number")
    return value


def make_list_reader(read: Reader) -> Reader:
    """Return the reader of a list of values. It returns a tuple."""

    def all_of(value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise make_type_error(value, key, "a list in brackets")
        return tuple(read(one, f"{key}[{number}]") for number, one in enumerate(value, start=1))

    return all_of
