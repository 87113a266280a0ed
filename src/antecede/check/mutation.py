"""Every guard and every state update of a protocol, removed or inverted one at a time.

Theory of operation
-------------------
The protocol's modules are parsed, and all functions that `send` and `receive` can reach by name
are walked; explanations, encodings, snapshots and membership are left alone (`UNTOUCHED`). A
mutant is one change at one place:

    guard       the test of an if, while, conditional or comprehension: inverted, always true,
                always false; one operand of and/or dropped; <= for <, >= for > and back
    update      an assignment to a field or entry, an augmented assignment, or a call for its
                effect: left out; += for -=, |= for &= and back; + for -, | for & and back;
                a bitwise NOT left out

Refusals (`if ...: raise`, calls of checks) are no part of a delivery condition and stay, and so
does what only a defective variant does: choices by the words of `DEFECTIVE`. A loop that a
mutant makes endless ends with an error after `LOOPS` rounds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

LOOPS = 1_000
ROOTS = ("send", "receive")
UNTOUCHED = frozenset(
    {
        "adopt",
        "blocked_on",
        "causes",
        "check",
        "control_bytes",
        "decode",
        "describe",
        "encode",
        "frontier",
        "identity",
        "join",
        "leave",
        "mentions",
        "missing",
        "renumber",
        "restore",
        "snapshot",
        "storage_bytes",
        "_check",
        "_missing",
    }
)
DEFECTIVE = frozenset({"as_published", "as_printed", "printed", "insert_printed", "PUBLISHED"})
"""Names by which protocols choose what they do only as printed."""
_SWAPS: Mapping[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_LOOSER: Mapping[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}

Apply = Callable[[], None]


class Mutant(NamedTuple):
    """One change; module, function and change name it across edits elsewhere."""

    module: str
    function: str
    line: int
    change: str
    number: int
    """Position among the changes of the module."""

    @property
    def key(self) -> str:
        """Return what names the mutant in the table of survivors."""
        return f"{self.module.rpartition('.')[2]}.{self.function}: {self.change}"


class _Site(NamedTuple):
    function: str
    line: int
    change: str
    apply: Apply


def find_mutants(sources: Mapping[str, str]) -> list[Mutant]:
    """Return every mutant of the modules (name -> source text)."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    names = reachable(sources)
    found = []
    for name, tree in trees.items():
        if name.endswith("_printed"):
            continue
        seen: dict[str, int] = {}
        for number, site in enumerate(_sites(tree, names)):
            key = f"{site.function}: {site.change}"
            seen[key] = seen.get(key, 0) + 1
            change = site.change + (f" (#{seen[key]})" if seen[key] > 1 else "")
            found.append(Mutant(name, site.function, site.line, change, number))
    return found


def mutate(source: str, mutant: Mutant, names: frozenset[str]) -> ast.Module:
    """Return the tree of the mutant's module with the change made; `names` are `reachable`."""
    tree = ast.parse(source)
    list(_sites(tree, names))[mutant.number].apply()
    return bounded(tree)


def bounded(tree: ast.Module) -> ast.Module:
    """Return the tree with every while loop ending in an error after `LOOPS` rounds."""
    _Bound().visit(tree)
    return ast.fix_missing_locations(tree)


class _Bound(ast.NodeTransformer):
    """while T: B  becomes  for _ in __rounds__(): if not (T): break; B."""

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        rounds = ast.Call(ast.Name("__rounds__", ast.Load()), [], [])
        loop = ast.For(ast.Name("_", ast.Store()), rounds, [stop, *node.body], node.orelse)
        return ast.copy_location(loop, node)


def rounds() -> Iterator[int]:
    """Yield as many times as a loop may run; then raise RuntimeError."""
    yield from range(LOOPS)
    raise RuntimeError(f"a loop without an end (stopped after {LOOPS} rounds)")


# -- which functions ---------------------------------------------------------------------------


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def reachable(sources: Mapping[str, str]) -> frozenset[str]:
    """Return the names of all functions that sending and receiving may call."""
    calls: dict[str, set[str]] = {}
    for text in sources.values():
        for function in _functions(ast.parse(text)):
            names = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
            names |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
            calls.setdefault(function.name, set()).update(names)
    found: set[str] = set()
    todo = [root for root in ROOTS if root in calls]
    while todo:
        name = todo.pop()
        if name not in found and name not in UNTOUCHED:
            found.add(name)
            todo += calls[name] & calls.keys()
    return frozenset(found)


# -- which changes -----------------------------------------------------------------------------


def _sites(tree: ast.Module, names: frozenset[str]) -> Iterator[_Site]:
    for function in _functions(tree):
        if function.name in names and "printed" not in function.name:
            for line, change, apply in _in_block(function, "body"):
                yield _Site(function.name, line, change, apply)


_Change = tuple[int, str, Apply]


