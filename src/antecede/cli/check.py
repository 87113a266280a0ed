"""`antecede check`: the verdict on a protocol, for people or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable

from antecede.check.run import find_target, run_check
from antecede.check.verdict import Exploration, Failure, Suite, Verdict
from antecede.errors import LocalError
from antecede.protocols.registry import ENTRIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede check`."""
    parser.add_argument("target", help=f"{', '.join(ENTRIES)}, or your own FILE.py:CLASS")
    parser.add_argument("--variant", default="", help="a variant of a built-in protocol")
    parser.add_argument("--members", type=int, help="members of the largest group explored")
    parser.add_argument("--messages", type=int, help="messages sent in the largest search")
    parser.add_argument("--thorough", action="store_true", help="larger searches, more runs")
    parser.add_argument("--mutants", action="store_true", help="break every guard; are all caught?")
    parser.add_argument("--seed", type=int, default=0, help="seed of the adversarial network")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Judge and print; returns 0 when all promises are kept, 1 when not."""
    for name, least in (("members", 2), ("messages", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise LocalError(f"--{name} is {value}; the least is {least}")
    if args.mutants:
        return _mutants(args)
    verdict = run_check(
        args.target,
        variant=args.variant,
        members=args.members,
        messages=args.messages,
        thorough=args.thorough,
        seed=args.seed,
        progress=_progress if sys.stderr.isatty() else None,
    )
    _clear()
    if args.json:
        print(json.dumps(verdict.as_dict(), indent=2))
    else:
        print("\n".join(report(verdict, args.variant)))
    return 0 if verdict.ok else 1


def report(verdict: Verdict, variant: str = "") -> list[str]:
    """Return the verdict as lines for people."""
    name = f"{verdict.target} ({variant})" if variant else verdict.target
    lines = [f"{name}: {verdict.title}", f"promises {verdict.promise}", ""]
    lines += [_explored(part) for part in verdict.explorations]
    lines += [_played(part) for part in verdict.suites]
    if verdict.ok:
        states, runs = f"{verdict.states:,} states", f"{verdict.runs:,} runs"
        return [*lines, "", f"PASS  {states} explored, {runs} on the adversarial network"]
    for failure in verdict.failures:
        lines += ["", f"FAIL  {failure.sentence()}", "", *_counterexample(failure)]
    return lines


def _explored(part: Exploration) -> str:
    extent = "every interleaving" if part.complete else "stopped"
    return f"  explored {part.setting}: {part.states:,} states, {extent}"


def _played(part: Suite) -> str:
    return f"  network  {part.setting}: {part.runs:,} runs, {part.deliveries:,} deliveries"


def _counterexample(failure: Failure) -> Iterable[str]:
    yield f"  smallest counterexample found ({failure.setting}), as a scenario:"
    yield ""
    yield from (f"    {line}" for line in failure.scenario().splitlines())


def _mutants(args: argparse.Namespace) -> int:
    from antecede.check.mutants import judge_mutants

    result = judge_mutants(
        find_target(args.target, args.variant),
        progress=_progress if sys.stderr.isatty() else None,
    )
    _clear()
    if args.json:
        print(json.dumps(result.as_dict(), indent=2))
    else:
        print("\n".join(result.lines()))
    return 0 if result.ok else 1


def _progress(what: str, count: int) -> None:
    print(f"\r\x1b[K{what}: {count:,}", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
