"""Mutation score of the checker: every mutant must be killed, or its survival explained.

A mutant is killed when the model checker or the adversarial network finds a broken promise, or when
its code fails. A survivor either behaves the same on every honest run, or shows a gap in the
checker. `survivors.toml` has the explanations. A test fails on a survivor without an explanation,
and on an explanation without its survivor.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from zlib import crc32

from antecede.core.protocols import ENTRIES
from antecede.errors import LocalError
from antecede.formatting import quote
from antecede.lab.check import Failure, Target
from antecede.lab.check.checked_run import JudgedRun
from antecede.lab.check.conformance import SuitePlan, conform, play
from antecede.lab.check.harness import LIMIT_S, in_words, raise_own, watch_calls
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.network import Step
from antecede.lab.check.model_checker import SearchLimits, explore
from antecede.lab.check.results import RAISED
from antecede.lab.check.search_plans import one_against_all, with_notes
from tools.mutants.modules import ModuleCopies
from tools.mutants.mutation import Mutant, find_mutants, shorten_name

RUNS, DIFFERENCE_RUNS = 8, 8
MUTANT_TIMEOUT_S = 60.0
"""Time limit of one mutant, s; a slower one is reported as not judged."""
ORIGINAL_TIME_FACTOR = 3.0
"""Minimum time limit as a multiple of the original's time, because survivors take as long."""
MAX_REPLAYS = 30
"""Limit of replays to shorten a counterexample."""


class MutantResult(NamedTuple):
    """Result of one mutant."""

    mutant: Mutant
    killed_by: Failure | None
    difference: str = ""
    """Difference in sent messages or stored state of a survivor, on the same runs."""
    explanation: str = ""
    """Reason why a survivor without a difference cannot be detected; empty: none given."""
    timeout_reason: str = ""
    """Reason why it was not judged; empty if it was."""

    def format_line(self) -> str:
        """Return the result as text."""
        where = f"{shorten_name(self.mutant.module)}:{self.mutant.line}"
        what = f"{where} {self.mutant.function}: {self.mutant.change}"
        if self.timeout_reason:
            return f"NOT JUDGED  {what}\n          {self.timeout_reason}"
        if self.killed_by is None:
            if self.difference:
                return f"harmless  {what}\n          breaks no promise; {self.difference}"
            return f"SURVIVED  {what}\n          {self.explanation or 'NOT EXPLAINED'}"
        by = self.killed_by
        actions = "; ".join(by.lines()) or "no action"
        return f"killed    {what}\n          {by.sentence()} <- {actions}"


