"""Progress line on a terminal's stderr, with the standard library only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

BAR_CELLS = 24
REDRAW_S = 0.1


class Progress:
    """Bar or count after `label`. Call it with the fraction done, or a count and its unit."""

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty()
        self.next_draw = 0.0

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: float, unit: str | None = None) -> None:
        """Redraw, at most ten times a second."""
        if not self.shown or time.monotonic() < self.next_draw:
            return
        self.next_draw = time.monotonic() + REDRAW_S
        if unit is None:
            cells = round(min(max(done, 0.0), 1.0) * BAR_CELLS)
            text = f"{'█' * cells}{'░' * (BAR_CELLS - cells)} {done:4.0%}"
        else:
            text = f"{done:,.0f} {unit}"
        self.stream.write(f"\r\x1b[2K  {self.label}  {text}")
        self.stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()
