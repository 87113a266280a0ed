"""Mutants: every guard and every state update of a protocol, removed or inverted.

All functions that `send` and `receive` can reach by name are changed, except explanations,
encodings, snapshots and membership (`UNCHANGED_FUNCTIONS`). A mutant is one change:

    guard       the test of an if, while, conditional or comprehension: inverted, always true,
                always false; one operand of and/or dropped; <= for <, >= for > and back
    update      an assignment to a field or entry, an augmented assignment, or a call for its
                effect: left out; += for -=, |= for &= and back; + for -, | for & and back;
                a bitwise NOT left out

Rejections (`if ...: raise`, calls of checks) are not part of a delivery condition and stay. So does
code of defective variants: choices by `AS_PUBLISHED_NAMES`. An endless loop ends with an error
after `MAX_ITERATIONS`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tools.mutants.operators import UNCHANGED_FUNCTIONS, Apply, find_changes

MAX_ITERATIONS = 1_000
ROOTS = ("send", "receive")


def shorten_name(module: str) -> str:
    """Return a module's name relative to `antecede.core.protocols`, if it is below."""
    return module.removeprefix("antecede.core.protocols.")


class Mutant(NamedTuple):
    """One change, identified by module, function and text across other edits."""

    module: str
    function: str
    line: int
    change: str
    number: int
    """Index among the changes of the module."""

    @property
    def key(self) -> str:
        """Return the mutant's key in the table of survivors."""
        return f"{shorten_name(self.module)}.{self.function}: {self.change}"


def find_mutants(sources: Mapping[str, str]) -> list[Mutant]:
    """Return every mutant of the modules (name -> source text)."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    names = find_reachable(sources)
    found = []
    for name, tree in trees.items():
        if name.endswith(".published_relations"):
            continue
        seen: dict[str, int] = {}
        for number, (function, line, change, _) in enumerate(_find_changes(tree, names)):
            key = f"{function}: {change}"
            seen[key] = seen.get(key, 0) + 1
            again = f" (#{seen[key]})" if seen[key] > 1 else ""
            found.append(Mutant(name, function, line, change + again, number))
    return found


def mutate(source: str, mutant: Mutant, names: frozenset[str]) -> ast.Module:
    """Return the tree of the mutant's module with the change; `names` are reachable functions."""
    tree = ast.parse(source)
    list(_find_changes(tree, names))[mutant.number][3]()
    return limit_loops(tree)


def limit_loops(tree: ast.Module) -> ast.Module:
    """Make every while loop raise an error after `MAX_ITERATIONS`."""
    _LoopBounder().visit(tree)
    return ast.fix_missing_locations(tree)


class _LoopBounder(ast.NodeTransformer):
    """while T: B  becomes  for _ in __rounds__(): if not (T): break; B."""

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        rounds = ast.Call(ast.Name("__rounds__", ast.Load()), [], [])
        loop = ast.For(ast.Name("_", ast.Store()), rounds, [stop, *node.body], node.orelse)
        return ast.copy_location(loop, node)


def count_iterations() -> Iterator[int]:
    """Yield `MAX_ITERATIONS` times, then raise RuntimeError."""
    yield from range(MAX_ITERATIONS)
    raise RuntimeError(f"endless loop (stopped after {MAX_ITERATIONS} iterations)")


# -- reachable functions -------------------------------------------------------------------------


def _find_functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def find_reachable(sources: Mapping[str, str]) -> frozenset[str]:
    """Return the names of all functions that sending and receiving may call."""
    calls: dict[str, set[str]] = {}
    for text in sources.values():
        for function in _find_functions(ast.parse(text)):
            names = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
            names |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
            calls.setdefault(function.name, set()).update(names)
    found: set[str] = set()
    todo = [root for root in ROOTS if root in calls]
    while todo:
        name = todo.pop()
        if name not in found and name not in UNCHANGED_FUNCTIONS:
            found.add(name)
            todo += calls[name] & calls.keys()
    return frozenset(found)


def _find_changes(tree: ast.Module, names: frozenset[str]) -> Iterator[tuple[str, int, str, Apply]]:
    """Yield every change: function, line, text, and a function that applies it.

    Skips the classes `Published...`, which follow the published text.
    """
    printed = {
        function
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.startswith(("Printed", "Published"))
        for function in _find_functions(node)
    }
    for function in _find_functions(tree):
        if function in printed:
            continue
        if function.name in names and "published" not in function.name:
            for line, change, apply in find_changes(function, "body"):
                yield function.name, line, change, apply
