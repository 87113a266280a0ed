"""Images for slides and papers: colors, PNG and PDF, bends, states, common axis."""

from __future__ import annotations

import math
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.cli import main
from antecede.core.diagram_model import StateLabel
from antecede.core.protocols.base import Relation
from antecede.errors import LocalError
from antecede.lab.check.scenario.parse import load_scenario, parse_scenario
from antecede.lab.check.scenario.run import run_scenario, under
from antecede.lab.diagram.scenario_diagram import from_run, stack_diagrams
from antecede.lab.diagram.svg import draw_stacked, draw_svg
from antecede.lab.diagram.svg_layout import CHARACTER, CLEARANCE, LINE, find_route, place_states
from antecede.lab.diagram.themes import SCHEMES, THEMES
from antecede.lab.report.pictures import as_picture
from tests.lab.diagram.pictures import BROKEN, HELD, HIERARCHY, diagram

SVG = "{http://www.w3.org/2000/svg}"
SCENARIOS = sorted((Path(__file__).resolve().parents[3] / "scenarios").glob("*.scenario"))
DRAWN = SCENARIOS[::8]
"""Scenarios also drawn as PNG, a quarter of a second each."""
OVERTAKING = next(path for path in SCENARIOS if path.stem == "bss-overtaking")


@pytest.mark.parametrize("theme", THEMES)
def test_colours_are_written_out(theme: str) -> None:
    svg = draw_svg(diagram(BROKEN), theme)
    for word in ("var(", "class=", "<style", "paint-order", "currentColor", "@media"):
        assert word not in svg
    colours = set(re.findall(r"#[0-9a-f]{6}", svg))
    assert colours <= set(SCHEMES[theme])
    assert SCHEMES[theme].paper in colours
    page = ET.fromstring(draw_svg(diagram(BROKEN)))
    plain = ET.fromstring(svg)
    for kind in ("path", "circle", "polygon", "line", "rect"):  # the same shapes
        assert len(list(page.iter(SVG + kind))) == len(list(plain.iter(SVG + kind)))
    names = {one.text for one in page.iter(f"{SVG}text")}
    assert {one.text for one in plain.iter(f"{SVG}text")} == names


def test_print_goes_without_colour() -> None:
    for colour in SCHEMES["print"]:
        assert colour[1:3] == colour[3:5] == colour[5:7]


@pytest.mark.few(19)
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_is_a_picture(path: Path) -> None:
    svg = draw_svg(from_run(run_scenario(load_scenario(path), states=True)), "light")
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    if path not in DRAWN:
        return
    png = as_picture(svg, "png")
    assert png.startswith(b"\x89PNG\r\n")
    size = struct.unpack(">II", png[16:24])
    assert size == tuple(2 * int(root.get(side, 0)) for side in ("width", "height"))


@pytest.mark.slow
def test_a_pdf_has_text_and_is_the_same_again() -> None:
    svg = draw_svg(diagram(HELD), "print")
    pdf = as_picture(svg, "pdf")
    assert pdf.startswith(b"%PDF-")
    assert pdf == as_picture(svg, "pdf")
    assert b"/FontFile2" in pdf  # TrueType: text that can be marked and searched
    with pytest.raises(LocalError, match="unknown image format 'gif'"):
        as_picture(svg, "gif")


PLACES = st.integers(0, 30).map(lambda k: 20.0 * k)


@given(PLACES, PLACES, st.lists(PLACES, max_size=3))
def test_arrows_go_around_the_marks_they_pass(x1: float, x2: float, marks: list[float]) -> None:
    start, end = (x1, 0.0), (x2, 150.0)
    between = [(x, 75.0) for x in marks]
    way = find_route(start, end, between)
    assert (way.compute_point(0), way.compute_point(1)) == (start, end)
    points = [way.compute_point(k / 200) for k in range(10, 191)]
    room = min((math.hypot(x - a, y - b) for x, y in points for a, b in between), default=99.0)
    if len(marks) < 2:
        assert room >= CLEARANCE - 1.0
    straight = find_route(start, end, [])
    assert straight.is_straight
    if all(abs((x1 + x2) / 2 - x) > 4 * CLEARANCE for x in marks):
        assert way.is_straight  # no bend without need


def test_an_arrow_past_a_mark_is_bent() -> None:
    text = "protocol unordered\nmembers A B C\nsend A m\nsend B n\narrive C m\narrive C n\n"
    svg = draw_svg(diagram(text), "light")
    ways = [e.get("d", "") for e in ET.fromstring(svg).iter(f"{SVG}path") if e.get("d", "")]
    assert any("Q" in way for way in ways)


def test_copies_on_their_way_are_drawn_and_named() -> None:
    drawn = diagram(HIERARCHY)
    flying = [arrow for arrow in drawn.arrows if arrow.flying]
    assert len(flying) == 4
    assert all(arrow.arrived > arrow.sent for arrow in flying)
    svg = draw_svg(drawn)
    assert svg.count("arrow flying") == 5  # and one in the legend
    assert "still on its way" in svg
    nothing = draw_svg(diagram(HELD + "arrive P2 b again\n"))
    assert "arrow flying" not in nothing


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.lists(st.text("ab(1, ", min_size=1), min_size=1)),
        max_size=8,
        unique_by=lambda one: one[0],
    )
)
def test_no_state_covers_another(rows: list[tuple[int, list[str]]]) -> None:
    states = [StateLabel(0, float(at), tuple(lines)) for at, lines in rows]
    placed, depth = place_states(states, lambda at: 60.0 * at, 30.0, 700.0)
    assert sorted(one.state for one in placed) == sorted(states)
    boxes = [
        (
            one.left,
            one.below,
            one.left + max(map(len, one.state.lines)) * CHARACTER,
            one.below + len(one.state.lines) * LINE,
        )
        for one in placed
    ]
    for k, (a, b, c, d) in enumerate(boxes):
        assert d <= depth
        assert a >= 30.0
        for e, f, g, h in boxes[:k]:
            assert c <= e or g <= a or d <= f or h <= b


