"""JMESPath expressions that select values from a record (jmespath.org, grammar of 2015)."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError, LexerError, ParseError
from jmespath.functions import Functions
from jmespath.parser import ParsedResult

from antecede.errors import InputError

FUNCTIONS: dict[str, Any] = Functions.FUNCTION_TABLE


class Expression(NamedTuple):
    """A compiled expression, with its text and the option that it was given in."""

    text: str
    option: str
    parsed: ParsedResult


def compile_expression(text: str, option: str) -> Expression:
    """Return a compiled expression. `option` names its origin in messages, for example "--id".

    Raise InputError if the text is no JMESPath expression, or calls an unknown function, or calls
    a function with a wrong number of arguments: `jmespath` itself finds these only in a record.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)  # `text` without quotes
            parsed = jmespath.compile(text)
        problem = _find_wrong_call(parsed.parsed)
    except (ValueError, RecursionError) as error:
        problem = _describe(error, text)
    if problem:
        raise InputError(f"{option} {text!r} is not a JMESPath expression: {problem}")
    return Expression(text, option, parsed)


def select_values(expression: Expression, record: Any) -> list[Any]:
    """Return the values that an expression selects from a decoded JSON value.

    A list gives its elements, null gives none, any other value gives itself. Nested lists and nulls
    within a list stay as they are. Raise InputError if a function rejects what the record holds.
    """
    try:
        found = expression.parsed.search(record)
    except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        message = f"{expression.option} {expression.text!r} fails for this record: {error}"
        raise InputError(message) from error
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def _describe(error: Exception, text: str) -> str:
    """Return what is wrong with an expression, and where."""
    if isinstance(error, LexerError):
        what, position = error.message, error.lexer_position
    elif isinstance(error, ParseError):
        what, position = error.msg, error.lex_position
    else:
        return str(error)
    if position >= len(text):
        return f"it ends early, after character {len(text)}"
    what = what.removeprefix("Invalid jmespath expression").strip(": ") or "unexpected"
    return f"{what} at character {position + 1}: {text[position : position + 20]!r}"


def _find_wrong_call(node: Any) -> str:
    """Return what is wrong with the function calls below a node; "" if all are correct."""
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
            return f"unknown function {name}(); known are {', '.join(sorted(FUNCTIONS))}"
        signature = FUNCTIONS[name]["signature"]
        is_variadic = bool(signature) and bool(signature[-1].get("variadic"))
        if given < len(signature) or (given > len(signature) and not is_variadic):
            least = "at least " if is_variadic else ""
            return f"{name}() takes {least}{len(signature)} arguments, not {given}"
    return ""
