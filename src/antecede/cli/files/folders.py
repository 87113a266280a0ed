"""Folder of parts that a command writes, whole or not at all; checked before any work.

A whole folder bears a mark; only a marked folder is ever replaced, and only on request.
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
"""As Spark names the file that tells of a whole folder; readers pass over it."""
WORDS = "written by antecede\n"


def check_new_folder(out: Path, read: Iterable[str | Path], force: bool) -> None:
    """Raise InputError unless a command that reads `read` can make the folder `out`.

    `force`: a folder of an earlier run, or an ordinary file, may be replaced.
    """
    paths = list(read)
    check_not_read(out, paths)
    if not out.is_dir():
        check_free(out, force)
        return
    check_not_read(out / "part", paths)
    if any(Path(path).resolve().is_relative_to(out.resolve()) for path in paths):
        raise InputError("holds what this command reads; name another folder", path=str(out))
    if not is_made(out):
        message = "is a folder that no earlier run of antecede made whole; name another"
        raise InputError(message, path=str(out))
    if not force:
        raise InputError("exists already; name another folder or give --force", path=str(out))


def is_made(folder: Path) -> bool:
    """Tell whether a folder was written by `draft_folder`."""
    mark = folder / MARK
    try:
        return not folder.is_symlink() and mark.is_file() and mark.read_text() == WORDS
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def draft_folder(out: Path) -> Iterator[Path]:
    """Yield a folder beside `out` for parts; it gets the name `out` at a good end.

    If it stays empty, `out` is not made, and one of an earlier run is removed. An error leaves
    `out` as it was and no draft behind.
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
    """Put a whole draft in the place of what was there; a folder cannot replace another at once."""
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
