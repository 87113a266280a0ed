"""File that a command writes, whole or not at all; checked before any work.

Commands ask `check_writable` first and write by `draft_of` or `save_text`. No command ever writes
its input, with --force or without.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antecede.errors import InputError
from antecede.interrupts import terminable


def check_writable(out: Path, read: Iterable[str | Path], force: bool) -> None:
    """Raise InputError unless a command that reads `read` can write `out`.

    `force`: an ordinary file may be replaced, but never an input, by whatever name (links and hard
    links), nor a file in a folder that is read.
    """
    check_not_read(out, read)
    check_free(out, force)


def check_free(out: Path, force: bool) -> None:
    """Raise InputError unless `out` can be written; `force`: an ordinary file may be replaced.

    Devices and pipes are refused: the finished file is renamed, which would replace /dev/null.
    """
    if not out.name:
        raise InputError(f"{str(out)!r} names no file; name one to write")
    try:
        if out.is_dir():
            raise InputError("is a folder; name a file to write", path=str(out))
        folder = out.absolute().parent
        if not folder.is_dir():
            raise InputError("the folder to write into does not exist", path=str(out))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError("no file can be made in this folder", path=str(out))
        if out.exists() and (not out.is_file() or folder == Path("/dev")):
            raise InputError("is no ordinary file; name a file to write", path=str(out))
        there = out.exists() or out.is_symlink()  # a link that leads nowhere is somebody's, too
    except (OSError, ValueError) as error:  # a name too long, or with a zero byte
        raise InputError(f"no file can have this name: {error}", path=ascii(str(out))) from error
    if there and not force:
        raise InputError("exists already; name another file or give --force", path=str(out))


def check_folder(folder: Path, names: Iterable[str], read: Iterable[str | Path]) -> None:
    """Raise InputError unless a command can keep files of these names in a folder.

    The folder need not exist. No input and nothing but ordinary files is ever replaced.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError("is no folder; name one to write into", path=str(folder))
        there = folder.absolute()
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise InputError(f"no folder can be made: {there} is a file", path=str(folder))
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"nothing can be made in {there}", path=str(folder))
    except (OSError, ValueError) as error:
        what = f"no folder can have this name: {error}"
        raise InputError(what, path=ascii(str(folder))) from error
    paths = [Path(path) for path in read]
    for name in names:
        out = folder / name
        check_not_read(out, [path for path in paths if not path.is_dir()])
        if folder.is_dir() and not out.is_dir():
            check_free(out, force=True)


def check_apart(*outs: str | Path | None) -> None:
    """Raise InputError where two outputs of a command have the same name."""
    seen: set[Path] = set()
    for out in (Path(one) for one in outs if one is not None):
        if out.absolute() in seen:
            raise InputError("is to be written twice; name two files", path=str(out))
        seen.add(out.absolute())


def check_not_read(out: Path, read: Iterable[str | Path]) -> None:
    """Raise InputError where `out` is an input, by whatever name.

    All files of a folder are inputs; of a git repository its `.git` alone, so that a result may
    stand in the working tree.
    """
    for path in map(Path, read):
        try:
            if not path.exists():
                continue
            if out.exists() and out.samefile(path):
                raise InputError("is read by this command; name another file", path=str(out))
            git = path / ".git"
            if path.is_dir() and _within(out, git if git.is_dir() else path):
                message = f"lies in {path}, which this command reads; name a file outside"
                raise InputError(message, path=str(out))
        except (OSError, ValueError):
            continue  # what can not be looked at is refused by whoever reads or writes it


def _within(out: Path, folder: Path) -> bool:
    """Tell whether a file is in the folder, or is the same as one in it, by a link."""
    inside = folder.resolve()
    # The folder of `out`, for `out` itself may be a link to elsewhere that is replaced here.
    if out.absolute().parent.resolve().is_relative_to(inside):
        return True
    if not out.exists():
        return False
    if out.resolve().is_relative_to(inside):
        return True
    if out.stat().st_nlink < 2:
        return False
    return any(part.is_file() and part.samefile(out) for part in folder.rglob("*"))


@contextmanager
def draft_of(out: Path) -> Iterator[Path]:
    """Yield a name beside `out` to write to; it is renamed to `out` at a good end.

    An error (full disk, Ctrl-C, SIGTERM) leaves `out` as it was and no draft behind. Raises
    InputError for errors of the system.
    """
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    with terminable():
        try:
            yield draft
            # Have the system write everything now: a disk that is full says so here at the latest.
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(out)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}"
            raise InputError(what, path=str(out)) from error
        finally:
            draft.unlink(missing_ok=True)


def save_text(out: Path, text: str) -> None:
    """Write a text file whole or not at all. Raises InputError for what the system says."""
    with draft_of(out) as draft:
        draft.write_text(text, encoding="utf-8")
