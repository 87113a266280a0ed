"""Options of a protocol as text (`r=10 k=3`), parsed by the types of its constructor.

Options are the arguments of a class or factory function that can be given by name. A constructor
that passes `**options` on also has the options of its base class.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from antecede.errors import AntecedeError, LocalError, OptionError

_UNKNOWN = object()
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


class Option(NamedTuple):
    """An option of a protocol."""

    name: str
    hint: Any
    """Declared type, or type of the default; Any if unknown."""
    default: Any = None
    needed: bool = False
    """True if there is no default."""

    def describe(self) -> str:
        """Return `name (type)` for lists of options."""
        return f"{self.name} ({describe_type(self.hint)})"


def options_of(factory: Callable[..., Any]) -> dict[str, Option]:
    """Return the options of a class or function by name, in order. Raises LocalError."""
    found: dict[str, Option] = {}
    for made in _list_constructors(factory):
        hints = _find_hints(made)
        parameters = _list_parameters(factory, made)
        for one in parameters:
            named = one.kind is one.KEYWORD_ONLY
            named |= one.kind is one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
            if named and one.name not in found:
                needed = one.default is one.empty
                default = None if needed else one.default
                found[one.name] = Option(one.name, _find_hint(hints, one), default, needed)
        if all(one.kind is not one.VAR_KEYWORD for one in parameters):
            break
    return found


def find_option_types(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the declared types of the options of a class or function by name."""
    found: dict[str, Any] = {}
    for made in reversed(_list_constructors(factory)):  # the class itself wins
        found |= _find_hints(made)
    options = options_of(factory)
    return {
        name: _allow_none(hint, options[name].default, options[name].needed)
        for name, hint in found.items()
        if name in options
    }


def split_options(words: Iterable[str]) -> list[tuple[str, str]]:
    """Return name and text of each NAME=VALUE. Raises OptionError for other forms."""
    found: list[tuple[str, str]] = []
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"option {word!r}: write NAME=VALUE, for example heartbeat_s=0.5")
        if name in dict(found):
            raise OptionError(f"option {name} is given twice")
        found.append((name, text))
    return found


