"""Does the checker notice? Every mutant of a protocol is judged; survivors need a reason.

A mutant is killed when the explorer or the adversarial network finds a broken promise, or when
its code no longer runs. What survives either behaves the same on every honest run, or shows a
hole in the checker; `survivors.toml` says which, and a test fails on a survivor without an
explanation and on an explanation without its survivor.
"""

from __future__ import annotations

import ast
import inspect
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, resources
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from antecede.check.budget import Target
from antecede.check.company import Company, flat, hierarchy
from antecede.check.conformance import Plan, conform
from antecede.check.explorer import Limits, explore
from antecede.check.mutation import Mutant, bounded, find_mutants, mutate, rounds
from antecede.check.verdict import RAISED, Failure

_SHARED = frozenset(
    f"antecede.protocols.{name}" for name in ("base", "state", "storage", "registry")
)
"""Modules under `protocols` that are part of no single protocol."""


class Outcome(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant
    killed_by: Failure | None
    explanation: str = ""
    """Why it survives; empty when it was killed, or when nobody has said why."""

    def line(self) -> str:
        """Return the outcome as one line."""
        where = f"{self.mutant.module.rpartition('.')[2]}:{self.mutant.line}"
        what = f"{where} {self.mutant.function}: {self.mutant.change}"
        if self.killed_by is None:
            return f"SURVIVED  {what}\n          {self.explanation or 'NOT EXPLAINED'}"
        by = self.killed_by
        actions = "; ".join(by.lines()) or "no action"
        return f"killed    {what}\n          {by.sentence()} <- {actions}"


class Score(NamedTuple):
    """What became of all mutants of one protocol."""

    target: str
    outcomes: tuple[Outcome, ...]
    stale: tuple[str, ...]
    """Explanations of mutants that were killed or are no more."""

    @property
    def survivors(self) -> tuple[Outcome, ...]:
        """Mutants that nothing killed."""
        return tuple(outcome for outcome in self.outcomes if outcome.killed_by is None)

    @property
    def unexplained(self) -> tuple[Outcome, ...]:
        """Survivors without a reason."""
        return tuple(outcome for outcome in self.survivors if not outcome.explanation)

    @property
    def ok(self) -> bool:
        """Whether every survivor has its explanation and every explanation its survivor."""
        return not self.unexplained and not self.stale

    def lines(self) -> list[str]:
        """Return all outcomes and the score as lines for people."""
        lines = [outcome.line() for outcome in self.outcomes]
        lines += [f"STALE     {key}: no such survivor; take it out" for key in self.stale]
        killed = len(self.outcomes) - len(self.survivors)
        score = f"{self.target}: {killed} of {len(self.outcomes)} mutants killed"
        explained = len(self.survivors) - len(self.unexplained)
        return [*lines, "", f"{score}; {explained} of {len(self.survivors)} survivors explained"]

    def as_dict(self) -> dict[str, Any]:
        """Return the score as plain values for JSON."""
        return {
            "target": self.target,
            "mutants": len(self.outcomes),
            "killed": len(self.outcomes) - len(self.survivors),
            "survivors": [
                {"mutant": outcome.mutant.key, "explanation": outcome.explanation}
                for outcome in self.survivors
            ],
            "stale": list(self.stale),
            "ok": self.ok,
        }


def judge_mutants(target: Target, progress: Callable[[str, int], None] | None = None) -> Score:
    """Judge every mutant of a protocol; what survives is looked up in `survivors.toml`."""
    bodies = Bodies(target.factory)
    reasons = explanations()
    outcomes = []
    for mutant in find_mutants(bodies.sources):
        failure = _first_failure(target, bodies, mutant)
        reason = "" if failure else reasons.get(mutant.key, "")
        outcomes.append(Outcome(mutant, failure, reason))
        if progress is not None:
            progress(f"mutants of {target.name}", len(outcomes))
    surviving = {outcome.mutant.key for outcome in outcomes if outcome.killed_by is None}
    prefixes = tuple(f"{name.rpartition('.')[2]}." for name in bodies.sources)
    stale = tuple(key for key in reasons if key.startswith(prefixes) and key not in surviving)
    return Score(target.name, tuple(outcomes), stale)


def explanations() -> Mapping[str, str]:
    """Return the table of survivors: key of the mutant -> why nothing can notice it."""
    text = resources.files("antecede.check").joinpath("survivors.toml").read_text("utf-8")
    return {row["mutant"]: row["why"] for row in tomllib.loads(text).get("survivor", [])}


def _first_failure(target: Target, bodies: Bodies, mutant: Mutant) -> Failure | None:
    try:
        with_change = bodies.build(mutant)
        changed = target._replace(
            factory=with_change(target.factory),
            topology=with_change(target.topology) if target.topology else None,
        )
        return next((f for f in _examinations(changed) if f is not None), None)
    except Exception as error:
        # The explorer reports what members raise; this is code that does not even start.
        what = f"{type(error).__name__}: {error}"
        scene = _small(target).scene
        return Failure(RAISED, "everybody", "", (), what, (), "any group", scene)


def _examinations(target: Target) -> Iterator[Failure | None]:
    """Yield what each examination finds, the cheapest first."""
    if target.topology is None:
        for size, limits in ((2, Limits(2, duplicates=1)), (3, Limits(3)), (2, Limits(4))):
            company = flat(target.name, target.factory, size, target.options)
            yield explore(company, limits).failure
        company = flat(target.name, target.factory, 4, target.options)
        yield conform(company, Plan(runs=12, parents=target.parents)).failure
        return
    yield explore(_small(target), Limits(2, duplicates=1)).failure
    for groups, external, ack_after in (((2,), 2, 1), ((2, 1), 1, 1), ((1, 1, 1), 1, 64)):
        options = {**target.options, "ack_after": ack_after}
        company = hierarchy(target.name, target.factory, target.topology, groups, external, options)
        yield conform(company, Plan(runs=12, messages=16)).failure
    company = hierarchy(target.name, target.factory, target.topology, (2,), 2, target.options)
    first, *_, last = company.names
    yield explore(company, Limits(2)).failure
    yield explore(company, Limits(3, script=(last, last, first))).failure


def _small(target: Target) -> Company:
    if target.topology is None:
        return flat(target.name, target.factory, 2, target.options)
    return hierarchy(target.name, target.factory, target.topology, (1,), 1, target.options)


class Bodies:
    """The modules of one protocol, and fresh copies of them with one change."""

    def __init__(self, factory: Callable[..., Any]) -> None:
        self.names = _modules_of(factory.__module__)
        self.sources = {name: inspect.getsource(sys.modules[name]) for name in self.names}
        self.code = {name: self._compile(name, ast.parse(text)) for name, text in self._items()}

    def _items(self) -> list[tuple[str, str]]:
        return list(self.sources.items())

    def _compile(self, name: str, tree: ast.Module) -> CodeType:
        file = sys.modules[name].__file__ or name
        return compile(bounded(tree), file, "exec", dont_inherit=True)

    def build(self, mutant: Mutant) -> Callable[[Any], Any]:
        """Return what finds a class or function of the protocol among the changed modules."""
        changed = mutate(self.sources, mutant)
        code = {**self.code, mutant.module: self._compile(mutant.module, changed)}
        built: dict[str, ModuleType] = {}
        originals = {name: sys.modules[name] for name in self.names}
        try:
            for name in self.names:
                module = ModuleType(name)
                module.__file__ = originals[name].__file__
                vars(module)["__rounds__"] = rounds
                built[name] = module
                _put(name, module)
                exec(code[name], vars(module))
        finally:
            for name, module in originals.items():
                _put(name, module)
        return lambda thing: getattr(built[thing.__module__], thing.__name__)


def _put(name: str, module: ModuleType) -> None:
    """Make `import name` and `from parent import name` find this module."""
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


def _modules_of(name: str) -> tuple[str, ...]:
    """Return the modules that make up a protocol, each after those that it imports."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for needed in _imports(inspect.getsource(import_module(name))):
            if needed not in order and needed not in _SHARED and needed != name:
                visit(needed)
        order[name] = None

    visit(name)
    return tuple(order)


def _imports(source: str) -> Iterator[str]:
    """Yield the modules of `antecede.protocols` that a module imports when it is loaded."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "antecede.protocols":
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif node.module.startswith("antecede.protocols."):
                yield node.module
