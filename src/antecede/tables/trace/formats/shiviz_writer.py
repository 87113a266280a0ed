"""Writer of vector-clock logs for ShiViz and the reader `shiviz`.

The first line is the expression, the second the delimiter of executions (or blank). An event is two
lines: the host with its clock as JSON, without zero entries, and its text.

Hosts are written without white space, texts on one line that is not blank. Changed names stay
distinct.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

from antecede.tables.trace.formats.shiviz_dialects import HOST_FIRST

DELIMITER = "=== (?<trace>.*) ==="
"""Delimiter of executions; ShiViz adds `^` and `$`."""
_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
"""Line ends of Python or JavaScript."""
_BLANK = re.compile("[\\s\ufeff]")


class ShivizEvent(NamedTuple):
    """Event of a log."""

    run: str | None
    """Execution; its entries are consecutive."""
    host: str
    clock: Mapping[str, int]
    """Counters by host, including the event's own."""
    text: str


def write_log(entries: Iterable[ShivizEvent], out: TextIO, has_runs: bool) -> int:
    """Write a log; return the number of events. `has_runs`: separate executions by `run`."""
    out.write(HOST_FIRST + "\n" + (DELIMITER if has_runs else "") + "\n")
    hosts = _UniqueNames(lambda name: _BLANK.sub("_", name) or "_")
    runs = _UniqueNames(lambda name: _BREAKS.sub(" ", name[1:]).strip() or "_")
    current: str | None = None
    count = 0
    for entry in entries:
        if has_runs and (not count or entry.run != current):
            current = entry.run
            key = "-" if current is None else f"+{current}"  # distinguishes None from a blank name
            out.write(f"=== {runs[key]} ===\n")
        clock = {hosts[name]: number for name, number in entry.clock.items() if number}
        written = json.dumps(clock, ensure_ascii=False, separators=(",", ":"))
        out.write(f"{hosts[entry.host]} {written}\n{_to_one_line(entry.text)}\n")
        count += 1
    return count


def write_log_file(entries: Iterable[ShivizEvent], path: Path, has_runs: bool) -> int:
    """Write a log to a file as `write_log` does. Raise OSError on failure."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
        return write_log(entries, out, has_runs)


def _to_one_line(text: str) -> str:
    """Return a text as one line that is neither blank nor a delimiter."""
    line = _BREAKS.sub(" ", text)
    if not line.strip():
        return "(no text)"
    return f" {line}" if line.startswith("===") else line


class _UniqueNames(dict[str, str]):
    """Names for a log; distinct names stay distinct."""

    def __init__(self, fit: Callable[[str], str]) -> None:
        super().__init__()
        self._fit = fit
        self._used: set[str] = set()

    def __missing__(self, name: str) -> str:
        fit = wanted = self._fit(name)
        number = 1
        while fit in self._used:
            number += 1
            fit = f"{wanted}_{number}"
        self._used.add(fit)
        self[name] = fit
        return fit
