"""Ratios of operations to reference programs, appended to `bench/ledger.jsonl` (`make bench`).

    python -m bench [--c FOLDER] [--only TEXT] [--keep]

`--c` also compares the simulators with the C programs of a folder. `--only` selects operations
whose name contains a text. `--keep` does not change the ledger. Other benchmarks print tables:
`python -m bench.NAME`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from bench import ledger, operations


def select_comparisons(only: str, c_programs: Path | None) -> Iterator[ledger.Comparison]:
    yield from (one for one in operations.make_comparisons() if only in one.name)
    if c_programs is not None:
        yield from (one for one in operations.compare_simulators(c_programs) if only in one.name)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument(
        "--c", type=Path, metavar="FOLDER", help="also compare with these C programs"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="operations whose name contains TEXT"
    )
    parser.add_argument("--keep", action="store_true", help="do not append to the ledger")
    given = parser.parse_args(arguments)
    found = ledger.run(
        select_comparisons(given.only, given.c), None if given.keep else ledger.LEDGER
    )
    if not found:
        parser.error(f"--only: no operation name contains {given.only!r}")


if __name__ == "__main__":
    main()