class MutationScore(NamedTuple):
    """Results of all mutants of one protocol."""

    target: str
    outcomes: tuple[MutantResult, ...]
    stale: tuple[str, ...]
    """Explanations without a surviving mutant."""
    skipped: int = 0
    """Number of mutants not started before the time limit."""

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Mutants that break no promise and behave like the original."""
        return tuple(o for o in self._list_alive() if not o.difference)

    @property
    def harmless(self) -> tuple[MutantResult, ...]:
        """Mutants that break no promise, but send or store something else."""
        return tuple(o for o in self._list_alive() if o.difference)

    @property
    def not_judged(self) -> tuple[MutantResult, ...]:
        """Mutants that exceeded their time limit."""
        return tuple(outcome for outcome in self.outcomes if outcome.timeout_reason)

    def _list_alive(self) -> Iterator[MutantResult]:
        return (o for o in self.outcomes if o.killed_by is None and not o.timeout_reason)

    @property
    def killed(self) -> int:
        """Number of mutants that the checker detects."""
        return sum(outcome.killed_by is not None for outcome in self.outcomes)

    @property
    def unexplained(self) -> tuple[MutantResult, ...]:
        """Survivors without an explanation."""
        return tuple(outcome for outcome in self.survivors if not outcome.explanation)

    @property
    def is_ok(self) -> bool:
        """Return whether all mutants were judged, and survivors and explanations match."""
        return not (self.unexplained or self.stale or self.not_judged or self.skipped)

    def format_lines(self) -> list[str]:
        """Return all results and the score as text."""
        return [*(outcome.format_line() for outcome in self.outcomes), *self.format_summary()]

    def format_summary(self) -> list[str]:
        """Return the score as text."""
        lines = [f"STALE     {key}: no such survivor; take it out" for key in self.stale]
        score = f"{self.target}: {self.killed} of {len(self.outcomes)} mutants killed"
        score += f", {len(self.harmless)} break no promise but send or keep something else"
        explained = len(self.survivors) - len(self.unexplained)
        score += f", {len(self.survivors)} do nothing otherwise ({explained} explained)"
        unjudged = len(self.not_judged) + self.skipped
        if unjudged:
            score += f"; {unjudged} NOT JUDGED: {len(self.not_judged)} took too long"
            score += f", for {self.skipped} no time was left"
        return [*lines, "", score]

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain values for JSON."""
        return {
            "target": self.target,
            "mutants": len(self.outcomes),
            "killed": self.killed,
            "harmless": [
                {"mutant": o.mutant.key, "difference": o.difference} for o in self.harmless
            ],
            "survivors": [
                {"mutant": outcome.mutant.key, "explanation": outcome.explanation}
                for outcome in self.survivors
            ],
            "stale": list(self.stale),
            "not_judged": [outcome.mutant.key for outcome in self.not_judged],
            "left_out": self.skipped,
            "ok": self.is_ok,
        }


class _TimeUpError(Exception):
    """The time limit of a mutant is exceeded."""


