"""Input paths of a trace: files, folders and glob patterns."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from antecede.errors import FormatError, InputError
from antecede.tables.trace import reader
from antecede.tables.trace.formats.git import is_repository
from antecede.tables.trace.text import files_below

Paths = str | Path | Sequence[str | Path]


def list_paths(paths: Paths) -> list[str | Path]:
    """Return one or several paths as a list."""
    return [paths] if isinstance(paths, str | Path) else list(paths)


def all_inputs(paths: Paths, format: str | None = None) -> list[Path]:
    """Return the `inputs` of all paths in order. Raise InputError if a path or all give none."""
    found: list[Path] = []
    for path in list_paths(paths):
        parts = inputs(path, format)
        if not parts:
            raise InputError("the folder contains no file to read", path=str(path))
        found += parts
    if not found:
        raise InputError("no input path; give a file, a folder or a pattern")
    return found


def inputs(path: str | Path, format: str | None = None) -> list[Path]:
    """Return the files and folders of `path`, each for one reader.

    A folder that is one trace (git repository, Parquet parts) is one input. Other folders give all
    their files, possibly none. A path that does not exist is a glob pattern; raise InputError if it
    has no match. `format`: requested format (None: detect).
    """
    if Path(path).exists():
        return _expand_path(Path(path), format)
    matches = sorted(map(Path, glob.glob(str(path))))
    if not matches:
        why = "; standard input is not supported, write it to a file" if str(path) == "-" else ""
        raise InputError(f"no such file or folder, and no match as a pattern{why}", path=str(path))
    return [part for match in matches for part in _expand_path(match, format)]


def _expand_path(path: Path, format: str | None) -> list[Path]:
    if not path.is_dir() or _is_one_trace(path, format):
        return [path]
    return files_below(path)


def _is_one_trace(folder: Path, format: str | None) -> bool:
    if is_repository(folder):
        return True
    if format is not None:
        return reader.by_name(format).sniff(folder, b"") > 0
    try:
        reader.choose(folder)
    except FormatError:
        return False
    return True
