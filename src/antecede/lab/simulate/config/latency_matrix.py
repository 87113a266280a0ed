"""Matrix of measured latencies between locations, from a text file with one row per line.

The configuration states its unit, whether times are round trips (halved here), and the meaning of
zeros off the diagonal: published matrices use 0 for pairs that were not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from antecede.errors import ConfigError

Matrix = tuple[tuple[float, ...], ...]

MATRIX_UNITS = {"s": 1.0, "ms": 1e-3}
ZEROS = ("keep", "reverse", "median")
"""Delay for a zero off the diagonal: 0; that of the reverse direction (0: median); the median."""


def read_matrix(path: Path, unit: str, round_trip: bool, zeros: str | None = None) -> Matrix:
    """Return one-way delays in seconds, [locations, locations]: row a is from location a.

    Separators are spaces, tabs, commas or semicolons. Raises ConfigError with path and line, also
    for zeros off the diagonal if `zeros` is None.
    """
    rows = list(_read_rows(path))
    for number, (line, row) in enumerate(rows, start=1):
        if len(row) != len(rows):
            raise ConfigError(
                f"row {number} has {len(row)} delays, expected {len(rows)}: "
                "the matrix must be square",
                path=str(path),
                line=line,
            )
    factor = MATRIX_UNITS[unit] / (2 if round_trip else 1)
    return _fill_zeros([[value * factor for value in row] for _, row in rows], zeros, str(path))


def _read_rows(path: Path) -> Iterator[tuple[int, list[float]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the file: {error.strerror}", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            "not a text file; expected numbers, one row per line", path=str(path)
        ) from error
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.replace(",", " ").replace(";", " ").split()
        if words:
            yield line, [_parse_value(word, str(path), line) for word in words]


def _parse_value(word: str, path: str, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ConfigError(f"invalid number {word!r}", path=path, line=line) from None
    if not 0 <= value < math.inf:
        raise ConfigError(f"invalid delay {word}; expected 0 or more", path=path, line=line)
    return value


def _fill_zeros(rows: list[list[float]], zeros: str | None, path: str) -> Matrix:
    everywhere = [(a, b) for a in range(len(rows)) for b in range(len(rows)) if a != b]
    lacking = [(a, b) for a, b in everywhere if not rows[a][b]]
    if lacking and zeros is None:
        a, b = lacking[0]
        raise ConfigError(
            f"{len(lacking)} of {len(everywhere)} delays between locations are 0 (the first: row "
            f'{a + 1}, column {b + 1}); set zeros = "keep" (no delay), "reverse" (delay of the '
            'reverse direction) or "median" (of the others)',
            path=path,
        )
    if lacking and zeros != "keep":
        middle = median([rows[a][b] for a, b in everywhere if rows[a][b]] or [0.0])
        values = {(a, b): (rows[b][a] if zeros == "reverse" else 0.0) or middle for a, b in lacking}
        for (a, b), value in values.items():
            rows[a][b] = value
    return tuple(map(tuple, rows))