class _Deadline:
    """Progress callback that ends an examination at a time limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = monotonic() + seconds

    def __call__(self, count: int) -> None:
        if monotonic() > self.at:
            raise _TimeUpError


def judge_mutants(
    target: Target,
    on_result: Callable[[MutantResult, int, int], None] | None = None,
    *,
    every: int = 1,
    timeout_per_mutant_s: float | None = None,
    timeout_s: float = math.inf,
    call_timeout_s: float = LIMIT_S,
) -> MutationScore:
    """Check every mutant of a protocol; survivors are looked up in `survivors.toml`.

    The target's variants that keep its promise, and all protocols of its module or family, are
    examined too. `every`: check one mutant in so many. `on_result` is called with each result, its
    number from 1, and the total. Limits in seconds: `timeout_per_mutant_s` (None: see
    `get_mutant_timeout`), `timeout_s` for all, `call_timeout_s` for one call into a class.
    """
    with watch_calls(call_timeout_s):
        return _judge(target, on_result, every, timeout_per_mutant_s, _Deadline(timeout_s))


def get_mutant_timeout(timeout_s: float | None, original_s: float) -> float:
    """Return the time limit of a mutant: `timeout_s`, else `MUTANT_TIMEOUT_S` or more.

    The original took `original_s`.
    """
    return (
        max(MUTANT_TIMEOUT_S, ORIGINAL_TIME_FACTOR * original_s) if timeout_s is None else timeout_s
    )


def _judge(
    target: Target,
    on_result: Callable[[MutantResult, int, int], None] | None,
    every: int,
    asked_s: float | None,
    deadline: _Deadline,
) -> MutationScore:
    began = monotonic()
    targets = [target, *_list_variants(target)]
    bodies = ModuleCopies(*(one.factory for one in targets))
    reasons = load_explanations(bodies.sources)
    # Build the original like a mutant: a failure here would count as a kill of every mutant.
    for failure in _examine(_apply_change(targets, bodies.build(None)), _Deadline(math.inf)):
        if failure is not None:
            raise LocalError(
                f"{target.name} itself breaks a promise, so its mutants tell nothing: "
                f"{failure.sentence()}"
            )
    outcomes = []
    originals = _record_original_runs(targets)
    each_s = get_mutant_timeout(asked_s, monotonic() - began)
    mutants = find_mutants(bodies.sources)
    # Sample by name, so that other edits do not change the sample.
    sampled = [mutant for mutant in mutants if crc32(mutant.key.encode()) % every == 0]
    for mutant in sampled:
        left_s = deadline.at - monotonic()
        if left_s <= 0:
            break
        until = _Deadline(min(each_s, left_s))
        outcome = _judge_mutant(targets, originals, bodies, mutant, reasons, until)
        if outcome.timeout_reason and left_s < each_s:
            break  # the total time is over
        outcomes.append(outcome)
        if on_result is not None:
            on_result(outcomes[-1], len(outcomes), len(sampled))
    # In a shared module a survivor of one protocol may differ in another, but must not break a
    # promise there.
    surviving = {outcome.mutant.key for outcome in outcomes if outcome.killed_by is None}
    # An unjudged mutant counts as a survivor, so its explanation is not stale.
    prefixes = tuple(f"{shorten_name(name)}." for name in bodies.sources)
    not_judged = {mutant.key for mutant in mutants} - {o.mutant.key for o in outcomes}
    known = surviving | not_judged
    stale = tuple(key for key in reasons if key.startswith(prefixes) and key not in known)
    return MutationScore(target.name, tuple(outcomes), stale, len(sampled) - len(outcomes))


def _list_variants(target: Target) -> list[Target]:
    if target.name not in ENTRIES or target.options:
        return []
    own = ENTRIES[target.name]
    family = [
        entry
        for entry in ENTRIES.values()
        if entry.module == own.module or (own.family and entry.family == own.family)
    ]
    found = []
    for entry in family:
        one = target._replace(name=entry.name, factory=entry.load())
        kept = (name for name in entry.variants if name not in entry.defective)
        found += [one] if entry.name != target.name else []
        found += [one._replace(options=entry.variants[name]) for name in kept]
    for one in filter(None, map(with_notes, [target, *found])):
        found += [one] if one not in found else []
    return found


def _apply_change(targets: Sequence[Target], change: Callable[[Any], Any]) -> list[Target]:
    return [
        target._replace(
            factory=change(target.factory),
            topology=change(target.topology) if target.topology else None,
        )
        for target in targets
    ]


def _judge_mutant(
    targets: Sequence[Target],
    originals: Sequence[Iterable[JudgedRun]],
    bodies: ModuleCopies,
    mutant: Mutant,
    reasons: Mapping[str, str],
    until: _Deadline,
) -> MutantResult:
    changed = _apply_change(targets, bodies.build(mutant))
    try:
        failure = next((f for f in _examine(changed, until) if f is not None), None)
    except _TimeUpError:
        return MutantResult(mutant, None, timeout_reason=f"took longer than {until.seconds:.3g} s")
    except BaseException as error:
        raise_own(error)
        # The model checker reports errors of members; this code fails before.
        what = in_words(error)
        setup = _make_small_group(targets[0]).setup
        failure = Failure(RAISED, "everybody", "", (), what, (), "any group", setup)
    if failure is not None:
        return MutantResult(mutant, failure)
    pairs = zip(originals, changed, strict=True)
    difference = next(filter(None, (_find_difference(old, new) for old, new in pairs)), "")
    return MutantResult(mutant, None, difference, "" if difference else reasons.get(mutant.key, ""))


def _record_original_runs(targets: Sequence[Target]) -> list[list[JudgedRun]]:
    """Return the original's runs of each target, on which its mutants are compared."""
    return [
        [
            play(group, SuitePlan(parents=target.parents), f"difference/{run}")
            for group in _make_groups(target)
            for run in range(DIFFERENCE_RUNS)
        ]
        for target in targets
    ]


