"""JMESPath expressions (jmespath.org) in place of names of columns.

A text that is the exact name of a column is that column. Any other text that is an expression of
more than one plain name is evaluated on the row as it was read: an object of JSON, a row of Parquet
with its nested columns, a row of CSV whose cells are all text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError

_MARKS = re.compile(r"""[\[\](){}|&@*`'"!<>=.]""")
"""Characters that expressions have and few names of columns."""


class Failed(NamedTuple):
    """A result that cannot be computed: the type of a value does not fit a function."""

    reason: str


@functools.lru_cache(maxsize=256)
def _compiled(text: str) -> Any:
    """Return a compiled expression, or the error of compiling it."""
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        return error


def is_expression(text: str) -> bool:
    """Return whether a text is an expression that is more than one plain name."""
    found = _compiled(text)
    return not isinstance(found, JMESPathError) and found.parsed["type"] != "field"


def defect(text: str) -> str:
    """Return why a text with the characters of an expression is none; "" for a mere name."""
    found = _compiled(text)
    if not isinstance(found, JMESPathError) or not _MARKS.search(text):
        return ""
    return " ".join(str(found).partition("\n")[0].removesuffix(", for expression:").split()).rstrip(
        ":"
    )


def parts_of(text: str) -> int:
    """Return how many values an expression lists at its top, as in `[source, id]`; 1 for others."""
    parsed = _compiled(text).parsed
    return len(parsed["children"]) if parsed["type"] == "multi_select_list" else 1


def evaluate(text: str, record: Mapping[str, object]) -> object:
    """Return what an expression finds in a row; `Failed` where a function refuses a value."""
    try:
        return _compiled(text).search(record)
    except JMESPathError as error:
        return Failed(f"{text}: {' '.join(str(error).split())}")


def columns_in(text: str, names: Sequence[str]) -> list[str]:
    """Return the columns of a table that an expression can reach, or more."""
    if re.search(r"[@*\\&]", text):
        return list(names)
    return [name for name in names if name in text]
