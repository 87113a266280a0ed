"""Distributions of delays and intervals, drawn in whole microseconds through a quantile table.

A distribution becomes `CELLS + 1` quantiles. A draw of 64 bits selects a cell by its top 12 bits
and a position within it by the next 20. It uses integers, so every engine draws the same
microsecond.

Source of the normal distribution: Evropeytsev et al. 2016, section 3.2: "distributed normally with
the mean being the middle of the interval and variance equal to one fourth of the interval", outside
values set to the nearest end. Its example N(80, 5) ms for 70 to 90 ms implies that sigma, not the
variance, is a quarter of the width.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from antecede.errors import ConfigError

CELL_BITS = 12
CELLS = 1 << CELL_BITS
EDGE = 1 / (2 * CELLS)
PART_BITS = 20
US, MS = 1_000_000, 1_000
DISTRIBUTIONS = ("constant", "uniform", "normal", "lognormal", "variance")
LONGEST_S = 1e6  # Eleven days. `pick_array` stays within 64 bits in any cell.


@dataclass(frozen=True)
class Delay:
    """Distribution of a time between `low_s` and `high_s`. Raises ConfigError.

    `kind`: "constant" (low equals high), "uniform", "normal" (clipped; Evropeytsev et al. 2016),
    "lognormal" or "variance". Lognormal: low and high are two standard deviations of the logarithm
    off its middle; cut at the quantiles 1/8192 and 8191/8192. Variance: Evropeytsev et al.'s text
    taken literally, normal and clipped, with a VARIANCE in ms^2 of a quarter of the width in ms.
    Its results do not match theirs.
    """

    low_s: float
    high_s: float
    kind: str = "normal"

    def __post_init__(self) -> None:
        if self.kind not in DISTRIBUTIONS:
            raise ConfigError(
                f"kind: unknown distribution {self.kind!r}; choose from {', '.join(DISTRIBUTIONS)}"
            )
        if not 0 <= self.low_s <= self.high_s <= LONGEST_S:
            raise ConfigError(
                f"invalid interval {self.low_s:g} to {self.high_s:g} s; expected "
                f"0 <= low <= high <= {LONGEST_S:g}"
            )
        if self.kind == "constant" and self.low_s != self.high_s:
            raise ConfigError(
                f"a constant delay has one value, got {self.low_s:g} to {self.high_s:g} s; "
                f"for an interval choose from {', '.join(DISTRIBUTIONS[1:])}"
            )
        if self.kind == "lognormal" and self.low_s <= 0:
            raise ConfigError("a lognormal delay needs low > 0")
        if self.kind == "lognormal" and _make_log_distribution(self).inv_cdf(1 - EDGE) > math.log(
            LONGEST_S
        ):
            raise ConfigError(
                f"a lognormal delay of {self.low_s:g} to {self.high_s:g} s exceeds "
                f"{LONGEST_S:g} s; choose low and high closer together"
            )

    @property
    def mean_s(self) -> float:
        """Mean of the drawn values, in seconds."""
        table = self.quantiles()
        return float((table[:-1] + table[1:]).mean() / 2 / US)

    def scale(self, factor: float) -> Delay:
        """Return the distribution with both ends multiplied."""
        return Delay(self.low_s * factor, self.high_s * factor, self.kind)

    def quantiles(self) -> npt.NDArray[np.int64]:
        """Return the [CELLS + 1] quantiles in microseconds (read only)."""
        return _compute_quantiles(self)


@functools.lru_cache(maxsize=256)
def _compute_quantiles(delay: Delay) -> npt.NDArray[np.int64]:
    at = _make_inverse(delay)
    parts = [min(max(cell / CELLS, EDGE), 1 - EDGE) for cell in range(CELLS + 1)]
    table = np.array([round(at(part) * US) for part in parts], dtype=np.int64)
    table[0], table[-1] = round(at(EDGE) * US), round(at(1 - EDGE) * US)
    if delay.kind in ("uniform", "constant"):
        table[0], table[-1] = round(delay.low_s * US), round(delay.high_s * US)
    table.setflags(write=False)
    return table


def _make_inverse(delay: Delay) -> Callable[[float], float]:
    low, high = delay.low_s, delay.high_s
    if low == high:
        return lambda _: low
    if delay.kind == "uniform":
        return lambda part: low + part * (high - low)
    if delay.kind in ("normal", "variance"):
        sigma = (high - low) / 4
        if delay.kind == "variance":
            sigma = math.sqrt(sigma * MS) / MS
        normal = NormalDist((low + high) / 2, sigma)
        return lambda part: min(max(normal.inv_cdf(part), low), high)
    log = _make_log_distribution(delay)
    return lambda part: math.exp(log.inv_cdf(part))


def _make_log_distribution(delay: Delay) -> NormalDist:
    low, high = math.log(delay.low_s), math.log(delay.high_s)
    return NormalDist((low + high) / 2, max((high - low) / 4, 1e-12))


def pick(table: npt.NDArray[np.int64], word: int) -> int:
    """Return the delay in microseconds for 64 random bits."""
    cell = word >> (64 - CELL_BITS)
    part = (word >> (64 - CELL_BITS - PART_BITS)) & ((1 << PART_BITS) - 1)
    low, high = int(table[cell]), int(table[cell + 1])
    return low + (((high - low) * part) >> PART_BITS)


def pick_array(
    table: npt.NDArray[np.int64], words: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Return `pick` of a whole array."""
    cell = (words >> np.uint64(64 - CELL_BITS)).astype(np.int64)
    rest = words >> np.uint64(64 - CELL_BITS - PART_BITS)
    part = (rest & np.uint64((1 << PART_BITS) - 1)).astype(np.int64)
    low = table[cell]
    return low + (((table[cell + 1] - low) * part) >> PART_BITS)