def _in_block(owner: ast.AST, field: str) -> Iterator[_Change]:
    block: list[ast.stmt] = getattr(owner, field)
    for position, statement in enumerate(block):
        if isinstance(statement, ast.If) and _is_defective(statement.test):
            if isinstance(statement.test, ast.UnaryOp):
                # `if not as printed: return ...`: all that follows is as printed.
                return
            continue
        if _refuses(statement) or isinstance(statement, ast.FunctionDef | ast.Raise):
            continue
        if _is_update(statement):
            yield _removal(block, position)
        yield from _in_statement(statement)
        for inner in ("body", "orelse", "finalbody"):
            if isinstance(getattr(statement, inner, None), list):
                yield from _in_block(statement, inner)


def _is_defective(test: ast.AST) -> bool:
    """Tell whether a choice is between the repaired and the printed rule."""
    if isinstance(test, ast.BoolOp):
        return False
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test)}
    return bool(names & DEFECTIVE)


def _refuses(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], ast.Raise)
    )


def _is_update(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            return any(isinstance(t, ast.Attribute | ast.Subscript) for t in targets)
        case ast.AnnAssign(target=target, value=value):
            return value is not None and not isinstance(target, ast.Name)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name not in UNTOUCHED and not name.startswith("_check")
        case ast.AugAssign() | ast.Delete():
            return True
    return False


def _removal(block: list[ast.stmt], position: int) -> _Change:
    gone = block[position]

    def apply() -> None:
        block[position] = ast.copy_location(ast.Pass(), gone)

    return gone.lineno, f"without `{ast.unparse(gone)}`", apply


def _in_statement(statement: ast.stmt) -> Iterator[_Change]:
    if isinstance(statement, ast.AugAssign) and type(statement.op) in _SWAPS:
        yield _swap(statement)
    if isinstance(statement, ast.If | ast.While):
        yield from _guard(statement, "test", endless=isinstance(statement, ast.While))
    for field, value in ast.iter_fields(statement):
        if field not in ("body", "orelse", "finalbody", "handlers", "annotation"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST):
                    yield from _in_expression(node)


def _in_expression(root: ast.AST) -> Iterator[_Change]:
    for node in ast.walk(root):
        match node:
            case ast.IfExp():
                yield from _guard(node, "test")
            case ast.comprehension():
                for position in range(len(node.ifs)):
                    yield from _guard(node.ifs, position)
            case ast.BoolOp():
                yield from _operands(node)
            case ast.Compare(ops=[op]) if type(op) in _LOOSER:
                yield _swap_compare(node)
            case ast.BinOp() if type(node.op) in _SWAPS and not _is_text(node):
                yield _swap(node)
            case ast.UnaryOp(op=ast.Invert()):
                yield _without_not(node)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(inner, ast.JoinedStr) for inner in ast.walk(node))


def _guard(owner: object, field: str | int, *, endless: bool = False) -> Iterator[_Change]:
    """Yield a test inverted, always true (unless that never ends), and always false."""
    test: ast.expr = owner[field] if isinstance(field, int) else getattr(owner, field)  # type: ignore[index]
    before = ast.unparse(test)

    def change(words: str, make: Callable[[], ast.expr]) -> _Change:
        def apply() -> None:
            after = ast.copy_location(make(), test)
            if isinstance(field, int):
                owner[field] = after  # type: ignore[index]
            else:
                setattr(owner, field, after)

        return test.lineno, f"`{before}` {words}", apply

    yield change("inverted", lambda: ast.UnaryOp(ast.Not(), test))
    if not endless:
        yield change("always true", lambda: ast.Constant(True))
    yield change("always false", lambda: ast.Constant(False))


def _operands(node: ast.BoolOp) -> Iterator[_Change]:
    before = ast.unparse(node)
    for operand in tuple(node.values):
        if _is_defective(operand):
            continue

        def apply(operand: ast.expr = operand) -> None:
            node.values = [value for value in node.values if value is not operand]
            if len(node.values) == 1:
                node.values = [node.values[0], node.values[0]]

        yield operand.lineno, f"`{before}` without `{ast.unparse(operand)}`", apply


def _swap(node: ast.AugAssign | ast.BinOp) -> _Change:
    before = ast.unparse(node)
    old = node.op
    new: ast.operator = _SWAPS[type(old)]()
    node.op = new
    after = ast.unparse(node)
    node.op = old

    def apply() -> None:
        node.op = new

    return node.lineno, f"`{before}` as `{after}`", apply


def _swap_compare(node: ast.Compare) -> _Change:
    before = ast.unparse(node)
    old = node.ops[0]
    new: ast.cmpop = _LOOSER[type(old)]()
    node.ops = [new]
    after = ast.unparse(node)
    node.ops = [old]

    def apply() -> None:
        node.ops = [new]

    return node.lineno, f"`{before}` as `{after}`", apply


def _without_not(node: ast.UnaryOp) -> _Change:
    before = ast.unparse(node)

    def apply() -> None:
        # +x is x for every integer.
        node.op = ast.UAdd()

    return node.lineno, f"`{before}` without its NOT", apply
