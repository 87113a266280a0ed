"""Diagrams as SVG: well-formed, self-contained, without overlaps, all names shown."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.diagram_model import Diagram
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.diagram.scenario_diagram import from_run
from antecede.lab.diagram.svg import draw_svg
from antecede.lab.diagram.svg_layout import Box, LabelPlacement, crosses
from antecede.lab.diagram.trace_window import from_events
from tests.lab.diagram.pictures import BROKEN, HELD, diagram, trace

SVG = "{http://www.w3.org/2000/svg}"
SCENARIOS = sorted((Path(__file__).resolve().parents[3] / "scenarios").glob("*.scenario"))


def parse_svg(drawn: Diagram) -> ET.Element:
    return ET.fromstring(draw_svg(drawn))


def texts(root: ET.Element, css: str) -> list[str]:
    found = root.iter(f"{SVG}text")
    return [element.text or "" for element in found if css in (element.get("class") or "").split()]


def boxes(root: ET.Element) -> list[Box]:
    """Return the boxes of names and reasons, estimated narrowly."""
    found = []
    for element in root.iter(f"{SVG}text"):
        css = (element.get("class") or "").split()
        if not {"label", "why", "name"} & set(css):
            continue
        width = len(element.text or "") * (5.6 if "why" in css else 6.4)
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        left = x - width / 2 if element.get("text-anchor") == "middle" else x
        found.append(Box(left, y - 8.0, left + width, y))
    return found


def overlaps(root: ET.Element) -> list[tuple[Box, Box]]:
    return [(a, b) for a, b in itertools.combinations(boxes(root), 2) if a.overlaps(b)]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_is_drawn_with_all_names_and_without_overlap(path: Path) -> None:
    drawn = from_run(run_scenario(load_scenario(path)))
    root = parse_svg(drawn)
    assert overlaps(root) == []
    assert texts(root, "name") == [lane.name for lane in drawn.lanes]
    named = {text.split()[0] for text in texts(root, "label")}
    assert {mark.label for mark in drawn.marks if mark.kind not in ("join", "leave")} <= named
    width, height = (float(root.get(side, 0)) for side in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"
    for box in boxes(root):
        assert box.left >= 0
        assert box.right <= width
        assert box.top >= 0
        assert box.bottom <= height


def test_it_needs_nothing_from_outside_and_speaks_for_itself() -> None:
    svg = draw_svg(diagram(BROKEN))
    assert re.findall(r"https?://[^\"' ]+", svg) == ["http://www.w3.org/2000/svg"]
    assert "<script" not in svg
    assert "prefers-color-scheme:dark" in svg
    root = ET.fromstring(svg)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text == "b waits"
    assert "P1 delivers b before a" in (description.text or "")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


def test_two_diagrams_in_one_page_have_different_ids() -> None:
    ids = [set(re.findall(r'id="([^"]+)"', draw_svg(diagram(text)))) for text in (HELD, BROKEN)]
    assert len(ids[0]) == 2
    assert not ids[0] & ids[1]


def test_a_violation_is_red_and_crossed() -> None:
    root = parse_svg(diagram(BROKEN))
    assert texts(root, "bad") == ["b before a"]
    assert not texts(parse_svg(diagram(HELD)), "bad")


def test_a_hold_is_a_bar_as_long_as_the_wait() -> None:
    root = parse_svg(from_events(trace()))
    bar = next(e for e in root.iter(f"{SVG}rect") if e.get("class") == "bar")
    ticks = [e for e in root.iter(f"{SVG}text") if e.get("class") == "small" and e.text]
    at = {e.text: float(e.get("x", 0)) for e in ticks}
    assert float(bar.get("x", 0)) == pytest.approx(at["20"] + (at["40"] - at["20"]) / 2, abs=0.2)
    assert float(bar.get("width", 0)) == pytest.approx(1.5 * (at["40"] - at["20"]), abs=0.2)
    assert texts(root, "why") == ["y waits for x"]


def test_what_was_sent_before_the_stretch_comes_in_from_the_edge() -> None:
    rows = trace()
    begin = (rows[4].arrival or 0) + 1
    root = parse_svg(from_events(rows, first=begin))
    edge = min(
        float(e.get("x1", 0)) for e in root.iter(f"{SVG}line") if e.get("class") == "timeline"
    )
    ways = [e.get("d", "") for e in root.iter(f"{SVG}path") if e.get("class") == "arrow"]
    starts = [float(way[1:].split()[0]) for way in ways]
    assert min(starts) == pytest.approx(edge)


def test_names_are_text_not_markup() -> None:
    text = HELD.replace("P1", "<P&1>").replace(" b\n", " <b>\n")
    root = parse_svg(diagram(text))
    assert texts(root, "name")[0] == "<P&1>"
    assert "<b>" in texts(root, "label")


COORDINATES = st.integers(0, 20).map(float)


@given(st.tuples(COORDINATES, COORDINATES, COORDINATES, COORDINATES))
def test_a_line_crosses_a_box_when_one_of_its_points_lies_in_it(
    line: tuple[float, float, float, float],
) -> None:
    x1, y1, x2, y2 = line
    box = Box(5.0, 5.0, 15.0, 12.0)
    points = [(x1 + (x2 - x1) * k / 400, y1 + (y2 - y1) * k / 400) for k in range(401)]
    inside = any(5 <= x <= 15 and 5 <= y <= 12 for x, y in points)
    near = any(4.8 <= x <= 15.2 and 4.8 <= y <= 12.2 for x, y in points)
    assert inside <= crosses(box, line) <= near


def test_a_label_takes_the_free_place_that_crosses_least() -> None:
    placing = LabelPlacement()
    placing.block(Box(0, 0, 10, 10))
    placing.add_line(20, 0, 20, 10)
    taken, crossed, free = Box(5, 5, 15, 15), Box(15, 0, 25, 10), Box(30, 0, 40, 10)
    assert placing.place([taken, crossed, free]) == free
    assert placing.place([taken, crossed, free]) == crossed
    assert placing.place([taken, crossed, free]) is None


@pytest.mark.parametrize("text", [HELD, BROKEN, "protocol fifo\nmembers A B\nsend A m\n"])
def test_legend_and_title_end_within_the_picture(text: str) -> None:
    narrow = diagram(
        "title A title that is longer than the few steps of this scene are wide\n" + text
    )
    root = parse_svg(narrow)
    width, height = (float(root.get(side, 0)) for side in ("width", "height"))
    small = [one for one in root.iter(f"{SVG}text") if one.get("class") in ("small", "title")]
    ends = [float(one.get("x", 0)) + 6.0 * len(one.text or "") for one in small]
    assert max(ends) <= width
    assert max(float(one.get("y", 0)) for one in small) <= height


def test_legend_has_rows_where_it_is_long() -> None:
    drawn = diagram("protocol unordered\nmembers A B\nsend A m\narrive B m\n")
    marks = [*drawn.marks, *(drawn.marks[-1]._replace(kind=kind) for kind in ("hold", "lose"))]
    marks += [marks[-1]._replace(kind="discard"), marks[-1]._replace(kind="send", wrong=True)]
    root = parse_svg(drawn._replace(marks=tuple(marks)))
    small = {one.text: one for one in root.iter(f"{SVG}text") if one.get("class") == "small"}
    legend = [small[text] for text in ("sent", "delivered", "lost on the way", drawn.wrong_means)]
    assert len({one.get("y") for one in legend}) > 1
    ends = [float(one.get("x", 0)) + 6.0 * len(one.text or "") for one in legend]
    assert max(ends) <= float(root.get("width", 0))
