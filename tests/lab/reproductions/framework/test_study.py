"""What studies may consist of, and how they are found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import InputError, LocalError
from antecede.lab.reproductions.framework.registry import STUDIES, load
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import check_runs, make_simulation_run
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.topology import Mesh
from tests.lab.reproductions import toy

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)  # fmt: skip
RUN = Run("a", 1, 1.0, "sum", {"topology": {"peers": 3}}, {"steps": 1})


@given(st.text(), st.integers(), st.floats(0.001, 1e9), st.dictionaries(st.text(), PLAIN))
def test_a_run_is_the_same_after_its_journey(
    key: str, seed: int, cost_s: float, parameters: dict[str, Any]
) -> None:
    run = Run(key, seed, cost_s, "kind", {"x": 1}, parameters)
    assert Run.from_text(run.to_text()) == run
    assert Run.from_text(run.to_text()).digest() == run.digest()


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2},
        {"kind": "other"},
        {"config": {"topology": {"peers": 4}}},
        {"parameters": {"steps": 2}},
    ],
)
def test_what_decides_the_figures_decides_the_digest(changed: dict[str, Any]) -> None:
    assert RUN._replace(**changed).digest() != RUN.digest()


def test_key_and_estimate_do_not_decide_the_digest() -> None:
    assert RUN._replace(key="b", cost_s=9.0).digest() == RUN.digest()


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([RUN, RUN._replace(seed=2)], "two runs with the key 'a'"),
        ([RUN, RUN._replace(key="b")], "the runs 'a' and 'b' have the same task"),
        ([RUN._replace(parameters={"x": {1, 2}})], "'a': a value is not plain JSON"),
        ([RUN._replace(parameters={"x": float("nan")})], "'a': a value is not plain JSON"),
        ([RUN._replace(cost_s=0.0)], "invalid cost_s = 0.0"),
        ([RUN._replace(cost_s=float("inf"))], "not plain JSON"),
    ],
)
def test_a_study_of_impossible_runs_is_refused(runs: list[Run], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        check_runs(runs)


def test_runs_are_checked_in_the_form_in_which_workers_read_them() -> None:
    (run,) = check_runs([RUN._replace(parameters={"sizes": (1, 2)})])
    assert run.parameters == {"sizes": [1, 2]}


def test_a_simulation_carries_its_scenario() -> None:
    scenario = SimulationConfig(Mesh(4), "bss", duration_s=2.0, warm_s=0.5)
    (run,) = check_runs([make_simulation_run("k", scenario, 7, 1.0, protocol="bss", members=4)])
    assert (run.kind, run.seed, run.parameters) == (
        "simulate",
        7,
        {"protocol": "bss", "members": 4},
    )
    assert run.load_config() == scenario


def test_a_study_of_ones_own_is_found_by_its_place() -> None:
    assert load("tests.lab.reproductions.toy:STUDY") is toy.STUDY
    assert load("vector").name == "vector"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hierarchie", "unknown reproduction 'hierarchie'; choose from hierarchy, clocks"),
        ("no.such.module:STUDY", "no module no"),
        ("tests.lab.reproductions.toy:NOTHING", "is not a Study"),
        ("tests.lab.reproductions.toy:SEEDS", "is not a Study"),
    ],
)
def test_a_study_that_is_not_there(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(name)


def test_a_module_that_a_study_lacks_is_not_mistaken_for_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "lacking", raising=False)
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load("lacking:STUDY")


def test_names_are_those_of_the_places() -> None:
    assert [load(name).name for name in STUDIES] == list(STUDIES)
