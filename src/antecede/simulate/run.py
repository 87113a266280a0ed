"""One run by the engine that suits it. Figures do not depend on the engine."""

from __future__ import annotations

import importlib
from typing import Any

from antecede.errors import ScenarioError
from antecede.simulate.outputs.measures import EVERYTHING, Measures
from antecede.simulate.outputs.result import Result
from antecede.simulate.reference_engine import run_readable
from antecede.simulate.scenario.compatibility import readable_only
from antecede.simulate.scenario.model import Scenario

AUTO, READABLE, COMPILED = "auto", "readable", "compiled"
ENGINES = (AUTO, READABLE, COMPILED)
_COMPILED = ("mesh", "hierarchy")
"""Compiled engines: `compiled.NAME.engine` has `can_run_NAME` and `run_NAME`."""


def simulate(
    scenario: Scenario, seed: int, engine: str = AUTO, measures: Measures = EVERYTHING
) -> Result:
    """Run a scenario and return its figures; `seed` is any integer from 0.

    "auto" takes a compiled engine where one can run the scenario. Raises ScenarioError for what
    cannot run, and for "compiled" where no compiled engine can, with the reasons. `measures`: what
    a compiled engine counts.
    """
    if engine not in ENGINES:
        raise ScenarioError(f"engine: {engine!r} is none of {', '.join(ENGINES)}")
    if engine == READABLE:
        return run_readable(scenario, seed)
    why = readable_only(scenario)
    reasons = [] if why is None else [why]
    for name in _COMPILED if why is None else ():
        found = _engine(name)
        reason = getattr(found, f"can_run_{name}")(scenario)
        if reason is None:
            result: Result = getattr(found, f"run_{name}")(scenario, seed, measures)
            return result
        reasons.append(f"{name}: {reason}")
    if engine == COMPILED:
        raise ScenarioError(f"engine: no compiled engine can run this; {'; '.join(reasons)}")
    return run_readable(scenario, seed)


def _engine(name: str) -> Any:
    """Import an engine when it is first asked for: numba is not everywhere."""
    return importlib.import_module(f"{__package__}.compiled.{name}.engine")
