"""Diagrams in notebooks: both forms, page colors, table of states."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from antecede.errors import LocalError
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.diagram.notebook import SVG, TEXT, collect_states, draw_notebook, format_states
from antecede.lab.diagram.svg import draw_svg
from antecede.lab.diagram.text import draw_text
from antecede.lab.diagram.themes import DARK, LIGHT, SCHEMES, SWITCHES
from tests.lab.diagram.pictures import BROKEN, HELD, diagram


def test_a_notebook_gets_the_picture_and_the_same_in_characters() -> None:
    run = run_scenario(parse_scenario(HELD))
    shown = draw_notebook(run)._repr_mimebundle_(include=None, exclude=None)
    assert (
        shown[TEXT]
        == f"b waits\n\n{draw_text(diagram(HELD), width=100)}"
        == repr(draw_notebook(run))
    )
    root = ET.fromstring(shown[SVG])
    drawn = ["".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")]
    assert {"P1", "P2", "P3", "b waits"} <= set(drawn)
    assert draw_notebook(diagram(HELD)).svg == shown[SVG]


def test_executions_stand_below_each_other_under_titles() -> None:
    runs = [run_scenario(parse_scenario(text)) for text in (BROKEN, HELD)]
    both = draw_notebook(*runs, titles=["as printed", "as repaired"])
    assert both.text.index("as printed") < both.text.index("as repaired")
    assert both.svg.count("<svg ") == 1
    assert "b before a" in both.svg


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_a_page_with_a_switch_of_its_own_chooses_the_colours(scheme: str) -> None:
    svg = draw_notebook(diagram(HELD)).svg
    rule = ",".join(f"{switch} .ac" for switch in SWITCHES[scheme])
    declared = svg.split(f"\n{rule}{{", 1)[1].split("}", 1)[0]
    assert f"--ac-paper:{SCHEMES[scheme].paper};--ac-ink:{SCHEMES[scheme].ink}" in declared
    assert SWITCHES[scheme][0] not in draw_svg(diagram(HELD))


def test_states_are_those_of_who_was_touched() -> None:
    run = run_scenario(parse_scenario(HELD), states=True)
    assert collect_states(run)[4, "P1"] == {"C": "(0, 0, 0)"}
    assert collect_states(run)[6, "P1"] == {"C": "(0, 1, 1)"}
    assert [name for _, name in collect_states(run)] == ["P3", "P2", "P2", "P1", "P3", "P1"]
    lines = format_states(run).splitlines()
    assert lines[0].split() == ["step", "at", "state"]
    assert lines[4] == "   4  arrive P1 b  P1  C = (0, 0, 0)"
    assert not collect_states(run_scenario(parse_scenario(HELD)))


def test_what_can_not_be_drawn_is_refused() -> None:
    run = run_scenario(parse_scenario(HELD))
    with pytest.raises(LocalError, match="at least one, and not both"):
        draw_notebook()
    with pytest.raises(LocalError, match="at least one, and not both"):
        draw_notebook(run, diagram(HELD))
    with pytest.raises(LocalError, match="2 titles for 1 runs"):
        draw_notebook(run, titles=["a", "b"])
    with pytest.raises(LocalError, match="1 titles for 0 runs"):
        draw_notebook(diagram(HELD), titles=["a"])
