"""Files of a study's folder that appear whole or not at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

from antecede.errors import InputError
from antecede.interrupts import terminable


def write_whole(path: Path, data: str | bytes) -> Path:
    """Write a file under another name, then rename it; what was there stays until then.

    Raises InputError, in one line, where it cannot be written, a full disk included.
    """
    draft = path.with_name(f".{path.name}.draft")
    with terminable():
        try:
            draft.write_bytes(data.encode() if isinstance(data, str) else data)
            draft.replace(path)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}"
            raise InputError(what, path=str(path)) from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    return path
