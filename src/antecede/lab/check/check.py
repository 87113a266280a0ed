"""Model checker and conformance suite on one protocol, with one verdict.

Members must not share state. A snapshot omits attributes of the class, variables of its module and
mutable default values, and separate processes do not share them.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from antecede.core.protocols import Protocol, entry, promise, smallest
from antecede.core.protocols.options import read_options
from antecede.errors import LocalError, OptionError
from antecede.lab.check import results
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.harness.group_under_test import ConstructionError, GroupUnderTest
from antecede.lab.check.harness.guarded_calls import LIMIT_S, in_words, watch_calls
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.results import Exploration, Failure, Suite, Verdict, classify_error
from antecede.lab.check.scenario.parse import Setup
from antecede.lab.check.search_plans import SearchSize, plan_searches, suites
from antecede.lab.check.target import Target, is_file_target, load_target

_MUTABLE = (list, dict, set, bytearray, deque)


Copies = Mapping[str, tuple[Any, Any]]


def _copy_shared_values(target: Target) -> Copies:
    copies: dict[str, tuple[Any, Any]] = {}
    if is_file_target(target.name) and isinstance(target.factory, type):
        for name, value in _find_shared_values(target.factory):
            with suppress(Exception):  # values without a copy are not watched
                copies[name] = value, copy.deepcopy(value)
    return copies


def _find_change(copies: Copies) -> str:
    for name, (value, before) in copies.items():
        if value != before:
            return (
                f"{name} changed while members acted, and all members share it; "
                "set it in __init__ as an attribute of self"
            )
    return ""


def _find_shared_values(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield mutable attributes of the class, its bases and their modules, with names."""
    own = [base for base in cls.__mro__ if not base.__module__.startswith("antecede.")]
    for base in own:
        for name, value in vars(base).items():
            if isinstance(value, _MUTABLE) and not name.startswith("__"):
                yield f"class attribute {base.__name__}.{name}", value
    for module in {base.__module__: sys.modules.get(base.__module__) for base in own}.values():
        for name, value in vars(module).items() if module is not None else ():
            if isinstance(value, _MUTABLE) and not name.startswith("__"):
                yield f"module variable {name}", value


def find_shared_object(members: Mapping[int, Protocol], names: Mapping[int, str]) -> str:
    """Return a description of a mutable object that two new members share; "": none."""
    seen: dict[int, tuple[int, str]] = {}
    for at, member in members.items():
        for field, value in vars(member).items():
            if not isinstance(value, _MUTABLE):
                continue
            other, _ = seen.setdefault(id(value), (at, field))
            if other != at:
                return (
                    f"{names[other]} and {names[at]} share one "
                    f"{type(value).__name__} as self.{field}; create it in __init__ "
                    "(a default value or a list of the caller is one object for all)"
                )
    return ""


STATES_AFTER_FAILURE = 30_000
IGNORABLE = frozenset(results.LESS_SEVERE)
"""Failures after which the search for a more severe one continues."""

Part = TypeVar("Part", Exploration, Suite)
Progress = Callable[[str, int], None]
"""Callback with the checked group and the number of states or runs so far."""


def find_target(name: str, variant: str = "", options: Iterable[tuple[str, str]] = ()) -> Target:
    """Return a built-in protocol by name, or the user's FILE.py:CLASS or FILE.py:FUNCTION.

    `options`: names and texts, parsed by the types of the class. Raises InputError for an unusable
    file or class, OptionError for an unknown or rejected option, LocalError for an unknown name or
    variant.
    """
    parsed_options = tuple(options)
    if is_file_target(name):
        if variant:
            raise LocalError("variants are for built-in protocols; use options")
        return load_target(name, parsed_options)
    registered = entry(name)
    topology = None if registered.flat else importlib.import_module(registered.module).Topology
    factory = registered.load()
    chosen = {**registered.options(variant), **read_options(name, factory, parsed_options)}
    try:
        smallest(registered, chosen)
    except LocalError as error:
        raise OptionError(f"protocol {name} rejects these options: {error}") from error
    return Target(name, factory, topology, chosen)


