"""File that a command writes completely or not at all.

Commands call `check_writable` first, and write by `draft_of` or `save_text`. No command overwrites
its input, also not with --force.
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

    `force`: a regular file may be replaced, but no input (also by a link), and no file in a folder
    that is read.
    """
    check_not_read(out, read)
    check_free(out, force)


def check_ending(option: str, out: str | None, *endings: str) -> None:
    """Raise InputError if an option names a file with another ending; None: it is not given."""
    if out is not None and Path(out).suffix.lower() not in endings:
        expected = " or ".join(endings)
        raise InputError(f"{option}: expected a file name that ends in {expected}", path=out)


def check_free(out: Path, force: bool) -> None:
    """Raise InputError unless `out` can be written; `force`: a regular file may be replaced.

    Devices and pipes are rejected: the rename of the draft would replace /dev/null.
    """
    if not out.name:
        raise InputError(f"{str(out)!r} is not a file name; name a file to write")
    try:
        if out.is_dir():
            raise InputError("is a folder; name a file to write", path=str(out))
        folder = out.absolute().parent
        if not folder.is_dir():
            raise InputError("the folder does not exist; create it or name another", path=str(out))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError("the folder is not writable; name another", path=str(out))
        if out.exists() and (not out.is_file() or folder == Path("/dev")):
            raise InputError("is not a regular file; name a file to write", path=str(out))
        there = out.exists() or out.is_symlink()  # dangling links count
    except (OSError, ValueError) as error:  # too long, or with a zero byte
        raise InputError(f"invalid file name: {error}", path=ascii(str(out))) from error
    if there and not force:
        raise InputError("exists; name another file or give --force", path=str(out))


def check_folder(folder: Path, names: Iterable[str], read: Iterable[str | Path]) -> None:
    """Raise InputError unless a command can write files of these names in a folder.

    The folder need not exist. Only regular files are replaced, and no input.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError("is not a folder; name a folder to write to", path=str(folder))
        there = folder.absolute()
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise InputError(f"the folder cannot be created: {there} is a file", path=str(folder))
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"{there} is not writable; name another folder", path=str(folder))
    except (OSError, ValueError) as error:
        what = f"invalid folder name: {error}"
        raise InputError(what, path=ascii(str(folder))) from error
    paths = [Path(path) for path in read]
    for name in names:
        out = folder / name
        check_not_read(out, [path for path in paths if not path.is_dir()])
        if folder.is_dir() and not out.is_dir():
            check_free(out, force=True)


def check_apart(*outs: str | Path | None) -> None:
    """Raise InputError if two outputs of a command have the same name."""
    seen: set[Path] = set()
    for out in (Path(one) for one in outs if one is not None):
        if out.absolute() in seen:
            raise InputError("is the name of two output files; name two files", path=str(out))
        seen.add(out.absolute())


def check_not_read(out: Path, read: Iterable[str | Path]) -> None:
    """Raise InputError if `out` is an input, also by a link.

    All files of a folder are inputs; in a git repository those in `.git`, so that results can be
    in the working tree.
    """
    for path in map(Path, read):
        try:
            if not path.exists():
                continue
            if out.exists() and out.samefile(path):
                raise InputError("is input of this command; name another file", path=str(out))
            git = path / ".git"
            if path.is_dir() and _is_within(out, git if git.is_dir() else path):
                message = f"is in {path}, which this command reads; name a file outside"
                raise InputError(message, path=str(out))
        except (OSError, ValueError):
            continue  # reading or writing reports it


def _is_within(out: Path, folder: Path) -> bool:
    """Return whether a file is in the folder, or is linked to a file in it."""
    inside = folder.resolve()
    # The folder of `out`: `out` may be a link, which is replaced.
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
    """Yield a draft file beside `out`, renamed to `out` on success.

    An error (full disk, Ctrl-C, SIGTERM) leaves `out` unchanged and no draft. Raise InputError for
    errors of the system.
    """
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    with terminable():
        try:
            yield draft
            # A full disk raises here at the latest.
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(out)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}"
            raise InputError(what, path=str(out)) from error
        finally:
            draft.unlink(missing_ok=True)


def save_text(out: Path, text: str) -> None:
    """Write a text file completely or not at all. Raise InputError for errors of the system."""
    with draft_of(out) as draft:
        draft.write_text(text, encoding="utf-8")
