"""Arrow routing and label placement.

An arrow over the mark of another member would look as if that member had relayed the message. Such
an arrow is a quadratic curve with the smallest bend that stays clear.

A label takes the candidate position that covers nothing and crosses the fewest lines. Without a
free position it is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from antecede.core.diagram_model import StateLabel

LINE: Final = 12.0
CHARACTER: Final = 6.4
GAP: Final = 12.0


class PlacedState(NamedTuple):
    """State with its position: px below the timeline, and from the left."""

    state: StateLabel
    left: float
    below: float


def place_states(
    states: Iterable[StateLabel], x: Callable[[float], float], left: float, right: float
) -> tuple[list[PlacedState], float]:
    """Return the states of a timeline, placed in rows, and their total height."""
    rows: list[tuple[float, float]] = []
    places: list[tuple[int, StateLabel, float]] = []
    for state in sorted(states, key=lambda state: state.at):
        width = max(map(len, state.lines)) * CHARACTER + GAP
        begin = min(max(left, x(state.at) - 4.0), max(left, right - width))
        height = len(state.lines) * LINE + 4.0
        row = next((k for k, (end, _) in enumerate(rows) if end <= begin), len(rows))
        if row == len(rows):
            rows.append((0.0, 0.0))
        rows[row] = begin + width, max(rows[row][1], height)
        places.append((row, state, begin))
    tops = [sum(height for _, height in rows[:k]) for k in range(len(rows) + 1)]
    return [PlacedState(state, begin, tops[row]) for row, state, begin in places], tops[-1]


class Box(NamedTuple):
    """Rectangle in px; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Return True if the two rectangles overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


Segment = tuple[float, float, float, float]


class LabelPlacement:
    """Blocked boxes, which labels must not cover, and lines, which they should not cross."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.lines: list[Segment] = []

    def block(self, box: Box) -> None:
        """Keep labels off this box."""
        self.boxes.append(box)

    def add_line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Keep labels off this line if there is another position."""
        self.lines.append((x1, y1, x2, y2))

    def place(self, candidates: Sequence[Box]) -> Box | None:
        """Return the best free candidate and block it; None if every candidate covers something."""
        free = [box for box in candidates if not any(box.overlaps(taken) for taken in self.boxes)]
        if not free:
            return None
        best = min(free, key=lambda box: sum(crosses(box, line) for line in self.lines))
        self.boxes.append(best)
        return best


def crosses(box: Box, line: Segment) -> bool:
    """Return True if a segment touches a box (clipping of Liang and Barsky)."""
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


Point = tuple[float, float]
CLEARANCE: Final = 11.0
BENDS: Final = (0.0, 22.0, -22.0, 44.0, -44.0, 66.0, -66.0)
"""Shifts of the control point along the time axis, px, in order of preference."""
SEGMENTS: Final = 12
HEAD: Final = 9.0
HEAD_GAP: Final = 6.5
"""Gap between the arrowhead and the center of its mark, px."""


class Route(NamedTuple):
    """Curve from `start` to `end`, bent towards `control` (their midpoint: straight)."""

    start: Point
    control: Point
    end: Point

    def compute_point(self, part: float) -> Point:
        """Return the point at a fraction of the route, 0 to 1."""
        (x1, y1), (cx, cy), (x2, y2) = self
        a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part * part
        return a * x1 + b * cx + c * x2, a * y1 + b * cy + c * y2

    @property
    def is_straight(self) -> bool:
        """True without a bend."""
        (x1, y1), (cx, cy), (x2, y2) = self
        return abs((x1 + x2) / 2 - cx) < 0.01 and abs((y1 + y2) / 2 - cy) < 0.01

    @property
    def direction(self) -> Point:
        """Direction of arrival as a unit vector."""
        dx, dy = self.end[0] - self.control[0], self.end[1] - self.control[1]
        length = math.hypot(dx, dy) or 1.0
        return dx / length, dy / length

    def to_segments(self) -> list[tuple[float, float, float, float]]:
        """Return the route as straight segments."""
        count = 1 if self.is_straight else SEGMENTS
        points = [self.compute_point(k / count) for k in range(count + 1)]
        return [(*a, *b) for a, b in pairwise(points)]

    def to_path(self) -> str:
        """Return the shaft up to the arrowhead, as an SVG path."""
        ux, uy = self.direction
        x2, y2 = self.end[0] - (HEAD_GAP + 6.0) * ux, self.end[1] - (HEAD_GAP + 6.0) * uy
        (x1, y1), (cx, cy) = self.start, self.control
        if self.is_straight:
            return f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        return f"M{x1:.1f} {y1:.1f}Q{cx:.1f} {cy:.1f} {x2:.1f} {y2:.1f}"

    def compute_head(self) -> list[Point]:
        """Return the corners of the arrowhead."""
        ux, uy = self.direction
        tip_x, tip_y = self.end[0] - HEAD_GAP * ux, self.end[1] - HEAD_GAP * uy
        back_x, back_y = tip_x - HEAD * ux, tip_y - HEAD * uy
        return [(tip_x, tip_y), *((back_x - s * 3.8 * uy, back_y + s * 3.8 * ux) for s in (1, -1))]


def find_route(start: Point, end: Point, marks: Sequence[Point]) -> Route:
    """Return the route with the smallest bend that stays clear of marks, or the clearest one."""
    middle_x, middle_y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    best, widest = None, -1.0
    for bend in BENDS:
        route = Route(start, (middle_x + bend, middle_y), end)
        clearance = min((_measure_distance(route, mark) for mark in marks), default=math.inf)
        if clearance >= CLEARANCE:
            return route
        if clearance > widest:
            best, widest = route, clearance
    return best or Route(start, (middle_x, middle_y), end)


def _measure_distance(route: Route, mark: Point) -> float:
    steps = 24
    points = (route.compute_point(k / steps) for k in range(1, steps))
    return min(math.hypot(x - mark[0], y - mark[1]) for x, y in points)
