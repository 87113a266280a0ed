"""A counterexample kept: as a script file with what it prints, and as what is drawn of it."""

from __future__ import annotations

from pathlib import Path

from antecede.errors import ScriptError
from antecede.lab.check.results import Failure
from antecede.lab.check.scenario.execution import ScriptRun
from antecede.lab.check.scenario.parse import parse_script
from antecede.lab.check.scenario.run import run_script, with_output


def script_of(failure: Failure, path: Path) -> str:
    """Return the text of the script for a file at `path`, with the output it is to print.

    Where the class raises or hangs there is none of that action, and none is expected.
    """
    text = failure.script(_title(failure), folder=path.parent)
    try:
        return with_output(text, str(path))
    except ScriptError:
        return text


def run_of(failure: Failure) -> ScriptRun:
    """Return the counterexample carried out, without the last action where that one raises."""
    text = failure.script(_title(failure))
    script = parse_script(text)
    try:
        return run_script(script)
    except ScriptError:
        return run_script(script._replace(commands=script.commands[:-1]))


def _title(failure: Failure) -> str:
    """Return what went wrong as one line."""
    return " ".join(failure.sentence().split())
