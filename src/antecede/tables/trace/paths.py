"""Paths of a trace: files, folders and patterns."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from antecede.errors import FormatError, InputError
from antecede.tables.trace import reader
from antecede.tables.trace.formats.git import is_repository
from antecede.tables.trace.text import files_below

Paths = str | Path | Sequence[str | Path]


def listed(paths: Paths) -> list[str | Path]:
    """Return the paths as a list; a text is one path."""
    return [paths] if isinstance(paths, str | Path) else list(paths)


def all_inputs(paths: Paths, format: str | None = None) -> list[Path]:
    """Return the `inputs` of paths, in their order.

    Raise InputError without any path, and for a path that leads to no file.
    """
    found: list[Path] = []
    for path in listed(paths):
        parts = inputs(path, format)
        if not parts:
            raise InputError("the folder holds no file to read", path=str(path))
        found += parts
    if not found:
        raise InputError("no path given")
    return found


def inputs(path: str | Path, format: str | None = None) -> list[Path]:
    """Return the files and folders that `path` leads to, each to be read by one reader.

    A folder that is one trace (a repository, parts of a Parquet table) is returned itself, of any
    other all files below it (`files_below`). A path that does not exist is a pattern as of a shell.
    `format`: the requested reader; None: look at each.

    Raise InputError for no match. A folder may be empty, as files may come yet.
    """
    if Path(path).exists():
        return _parts(Path(path), format)
    matches = sorted(map(Path, glob.glob(str(path))))
    if not matches:
        why = "; standard input is not read, write it to a file" if str(path) == "-" else ""
        raise InputError(f"no such file or folder, and no pattern of any{why}", path=str(path))
    return [part for match in matches for part in _parts(match, format)]


def _parts(path: Path, format: str | None) -> list[Path]:
    if not path.is_dir() or _is_whole(path, format):
        return [path]
    return files_below(path)


def _is_whole(folder: Path, format: str | None) -> bool:
    if is_repository(folder):
        return True
    if format is not None:
        return reader.by_name(format).sniff(folder, b"") > 0
    try:
        reader.choose(folder)
    except FormatError:
        return False
    return True
