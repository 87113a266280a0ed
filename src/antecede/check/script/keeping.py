"""A counterexample kept: as a scenario file with what it prints, and as what is drawn of it."""

from __future__ import annotations

from pathlib import Path

from antecede.check.results import Failure
from antecede.check.script.execution import Run
from antecede.check.script.parse import parse_scenario
from antecede.check.script.run import run_scenario, with_output
from antecede.errors import ScenarioError


def scenario_of(failure: Failure, path: Path) -> str:
    """Return the text of the scenario for a file at `path`, with the output it is to print.

    Where the class raises or hangs there is none of that action, and none is expected.
    """
    text = failure.scenario(_title(failure), folder=path.parent)
    try:
        return with_output(text, str(path))
    except ScenarioError:
        return text


def run_of(failure: Failure) -> Run:
    """Return the counterexample carried out, without the last action where that one raises."""
    text = failure.scenario(_title(failure))
    scenario = parse_scenario(text)
    try:
        return run_scenario(scenario)
    except ScenarioError:
        return run_scenario(scenario._replace(commands=scenario.commands[:-1]))


def _title(failure: Failure) -> str:
    """Return what went wrong as one line."""
    return " ".join(failure.sentence().split())
