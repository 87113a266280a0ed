"""Run the example pipeline: `python -m pipeline`.

Starts all processes, kills some, checks the table, and writes a page. Exit codes: 0 without errors
in the table, 1 with errors, 2 if a requirement is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from antecede.errors import AntecedeError
from pipeline.page import format_summary, write_page
from pipeline.run import Options, prepare_folder, run


def main(arguments: list[str] | None = None) -> int:
    """Run, check, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m pipeline", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/pipeline"))
    parser.add_argument("--seconds", type=float, default=40.0, help="duration of orders, s")
    parser.add_argument("--seed", type=int, default=1, help="seed of delays, repeats, rejections")
    parser.add_argument("--files", action="store_true", help="use files instead of a broker")
    parser.add_argument("--cache", type=Path, default=Path(".cache/pipeline"), help="jar folder")
    given = parser.parse_args(arguments)
    try:
        options = Options(
            prepare_folder(given.out), given.seconds, given.seed, given.files, given.cache
        )
        ran = run(options)
    except AntecedeError as error:
        print(f"pipeline: {error}", file=sys.stderr)
        return 2
    page = write_page(given.out / "index.html", ran, options)
    print("\n".join(format_summary(ran)))
    print(f"  page: {page}")
    return 0 if ran.verdict.is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
