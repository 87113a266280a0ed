"""`run_check`: the explorer and the conformance suite on one protocol, as one verdict."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from antecede.check.budget import Size, Target, searches, suites
from antecede.check.company import promise
from antecede.check.conformance import Plan, conform
from antecede.check.explorer import explore
from antecede.check.loader import is_file_target, load_class
from antecede.check.verdict import ENDLESS, NEEDLESS, STUCK, Exploration, Suite, Verdict
from antecede.errors import LocalError
from antecede.protocols.registry import entry

STATES_AFTER_FAILURE = 30_000
IGNORABLE = frozenset({NEEDLESS, STUCK})
"""What a protocol can do wrong and still be asked whether it delivers anything early."""

Progress = Callable[[str, int], None]
"""Called with the group under examination and the number of states or runs so far."""


def find_target(name: str, variant: str = "") -> Target:
    """Return a built-in protocol by name, or the user's FILE.py:CLASS.

    Raises InputError for a file or class that cannot be used, LocalError for an unknown name
    or variant.
    """
    if is_file_target(name):
        if variant:
            raise LocalError("variants are for built-in protocols")
        return Target(name, load_class(name))
    found = entry(name)
    topology = None if found.flat else importlib.import_module(found.module).Topology
    return Target(name, found.load(), topology, found.options(variant))


def run_check(
    target: str,
    *,
    variant: str = "",
    members: int | None = None,
    messages: int | None = None,
    thorough: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Verdict:
    """Judge a protocol by its own guarantee.

    Explores from small groups to `members` and `messages` (default 3 and 4; hierarchies 2
    internal, 1 super, 2 external peers and 3), then runs the adversarial network with all
    randomness from `seed`. Stops at the first failure, whose counterexample is the smallest;
    when that is no early delivery, which is what matters most, it goes on for one for a while.
    """
    found = find_target(target, variant)
    size = Size(members, messages, thorough)
    title, kept = _titles(found)
    company, _ = next(searches(found, size))
    first = conform(company, Plan(runs=1, messages=2, twins=False), seed)
    if first.failure is not None and first.failure.what == ENDLESS:
        # The explorer would follow every one of endlessly many copies.
        return Verdict(target, title, kept, (), (first,))
    explored = _explore_all(found, size, progress)
    if any(part.failure is not None for part in explored):
        return Verdict(target, title, kept, tuple(explored), ())
    played: list[Suite] = []
    for company, plan in suites(found, size):
        played.append(conform(company, plan, seed, _under(progress, company.describe())))
        if played[-1].failure is not None:
            break
    return Verdict(target, title, kept, tuple(explored), tuple(played))


def _explore_all(found: Target, size: Size, progress: Progress | None) -> list[Exploration]:
    explored: list[Exploration] = []
    ignored: frozenset[str] = frozenset()
    for company, limits in searches(found, size):
        clean = False
        while not clean:
            if ignored:
                limits = limits._replace(ignored=ignored, max_states=STATES_AFTER_FAILURE)
            explored.append(explore(company, limits, _under(progress, company.describe())))
            failure = explored[-1].failure
            clean = failure is None
            if failure is not None and failure.what not in IGNORABLE:
                return explored
            if failure is not None:
                ignored |= {failure.what}
    return [part for part in explored if part.failure is not None] if ignored else explored


def _titles(found: Target) -> tuple[str, str]:
    company, _ = next(searches(found, Size()))
    title = found.factory.__name__ if is_file_target(found.name) else entry(found.name).title
    return title, promise(company.make())


def _under(progress: Progress | None, what: str) -> Callable[[int], None] | None:
    if progress is None:
        return None
    known = progress
    return lambda count: known(what, count)
