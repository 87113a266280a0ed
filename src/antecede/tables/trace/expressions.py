"""JMESPath expressions that select values from a record (jmespath.org, grammar of 2015).

The exact name of a table's column selects that column. Any other text of more than one plain name
is an expression over the row as read. Cells of CSV are text.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError, LexerError, ParseError
from jmespath.functions import Functions
from jmespath.parser import ParsedResult

from antecede.errors import InputError

FUNCTIONS: dict[str, Any] = Functions.FUNCTION_TABLE

_MARKS = re.compile(r"""[\[\](){}|&@*`'"!<>=.]""")
"""Characters of expressions that are rare in column names."""

_FAILURES = (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError)


class Expression(NamedTuple):
    """Compiled expression, its text and its option."""

    text: str
    option: str
    parsed: ParsedResult


class EvaluationFailure(NamedTuple):
    """Failed evaluation: a function rejects the type of a value."""

    reason: str


def compile_expression(text: str, option: str) -> Expression:
    """Return a compiled expression; `option`: its origin. Raise InputError if it is invalid."""
    parsed, problem = _compile_text(text)
    if parsed is None or problem:
        raise InputError(f"{option}: invalid JMESPath expression {text!r}: {problem}")
    return Expression(text, option, parsed)


@functools.lru_cache(maxsize=256)
def _compile_text(text: str) -> tuple[ParsedResult | None, str]:
    """Return a compiled expression and its defect, "" for none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)  # `text` without quotes
            parsed = jmespath.compile(text)
        return parsed, _find_wrong_call(parsed.parsed)
    except (ValueError, RecursionError) as error:
        return None, _describe_error(error, text)


def is_expression(text: str) -> bool:
    """Return whether a text is a valid expression and more than one plain name."""
    parsed, problem = _compile_text(text)
    return parsed is not None and not problem and parsed.parsed["type"] != "field"


def find_defect(text: str) -> str:
    """Return the defect of a text with characters of an expression; "" for a plain name."""
    return _compile_text(text)[1] if _MARKS.search(text) else ""


def count_parts(text: str) -> int:
    """Return the number of values in an expression: 2 for `[source, id]`, 1 for `id`."""
    parsed = compile_expression(text, "expression").parsed.parsed
    return len(parsed["children"]) if parsed["type"] == "multi_select_list" else 1


def evaluate(text: str, record: Mapping[str, object]) -> object:
    """Return the result of an expression for a row, or an `EvaluationFailure`."""
    parsed = compile_expression(text, "expression").parsed
    try:
        return parsed.search(record)
    except _FAILURES as error:
        return EvaluationFailure(f"an expression fails: {' '.join(str(error).split())}, in {text}")


def select_values(expression: Expression, record: Any) -> list[Any]:
    """Return the selected values: elements of a list, or one. Raise InputError on failure."""
    try:
        found = expression.parsed.search(record)
    except _FAILURES as error:
        message = f"{expression.option}: {expression.text!r} fails for this record: {error}"
        raise InputError(message) from error
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def find_reachable_columns(text: str, names: Sequence[str]) -> list[str]:
    """Return a superset of the columns that an expression reads."""
    if re.search(r"[@*\\&]", text):
        return list(names)
    return [name for name in names if name in text]


def _describe_error(error: Exception, text: str) -> str:
    if isinstance(error, LexerError):
        what, position = error.message, error.lexer_position
    elif isinstance(error, ParseError):
        what, position = error.msg, error.lex_position
    else:
        return str(error)
    if position >= len(text):
        return f"incomplete after character {len(text)}"
    what = what.removeprefix("Invalid jmespath expression").strip(": ") or "unexpected"
    return f"{what} at character {position + 1}: {text[position : position + 20]!r}"


def _find_wrong_call(node: Any) -> str:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        waiting += node.get("children", ())
        if node.get("type") != "function_expression":
            continue
        name, given = node["value"], len(node["children"])
        if name not in FUNCTIONS:
            return f"unknown function {name}(); choose from {', '.join(sorted(FUNCTIONS))}"
        signature = FUNCTIONS[name]["signature"]
        is_variadic = bool(signature) and bool(signature[-1].get("variadic"))
        if given < len(signature) or (given > len(signature) and not is_variadic):
            least = "at least " if is_variadic else ""
            return f"{name}() takes {least}{len(signature)} arguments, got {given}"
    return ""
