"""Runs of a study: plain values, found by a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede.lab.simulate.config import Scenario


class Run(NamedTuple):
    """Plain values that JSON can write, for one call of `execute`.

    Key and cost aside, they identify the run: results are found by a digest of the rest.
    """

    key: str
    """Unique in its study and the same in every version of it, e.g. "idr/20 peers/seed 3"."""
    seed: int
    cost_s: float
    """Estimated seconds on one core; decides the order of runs, never a result."""
    kind: str = "simulate"
    """Name by which `execute` tells runs apart."""
    scenario: Mapping[str, Any] = {}
    """As `scenario_mapping` writes it, or empty."""
    parameters: Mapping[str, Any] = {}
    """Further arguments of `execute`; `Results` picks runs by them."""

    @property
    def task(self) -> dict[str, Any]:
        """Values that decide the run's figures."""
        return {
            "kind": self.kind,
            "seed": self.seed,
            "scenario": self.scenario,
            "parameters": self.parameters,
        }

    def load_scenario(self) -> Scenario:
        """Return the scenario as a value. Raises ScenarioError."""
        from antecede.lab.simulate.config import scenario_from

        return scenario_from(self.scenario)

    def to_text(self) -> str:
        """Return the whole run as one line of JSON, the same for the same values."""
        return plain_text({"key": self.key, "cost_s": self.cost_s, **self.task})

    @classmethod
    def from_text(cls, text: str) -> Run:
        """Return the run that `to_text` wrote."""
        return cls(**json.loads(text))

    def digest(self) -> str:
        """Return the name under which results are kept: of the task, not of the key."""
        return hashlib.sha256(plain_text(self.task).encode()).hexdigest()[:32]


def plain_text(value: object) -> str:
    """Return JSON in which the same values have the same text. Raises TypeError, ValueError."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
