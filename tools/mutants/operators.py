"""Changes that create mutants of a function: guards and updates removed or inverted.

`tools.mutants.mutation` lists what is changed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import setitem
from typing import TypeAlias

UNCHANGED_FUNCTIONS = frozenset(
    {
        "adopt",
        "list_held",
        "causes",
        "comes_first",
        "check",
        "control_bytes",
        "decode",
        "describe",
        "encode",
        "frontier",
        "identity",
        "join",
        "list_kept_messages",
        "list_missing",
        "leave",
        "memory_bytes",
        "mentions",
        "renumber",
        "restore",
        "snapshot",
        "storage_bytes",
        "would_hold",
        "_check",
        "_check_leads",
        "_check_times",
        "_find_missing",
    }
)
AS_PUBLISHED_NAMES = frozenset(
    {
        *("as_published", "exclusive_end", "published_insert", "published_lists"),
        *("published_merge", "uses_published_listing", "PUBLISHED"),
    }
)
"""Names by which protocols select their behaviour as published."""
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

Apply: TypeAlias = Callable[[], None]
Change: TypeAlias = tuple[int, str, Apply]
"""Line, text of the change, and a function that applies it to the tree."""


def find_changes(owner: ast.AST, field: str) -> Iterator[Change]:
    """Yield every change in one block of statements (a field of its owner)."""
    block: list[ast.stmt] = getattr(owner, field)
    for position, statement in enumerate(block):
        if isinstance(statement, ast.If) and _is_defective(statement.test):
            if isinstance(statement.test, ast.UnaryOp):
                # `if not as_printed: return ...`: the rest is as published.
                return
            continue
        if _is_rejection(statement) or isinstance(statement, ast.FunctionDef | ast.Raise):
            continue
        if _is_update(statement):
            yield _remove_statement(block, position)
        yield from _change_statement(statement)
        for inner in ("body", "orelse", "finalbody"):
            if isinstance(getattr(statement, inner, None), list):
                yield from find_changes(statement, inner)


def _is_defective(test: ast.AST) -> bool:
    """Return whether a test chooses between the repaired and the published rule."""
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, ast.And) and any(map(_is_defective, test.values))
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test)}
    return bool(names & AS_PUBLISHED_NAMES)


def _is_rejection(statement: ast.stmt) -> bool:
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
            return name not in UNCHANGED_FUNCTIONS and not name.startswith("_check")
        case ast.AugAssign() | ast.Delete():
            return True
    return False


def _remove_statement(block: list[ast.stmt], position: int) -> Change:
    gone = block[position]
    nothing = ast.copy_location(ast.Pass(), gone)
    return gone.lineno, f"without `{ast.unparse(gone)}`", partial(setitem, block, position, nothing)


def _change_statement(statement: ast.stmt) -> Iterator[Change]:
    if isinstance(statement, ast.AugAssign) and type(statement.op) in _SWAPS:
        yield _replace_field(statement, "op", _SWAPS[type(statement.op)]())
    if isinstance(statement, ast.If | ast.While):
        put = partial(setattr, statement, "test")
        yield from _change_guard(statement.test, put, endless=isinstance(statement, ast.While))
    for field, value in ast.iter_fields(statement):
        if field not in ("body", "orelse", "finalbody", "handlers", "annotation"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST):
                    yield from _change_expression(node)


def _change_expression(root: ast.AST) -> Iterator[Change]:
    for node in ast.walk(root):
        match node:
            case ast.IfExp():
                yield from _change_guard(node.test, partial(setattr, node, "test"))
            case ast.comprehension():
                for position, test in enumerate(node.ifs):
                    yield from _change_guard(test, partial(setitem, node.ifs, position))
            case ast.BoolOp():
                yield from _drop_operands(node)
            case ast.Compare(ops=[op]) if type(op) in _LOOSER:
                yield _replace_field(node, "ops", [_LOOSER[type(op)]()])
            case ast.BinOp() if type(node.op) in _SWAPS:
                if not _is_text(node) and not _is_defective(node):
                    yield _replace_field(node, "op", _SWAPS[type(node.op)]())
            case ast.UnaryOp(op=ast.Invert()):
                # +x is x for every integer.
                yield _replace_field(node, "op", ast.UAdd(), "without its NOT")


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(inner, ast.JoinedStr) for inner in ast.walk(node))


def _change_guard(
    test: ast.expr, put: Callable[[ast.expr], None], *, endless: bool = False
) -> Iterator[Change]:
    """Yield a test inverted, always true (except for endless loops), and always false.

    `put` replaces the test.
    """
    before = ast.unparse(test)
    instead: dict[str, ast.expr] = {
        "inverted": ast.UnaryOp(ast.Not(), test),
        "always true": ast.Constant(True),
        "always false": ast.Constant(False),
    }
    if endless:
        del instead["always true"]
    for words, after in instead.items():
        yield test.lineno, f"`{before}` {words}", partial(put, ast.copy_location(after, test))


def _drop_operands(node: ast.BoolOp) -> Iterator[Change]:
    before = ast.unparse(node)
    for operand in tuple(node.values):
        if _is_defective(operand):
            continue

        def apply(operand: ast.expr = operand) -> None:
            node.values = [value for value in node.values if value is not operand]
            if len(node.values) == 1:
                node.values = [node.values[0], node.values[0]]

        yield operand.lineno, f"`{before}` without `{ast.unparse(operand)}`", apply


def _replace_field(node: ast.expr | ast.stmt, field: str, new: object, words: str = "") -> Change:
    """Return the change of a field, described by `words` or by the new code."""
    before, old = ast.unparse(node), getattr(node, field)
    setattr(node, field, new)
    after = ast.unparse(node)
    setattr(node, field, old)
    return node.lineno, f"`{before}` {words or f'as `{after}`'}", partial(setattr, node, field, new)
