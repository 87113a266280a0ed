"""Golden output of every file in scenarios/; `--rewrite-scenarios` updates it."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.lab.check.scenario.execution import ScenarioRun
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import check_output, run_scenario, update_file

FOLDER = Path(__file__).resolve().parents[3] / "scenarios"
FILES = sorted(FOLDER.glob("*.scenario"))
DEFECTS = {
    "bss-condition-2-as-published": [("P1", "b", ("a",))],
    "bss-condition-2-smallest": [],
    "hierarchical-listing-6-as-published": [("Y", "a1", ("x1",))],
    "hierarchical-listing-12-as-published": [("Y", "x1", ("a2",))],
    "hierarchical-pruning-as-published": [("Y", "a1", ("x1",))],
    "sb-algorithm-1-as-published": [("B", "a3", ("a2",))],
    "sb-algorithm-2-as-published": [],
    "linear-dropped-as-published": [],
    "linear-dseq-as-published": [],
    "linear-exclusive-end-as-published": [],
}
STUCK = {
    "bss-condition-2-as-published": {"a", "c"},
    "bss-condition-2-smallest": {"a1"},
    "sb-algorithm-2-as-published": {"a3"},
    "linear-dseq-as-published": {"b"},
    "linear-exclusive-end-as-published": {"b"},
}


def run(name: str) -> ScenarioRun:
    return run_scenario(load_scenario(FOLDER / f"{name}.scenario"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_prints_what_it_says_and_only_published_rules_break(
    path: Path, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--rewrite-scenarios"):
        update_file(path)
    done = run_scenario(load_scenario(path))
    assert check_output(done) == ()
    assert any(moment.output for moment in done.results)
    found = [(one.at, one.label, one.missing_causes) for one in done.violations()]
    assert found == DEFECTS.get(path.stem, [])
    assert {one.label for one in done.held} == STUCK.get(path.stem, set())


def test_every_published_defect_has_its_scenario() -> None:
    assert {path.stem for path in FILES if "as-published" in path.stem} <= set(DEFECTS)
    assert set(DEFECTS) <= {path.stem for path in FILES}


@pytest.mark.parametrize("name", [name for name in DEFECTS if not name.endswith("smallest")])
def test_the_repaired_rule_holds_or_delivers_as_it_should(name: str) -> None:
    scenario = load_scenario(FOLDER / f"{name}.scenario")
    kept = ("delivery", "heartbeat_s", "retry_s")
    options = tuple(option for option in scenario.setup.options if option[0] in kept)
    setting = scenario.setup._replace(options=options)
    actions = [c for c in scenario.commands if "ack-" not in getattr(c.action, "label", "")]
    done = run_scenario(scenario._replace(setup=setting, commands=tuple(actions)))
    assert done.violations() == ()
    for one in done.held:
        arrived = {h.label for h in done.occurrences() if h.kind == "arrive" and h.at == one.at}
        assert not set(one.others) <= arrived - {h.label for h in done.held}


def test_the_vectors_of_001_in_both_orders() -> None:
    def states(name: str) -> list[str]:
        done = run(name)
        return [m.output[0] for m in done.results if m.number == 0 and m.output[0][:1] == "C"]

    in_order = ["(0, 0, 1)"] * 3 + ["(0, 1, 1)"] * 3
    assert states("bss-in-order") == [f"C = {vector}" for vector in in_order]
    assert states("bss-overtaking") == ["C = (0, 0, 0)", "C = (0, 1, 1)"]


def test_the_values_of_000_section_3_1_4() -> None:
    printed = [line for m in run("hierarchical-3-1-4").results if not m.number for line in m.output]
    for stated in (
        "VTx = (111, 1, 1)",
        "CI = <1, 001>",
        "VTx = (111, 2, 1)",
        "CI = <2, 2>",
        "VTx = (4, 2, 1)",
        "RV = 1111",
        "DV = 0001",
    ):
        assert stated in printed


def test_figure_1_of_003_bss_holds_y2_and_s_b_does_not() -> None:
    def held(name: str) -> set[str]:
        return {one.label for one in run(name).occurrences() if one.kind == "hold"}

    assert held("figure-1-bss") == {"Y1", "Y2"}
    assert held("figure-1-sb") == {"Y1"}
