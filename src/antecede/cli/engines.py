"""Choice of the engine of a command by memory: this process or Spark."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet

from antecede.cli.option_rules import refuse_unused
from antecede.errors import AntecedeError, InputError
from antecede.tables.trace import ReadOptions, all_inputs, files_below, find_implied_format, reader
from antecede.tables.trace.formats import count_commits, is_repository
from antecede.tables.trace.user_tables import TableReader

AUTO, LOCAL, SPARK = "auto", "local", "spark"
A_ROW, A_BYTE, OF_TEXT, PACKED = 1200, 4, 20, 6
"""Memory of the local engine, measured on rows of five columns.

Bytes for a row of Parquet; factors of its uncompressed bytes, of the bytes of text, and of gzip.
"""
A_COMMIT = 5000
"""Memory of a commit of a repository, bytes."""
SHARE = 0.8
"""Fraction of free memory that the local engine may need."""


class Engine(NamedTuple):
    """Chosen engine, and the reason as text."""

    name: str
    why: str
    short: bool = False
    """Memory may be too small."""


def warn_shortage(engine: Engine) -> None:
    """Warn of scarce memory on stderr."""
    if engine.short:
        print(f"antecede: engine {engine.name}: {engine.why}", file=sys.stderr)


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare --engine and --master."""
    parser.add_argument(
        "--engine",
        choices=(AUTO, LOCAL, SPARK),
        default=AUTO,
        help="this process, or Spark (default: auto, by input size and free memory)",
    )
    parser.add_argument(
        "--master", metavar="MASTER", help="Spark master, such as local[4] or spark://host:7077"
    )


def choose_engine(
    args: argparse.Namespace, paths: Sequence[str], format: str | None, options: ReadOptions
) -> Engine:
    """Return the engine. Raise InputError for --master without Spark."""
    if args.engine == LOCAL:
        refuse_unused(args, "--engine local runs in this process", unused=["master"])
    if args.engine != AUTO:
        return Engine(args.engine, "as requested")
    if args.master is not None:
        return Engine(SPARK, "--master was given")
    needed, free = estimate_bytes(paths, format or find_implied_format(options)), free_bytes()
    if needed is None or free is None:
        return Engine(LOCAL, "sizes are unknown")
    sizes = f"needs {_format_size(needed)} of memory, {_format_size(free)} is free"
    if needed <= SHARE * free:
        return Engine(LOCAL, sizes)
    obstacle = _find_obstacle(paths, format, options)
    if obstacle:
        return Engine(LOCAL, f"{sizes}; not on Spark: {obstacle}", True)
    return Engine(SPARK, sizes)


def estimate_bytes(paths: Sequence[str], format: str | None = None) -> int | None:
    """Return the memory that the local engine would take, bytes; None: unknown.

    The estimate sums commits of a repository, part files of a Parquet table, and files of other
    folders.
    """
    try:
        needed = [_estimate_path(part) for part in all_inputs(paths, format)]
    except (AntecedeError, OSError):  # the reader reports it
        return None
    known = [one for one in needed if one is not None]
    return int(sum(known)) if len(known) == len(needed) else None


def _estimate_path(path: Path) -> float | None:
    if path.is_dir():
        if is_repository(path):
            commits = count_commits(path)
            return None if commits is None else float(commits * A_COMMIT)
        return sum(_estimate_file(part) for part in files_below(path))
    return _estimate_file(path)


def _estimate_file(path: Path) -> float:
    if not path.is_file():  # opening a pipe would consume it, or block
        return 0.0
    with path.open("rb") as file:
        head = file.read(4)
    if head != b"PAR1":
        return path.stat().st_size * OF_TEXT * (PACKED if head[:2] == b"\x1f\x8b" else 1)
    pq: Any = pyarrow.parquet
    try:
        metadata = pq.read_metadata(str(path))
    except pyarrow.ArrowException:
        return 0.0  # the reader reports it
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    size = sum(group.total_byte_size for group in groups)
    return float(metadata.num_rows * A_ROW + size * A_BYTE)


def free_bytes() -> int | None:
    """Return the available memory, bytes; None: unknown."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None


def _find_obstacle(paths: Sequence[str], format: str | None, options: ReadOptions) -> str:
    """Return the reason that Spark cannot read the input; "" if it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    try:
        name = format or find_implied_format(options)
        parts = all_inputs(paths, name)
        names = {name} if name else {reader.choose(part, options).name for part in parts}
        if names != {TableReader.name}:
            return "it reads tables only"
        from antecede.spark import find_java

        find_java()
    except InputError:
        return ""  # the reader reports it
    except AntecedeError as error:
        return str(error)
    return ""


def _format_size(number: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if number >= size:
            return f"some {number / size:,.1f} {unit}"
    return "under 1 MB"
