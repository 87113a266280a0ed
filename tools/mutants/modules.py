"""Modules of a protocol or family, and copies of them with one change."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from tools.mutants.mutation import Mutant, count_iterations, find_reachable, limit_loops, mutate

_SHARED = frozenset(
    f"antecede.core.protocols.{name}"
    for name in (
        "base",
        "options.checks",
        "options.declared",
        "serialization.codec",
        "serialization.state_tuples",
        "registry",
    )
)
"""Modules under `protocols` that belong to no single protocol."""


class ModuleCopies:
    """Copies of all modules of some protocols, importing each other, with one change each."""

    def __init__(self, *factories: Callable[..., Any]) -> None:
        self.names = _collect_modules(factory.__module__ for factory in factories)
        self.sources = {name: inspect.getsource(sys.modules[name]) for name in self.names}
        self.code = {
            name: self._compile(name, ast.parse(text)) for name, text in self.sources.items()
        }
        self.reachable_names = find_reachable(self.sources)

    def _compile(self, name: str, tree: ast.Module) -> CodeType:
        file = sys.modules[name].__file__ or name
        return compile(limit_loops(tree), file, "exec", dont_inherit=True)

    def build(self, mutant: Mutant | None) -> Callable[[Any], Any]:
        """Return a lookup of classes and functions in the new modules; None: without a change."""
        code = self.code
        if mutant is not None:
            changed = mutate(self.sources[mutant.module], mutant, self.reachable_names)
            code = {**code, mutant.module: self._compile(mutant.module, changed)}
        built: dict[str, ModuleType] = {}
        originals = {name: sys.modules[name] for name in self.names}
        try:
            for name in self.names:
                module = ModuleType(name)
                module.__file__ = originals[name].__file__
                vars(module)["__rounds__"] = count_iterations
                built[name] = module
                _install_module(name, module)
                exec(code[name], vars(module))
        finally:
            for name, module in originals.items():
                _install_module(name, module)
        return lambda thing: getattr(built[thing.__module__], thing.__name__)


def _install_module(name: str, module: ModuleType) -> None:
    """Make `import name` and `from parent import name` find this module."""
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


def _collect_modules(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of protocols, each after those that it imports."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for needed in _find_imports(inspect.getsource(import_module(name))):
            if needed not in order and needed not in _SHARED and needed != name:
                visit(needed)
        order[name] = None

    for name in names:
        if name not in order:
            visit(name)
    return tuple(order)


def _find_imports(source: str) -> Iterator[str]:
    """Yield the modules of `antecede.core.protocols` that a module imports at load time."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            if not f"{node.module}.".startswith("antecede.core.protocols."):
                continue
            if _is_package(node.module):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def _is_package(name: str) -> bool:
    return hasattr(import_module(name), "__path__")
