"""The one decorator of compiled kernels: compile on first use, keep the machine code on disk.

Theory of operation. Numba keeps compiled code beside the source, and checks only the file of
the function that was called: after an edit in another file, or an upgrade, stale code may run.
Here the folder of the cache is named after a hash of *all* kernel sources and of numba's
version, and stands below `NUMBA_CACHE_DIR` or the user's cache folder. So an installation may
be read-only, an edit anywhere gives a fresh cache, and where nothing can be written (or the
package runs from a zip file) kernels compile in memory, a few seconds slower.

Nothing is ever cached below a folder that others may write to, such as /tmp: loading cached
machine code means trusting whoever wrote it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from antecede.errors import MissingExtraError

try:
    import numba
    from numba.core import config
except ImportError as error:
    raise MissingExtraError("compiled kernels (numba)", "trace") from error

P = ParamSpec("P")
R = TypeVar("R")
_numba_config: Any = config  # its attributes are made at run time
_numba_njit: Any = numba.njit  # its option _nrt is not in the stubs


def njit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba in nopython mode, without the GIL, cached on disk.

    Callees must be decorated too; they may live in any file of this package.
    """
    compiled = numba.njit(nogil=True)(function)
    folder = cache_folder()
    if folder is not None:
        _enable_cache(compiled, folder)
    return cast("Callable[P, R]", compiled)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small helper that LLVM puts into every kernel that calls it.

    For inner loops: half of the speed is lost without. Not cached by itself; its callers are.
    """
    return cast("Callable[P, R]", numba.njit(nogil=True, forceinline=True)(function))


def njit_lent(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `njit` what works on arrays of its caller alone, without counting references.

    In a loop that calls helpers with many arrays the counting costs half of the time or more.
    Neither the function nor what it calls (`inlined_lent`) may make or return an array. What it
    calls is compiled in the same way; but what was compiled before, by `njit`, may make arrays.
    """
    compiled = _numba_njit(nogil=True, _nrt=False)(function)
    folder = cache_folder()
    if folder is not None:
        _enable_cache(compiled, folder)
    return cast("Callable[P, R]", compiled)


def inlined_lent(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `inlined`, for kernels under `njit_lent`."""
    compiled = _numba_njit(nogil=True, forceinline=True, _nrt=False)(function)
    return cast("Callable[P, R]", compiled)


@functools.cache
def cache_folder() -> str | None:
    """Folder for machine code of exactly these sources; None if nothing can be written."""
    here = Path(__file__).parent
    if not here.is_dir():  # inside a zip file
        return None
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for source in _sources(here.parent):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = _base_folder() / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK | os.X_OK) else None


def _sources(package: Path) -> list[Path]:
    """Return the files of kernels: those of the folders that may hold compiled code."""
    folders = ("kernels", "*/kernels", "*/compiled", "order/stream")
    return sorted(file for folder in folders for file in package.glob(f"{folder}/*.py"))


def _base_folder() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "antecede"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "antecede"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "antecede"


def _enable_cache(compiled: object, folder: str) -> None:
    # numba reads its configuration when the cache is switched on, so that is when ours must
    # stand there; other users of numba in this process keep theirs.
    before = _numba_config.CACHE_DIR
    _numba_config.CACHE_DIR = folder
    try:
        compiled.enable_caching()  # type: ignore[attr-defined]
    except RuntimeError:  # no place that can be written after all: compile in memory
        pass
    finally:
        _numba_config.CACHE_DIR = before
