"""Measured values of the live benchmark, with their targets."""

from __future__ import annotations

import math
from typing import NamedTuple


class Figure(NamedTuple):
    row: str
    what: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    spread: tuple[float, float] | None = None
    """Least and greatest of all turns, if `value` is their median."""

    @property
    def target(self) -> str:
        """Text of the target; empty if there is none."""
        if self.at_least is not None:
            return f"at least {format_number(self.at_least)}"
        return f"at most {format_number(self.at_most)}" if self.at_most is not None else ""

    @property
    def is_met(self) -> bool | None:
        """Return whether the target is met; None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None

    def format_line(self) -> str:
        spread = (
            f" ({format_number(self.spread[0])} to {format_number(self.spread[1])})"
            if self.spread
            else ""
        )
        text = f"{self.row:24} {self.what:58} {format_number(self.value):>9} {self.unit}{spread}"
        if self.is_met is None:
            return text
        return f"{text}   target {self.target}: {'met' if self.is_met else 'NOT MET'}"


class SkippedPart(NamedTuple):
    """Part that this machine cannot run."""

    row: str
    why: str

    def format_line(self) -> str:
        return f"{self.row:24} not measured: {self.why}"


def format_number(value: float | None) -> str:
    """Format a number with its significant digits."""
    if value is None or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
