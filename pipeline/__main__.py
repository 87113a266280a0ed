"""`python -m pipeline`: start everything, kill what is to be killed, check, write the page.

Ends with 0 when the check found nothing wrong, 1 when it found something, 2 when something
that the run needs is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from antecede.errors import AntecedeError
from pipeline.page import format_summary, write_page
from pipeline.run import Options, prepare_folder, run


def main(arguments: list[str] | None = None) -> int:
    """Run, check, write the page."""
    parser = argparse.ArgumentParser(prog="python -m pipeline", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/pipeline"))
    parser.add_argument("--seconds", type=float, default=40.0, help="how long orders come")
    parser.add_argument("--seed", type=int, default=1, help="of chances: delays, repeats, refusals")
    parser.add_argument("--files", action="store_true", help="topics and table as files, no broker")
    parser.add_argument("--cache", type=Path, default=Path(".cache/pipeline"), help="for jars")
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
