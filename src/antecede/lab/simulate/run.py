"""Choice of the engine for a run; figures do not depend on it."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from antecede.errors import ScenarioError
from antecede.lab.simulate.config.compatibility import find_reference_only_reason
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.outputs.result import EVERYTHING, Measures, Result
from antecede.lab.simulate.reference_engine import run_readable

AUTO, READABLE, COMPILED = "auto", "reference", "compiled"
ENGINES = (AUTO, READABLE, COMPILED)
_COMPILED_ENGINES = ("mesh", "hierarchy")
"""Compiled engines: `compiled.NAME.engine` has `can_run_NAME`, `run_NAME` and `bytes_NAME`."""


def simulate(
    scenario: Scenario, seed: int, engine: str = AUTO, measures: Measures = EVERYTHING
) -> Result:
    """Run a scenario and return its figures; `seed` is any integer from 0.

    "auto" takes a compiled engine where one can run the scenario. `selection` limits what a compiled
    engine counts. Raises ScenarioError for what cannot run, for "compiled" with the reasons.
    """
    if engine not in ENGINES:
        raise ScenarioError(f"engine: {engine!r} is none of {', '.join(ENGINES)}")
    if engine == READABLE:
        return run_readable(scenario, seed)
    found = compiled_engine(scenario)
    if found.name:
        result: Result = found.call("run", scenario, seed, measures)
        return result
    if engine == COMPILED:
        reasons = "; ".join(found.reasons)
        raise ScenarioError(f"engine: no compiled engine can run this; {reasons}")
    return run_readable(scenario, seed)


class CompiledEngine(NamedTuple):
    """The compiled engine that can run a scenario, or why none can."""

    name: str
    """Empty: there is none."""
    module: Any = None
    reasons: tuple[str, ...] = ()

    def call(self, what: str, *arguments: Any) -> Any:
        """Return what its function `what_NAME` returns."""
        return getattr(self.module, f"{what}_{self.name}")(*arguments)


def compiled_engine(scenario: Scenario) -> CompiledEngine:
    """Return the compiled engine that "auto" takes for a scenario. Raises ScenarioError."""
    why = find_reference_only_reason(scenario)
    if why is not None:
        return CompiledEngine("", reasons=(why,))
    reasons = []
    for name in _COMPILED_ENGINES:
        found = CompiledEngine(name, _load_engine(name))
        reason = found.call("can_run", scenario)
        if reason is None:
            return found
        reasons.append(f"{name}: {reason}")
    return CompiledEngine("", reasons=tuple(reasons))


def _load_engine(name: str) -> Any:
    """Import an engine when it is first asked for: numba is not everywhere."""
    return importlib.import_module(f"{__package__}.compiled.{name}.engine")
