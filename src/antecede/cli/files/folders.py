"""Folder of part files that a command writes completely or not at all.

A complete folder has a mark. Only marked folders are replaced, and only with --force.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antecede.cli.files.output import check_free, check_not_read
from antecede.errors import InputError
from antecede.interrupts import terminable

MARK = "_SUCCESS"
"""File of a complete folder, as Spark writes it; readers skip it."""
WORDS = "written by antecede\n"


def check_new_folder(out: Path, read: Iterable[str | Path], force: bool) -> None:
    """Raise InputError unless a command that reads `read` can create the folder `out`.

    `force`: a folder of an earlier run, or a regular file, may be replaced.
    """
    paths = list(read)
    check_not_read(out, paths)
    if not out.is_dir():
        check_free(out, force)
        return
    check_not_read(out / "part", paths)
    if any(Path(path).resolve().is_relative_to(out.resolve()) for path in paths):
        raise InputError("contains input of this command; name another folder", path=str(out))
    if not is_made(out):
        message = "is not a complete folder of an earlier run; name another folder"
        raise InputError(message, path=str(out))
    if not force:
        raise InputError("exists; name another folder or give --force", path=str(out))


def is_made(folder: Path) -> bool:
    """Return whether `draft_folder` wrote the folder."""
    mark = folder / MARK
    try:
        return not folder.is_symlink() and mark.is_file() and mark.read_text() == WORDS
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def draft_folder(out: Path) -> Iterator[Path]:
    """Yield a draft folder beside `out` for part files, renamed to `out` on success.

    If it stays empty, no `out` is created, and that of an earlier run is removed. An error leaves
    `out` unchanged and no draft.
    """
    draft = out.absolute().with_name(f".{out.name}.{os.getpid()}")
    with terminable():
        try:
            draft.mkdir()
            yield draft
            empty = not any(draft.iterdir())
            (draft / MARK).write_text(WORDS)
            _replace(out, draft, empty)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}"
            raise InputError(what, path=str(out)) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _replace(out: Path, draft: Path, empty: bool) -> None:
    """Replace `out` by the draft, in two steps: a folder cannot replace another atomically."""
    old = draft.with_name(f"{draft.name}.old")
    there = is_made(out)
    if there:
        out.replace(old)
    if not empty:
        if out.is_file():
            out.unlink()
        draft.replace(out)
    if there:
        shutil.rmtree(old, ignore_errors=True)
