"""One door to all engines."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate import run
from antecede.lab.simulate.config.model import SimulationConfig, Workload
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.run import simulate
from antecede.lab.simulate.topology import Mesh
from tests.lab.simulate.small_configs import config_of


def engines(why: str | None) -> object:
    def found(name: str) -> object:
        return SimpleNamespace(
            **{
                f"can_run_{name}": lambda config: why,
                f"run_{name}": lambda config, seed, measures: Result(config, seed, "compiled", {}),
            }
        )

    return found


def test_readable_when_asked_for() -> None:
    config = config_of("idr")
    assert simulate(config, 1, "reference") == run_readable(config, 1)


def test_compiled_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_load_engine", engines(None))
    assert simulate(config_of("idr"), 7) == Result(config_of("idr"), 7, "compiled", {})
    assert simulate(config_of("idr"), 7, "reference").engine == "reference"


def test_readable_where_compiled_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_load_engine", engines("it is too wild"))
    assert simulate(config_of("idr"), 7).engine == "reference"
    with pytest.raises(ConfigError, match=r"engine: .*mesh: it is too wild; hierarchy: it is"):
        simulate(config_of("idr"), 7, "compiled")


def test_replays_are_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_load_engine", engines(None))
    config = SimulationConfig(Mesh(2), workload=Workload("replay", path="nowhere"))
    with pytest.raises(ConfigError, match="replies of a replay"):
        simulate(config, 1, "compiled")


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(
        ConfigError, match="engine: unknown engine 'fast'; choose from auto, reference, compiled"
    ):
        simulate(config_of("idr"), 1, "fast")
