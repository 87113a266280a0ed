"""Figures of the live benchmark: what was measured, what was wanted, and whether that is met."""

from __future__ import annotations

import math
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured figure."""

    row: str
    what: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    spread: tuple[float, float] | None = None
    """The least and the greatest of all turns, where `value` is their median."""

    @property
    def target(self) -> str:
        """What was wanted, in words; empty: nothing was, it is told beside."""
        if self.at_least is not None:
            return f"at least {format_number(self.at_least)}"
        return f"at most {format_number(self.at_most)}" if self.at_most is not None else ""

    @property
    def is_met(self) -> bool | None:
        """Whether it is what was wanted; None: nothing was."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None

    def format_line(self) -> str:
        """Return it as a line of text."""
        spread = (
            f" ({format_number(self.spread[0])} to {format_number(self.spread[1])})"
            if self.spread
            else ""
        )
        said = f"{self.row:24} {self.what:58} {format_number(self.value):>9} {self.unit}{spread}"
        if self.is_met is None:
            return said
        return f"{said}   wanted {self.target}: {'met' if self.is_met else 'NOT MET'}"


class SkippedPart(NamedTuple):
    """A part that this machine cannot run."""

    row: str
    why: str

    def format_line(self) -> str:
        return f"{self.row:24} not measured: {self.why}"


def format_number(value: float | None) -> str:
    """Return a number with as many digits as it is good for."""
    if value is None or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
