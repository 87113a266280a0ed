"""Finds a free place for each label of a picture.

Greedy: every label tries a few places in order of preference and takes the one that crosses the
fewest lines, among those that cover nothing. Labels that find no such place are not drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle in px; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Tell whether the two rectangles overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


Segment = tuple[float, float, float, float]


class Placing:
    """What is taken already: boxes, which no label may cover, and lines, which it should not."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.lines: list[Segment] = []

    def block(self, box: Box) -> None:
        """Keep labels off this box."""
        self.boxes.append(box)

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Keep labels off this line where there is another place."""
        self.lines.append((x1, y1, x2, y2))

    def take(self, candidates: Sequence[Box], *, keep_off_lines: bool = True) -> Box | None:
        """Return the best free candidate and block it, or None when all cover something."""
        free = [box for box in candidates if not any(box.meets(taken) for taken in self.boxes)]
        if not free:
            return None
        best = min(free, key=self._crossings) if keep_off_lines else free[0]
        self.boxes.append(best)
        return best

    def _crossings(self, box: Box) -> int:
        return sum(crosses(box, line) for line in self.lines)


def crosses(box: Box, line: Segment) -> bool:
    """Tell whether a line segment touches a box (clipping after Liang and Barsky)."""
    x1, y1, x2, y2 = line
    enter, leave = 0.0, 1.0
    for delta, low, high in (
        (x2 - x1, box.left - x1, box.right - x1),
        (y2 - y1, box.top - y1, box.bottom - y1),
    ):
        if delta == 0.0:
            if low > 0.0 or high < 0.0:
                return False
            continue
        near, far = sorted((low / delta, high / delta))
        enter, leave = max(enter, near), min(leave, far)
        if enter > leave:
            return False
    return True
