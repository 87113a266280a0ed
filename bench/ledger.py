"""Ratios of operations to their reference programs, stored in `bench/ledger.jsonl`.

An operation and its reference program run in turns. A ratio is the processor time of the operation
divided by that of the reference, per unit of work, as the median of some rounds: lower is better.
Processor time includes all descendants of this process, such as Spark's JVM and its workers.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from antecede.formatting import table

LEDGER = Path(__file__).parent / "ledger.jsonl"
ROUNDS = 7
LOSS_FACTOR = 1.1
"""Factor above the best ratio from which a ratio is marked."""


class Work(NamedTuple):
    """Completed work and its processor time."""

    units: float
    cpu_s: float

    @property
    def cpu_s_per_unit(self) -> float:
        return self.cpu_s / self.units


class Comparison(NamedTuple):
    """An operation with default settings and its reference program."""

    name: str
    operation: Callable[[], Work]
    reference: Callable[[], Work]
    rounds: int = ROUNDS

    def measure_ratios(self) -> list[float]:
        """Run both in turns; return the ratio of each round but the first."""
        self.reference()
        self.operation()
        rounds = [
            (self.reference().cpu_s_per_unit, self.operation().cpu_s_per_unit)
            for _ in range(self.rounds)
        ]
        return [ours / theirs for theirs, ours in rounds]


class LedgerEntry(NamedTuple):
    name: str
    ratio: float
    least: float
    most: float
    commit: str
    date: str
    cores: int
    cpu: str
    load: float
    """Load average of the last minute."""
    python: str


def measure_cpu(work: Callable[[], float]) -> Callable[[], Work]:
    """Wrap work that returns its units; the result measures its processor time."""

    def run() -> Work:
        before = read_cpu_s()
        units = work()
        return Work(units, read_cpu_s() - before)

    return run


def read_cpu_s() -> float:
    ended = os.times()
    own_s = time.process_time() + ended.children_user + ended.children_system
    parents, ticks = dict[int, int](), dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended, so its parent has its time
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    others = (
        number for number in ticks if number != os.getpid() and _is_descendant(number, parents)
    )
    return own_s + sum(ticks[number] for number in others) / os.sysconf("SC_CLK_TCK")


def _is_descendant(number: int, parents: dict[int, int]) -> bool:
    while number != os.getpid() and number in parents:
        number = parents[number]
    return number == os.getpid()


def measure(comparison: Comparison) -> LedgerEntry:
    load = os.getloadavg()[0]
    rounds = comparison.measure_ratios()
    return LedgerEntry(
        comparison.name,
        _round_ratio(statistics.median(rounds)),
        _round_ratio(min(rounds)),
        _round_ratio(max(rounds)),
        _read_commit(),
        datetime.now(UTC).date().isoformat(),
        os.cpu_count() or 1,
        _read_cpu_model(),
        round(load, 2),
        platform.python_version(),
    )


def _round_ratio(ratio: float) -> float:
    return float(f"{ratio:.4g}")


def read(path: Path = LEDGER) -> list[LedgerEntry]:
    """Return the lines of a ledger. Raises ValueError with file and line for a malformed one."""
    entries = []
    lines = path.read_text().splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(LedgerEntry(**json.loads(line)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    return entries


def append(entry: LedgerEntry, path: Path = LEDGER) -> None:
    with path.open("a") as ledger:
        ledger.write(json.dumps(entry._asdict()) + "\n")


def select_comparable(entry: LedgerEntry, earlier: Iterable[LedgerEntry]) -> list[float]:
    """Return the earlier ratios of an operation on the same processor model, oldest first."""
    return [
        one.ratio
        for one in earlier
        if (one.name, one.cpu, one.cores) == (entry.name, entry.cpu, entry.cores)
    ]


def format_row(entry: LedgerEntry, earlier: Iterable[LedgerEntry]) -> tuple[str, ...]:
    before = select_comparable(entry, earlier)
    shown = [f"{one:.3g}" for one in (before[-1], min(before))] if before else ["-", "-"]
    loss = entry.ratio / min(before) if before else 1.0
    return (
        entry.name,
        f"{entry.ratio:.3g}",
        f"{entry.least:.3g} to {entry.most:.3g}",
        *shown,
        f"LOSS {loss - 1:.0%}" if loss > LOSS_FACTOR else "",
    )


HEADING = ("operation / reference", "ratio", "rounds", "last", "best", "")


def run(comparisons: Iterable[Comparison], path: Path | None = LEDGER) -> list[LedgerEntry]:
    """Measure all comparisons, append them to the ledger, and print the table.

    Path None: do not append, and compare with the default ledger.
    """
    earlier = read(path or LEDGER)
    found = []
    for comparison in comparisons:
        begin = time.perf_counter()
        entry = measure(comparison)
        found.append(entry)
        if path is not None:
            append(entry, path)
        print(
            f"{entry.name}: {entry.ratio:.3g} ({time.perf_counter() - begin:.0f} s)",
            flush=True,
        )
    print("\n" + table(HEADING, [format_row(entry, earlier) for entry in found]))
    return found


def _read_commit() -> str:
    """Return the commit, with "+" if files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ("git", *words), cwd=LEDGER.parent, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", ":!bench/ledger.jsonl")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def _read_cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
