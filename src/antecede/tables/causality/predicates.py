"""Predicates on global states: possibly and definitely.

Source: Cooper and Marzullo 1991. The consistent global states of a run form a lattice. *Possibly*
p: p holds in some state. *Definitely* p: every path from the first state to the last one passes a
state in which p holds. States are visited level by level. Their number is up to the product of the
members' events, so this is for small lattices.

A predicate is written as in Python, of these terms, `and`, `or`, `not` and brackets. Names that are
not identifiers are quoted: 'kv-node-70' >= 3.

    A >= 3              number of events of A so far (any comparison with a whole number)
    "granted" in B      the latest event of B contains this text (in its text, or its id)
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from antecede.errors import InputError, LimitError
from antecede.tables.causality.global_states import States

MOST_STATES: Final = 1_000_000
State = tuple[int, ...]
Predicate = Callable[[State], bool]
_COMPARISONS: Final[Mapping[type, Callable[[int, int], bool]]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class PredicateResult(NamedTuple):
    """Answer with its example and the number of visited states."""

    holds: bool
    witness: dict[str, int] | None
    """Possibly: the first state where it holds. Definitely: the end of a path that avoids it."""
    states: int  # number of visited states


def possibly(states: States, predicate: str, *, max_states: int = MOST_STATES) -> PredicateResult:
    """Return whether the predicate holds in some consistent state.

    Raises InputError for an unreadable predicate, LimitError beyond the limit of states.
    """
    holds, looked = parse_predicate(states, predicate), 0
    level = {(0,) * len(states.members)}
    while level:
        for state in sorted(level):
            looked += 1
            if holds(state):
                return PredicateResult(True, _name_positions(states, state), looked)
        level = _advance_level(states, level, looked, max_states)
    return PredicateResult(False, None, looked)


def definitely(states: States, predicate: str, *, max_states: int = MOST_STATES) -> PredicateResult:
    """Return whether every path of states passes one with the predicate. Raises as `possibly`."""
    holds, looked = parse_predicate(states, predicate), 0
    last = tuple(len(rows) for rows in states.rows_by_member)
    level = {(0,) * len(states.members)}
    while True:
        looked += len(level)
        avoiding = {state for state in level if not holds(state)}
        if not avoiding:
            return PredicateResult(True, None, looked)
        if last in avoiding:
            return PredicateResult(False, _name_positions(states, last), looked)
        level = _advance_level(states, avoiding, looked, max_states)


def _advance_level(states: States, level: set[State], looked: int, max_states: int) -> set[State]:
    found: set[State] = set()
    for state in level:
        for k, rows in enumerate(states.rows_by_member):
            if state[k] == len(rows):
                continue
            # Direct causes suffice, because the state is consistent.
            waits = states.find_awaited(rows[state[k]])
            if all(count <= state[member] for member, count in waits):
                found.add((*state[:k], state[k] + 1, *state[k + 1 :]))
        if looked + len(found) > max_states:
            raise LimitError(
                f"more than {max_states:,} global states: use fewer members or events, or raise "
                "the limit"
            )
    return found


def _name_positions(states: States, state: State) -> dict[str, int]:
    return {
        name: states.count_to_position(k, count)
        for k, (name, count) in enumerate(zip(states.members, state, strict=True))
    }


# -- the language ------------------------------------------------------------------------------


def parse_predicate(states: States, text: str) -> Predicate:
    """Return the predicate of a text. Raises InputError with the part that cannot be read."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"cannot read predicate {text!r:.80} ({error.__class__.__name__}); {_SYNTAX}"
        ) from error
    return _PredicateParser(states).parse(tree)


_SYNTAX = "write for instance A >= 3 and not ('b-1' < 2 or \"granted\" in C)"


class _PredicateParser:
    def __init__(self, states: States) -> None:
        self._states = states
        self._texts = states.texts

    def parse(self, tree: ast.expr) -> Predicate:
        if isinstance(tree, ast.BoolOp):
            parts = [self.parse(value) for value in tree.values]
            every = isinstance(tree.op, ast.And)
            return lambda state: (all if every else any)(part(state) for part in parts)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            inner = self.parse(tree.operand)
            return lambda state: not inner(state)
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            return self._parse_term(tree.left, tree.ops[0], tree.comparators[0])
        raise InputError(f"unsupported expression: {ast.unparse(tree)[:80]}; {_SYNTAX}")

    def _parse_term(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> Predicate:
        if isinstance(how, ast.In | ast.NotIn):
            matches = self._match_text(_parse_text(left), self._parse_member(right))
            return matches if isinstance(how, ast.In) else lambda state: not matches(state)
        compare = _COMPARISONS.get(type(how))
        if compare is None:
            raise InputError(f"unsupported comparison {type(how).__name__} of a member; {_SYNTAX}")
        member, number = self._parse_member(left), _parse_number(right)
        position = self._states.count_to_position
        return lambda state: compare(position(member, state[member]), number)

    def _match_text(self, text: str, member: int) -> Predicate:
        rows, texts = self._states.rows_by_member[member], self._texts
        contains = [False, *(text in (texts[row] or "") for row in rows)]
        if not any(contains) and not self._states.has_texts:
            raise InputError(
                "no event of this trace has a text, and no id of "
                f"{self._states.members[member]} contains {text!r:.80}: name the column with the "
                "text (--text COLUMN; `text` in a table of the schema)"
            )
        return lambda state: contains[state[member]]

    def _parse_member(self, tree: ast.expr) -> int:
        name: Any = None
        if isinstance(tree, ast.Name):
            name = tree.id
        elif isinstance(tree, ast.Constant):
            name = tree.value
        if name not in self._states.members:
            known = ", ".join(self._states.members[:8])
            raise InputError(
                f"unknown member {ast.unparse(tree)[:80]}; choose from {known}; {_SYNTAX}"
            )
        return self._states.members.index(name)


def _parse_text(tree: ast.expr) -> str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        return tree.value
    raise InputError(f"expected text in quotes, got {ast.unparse(tree)[:80]}; {_SYNTAX}")


def _parse_number(tree: ast.expr) -> int:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    raise InputError(f"expected a whole number, got {ast.unparse(tree)[:80]}; {_SYNTAX}")
