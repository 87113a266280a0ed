"""Atomic file writes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from antecede.errors import InputError
from antecede.interrupts import terminable


def write_whole(path: Path, data: str | bytes) -> Path:
    """Write a file under another name, then rename it. Raises InputError, also for a full disk."""
    draft = path.with_name(f".{path.name}.draft")
    with terminable():
        try:
            draft.write_bytes(data.encode() if isinstance(data, str) else data)
            draft.replace(path)
        except OSError as error:
            what = f"cannot write the file: {error.strerror or error}"
            raise InputError(what, path=str(path)) from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
    return path