def run_check(
    target: str,
    *,
    variant: str = "",
    options: Iterable[tuple[str, str]] = (),
    members: int | None = None,
    messages: int | None = None,
    thorough: bool = False,
    quick: bool = False,
    first_failure: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    limit_s: float = LIMIT_S,
) -> Verdict:
    """Check a protocol against its own guarantee.

    Explores groups up to `members` and `messages` (default 3 and 4; hierarchies: 2 internal, 1
    super and 2 external peers, 3 messages). Then runs the adversarial network seeded by `seed`. The
    first and smallest failure ends the check, unless it is one of `results.LESS_SEVERE`. `quick`:
    smaller bounds. `first_failure`: any failure ends the check. `call_timeout_s`: time limit of a
    call into the class.
    """
    resolved = find_target(target, variant, options)
    size = SearchSize(members, messages, thorough, quick)
    ignorable = frozenset[str]() if first_failure else IGNORABLE
    with watch_calls(limit_s):
        try:
            return _check_target(resolved, size, ignorable, seed, progress)
        except ConstructionError as error:
            failure = Failure(
                classify_error(error.error), error.name, "", (),
                in_words(error.error), (), "any group",
                Setup(target, tuple(options)),
            )  # fmt: skip
            part = Exploration("construction of the members", 0, 0, False, failure)
            return Verdict(target, _get_title(resolved), "unknown", (part,), ())


def _check_target(
    target: Target,
    size: SearchSize,
    ignorable: frozenset[str],
    seed: int,
    progress: Progress | None,
) -> Verdict:
    outside = _copy_shared_values(target)
    group, _ = next(plan_searches(target, size))
    title, promised = _get_title(target), promise(group.make())

    def verdict(explored: Iterable[Exploration], suite_results: Iterable[Suite]) -> Verdict:
        return Verdict(target.name, title, promised, tuple(explored), tuple(suite_results))

    first = conform(group, SuitePlan(runs=1, messages=2, twins=False), seed)
    if wrong := find_shared_object(group.make(), group.names) or _find_change(outside):
        return verdict([_make_shared_state_result(group, wrong)], ())
    if first.failure is not None and first.failure.what == results.ENDLESS:
        # The search would not end: it would follow every copy.
        return verdict((), (first,))
    explored = _explore_all(target, size, ignorable, progress)
    known = frozenset(part.failure.what for part in explored if part.failure is not None)
    if not known <= ignorable:
        return verdict(explored, ())
    suite_results = _run_suites(target, size, ignorable, known, seed, progress)
    if wrong := _find_change(outside):
        explored = [_make_shared_state_result(group, wrong), *explored]
    return verdict(explored, suite_results)


def _make_shared_state_result(group: GroupUnderTest, detail: str) -> Exploration:
    failure = Failure.from_group(
        group, results.SHARED_STATE, group.protocol.rpartition(":")[2], detail=detail
    )
    return Exploration(failure.setting, 0, 0, False, failure)


def _explore_all(
    target: Target, size: SearchSize, ignorable: frozenset[str], progress: Progress | None
) -> list[Exploration]:
    def explore_group(
        group: GroupUnderTest, limits: SearchLimits, ignored: frozenset[str]
    ) -> Exploration:
        if ignored:
            limits = limits._replace(ignored=ignored, max_states=STATES_AFTER_FAILURE)
        return explore(group, limits, progress and partial(progress, group.describe()))

    runs = (partial(explore_group, group, limits) for group, limits in plan_searches(target, size))
    return _run_all(runs, ignorable, frozenset())


def _run_suites(
    target: Target,
    size: SearchSize,
    ignorable: frozenset[str],
    ignored: frozenset[str],
    seed: int,
    progress: Progress | None,
) -> list[Suite]:
    def run_group_suite(group: GroupUnderTest, plan: SuitePlan, ignored: frozenset[str]) -> Suite:
        report_progress = progress and partial(progress, group.describe())
        return conform(group, plan, seed, report_progress, ignored=ignored)

    runs = (partial(run_group_suite, group, plan) for group, plan in suites(target, size))
    return _run_all(runs, ignorable, ignored)


def _run_all(
    runs: Iterable[Callable[[frozenset[str]], Part]],
    ignorable: frozenset[str],
    ignored: frozenset[str],
) -> list[Part]:
    """Repeat each run, ignoring the failures found so far, until it finds no other."""
    parts: list[Part] = []
    for run in runs:
        parts.append(run(ignored))
        while (failure := parts[-1].failure) is not None:
            if failure.what not in ignorable:
                return parts
            ignored |= {failure.what}
            parts.append(run(ignored))
    return [part for part in parts if part.failure is not None] if ignored else parts


def _get_title(target: Target) -> str:
    own = is_file_target(target.name)
    return target.name.rpartition(":")[2] if own else entry(target.name).title
