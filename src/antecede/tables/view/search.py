"""Search in a tiled trace: the terms of the page's search, matched in Arrow columns.

The page parses a search text (`assets/search.js`) and sends its terms; `matchRows` there has the
same rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.view.columns import join_lists

pa: Any = pyarrow
pc: Any = pyarrow.compute
DEFAULT_FIELDS: Final = ("id", "text", "member", "topics")
"""Fields of a term without a field, in addition to the extra columns."""
FIELDS: Final = (*DEFAULT_FIELDS, "kind", "run", "role", "source")
MAX_TERMS: Final = 100


class Term(NamedTuple):
    """Condition on a row; see `parseSearch` in `assets/search.js`."""

    excludes: bool
    field: str | None  # a field, or "own.K": extra column K
    text: str
    is_expression: bool
    id: str | None  # an event with this id matches as well


def read_terms(asked: str, columns: int) -> list[Term]:
    """Return the terms sent as JSON; `columns`: number of extra columns. Raise InputError."""
    known = {*FIELDS, *(f"own.{k}" for k in range(columns))}
    try:
        terms = [_parse_term(one) for one in json.loads(asked)]
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"invalid search find={asked!r:.60}: {error}") from error
    if not 0 < len(terms) <= MAX_TERMS:
        raise InputError(f"the search has {len(terms)} terms; expected 1 to {MAX_TERMS}")
    for term in terms:
        if term.field is not None and term.field not in known:
            raise InputError(f"unknown field {term.field!r:.40} in find=")
    return terms


def _parse_term(one: Any) -> Term:
    expression = one.get("expression")
    text = one.get("word") if expression is None else expression
    field, id = one.get("field"), one.get("id")
    if not (isinstance(text, str) and all(x is None or isinstance(x, str) for x in (field, id))):
        raise TypeError("a value of a term is no text")
    return Term(bool(one.get("not")), field, text, expression is not None, id)


def list_columns(terms: Sequence[Term], own: Sequence[str]) -> list[str]:
    """Return the columns of tiles that the terms read; `own`: names of the extra columns."""
    names: dict[str, None] = {"id": None}
    for term in terms:
        names |= dict.fromkeys(_list_fields(term, own))
    return list(names)


def match_rows(table: Mapping[str, Any], terms: Sequence[Term], own: Sequence[str]) -> Any:
    """Return the mask of the rows of a table that match all terms [n]; raise InputError."""
    texts = {name: _column_to_text(name, table[name]) for name in list_columns(terms, own)}
    return reduce(pc.and_, (_match_term(texts, term, own) for term in terms))


def _list_fields(term: Term, own: Sequence[str]) -> list[str]:
    if term.field is None:
        return [*DEFAULT_FIELDS, *own]
    return [own[int(term.field[4:])] if term.field.startswith("own.") else term.field]


def _column_to_text(name: str, column: Any) -> Any:
    return join_lists(column) if name == "topics" else column


def _match_term(texts: Mapping[str, Any], term: Term, own: Sequence[str]) -> Any:
    test = _make_test(term)
    masks = [test(texts[name]) for name in _list_fields(term, own)]
    if term.id is not None:
        masks.append(pc.equal(texts["id"], term.id))
    found = reduce(pc.or_, (pc.fill_null(mask, False) for mask in masks))
    return pc.invert(found) if term.excludes else found


def _make_test(term: Term) -> Callable[[Any], Any]:
    if not term.is_expression:
        small = term.text.lower()
        return lambda column: pc.match_substring(pc.utf8_lower(column), small)

    def test(column: Any) -> Any:
        try:
            return pc.match_substring_regex(column, term.text, ignore_case=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"invalid expression /{term.text}/: {error}; use the syntax of RE2"
            ) from error

    return test
