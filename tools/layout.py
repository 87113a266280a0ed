"""Layout rules of the package: layers, import cycles, interfaces and folder sizes.

    python -m tools.layout

Imports under TYPE_CHECKING and inside functions count (`docs/design/architecture.md`).
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

PACKAGE: Final = "antecede"
LAYERS: Final = (("core",), ("tables",), ("spark", "live"), ("lab",), ("cli",))
"""Top-level packages, lowest first; packages of one layer do not import each other."""
DIVIDED_PACKAGES: Final = ("core", "tables", "lab")
"""Packages whose entries must not import each other in cycles."""
INNER_INTERFACES: Final = (
    "core.clocks.encoding",
    "core.protocols.hierarchical",
    "core.protocols.options",
    "core.protocols.serialization",
    "core.protocols.topics",
    "lab.check.harness",
    "lab.check.model_checker",
    "lab.check.scenario",
    "lab.reproductions.framework",
    "lab.reproductions.sweeps",
    "lab.simulate.compiled",
    "lab.simulate.config",
    "lab.simulate.outputs",
    "live.chat",
    "live.drivers",
    "spark.audits",
    "spark.relations",
    "spark.sources",
    "tables.order.replay",
    "tables.order.stream",
    "tables.trace.formats",
    "tables.trace.user_tables",
)
"""Inner packages that other packages may import from."""
MAX_ENTRIES: Final = 15
"""Limit of modules and packages per folder, JavaScript included, `__init__.py` excluded."""
UNLIMITED_FOLDERS: Final = ("antecede/tables/trace/formats", "antecede/live")
"""Folders without a limit: one reader per format; `live` until it is rebuilt."""
CYCLES_ALLOWED: Final = "antecede.live."
"""Prefix of modules with allowed cycles, until they are rebuilt."""

Imports = dict[str, set[str]]


def read_imports(source: Path) -> Imports:
    """Return the imported modules of the package for each of its modules."""
    files = {_get_module_name(path.relative_to(source)): path for path in source.rglob("*.py")}
    return {
        name: set(_find_imports(ast.parse(path.read_text(encoding="utf-8")), files)) - {name}
        for name, path in files.items()
    }


def find_problems(source: Path) -> list[str]:
    """Return the violations of all rules in a source folder."""
    imports = read_imports(source)
    found = [
        *_find_upward_imports(imports),
        *_find_file_cycles(imports),
        *_find_package_cycles(imports),
    ]
    return sorted([*found, *_find_deep_imports(source), *_find_large_folders(source)])


def find_cycles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def _get_module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _find_imports(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in known:
                    yield whole
                elif node.module in known:
                    yield node.module


def _get_top_package(name: str) -> str:
    """Return the top-level package of a module; "" for files outside the packages."""
    packages = {package for layer in LAYERS for package in layer}
    part = name.split(".")[1] if "." in name else ""
    return part if part in packages else ""


def _find_upward_imports(imports: Imports) -> Iterator[str]:
    level = {package: number for number, layer in enumerate(LAYERS, 1) for package in layer}
    level[""] = 0
    for name, targets in imports.items():
        if name in (PACKAGE, f"{PACKAGE}.__main__"):
            continue
        for target in targets:
            ends = _get_top_package(name), _get_top_package(target)
            if target != PACKAGE and ends[0] != ends[1] and level[ends[0]] <= level[ends[1]]:
                yield f"upward import: {name} imports {target}"


def _find_file_cycles(imports: Imports) -> Iterator[str]:
    for cycle in find_cycles(imports):
        if not all(name.startswith(CYCLES_ALLOWED) for name in cycle):
            yield f"import cycle: {', '.join(cycle)}"


def _get_interface(name: str) -> str:
    """Return the package whose `__init__` is a module's interface; "" for shared files."""
    parts = name.split(".")
    return (
        ".".join(parts[1:3])
        if _get_top_package(name) in DIVIDED_PACKAGES
        else _get_top_package(name)
    )


def _find_package_cycles(imports: Imports) -> Iterator[str]:
    faces: Imports = defaultdict(set)
    for name, targets in imports.items():
        faces[_get_interface(name)].update(_get_interface(target) for target in targets)
    for cycle in find_cycles({name: targets - {name, ""} for name, targets in faces.items()}):
        yield f"cycle of packages: {', '.join(cycle)}"


def _find_deep_imports(source: Path) -> Iterator[str]:
    """Yield imports from a module of another package that is not an interface."""
    for path in source.rglob("*.py"):
        name = _get_module_name(path.relative_to(source))
        if name == PACKAGE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
                target = str(node.module).removeprefix(f"{PACKAGE}.")
                face = _get_interface(str(node.module))
                if face not in ("", _get_interface(name)) and target not in (
                    face,
                    *DIVIDED_PACKAGES,
                    *INNER_INTERFACES,
                ):
                    yield f"import past an interface: {name} imports from {PACKAGE}.{target}"


def _find_large_folders(source: Path) -> Iterator[str]:
    entries: dict[str, set[str]] = defaultdict(set)
    for path in source.rglob("*"):
        if path.suffix in (".py", ".js") and path.name != "__init__.py":
            folder = path.parent.relative_to(source)
            entries[folder.as_posix()].add(path.name)
            for inner, outer in zip([folder, *folder.parents], folder.parents, strict=False):
                entries[outer.as_posix()].add(f"{inner.name}/")
    for folder_name, names in entries.items():
        if len(names) > MAX_ENTRIES and folder_name not in UNLIMITED_FOLDERS:
            yield f"{len(names)} entries in {folder_name}: {', '.join(sorted(names))}"


def main() -> int:
    """Print the violations; return 1 if there are any."""
    problems = find_problems(Path("src"))
    print(*problems or ["the layout keeps its rules"], sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
