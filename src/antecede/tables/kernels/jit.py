"""Decorators of compiled kernels, and their cache on disk.

Numba checks only the file of the called function, so it may run stale code after an edit elsewhere.
Here the name of the cache folder contains a hash of *all* kernel sources and of numba's version.
The folder is below `NUMBA_CACHE_DIR`, the user's cache folder, or Spark's folder for temporary
files. A zip file, as shipped by Spark, shares the cache of an installation with the same sources.
Without a writable folder each process compiles in memory.

A folder that other users may write to, such as /tmp, is never used: loading machine code means
trusting its author.
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
_numba_config: Any = config  # its attributes are created at run time
_Located: Any = caching._CacheLocator
_numba_njit: Any = numba.njit  # its option _nrt is not in the stubs


def njit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with numba in nopython mode, without the GIL, cached on disk.

    Callees must be decorated too.
    """
    return _compile(function, use_cache=True)


def inline(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small helper inlined into its callers: inner loops take twice as long without."""
    return _compile(function, forceinline=True)


def njit_lent(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `njit`, without reference counts, which cost half of the time in some loops.

    All arrays must belong to the caller. Neither the function nor its helpers (`inline_lent`) may
    create or return an array; functions compiled earlier by `njit` may.
    """
    return _compile(function, use_cache=True, _nrt=False)


def inline_lent(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `inlined`, for kernels under `njit_lent`."""
    return _compile(function, forceinline=True, _nrt=False)


def _compile(function: Callable[P, R], use_cache: bool = False, **options: bool) -> Callable[P, R]:
    compiled = _numba_njit(nogil=True, **options)(function)
    if use_cache and cache_folder() is not None:
        _enable_cache(compiled)
    return cast("Callable[P, R]", compiled)


@functools.cache
def cache_folder() -> str | None:
    """Return the folder for machine code of exactly these sources; None without a writable one."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for name, source in sorted(_read_sources(importlib.resources.files("antecede"))):
        digest.update(name.encode() + b"\0" + source)
    for base in _list_base_folders():
        folder = base / f"kernels-{digest.hexdigest()[:16]}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return str(folder)
    return None


@contextlib.contextmanager
def first_on_machine(what: str) -> Iterator[bool]:
    """Elect one of the processes that share a cache to compile `what` for all.

    Yield True to the first process; the others wait until it has left the block and get False.
    Without a cache or file locks, yield False to all.
    """
    folder = cache_folder()
    processor = binding.get_host_cpu_name()  # machines of several kinds can share a folder
    done = None if folder is None else Path(folder) / f"{what}-{processor}.compiled"
    if done is None or done.exists():
        yield False
        return
    with _lock_file(done.with_suffix(".lock")) as locked:
        first = locked and not done.exists()
        yield first
        if first:
            with contextlib.suppress(OSError):  # full disk: the next process compiles
                done.touch()


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[bool]:
    with contextlib.ExitStack() as stack:
        try:
            import fcntl

            fcntl.flock(stack.enter_context(path.open("wb")), fcntl.LOCK_EX)
        except (ImportError, OSError):  # without fcntl, the file or its lock
            yield False
        else:
            yield True


def _read_sources(folder: Any, path: str = "", within: bool = False) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        place = f"{path}{entry.name}"
        if entry.is_dir():
            found = entry.name in ("kernels", "compiled") or place == "tables/order/stream"
            yield from _read_sources(entry, f"{place}/", within or found)
        elif within and entry.name.endswith(".py"):
            yield place, entry.read_bytes()


def _list_base_folders() -> list[Path]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen) / "antecede"]
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return [Path(os.environ["LOCALAPPDATA"]) / "antecede"]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    spark = filter(None, os.environ.get("SPARK_LOCAL_DIRS", "").split(","))
    return [
        Path(home) / "antecede",
        *(Path(each) / "antecede" for each in spark if _is_trusted(each)),
    ]


def _is_trusted(folder: str) -> bool:
    with contextlib.suppress(OSError, AttributeError):
        found = os.stat(folder)
        return found.st_uid == os.getuid() and not found.st_mode & 0o022
    return False


class Locator(_Located):  # type: ignore[misc]
    """Numba's cache locator of a kernel: by module and line, not by installation path."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file  # for numba's warnings
        self._function = function

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Locator:
        """Return the locator of a kernel (numba's signature)."""
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        """Return the cache folder."""
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        """Return an empty stamp: the name of the folder covers all sources."""
        return ""

    def get_disambiguator(self) -> str:
        """Return a distinct text for kernels of the same name."""
        line = self._function.__code__.co_firstlineno
        return f"{self._function.__module__}-{line}"


def _enable_cache(compiled: object) -> None:
    # numba reads its configuration when caching is enabled. Set it only for that moment, so that
    # other users of numba in this process keep theirs.
    before = _numba_config.CACHE_LOCATOR_CLASSES
    _numba_config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__}"
    try:
        compiled.enable_caching()  # type: ignore[attr-defined]
    except RuntimeError:  # the folder is not writable after all: compile in memory
        pass
    finally:
        _numba_config.CACHE_LOCATOR_CLASSES = before