def _find_difference(originals: Iterable[JudgedRun], changed: Target) -> str:
    """Replay the original's actions, and describe the first difference in messages or state."""
    groups = (group for group in _make_groups(changed) for _ in range(DIFFERENCE_RUNS))
    for one, group in zip(originals, groups, strict=True):
        other = JudgedRun(group)
        for action in one.actions:
            other.take(action)
        steps = zip(one.world.steps, other.world.steps, strict=False)
        changed_step = next(((a, b) for a, b in steps if a != b), None)
        if changed_step is not None:
            return f"does {_format_step(changed_step[1])} for {_format_step(changed_step[0])}"
        for label, copies in one.world.sent.items():
            for a, b in zip(copies, other.world.sent.get(label, []), strict=False):
                if tuple(a.message) != tuple(b.message):
                    return f"sends {quote(b.message, 100)} for {quote(a.message, 100)}"
        for at, member in one.world.members.items():
            kept, instead = member.snapshot(), other.world.members[at].snapshot()
            if repr(kept) != repr(instead):
                return f"keeps other state at {one.names[at]} in the end"
    return ""


def _format_step(step: Step) -> str:
    return " ".join((step.kind, step.label, *step.detail))


def load_explanations(modules: Iterable[str] | None = None) -> Mapping[str, str]:
    """Return the table of survivors: key of the mutant -> explanation.

    `modules`: names of the checked modules, None: all. A row with `only`, a module's name below
    `antecede.core.protocols`, counts only if that module is checked too, because a survivor of one
    family may be killed in another.
    """
    text = Path(__file__).with_name("survivors.toml").read_text("utf-8")
    rows = tomllib.loads(text).get("survivors", [])
    if modules is not None:
        here = {None, *(shorten_name(name) for name in modules)}
        rows = [row for row in rows if row.get("only") in here]
    return {mutant: row["why"] for row in rows for mutant in row["mutants"]}


def _make_groups(target: Target) -> Iterator[GroupUnderTest]:
    """Yield the groups of the random runs."""
    if target.topology is None:
        group = target.flat(4)
        yield group
        if group.timing.bounds is not None:
            *_, offsets = one_against_all(target, 4)
            yield target.flat(4, offsets)
        return
    for groups, external in (((2,), 2), ((2, 1), 1), ((1, 1, 0), 1)):
        yield target.hierarchy(groups, external)


def _examine(targets: Sequence[Target], until: _Deadline) -> Iterator[Failure | None]:
    """Yield the result of each examination, cheapest first; raises _TimeUpError."""
    for target in targets:
        small = _make_small_group(target)
        yield explore(small, SearchLimits(2, duplicates=1), until).failure
        survives = all(member.guarantee.survives_loss for member in small.make().values())
        # Without delay bounds the model checker cannot distinguish abandoned from stuck messages.
        if survives and small.timing.bounds is not None:
            yield explore(small, SearchLimits(2, losses=1, send_until=1), until).failure
    plan = SuitePlan(runs=RUNS, twins=False, replays=MAX_REPLAYS)
    for target in targets:
        for group in _make_groups(target):
            yield conform(group, plan._replace(parents=target.parents), progress=until).failure
    target = targets[0]
    if target.topology is None and _make_small_group(target).timing.bounds is not None:
        yield from _examine_limits(targets, until)
    elif target.topology is None:
        yield explore(target.flat(3), SearchLimits(3), until).failure
        yield explore(_make_small_group(target), SearchLimits(4), until).failure
    else:
        group = target.hierarchy((1,), 2)
        first, *_, last = group.names
        yield explore(group, SearchLimits(3, senders=(last, last, first)), until).failure
        yield explore(group, SearchLimits(3, senders=(first, last, first)), until).failure


def _examine_limits(targets: Sequence[Target], until: _Deadline) -> Iterator[Failure | None]:
    """Yield results with clocks and delays at their limits.

    Only such runs detect a rule that is off by a nanosecond, under one kind of delivery.
    """
    for target in targets:
        if _make_small_group(target).make()[0].guarantee.survives_loss:
            continue
        *_, offsets = one_against_all(target, 3)
        group = target.flat(3, offsets)
        yield explore(group, SearchLimits(2, send_until=1, extremes=True), until).failure


def _make_small_group(target: Target) -> GroupUnderTest:
    return target.flat(2) if target.topology is None else target.hierarchy((1,), 1)
