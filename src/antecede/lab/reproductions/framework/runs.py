"""Runs of a study as plain values, identified by a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede.lab.simulate.config import SimulationConfig


class Run(NamedTuple):
    """Arguments of one call of `execute`, as values that JSON can write.

    Key and cost aside, they identify the run: results are found by a digest of the rest.
    """

    key: str
    """Unique in its study and constant over versions, for example "idr/20 peers/seed 3"."""
    seed: int
    cost_s: float
    """Estimated seconds on one core. It determines the order of runs, not results."""
    kind: str = "simulate"
    """Kind of the run, for `execute`."""
    config: Mapping[str, Any] = {}
    """Configuration as of `config_mapping`, or empty."""
    parameters: Mapping[str, Any] = {}
    """Further arguments of `execute`. `Results` selects runs by them."""

    @property
    def task(self) -> dict[str, Any]:
        """Values that determine the run's results."""
        return {
            "kind": self.kind,
            "seed": self.seed,
            "config": self.config,
            "parameters": self.parameters,
        }

    def load_config(self) -> SimulationConfig:
        """Return the configuration. Raises ConfigError."""
        from antecede.lab.simulate.config import config_from

        return config_from(self.config)

    def to_text(self) -> str:
        """Return the run as one line of JSON, the same for the same values."""
        return canonical_json({"key": self.key, "cost_s": self.cost_s, **self.task})

    @classmethod
    def from_text(cls, text: str) -> Run:
        """Parse the output of `to_text`."""
        return cls(**json.loads(text))

    def digest(self) -> str:
        """Return the digest of `task`, under which results are stored."""
        return hashlib.sha256(canonical_json(self.task).encode()).hexdigest()[:32]


def canonical_json(value: object) -> str:
    """Return JSON that is equal for equal values. Raises TypeError, ValueError."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
