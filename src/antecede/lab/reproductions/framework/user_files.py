"""Digests of the user's protocols and traces."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import antecede
from antecede.errors import InputError
from antecede.lab.check import is_file_target, load_class
from antecede.lab.simulate.config import SimulationConfig


def digest_user_files(config: SimulationConfig) -> dict[str, str]:
    """Return name -> digest of a user's protocol, its imports, and a trace. Raises InputError."""
    found: list[Path] = []
    if is_file_target(config.protocol):
        made = load_class(config.protocol)
        file = Path(config.protocol.rpartition(":")[0]).resolve()
        found += sorted({file, *find_imported_modules([made.__module__]).values()})
    if config.workload.kind == "replay":
        found.append(Path(config.workload.path or ""))
    return {path.name: compute_file_digest(path) for path in found}


def check_files(config: SimulationConfig, expected: Mapping[str, str]) -> None:
    """Raise InputError if a file has changed since its digest was taken."""
    now = digest_user_files(config)
    for name, digest in expected.items():
        if now.get(name, digest) != digest:
            raise InputError(
                "the file has changed since the runs were listed; start again", path=name
            )


def find_imported_modules(names: Iterable[str]) -> dict[str, Path]:
    """Return name -> file: these modules, and modules of their folders that they import."""
    found: dict[str, Path] = {}
    waiting, own = list(names), Path(antecede.__file__).resolve().parent
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if name in found or not path or not path.endswith(".py"):
            continue
        if "site-packages" in Path(path).parts or Path(path).resolve().is_relative_to(own):
            continue
        found[name] = Path(path).resolve()
        folder = found[name].parent
        for other in _find_imports(found[name], getattr(module, "__package__", None) or ""):
            near = getattr(sys.modules.get(other), "__file__", None)
            if near and Path(near).resolve().is_relative_to(folder):
                waiting.append(other)
    return found


def _find_imports(file: Path, package: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(dots, package) if node.level else dots
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def compute_file_digest(*paths: Path) -> str:
    """Return a digest of the contents of files. Raises InputError for an unreadable file."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise InputError(f"cannot read the file: {error.strerror}", path=str(path)) from error
    return digest.hexdigest()[:32]
