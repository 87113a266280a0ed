"""Where the states of members are written below their lanes, so that each is seen and none covers
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from antecede.diagram.model import State

LINE: Final = 12.0
CHARACTER: Final = 6.4
"""Width of an average character of plain 10 px text, in px."""
GAP: Final = 12.0


class Written(NamedTuple):
    """A state with its place: px below the lane, and from the left."""

    state: State
    left: float
    below: float


def written(
    states: Iterable[State], x: Callable[[float], float], left: float, right: float
) -> tuple[list[Written], float]:
    """Return the states of one lane, placed in rows, and how deep they reach.

    A state stands below its event, or as near to that as `left` and `right` allow.
    """
    found: list[Written] = []
    rows: list[tuple[float, float]] = []
    """(right end, height) of each row."""
    places: list[tuple[int, State, float]] = []
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
    found += [Written(state, begin, tops[row]) for row, state, begin in places]
    return found, tops[-1]
