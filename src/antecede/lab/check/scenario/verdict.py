"""Verdicts as text, and their counterexamples as scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from antecede.errors import ScenarioError
from antecede.formatting import pluralize
from antecede.lab.check.results import EXACT_CLOCKS, Exploration, Failure, Verdict
from antecede.lab.check.scenario.execution import ScenarioRun
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario, update_output


def report(verdict: Verdict, variant: str = "") -> list[str]:
    """Return the verdict as lines for the terminal."""
    name = f"{verdict.target} ({variant})" if variant else verdict.target
    lines = [f"{name}: {verdict.title}", f"promises {verdict.promise}", ""]
    lines += format_searches(verdict.explorations)
    for part in verdict.suites:
        deliveries = pluralize(part.deliveries, "delivery", "deliveries")
        lines.append(f"  network  {part.setting}: {pluralize(part.runs, 'run')}, {deliveries}")
    if verdict.ok:
        states, runs = pluralize(verdict.states, "state"), pluralize(verdict.runs, "run")
        return [*lines, "", f"PASS  {states} explored, {runs} on the adversarial network"]
    for failure in verdict.failures:
        lines += ["", f"FAIL  {failure.sentence()}", "", *_format_counterexample(failure)]
    return lines


def format_searches(parts: Sequence[Exploration]) -> Iterator[str]:
    """Yield a line for each search; searches that differ in clocks alone share one."""
    for _, same in groupby(parts, key=lambda part: part.setting):
        yield _format_search(list(same))
    if steps := next((part.steps for part in parts if part.steps), ""):
        yield f"           (time passes in {steps}; a copy takes any delay of its channel unless"
        yield "           stated otherwise, null messages the minimum)"


def _format_search(parts: Sequence[Exploration]) -> str:
    part = parts[-1]
    what, states = part.setting, sum(one.states for one in parts)
    if clocks := _describe_clocks(parts):
        what += f", {clocks}"
    if all(one.complete for one in parts):
        extent = "every interleaving"
    elif part.failure is not None:
        extent = "stopped at the failure"
    else:
        extent = "UNFINISHED: stopped there"
    return f"  explored {what}: {pluralize(states, 'state')}, {extent}"


def _describe_clocks(parts: Sequence[Exploration]) -> str:
    tried = list(dict.fromkeys(part.clocks for part in parts))
    if not tried[0]:
        return ""
    off = [clocks for clocks in tried if clocks != EXACT_CLOCKS]
    right = "exact clocks" if EXACT_CLOCKS in tried else ""
    members = max((len(clocks.split()) - 1 for clocks in off), default=0)
    # All early, all late and all exact are the same: only differences of readings matter.
    ways = f"in {len(off)} of {2**members - 2} combinations early or late by their accuracy"
    return " or ".join(filter(None, (right, ways if off else "")))


def _format_counterexample(failure: Failure) -> Iterator[str]:
    if not failure.actions:
        return
    yield f"  smallest counterexample found ({failure.setting}), as a scenario:"
    yield ""
    yield from (f"    {line}" for line in failure.to_scenario().splitlines())


def format_failure(failure: Failure, path: Path) -> str:
    """Return the scenario for a file at `path`, with its output if it can be executed."""
    text = failure.to_scenario(_make_title(failure), folder=path.parent)
    try:
        return update_output(text, str(path))
    except ScenarioError:
        return text


def run_of(failure: Failure) -> ScenarioRun:
    """Run the counterexample, without its last action if that raises."""
    text = failure.to_scenario(_make_title(failure))
    scenario = parse_scenario(text)
    try:
        return run_scenario(scenario)
    except ScenarioError:
        return run_scenario(scenario._replace(commands=scenario.commands[:-1]))


def _make_title(failure: Failure) -> str:
    return " ".join(failure.sentence().split())
