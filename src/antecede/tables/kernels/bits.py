"""Bit counts of 64-bit words by machine instructions that numba does not expose."""

from __future__ import annotations

from typing import Any

import numpy as np

from antecede.tables.kernels.jit import inline_lent as inlined

from numba import types  # isort: skip  (jit says what to install when there is no numba)
from numba.extending import intrinsic  # isort: skip

_63 = np.uint64(63)


@intrinsic
def _count_ones_intrinsic(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.ctpop(values[0])

    return types.uint64(types.uint64), generate


@intrinsic
def _count_zeros_intrinsic(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.ctlz(values[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), generate


_ones: Any = _count_ones_intrinsic
_leading_zeros: Any = _count_zeros_intrinsic


@inlined
def ones(word: np.uint64) -> np.uint64:
    """Return the number of bits set."""
    return np.uint64(_ones(word))


@inlined
def highest(word: np.uint64) -> np.uint64:
    """Return the index of the highest bit set, 0 to 63; the word is not 0."""
    return np.uint64(_63 - _leading_zeros(word))
