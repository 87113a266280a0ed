"""Choice of the engine for a run. Results do not depend on it."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from antecede.errors import ConfigError
from antecede.lab.simulate.config.compatibility import find_reference_only_reason
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.outputs.result import EVERYTHING, Measures, Result
from antecede.lab.simulate.reference_engine import run_readable

AUTO, READABLE, COMPILED = "auto", "reference", "compiled"
ENGINES = (AUTO, READABLE, COMPILED)
_COMPILED_ENGINES = ("mesh", "hierarchy")
"""Compiled engines: `compiled.NAME.engine` has `can_run_NAME`, `run_NAME` and `bytes_NAME`."""


def simulate(
    config: SimulationConfig, seed: int, engine: str = AUTO, measures: Measures = EVERYTHING
) -> Result:
    """Run a configuration and return its result. `seed` is any integer from 0.

    "auto" uses a compiled engine if one can run the configuration. `measures` limits the metrics of
    a compiled engine. Raises ConfigError for an invalid configuration, and for "compiled" if no
    compiled engine can run it.
    """
    if engine not in ENGINES:
        raise ConfigError(f"engine: unknown engine {engine!r}; choose from {', '.join(ENGINES)}")
    if engine == READABLE:
        return run_readable(config, seed)
    found = select_compiled_engine(config)
    if found.name:
        result: Result = found.call("run", config, seed, measures)
        return result
    if engine == COMPILED:
        reasons = "; ".join(found.reasons)
        raise ConfigError(f"engine: no compiled engine can run this configuration; {reasons}")
    return run_readable(config, seed)


class CompiledEngine(NamedTuple):
    """The compiled engine that can run a configuration, or the reasons why none can."""

    name: str  # Empty: none
    module: Any = None
    reasons: tuple[str, ...] = ()

    def call(self, what: str, *arguments: Any) -> Any:
        """Call its function `FUNCTION_NAME`."""
        return getattr(self.module, f"{what}_{self.name}")(*arguments)


def select_compiled_engine(config: SimulationConfig) -> CompiledEngine:
    """Return the compiled engine that "auto" uses for a configuration. Raises ConfigError."""
    why = find_reference_only_reason(config)
    if why is not None:
        return CompiledEngine("", reasons=(why,))
    reasons = []
    for name in _COMPILED_ENGINES:
        found = CompiledEngine(name, _load_engine(name))
        reason = found.call("can_run", config)
        if reason is None:
            return found
        reasons.append(f"{name}: {reason}")
    return CompiledEngine("", reasons=tuple(reasons))


def _load_engine(name: str) -> Any:
    return importlib.import_module(f"{__package__}.compiled.{name}.engine")