def read_options(
    protocol: str, factory: Callable[..., Any], given: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Return the keyword arguments of the given texts; `protocol` is the name for errors."""
    known = options_of(factory)
    found: dict[str, Any] = {}
    for name, text in given:
        if name not in known:
            exist = ", ".join(known) or "none"
            raise OptionError(f"protocol {protocol} has no option '{name}'; options are: {exist}")
        if name in found:
            raise OptionError(f"option {name} of protocol {protocol} is given twice")
        found[name] = read_option(name, text, known[name].hint)
    return found


def read_option(name: str, text: str, hint: Any) -> Any:
    """Return the value of an option's text by its type. Raises OptionError."""
    for kind in _split_union(hint):
        value = _parse(name, text, kind)
        if value is not _UNKNOWN:
            return value
    raise OptionError(f"option {name}={text}: {describe_type(hint)} is allowed")


def option_text(value: Any) -> str:
    """Return the text that `read_option` parses to this value."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, Collection) and not isinstance(value, bytes | Mapping):
        return ",".join(map(option_text, value))
    return str(value)


def describe_type(hint: Any) -> str:
    """Describe the allowed values of a type."""
    words = []
    for kind in _split_union(hint):
        if get_origin(kind) is Literal:
            words += [option_text(one) for one in get_args(kind)]
        elif kind in _TYPE_TEXTS:
            words.append(_TYPE_TEXTS[kind])
        elif inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            fields = ", ".join(f"'{one}': ..." for one in inspect.signature(kind).parameters)
            words.append(f"{{{fields}}}")
        else:
            words.append(_describe_collection(kind) if _is_collection(kind) else "a value")
    return " or ".join(dict.fromkeys(words))


_TYPE_TEXTS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "none",
    Any: "a value",
}
_GUESS_ORDER: Sequence[Any] = (type(None), bool, int, float)
"""Order of the types of a union; words come last, since every text is a word."""


def _list_constructors(factory: Callable[..., Any]) -> list[Callable[..., Any]]:
    described: Any = inspect.unwrap(factory)
    if not inspect.isclass(described):
        return [described]
    return [vars(cls)["__init__"] for cls in described.__mro__[:-1] if "__init__" in vars(cls)]


def _find_hints(made: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(made)
    except (NameError, TypeError, AttributeError, SyntaxError):
        # Names that exist only for type checkers, or invalid annotations: no types.
        return {}


def _list_parameters(factory: Any, made: Callable[..., Any]) -> Collection[inspect.Parameter]:
    try:
        return inspect.signature(made).parameters.values()
    except (ValueError, TypeError) as error:
        name = getattr(factory, "__name__", repr(factory))
        raise LocalError(f"cannot read the arguments of {name}: {error}") from error


def _find_hint(hints: Mapping[str, Any], parameter: inspect.Parameter) -> Any:
    if parameter.name in hints:
        return _allow_none(hints[parameter.name], parameter.default)
    if isinstance(parameter.default, bool | int | float | str):
        return type(parameter.default)
    if isinstance(parameter.default, tuple | list | set | frozenset):
        return Collection[str]
    return Any


def _allow_none(hint: Any, default: Any, needed: bool = False) -> Any:
    if needed or default is not None or hint is Any or not hasattr(hint, "__or__"):
        return hint
    return hint if type(None) in get_args(hint) else hint | None


def _split_union(hint: Any) -> list[Any]:
    parts = list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
    kinds = [get_origin(part) if dataclasses.is_dataclass(get_origin(part)) else part
             for part in parts]  # fmt: skip
    return sorted(
        kinds,
        key=lambda k: (
            _GUESS_ORDER.index(k) if k in _GUESS_ORDER else len(_GUESS_ORDER) + (k is str)
        ),
    )


def _is_collection(kind: Any) -> bool:
    made = get_origin(kind) or kind
    return inspect.isclass(made) and issubclass(made, Collection) and made is not str


def _parse(name: str, text: str, kind: Any) -> Any:
    if kind is str:
        return text
    if kind is Any:
        return _guess_value(text)
    if kind is type(None):
        return None if text == "none" else _UNKNOWN
    if kind is bool:
        return _BOOLEANS.get(text.lower(), _UNKNOWN)
    if kind in (int, float):
        return _parse_number(text, kind)
    if get_origin(kind) is Literal:
        return next((one for one in get_args(kind) if option_text(one) == text), _UNKNOWN)
    if dataclasses.is_dataclass(kind):
        return _parse_record(name, text, kind)
    if _is_mapping(kind):
        return _parse_mapping(text, kind)
    if _is_collection(kind):
        return _parse_items(text, kind)
    return _guess_value(text)


def _is_mapping(kind: Any) -> bool:
    return issubclass(get_origin(kind) or kind, Mapping)


def _describe_collection(kind: Any) -> str:
    """Describe the notation of a collection."""
    if _is_mapping(kind):
        return "{'KEY': VALUE, ...}"
    parts = [part for part in get_args(kind) if part is not ...]
    what = " or ".join(dict.fromkeys(map(describe_type, parts))) if parts else "a word"
    plurals = {"a word": "words", "a whole number": "whole numbers", "a number": "numbers"}
    return f"{plurals.get(what, 'values')} with commas between"


def _parse_mapping(text: str, kind: Any) -> Any:
    """Parse a mapping in the notation of a Python dict, or return `_UNKNOWN`."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _UNKNOWN
    return found if isinstance(found, dict) else _UNKNOWN


def _parse_items(text: str, kind: Any) -> Any:
    """Parse comma-separated values into a collection of their type, or return `_UNKNOWN`."""
    made = get_origin(kind) or kind
    words = [word for word in text.split(",") if word]
    parts = get_args(kind)
    if issubclass(made, tuple) and parts and parts[-1] is not ...:
        hints = list(parts)
    else:
        hints = [parts[0] if parts else str] * len(words)
    if len(hints) != len(words):
        return _UNKNOWN
    values = [_parse_any(word, hint) for word, hint in zip(words, hints, strict=True)]
    if any(value is _UNKNOWN for value in values):
        return _UNKNOWN
    return made(values) if made in (list, set, frozenset) else tuple(values)


def _parse_any(text: str, hint: Any) -> Any:
    found = (_parse("", text, kind) for kind in _split_union(hint))
    return next((value for value in found if value is not _UNKNOWN), _UNKNOWN)


def _parse_number(text: str, kind: Callable[[str], Any]) -> Any:
    try:
        value = kind(text)
    except ValueError:
        return _UNKNOWN
    return value if math.isfinite(value) else _UNKNOWN


def _guess_value(text: str) -> Any:
    """Return the value of an option without a known type."""
    for kind in _GUESS_ORDER:
        value = _parse("", text, kind)
        if value is not _UNKNOWN:
            return value
    return text


def _parse_record(name: str, text: str, kind: Any) -> Any:
    try:
        fields = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return _UNKNOWN
    if not isinstance(fields, dict):
        return _UNKNOWN
    try:
        return kind(**fields)
    except (TypeError, AttributeError, AntecedeError) as error:
        exist = ", ".join(inspect.signature(kind).parameters)
        raise OptionError(f"option {name}: {error}; its fields are {exist}") from error