def test_states_are_written_where_they_change() -> None:
    run = run_scenario(parse_scenario(HELD), states=True)
    states = from_run(run).states
    assert StateLabel(2, 1.0, ("C (0, 0, 1)",)) in states  # P3 has sent
    assert {state.lane for state in states} == {0, 1, 2}
    svg = draw_svg(from_run(run))
    assert all(line in svg for state in states for line in state.lines)
    assert not from_run(run_scenario(parse_scenario(HELD))).states


def test_one_action_stands_at_one_time_under_every_protocol() -> None:
    scenario = load_scenario(OVERTAKING)
    runs = [
        run_scenario(under(scenario, name), relation=Relation.BY_DELIVERY)
        for name in ("none", "bss", "idr")
    ]
    drawn = stack_diagrams(runs, ["none", "bss", "idr"])
    assert len({one.ticks for one in drawn}) == 1
    assert len({one.end for one in drawn}) == 1
    assert [len(run.violations()) for run in runs] == [1, 0, 0]
    picture = ET.fromstring(draw_stacked(drawn, "light"))
    shifts = [e.get("transform") for e in picture.iter(f"{SVG}g") if e.get("transform")]
    assert len(shifts) == 2
    legends = [e for e in picture.iter(f"{SVG}text") if e.text == "delivered before its cause"]
    assert len(legends) == 2  # one legend: a text and its halo


def explain(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["draw", *words])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_what_a_script_expects_it_expects_of_its_own_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = OVERTAKING.with_name("fifo-is-not-causal.scenario")
    code, said = explain(capsys, str(path), "--relation", "causal")
    assert code == 0
    assert "the causal order is violated" in " ".join(said.split())
    assert "expected" not in said
    wrong = tmp_path / "wrong.scenario"
    wrong.write_text(path.read_text().replace("= P2 delivers question", "= P2 delivers nothing"))
    code, said = explain(capsys, str(wrong), "--relation", "causal")
    assert code == 1
    assert "expected ['P2 delivers nothing']" in said


def test_states_of_fifo_are_numbers_by_sender(tmp_path: Path) -> None:
    path = tmp_path / "gap.scenario"
    path.write_text("protocol fifo\nmembers P Q R\nsend P a\nsend P b\narrive Q b\n")
    (*_, last) = run_scenario(load_scenario(path), states=True).results
    assert last.states == {"Q": {"sent": "0", "arrived": "P: 2; R: none", "held": "b"}}


@pytest.mark.slow
def test_the_command_writes_all_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outs = {format: tmp_path / f"x.{format}" for format in ("svg", "png", "pdf")}
    words = [word for format, out in outs.items() for word in (f"--output-{format}", str(out))]
    more = ("--protocol", "none,bss", "--relation", "causal", "--theme", "dark", "--states")
    code, said = explain(capsys, str(OVERTAKING), *more, *words)
    assert code == 0
    assert "unordered: 1 violation" in said
    assert "P1 delivers b BEFORE a from P3: the causal order is violated." in " ".join(said.split())
    for format, out in outs.items():
        assert f"Diagram as {format.upper()}: {out}" in said
        assert out.stat().st_size > 1000
    assert SCHEMES["dark"].paper in outs["svg"].read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--theme", "dark"), "no image is written"),
        (("--protocol", ","), "--protocol: expected NAME,..."),
        (("--protocol", "magic"), "magic"),
        (("--regex", "x"), "lacks the group"),
        (("--run-id", "x"), "is a scenario, not a log"),
    ],
)
def test_options_without_effect_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    code, said = explain(capsys, str(OVERTAKING), *words)
    assert code == 2
    assert why in said


LOG = """A {"A":1}
start
B {"B":1}
start
C {"C":1}
start
B {"B":2, "A":1, "C":1}
heard of both
A {"A":2}
alone
"""


def test_a_log_is_drawn_from_its_own_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.log"
    path.write_text(LOG)
    code, said = explain(capsys, str(path), "--width", "90")
    assert code == 0
    rows = [line for line in said.splitlines() if "heard of both" in line or "◦" in line]
    assert len(rows) == 2  # two messages reach one event
    assert "2 alone" in said
    assert "• event" in said
    assert explain(capsys, str(path), "--states")[0] == 2
    assert explain(capsys, str(path), "--run-id", "x")[0] == 2
    svg = tmp_path / "x.svg"
    assert explain(capsys, str(path), "--output-svg", str(svg))[0] == 0
    assert len(re.findall("<polygon", svg.read_text())) == 2


def test_a_long_log_is_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.log"
    path.write_text("".join(f'A {{"A":{k}}}\nx\n' for k in range(1, 302)))
    code, said = explain(capsys, str(path))
    assert code == 2
    assert "301 events exceed the limit of a diagram, 300: use `antecede view`" in said


def test_what_a_log_says_is_one_line_that_moves_no_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, svg = tmp_path / "s.log", tmp_path / "s.svg"
    log.write_text('P\u202e {"P\u202e":1}\nred \x1b[31m\u202e\x85now\n')
    assert main(["draw", str(log), "--output-svg", str(svg)]) == 0
    drawn = capsys.readouterr().out
    assert "red \\x1b[31m\\u202e now" in drawn
    assert not {"\x1b", "\u202e", "\x85"} & set(drawn)
    ET.parse(svg)  # an escape could be in no XML
