"""The file a command writes: refused before any work where it can not be, whole or as it was."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antecede.errors import InputError


def check_free(out: Path, force: bool) -> None:
    """Raise InputError unless `out` can be written; `force`: an ordinary file may be replaced.

    Devices and pipes are refused in any case: the finished file is renamed to its name, which
    would put an ordinary file in the place of /dev/null.
    """
    if out.is_dir():
        raise InputError("is a folder; name a file to write", path=str(out))
    if not out.absolute().parent.is_dir():
        raise InputError("the folder to write into does not exist", path=str(out))
    if out.exists() and (not out.is_file() or out.absolute().parent == Path("/dev")):
        raise InputError("is no ordinary file; name a file to write", path=str(out))
    if out.exists() and not force:
        raise InputError("exists already; name another file or give --force", path=str(out))


def check_not_read(out: Path, read: Iterable[str | Path]) -> None:
    """Raise InputError where `out` is one of the files that are read, by whatever name."""
    for path in map(Path, read):
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError("is read by this command; name another file", path=str(out))


@contextmanager
def draft_of(out: Path) -> Iterator[Path]:
    """Give a name beside `out` to write to; it is renamed to `out` when all went well.

    Raises InputError for what the system says.
    """
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(out)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=str(out)) from error
    finally:
        draft.unlink(missing_ok=True)
