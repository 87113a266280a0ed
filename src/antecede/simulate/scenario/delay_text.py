"""Delays as people write them: "50-250 ms", "uniform 1-2 s", "constant 10 ms"."""

from __future__ import annotations

import re

from antecede.errors import ScenarioError
from antecede.simulate.delays import KINDS, Delay

UNITS = {"us": 1e6, "µs": 1e6, "ms": 1e3, "s": 1.0}
"""How many of a unit are a second."""
EXAMPLES = '"50-250 ms", "uniform 1-2 s", "constant 10 ms"'

_NUMBER = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_TEXT = re.compile(
    rf"(?:([a-z]+)\s+)?{_NUMBER}\s*([a-zµ]+)?(?:\s*(?:-|–|\.\.|to\b)\s*{_NUMBER}\s*([a-zµ]+)?)?",
    re.IGNORECASE,
)


def parse_delay(text: str, unit: str | None = None) -> Delay:
    """Return the delay that a text names: an interval is normal unless it says, a number constant.

    `unit` is taken where the text has none; without it, the text must. Raises ScenarioError.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ScenarioError(f"{text!r} is no delay; write, for instance, {EXAMPLES}")
    kind, low, low_unit, high, high_unit = found.groups()
    chosen = high_unit or low_unit or unit
    if chosen is None:
        raise ScenarioError(f"{text!r} has no unit; write, for instance, {EXAMPLES}")
    for one in (low_unit or chosen, chosen):
        if one.lower() not in UNITS:
            raise ScenarioError(f"{text!r}: the unit {one!r} is none of {', '.join(UNITS)}")
    if kind is not None and kind.lower() not in KINDS:
        raise ScenarioError(f"{text!r}: the kind {kind!r} is none of {', '.join(KINDS)}")
    low_s = float(low) / UNITS[(low_unit or chosen).lower()]
    high_s = low_s if high is None else float(high) / UNITS[chosen.lower()]
    return Delay(low_s, high_s, (kind or ("constant" if high is None else "normal")).lower())


def delay_words(delay: Delay) -> str:
    """Return a delay in milliseconds, as `parse_delay` reads it (rounded to 12 digits)."""
    low, high = (f"{value * 1e3:.12g}" for value in (delay.low_s, delay.high_s))
    if delay.kind == "constant":
        return f"constant {low} ms"
    return f"{low}-{high} ms" if delay.kind == "normal" else f"{delay.kind} {low}-{high} ms"


def delay_in_full(delay: Delay) -> str:
    """Return a delay with the name of its distribution, for headings."""
    shapes = {"normal": "normal, clipped", "variance": "normal, clipped, the variance a quarter"}
    shape = shapes.get(delay.kind)
    words = delay_words(delay).removeprefix("variance ")
    return words if shape is None or delay.low_s == delay.high_s else f"{words} ({shape})"