# -- text: "50-250 ms", "uniform 1-2 s", "constant 10 ms" -------------------------------------

UNITS = {"us": 1e6, "µs": 1e6, "ms": 1e3, "s": 1.0}  # units per second
EXAMPLES = '"50-250 ms", "uniform 1-2 s", "constant 10 ms"'

_NUMBER = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_TEXT = re.compile(
    rf"(?:([a-z]+)\s+)?{_NUMBER}\s*([a-zµ]+)?(?:\s*(?:-|–|\.\.|to\b)\s*{_NUMBER}\s*([a-zµ]+)?)?",
    re.IGNORECASE,
)


def parse_delay(text: str, unit: str | None = None) -> Delay:
    """Parse a delay like EXAMPLES. `unit`: default unit. Raises ConfigError."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"invalid delay {text!r}; write, for example, {EXAMPLES}")
    kind, low, low_unit, high, high_unit = found.groups()
    chosen = high_unit or low_unit or unit
    if chosen is None:
        raise ConfigError(f"delay {text!r} has no unit; write, for example, {EXAMPLES}")
    for one in (low_unit or chosen, chosen):
        if one.lower() not in UNITS:
            raise ConfigError(f"{text!r}: unknown unit {one!r}; choose from {', '.join(UNITS)}")
    if kind is not None and kind.lower() not in DISTRIBUTIONS:
        raise ConfigError(
            f"{text!r}: unknown distribution {kind!r}; choose from {', '.join(DISTRIBUTIONS)}"
        )
    low_s = float(low) / UNITS[(low_unit or chosen).lower()]
    high_s = low_s if high is None else float(high) / UNITS[chosen.lower()]
    return Delay(low_s, high_s, (kind or ("constant" if high is None else "normal")).lower())


def format_delay(delay: Delay) -> str:
    """Return a delay in milliseconds, as `parse_delay` reads it (rounded to 12 digits)."""
    low, high = (f"{value * 1e3:.12g}" for value in (delay.low_s, delay.high_s))
    if delay.kind == "constant":
        return f"constant {low} ms"
    return f"{low}-{high} ms" if delay.kind == "normal" else f"{delay.kind} {low}-{high} ms"


def delay_in_full(delay: Delay) -> str:
    """Return a delay with the name of its distribution, for headings."""
    shapes = {"normal": "normal, clipped", "variance": "normal, clipped, the variance a quarter"}
    shape = shapes.get(delay.kind)
    words = format_delay(delay).removeprefix("variance ")
    return words if shape is None or delay.low_s == delay.high_s else f"{words} ({shape})"
