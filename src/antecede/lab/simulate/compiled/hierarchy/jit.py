"""Decorators of the compiled hierarchy: functions without reference counting of arrays.

Counting references to each of the state's many arrays takes minutes of compilation. Nothing below
`hierarchy.run` makes or returns an array, except functions that were compiled before
(`hierarchy.encoded`). Python calls none of these functions, so they need no wrappers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import antecede.tables.kernels.jit  # noqa: F401  (its error names the missing extra)

import numba  # isort: skip

P = ParamSpec("P")
R = TypeVar("R")
_INNER: Any = {
    "nogil": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
}


def njit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that kernels call. Its callers are cached, not it."""
    return cast("Callable[P, R]", numba.njit(**_INNER)(function))


def inline(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small helper that LLVM inlines into every kernel that calls it."""
    return cast("Callable[P, R]", numba.njit(**_INNER, forceinline=True)(function))
