"""One door to all engines."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from antecede.errors import ScenarioError
from antecede.lab.simulate import run
from antecede.lab.simulate.config.model import Scenario, Workload
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.run import simulate
from antecede.lab.simulate.topology import Mesh
from tests.lab.simulate.scenes import scenario_of


def engines(why: str | None) -> object:
    def found(name: str) -> object:
        return SimpleNamespace(
            **{
                f"can_run_{name}": lambda scenario: why,
                f"run_{name}": lambda scenario, seed, measures: Result(
                    scenario, seed, "compiled", {}
                ),
            }
        )

    return found


def test_readable_when_asked_for() -> None:
    scenario = scenario_of("idr")
    assert simulate(scenario, 1, "reference") == run_readable(scenario, 1)


def test_compiled_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_load_engine", engines(None))
    assert simulate(scenario_of("idr"), 7) == Result(scenario_of("idr"), 7, "compiled", {})
    assert simulate(scenario_of("idr"), 7, "reference").engine == "reference"


def test_readable_where_compiled_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_load_engine", engines("it is too wild"))
    assert simulate(scenario_of("idr"), 7).engine == "reference"
    with pytest.raises(ScenarioError, match=r"engine: .*mesh: it is too wild; hierarchy: it is"):
        simulate(scenario_of("idr"), 7, "compiled")


def test_replays_are_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_load_engine", engines(None))
    scenario = Scenario(Mesh(2), workload=Workload("replay", path="nowhere"))
    with pytest.raises(ScenarioError, match="replies of a replay"):
        simulate(scenario, 1, "compiled")


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(
        ScenarioError, match="engine: unknown engine 'fast'; choose from auto, reference, compiled"
    ):
        simulate(scenario_of("idr"), 1, "fast")
