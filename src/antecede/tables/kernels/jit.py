"""Decorators of compiled kernels, and their cache on disk.

Numba checks only the file of the called function: after an edit elsewhere, stale code may run. Here
the cache folder is named after a hash of *all* kernel sources and of numba's version. It stands
below `NUMBA_CACHE_DIR`, the user's cache folder, or Spark's folder for temporary files. So an
installation may be read-only, and a zip file, as Spark ships it, shares the cache of an
installation with the same sources. Without a writable folder each process compiles in memory.

A folder that other users may write to, such as /tmp, never serves: loading machine code means
trusting its writer.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from antecede.errors import MissingExtraError

try:
    import numba
    from llvmlite import binding
    from numba.core import caching, config
except ImportError as error:
    raise MissingExtraError("compiled kernels (numba)", "trace") from error

P = ParamSpec("P")
R = TypeVar("R")
_numba_config: Any = config  # its attributes are made at run time
_Located: Any = caching._CacheLocator
_numba_njit: Any = numba.njit  # its option _nrt is not in the stubs


def njit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba in nopython mode, without the GIL, cached on disk.

    Callees must be decorated too; they may live in any file of this package.
    """
    return _compiled(function, cached=True)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small helper that LLVM puts into every kernel that calls it.

    For inner loops, which take twice as long without. Cached with its callers.
    """
    return _compiled(function, forceinline=True)


def njit_lent(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `njit`, without counting references to arrays; for arrays of the caller alone.

    Counting costs half of the time or more in a loop that calls helpers with many arrays. Neither
    the function nor its helpers (`inlined_lent`) may make or return an array; functions compiled
    before by `njit` may.
    """
    return _compiled(function, cached=True, _nrt=False)


def inlined_lent(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `inlined`, for kernels under `njit_lent`."""
    return _compiled(function, forceinline=True, _nrt=False)


def _compiled(function: Callable[P, R], cached: bool = False, **options: bool) -> Callable[P, R]:
    made = _numba_njit(nogil=True, **options)(function)
    if cached and cache_folder() is not None:
        _enable_cache(made)
    return cast("Callable[P, R]", made)


@functools.cache
def cache_folder() -> str | None:
    """Folder for machine code of exactly these sources; None if nothing can be written."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for name, source in sorted(_sources(importlib.resources.files("antecede"))):
        digest.update(name.encode() + b"\0" + source)
    for base in _base_folders():
        folder = base / f"kernels-{digest.hexdigest()[:16]}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return str(folder)
    return None


@contextlib.contextmanager
def first_on_machine(what: str) -> Iterator[bool]:
    """Choose one of the processes that share a cache to compile `what` for all.

    Gives True to the first; the others wait until that one has left the block and get False. Also
    False without a cache or locks: then each process compiles for itself.
    """
    folder = cache_folder()
    processor = binding.get_host_cpu_name()  # code is for one kind; folders can be shared
    done = None if folder is None else Path(folder) / f"{what}-{processor}.compiled"
    if done is None or done.exists():
        yield False
        return
    with _locked(done.with_suffix(".lock")) as locked:
        first = locked and not done.exists()
        yield first
        if first:
            with contextlib.suppress(OSError):  # a full disk: the next one compiles
                done.touch()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file, at the latest until the process ends; False: there are no locks."""
    with contextlib.ExitStack() as stack:
        try:
            import fcntl

            fcntl.flock(stack.enter_context(path.open("wb")), fcntl.LOCK_EX)
        except (ImportError, OSError):  # no such module, file or lock
            yield False
        else:
            yield True


def _sources(folder: Any, path: str = "", within: bool = False) -> Iterator[tuple[str, bytes]]:
    """Yield names and bytes of the files that may hold compiled code, also of a zip file."""
    for entry in folder.iterdir():
        place = f"{path}{entry.name}"
        if entry.is_dir():
            found = entry.name in ("kernels", "compiled") or place == "tables/order/stream"
            yield from _sources(entry, f"{place}/", within or found)
        elif within and entry.name.endswith(".py"):
            yield place, entry.read_bytes()


def _base_folders() -> list[Path]:
    """Return the candidates for cache folders, the best first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen) / "antecede"]
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return [Path(os.environ["LOCALAPPDATA"]) / "antecede"]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    spark = filter(None, os.environ.get("SPARK_LOCAL_DIRS", "").split(","))
    return [Path(home) / "antecede", *(Path(each) / "antecede" for each in spark if _ours(each))]


def _ours(folder: str) -> bool:
    with contextlib.suppress(OSError, AttributeError):
        found = os.stat(folder)
        return found.st_uid == os.getuid() and not found.st_mode & 0o022
    return False


class Locator(_Located):  # type: ignore[misc]
    """Numba's locator of a kernel's cache: by module and line, wherever the sources lie."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file  # numba names it in warnings
        self._function = function

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Locator:
        """Return the locator of a kernel; numba's signature."""
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        """Return nothing: the folder is named after all sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return a distinct text for kernels of one name."""
        line = self._function.__code__.co_firstlineno
        return f"{self._function.__module__}-{line}"


def _enable_cache(compiled: object) -> None:
    # numba reads its configuration when the cache is switched on, so that is when ours must
    # stand there; other users of numba in this process keep theirs.
    before = _numba_config.CACHE_LOCATOR_CLASSES
    _numba_config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__}"
    try:
        compiled.enable_caching()  # type: ignore[attr-defined]
    except RuntimeError:  # no place that can be written after all: compile in memory
        pass
    finally:
        _numba_config.CACHE_LOCATOR_CLASSES = before
