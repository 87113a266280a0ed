"""Compile time of numba within a block, so that benchmarks can exclude it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_event: Any = event  # its functions are not in the stubs
MIN_SHOWN_S = 0.05
"""Compile time below which `Spent.words` is empty."""


class BlockTime:
    """Duration of a block, split into compiling and working."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener
        self._begin, self._end = time.monotonic(), 0.0

    @property
    def compiling_s(self) -> float:
        """Compile time in seconds."""
        return float(self._listener.duration) if self._listener.done else 0.0

    @property
    def working_s(self) -> float:
        """Duration without compiling, in seconds."""
        return max((self._end or time.monotonic()) - self._begin - self.compiling_s, 0.0)

    def words(self) -> str:
        """Return a text to append to a duration; empty if nothing was compiled."""
        if self.compiling_s < MIN_SHOWN_S:
            return ""
        return f", and {self.compiling_s:.1f} s to compile the kernels, once"


@contextmanager
def measure_compile_time() -> Iterator[BlockTime]:
    """Measure a block and its compile time; compiling counts in all threads, as in numba."""
    listener = _event.TimingListener()
    with _event.install_listener("numba:compile", listener):
        spent = BlockTime(listener)
        try:
            yield spent
        finally:
            spent._end = time.monotonic()
