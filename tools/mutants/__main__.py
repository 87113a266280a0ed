"""Command line of the mutation tests: `python -m tools.mutants PROTOCOL`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence

from antecede.core.protocols import ENTRIES
from antecede.core.protocols.options import split_options
from antecede.errors import AntecedeError, LocalError
from antecede.lab.check import find_target, is_file_target
from antecede.lab.check.harness import LIMIT_S
from tools.mutants.run import MUTANT_TIMEOUT_S, ORIGINAL_TIME_FACTOR, MutantResult, judge_mutants


def main(words: Sequence[str] | None = None) -> int:
    """Check the mutants of one protocol. Return 0 if all are killed or explained, 2 for misuse."""
    args = _parser().parse_args(words)
    try:
        return _run(args)
    except AntecedeError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("target", help=f"{', '.join(ENTRIES)}, or your own FILE.py:CLASS")
    parser.add_argument(
        "options", nargs="*", metavar="NAME=VALUE", help="options of its constructor (r=10 k=3)"
    )
    parser.add_argument("--variant", default="", help="variant of a built-in protocol")
    parser.add_argument(
        "--timeout",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="time limit for all mutants (default: none)",
    )
    parser.add_argument(
        "--timeout-per-mutant",
        type=float,
        metavar="SECONDS",
        help=f"time limit per mutant (default: {MUTANT_TIMEOUT_S:g} or "
        f"{ORIGINAL_TIME_FACTOR:g} times the original's time)",
    )
    parser.add_argument(
        "--call-timeout",
        type=float,
        default=LIMIT_S,
        metavar="SECONDS",
        help=f"time limit of a call into the class (default: {LIMIT_S:g})",
    )
    parser.add_argument("--json", action="store_true", help="print the score as JSON")
    return parser


def _run(args: argparse.Namespace) -> int:
    def print_outcome(outcome: MutantResult, number: int, of: int) -> None:
        _clear_line()
        if not args.json:
            print(outcome.format_line(), flush=True)
        if sys.stderr.isatty():
            print(f"mutant {number:,} of {of:,}", end="", file=sys.stderr, flush=True)

    target = find_target(args.target, args.variant, split_options(args.options))
    if is_file_target(target.name) and not isinstance(target.factory, type):
        raise LocalError(f"{target.name} is a function; mutants need a class")
    print(f"mutants: the mutants of {target.name}, after the original itself", file=sys.stderr)
    score = judge_mutants(
        target,
        print_outcome,
        timeout_per_mutant_s=args.timeout_per_mutant,
        timeout_s=args.timeout,
        call_timeout_s=args.call_timeout,
    )
    _clear_line()
    print(json.dumps(score.to_dict(), indent=2) if args.json else "\n".join(score.format_summary()))
    return 0 if score.is_ok else 1


def _clear_line() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
