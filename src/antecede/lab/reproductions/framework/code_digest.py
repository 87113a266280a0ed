"""Digest of the code that determines results. Results of other code are not reused.

It covers the layers below studies, and the modules that a study's `execute` uses. Code that only
starts, prints or draws is excluded. Sources are read from a folder or a zip file.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import cast

from antecede import __version__
from antecede.errors import LocalError
from antecede.lab.reproductions.framework.study import Study
from antecede.lab.reproductions.framework.user_files import find_imported_modules

_IGNORED_FOLDERS = (
    *("cli/", "live/", "spark/", "lab/demo/", "lab/diagram/"),
    *("lab/play/", "lab/record/", "lab/report/", "lab/reproductions/"),
)
"""Folders without influence on results."""


def collect_modules(study: Study) -> tuple[str, ...]:
    """Return the modules of a study that determine its results, also imported user modules."""
    named = {study.execute.__module__, *study.code}
    return tuple(sorted(named | (find_imported_modules(named).keys() - {"__main__"})))


@functools.cache
def code_digest(modules: tuple[str, ...]) -> str:
    """Return a digest of the package's version, its layers below studies, and these modules."""
    digest = hashlib.sha256(f"antecede {__version__}".encode())
    for path, data in _iterate_sources(files("antecede"), ""):
        digest.update(f"\0{path}\0".encode() + data)
    for name in modules:
        digest.update(f"\0{name}\0".encode() + _read_source(name))
    return digest.hexdigest()[:32]


def _iterate_sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_bytes()
        elif entry.is_dir() and f"{prefix}{entry.name}/" not in _IGNORED_FOLDERS:
            yield from _iterate_sources(entry, f"{prefix}{entry.name}/")


def _read_source(name: str) -> bytes:
    spec = importlib.util.find_spec(name) if name != "__main__" else sys.modules[name].__spec__
    if spec is None or spec.origin is None or spec.loader is None:
        raise LocalError(
            f"module {name}: no source file; define the study's functions in a module file"
        )
    return cast("bytes", spec.loader.get_data(spec.origin))  # type: ignore[attr-defined]
