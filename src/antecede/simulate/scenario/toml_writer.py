"""Plain values as the text of a TOML file (the standard library only reads it)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(values: Mapping[str, Any]) -> str:
    """Return the text of a mapping of plain values; tables of tables and lists stand inline."""
    return "\n".join(_lines(values)).strip("\n") + "\n"


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    yield from (f"{_key(k)} = {_value(v)}" for k, v in values.items() if k not in tables)
    for name, table in tables.items():
        yield f"\n[{_key(name)}]"
        yield from (f"{_key(key)} = {_value(value)}" for key, value in table.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # JSON escapes what TOML wants escaped, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    inner = [_value(one) for one in value]
    if inner and isinstance(value[0], list):  # a matrix: a row a line
        return "[\n" + "".join(f"  {row},\n" for row in inner) + "]"
    return "[" + ", ".join(inner) + "]"
