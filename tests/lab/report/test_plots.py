"""Plots of findings: ours, error bars and the paper's points, in SVG and in PNG."""

from __future__ import annotations

import functools
import math
import re
import struct
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("matplotlib")

from antecede.errors import LocalError
from antecede.lab.report.drawing import inline_svg, number
from antecede.lab.report.model import Plot, Series
from antecede.lab.report.plots import (
    MARKERS,
    PAPER_LABEL,
    WIDTH_INCHES,
    PlotFiles,
    describe_plot,
    draw_plot,
    slots_of,
)
from tests.lab.report.invented import encoded, growth, overhead

SVG = "{http://www.w3.org/2000/svg}"
LINE = Series("ours", (1, 2, 3), (10, 20, 30))


def plot(*series: Series, x_log: bool = False, y_log: bool = False) -> Plot:
    return Plot("key", "title", "peers", "bytes", series, x_log=x_log, y_log=y_log)


def group(svg: str, name: str) -> ET.Element | None:
    return ET.fromstring(svg).find(f".//{SVG}g[@id='{name}']")


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def places(svg: str, name: str) -> list[tuple[float, float]]:
    """Return where the markers of a group stand."""
    found = group(svg, name)
    assert found is not None
    return [(float(use.get("x", 0)), float(use.get("y", 0))) for use in found.iter(f"{SVG}use")]


def bottom(svg: str) -> float:
    """Return where the axes end."""
    frame = group(svg, "patch_2")
    assert frame is not None
    return max(float(y) for y in re.findall(r"[ML] \S+ (\S+)", ET.tostring(frame, "unicode")))


def test_the_papers_points_are_a_group_of_their_own_drawn_after_ours() -> None:
    svg = draw_plot(plot(growth("internal"), growth("ds"))).svg
    order = [name for name in re.findall(r'id="([a-z]+-\d)"', svg) if not name.startswith("spread")]
    assert order == ["ours-0", "ours-1", "gap-0", "gap-1", "paper-0", "paper-1"]
    assert len(places(svg, "ours-0")) == 7
    assert len(places(svg, "paper-0")) == 1
    assert PAPER_LABEL in texts(svg)
    assert "D" not in MARKERS


def test_a_point_of_the_paper_at_our_value_stands_on_ours() -> None:
    svg = draw_plot(plot(LINE._replace(paper=((3, 30.0), (2, 40.0))))).svg
    ours, paper = places(svg, "ours-0"), places(svg, "paper-0")
    assert paper[0] == ours[2]
    assert paper[1][0] == ours[1][0]
    assert paper[1][1] < ours[2][1], "40 stands above 30"


def test_without_points_of_the_paper_the_legend_names_none() -> None:
    svg = draw_plot(plot(LINE)).svg
    assert group(svg, "paper-0") is None
    assert PAPER_LABEL not in texts(svg)


def test_error_bars_stand_where_there_are_several_seeds() -> None:
    bare, spread = plot(LINE), plot(LINE._replace(spread=(1.0, 2.0, 3.0)))
    assert group(draw_plot(bare).svg, "spread-0") is None
    drawn = group(draw_plot(spread).svg, "spread-0")
    assert drawn is not None
    arms = [path.get("d", "") for path in drawn.iter(f"{SVG}path")]
    ends = [[float(y) for y in re.findall(r"[ML] \S+ (\S+)", arm)] for arm in arms]
    lengths = [round(abs(a - b), 1) for a, b in ends]
    assert lengths[2] == pytest.approx(3 * lengths[0], abs=0.2)


def test_an_error_bar_wider_than_its_value_ends_on_a_logarithmic_axis() -> None:
    svg = draw_plot(plot(LINE._replace(spread=(5.0, 25.0, 3.0)), y_log=True)).svg
    drawn = group(svg, "spread-0")
    assert drawn is not None
    ends = [float(y) for path in drawn for y in re.findall(r"[ML] \S+ (\S+)", path.get("d", ""))]
    assert max(ends) <= bottom(svg)


@pytest.mark.parametrize("log", [False, True])
def test_the_papers_points_are_within_the_axes_however_far_off(log: bool) -> None:
    far = LINE._replace(paper=((3, 3000.0), (9, 0.5)))
    svg = draw_plot(plot(far, x_log=log, y_log=log)).svg
    (x, high), (right, low) = places(svg, "paper-0")
    assert x < right
    assert 0 < high < low <= bottom(svg)
    assert right <= float(ET.fromstring(svg).get("viewBox", "").split()[2])


def test_zeros_stand_on_a_logarithmic_axis() -> None:
    svg = draw_plot(plot(Series("pairs", (0.1, 1, 10), (0, 3, 700)), x_log=True, y_log=True)).svg
    assert {"0", "1", "10", "100"} <= set(texts(svg))
    at = [y for _, y in places(svg, "ours-0")]
    assert len(at) == 3
    assert at[0] > at[1] > at[2], "zero below three below seven hundred"


@pytest.mark.parametrize("y", [(0, 0, 0), (math.nan, math.inf, 1), (math.nan,) * 3, (4, 4, 4)])
def test_an_axis_without_a_range_is_drawn(y: tuple[float, ...]) -> None:
    finite = sum(map(math.isfinite, y))
    for log in (False, True):
        svg = draw_plot(plot(Series("a", (1, 2, 3), y), y_log=log)).svg
        assert len(places(svg, "ours-0")) == finite
        assert ("no values" in texts(svg)) == (finite == 0)


def test_values_below_zero_on_a_logarithmic_axis_are_refused() -> None:
    falling = Series("slope", (1, 2), (0.1, -0.04))
    assert draw_plot(plot(falling)).svg
    with pytest.raises(LocalError, match=r"plot key: y = -0\.04 is negative on a logarithmic axis"):
        draw_plot(plot(falling, y_log=True))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (plot(LINE._replace(y=(1, 2))), "unequal lengths: 3 x, 2 y"),
        (plot(LINE._replace(spread=(1, 2))), "unequal lengths"),
        (plot(LINE._replace(style="dotted")), "unknown style 'dotted'; choose from line, dashed"),
        (plot(LINE)._replace(key="../key"), "invalid key"),
        (plot(LINE)._replace(key=""), "invalid key"),
    ],
)
def test_a_plot_that_is_none_is_refused(wrong: Plot, words: str) -> None:
    with pytest.raises(LocalError, match=words):
        draw_plot(wrong)


def look(svg: str, k: int) -> tuple[str, str]:
    """Return colour and shape of the marker of a series."""
    drawn = group(svg, f"ours-{k}")
    assert drawn is not None
    colour = re.search(r"stroke: (var\(--c\d\))", ET.tostring(drawn, "unicode"))
    assert colour is not None
    shape = next(path.get("d", "") for path in drawn.iter(f"{SVG}path") if path.get("id"))
    return colour[1], shape


def test_eight_series_differ_in_colour_and_in_marker_and_twelve_in_one_of_both() -> None:
    series = [Series(f"s{k}", (1, 2), (k, k)) for k in range(12)]
    svg = draw_plot(plot(*series)).svg
    looks = [look(svg, k) for k in range(12)]
    assert len({colour for colour, _ in looks[:8]}) == 8
    assert len({shape for _, shape in looks[:8]}) == 8
    assert len(set(looks)) == 12


def test_a_bound_has_dashes_and_no_markers() -> None:
    svg = draw_plot(plot(LINE, Series("bound", (1, 3), (5, 50), style="dashed"))).svg
    drawn = group(svg, "ours-1")
    assert drawn is not None
    assert "stroke-dasharray" in ET.tostring(drawn, "unicode")
    assert places(svg, "ours-1") == []


def test_bars_stand_side_by_side_with_the_papers_point_over_its_own() -> None:
    svg = draw_plot(encoded()[0]).svg
    bars = [group(svg, f"ours-{k}-2") for k in range(3)]
    edges = []
    for bar in bars:
        assert bar is not None
        x = [
            float(x)
            for path in bar.iter(f"{SVG}path")
            for x in re.findall(r"[ML] (\S+)", path.get("d", ""))
        ]
        edges.append((min(x), max(x)))
    assert edges[0][1] <= edges[1][0]
    assert edges[1][1] <= edges[2][0]
    ((point, _),) = places(svg, "paper-0")
    assert point == pytest.approx(sum(edges[0]) / 2, abs=0.5)
    assert len(svg) < 40_000, "hatches of dots make files of hundreds of kilobytes"


def test_a_label_looks_the_same_in_every_plot() -> None:
    first = plot(LINE, Series("b", (1,), (1,)), Series("c", (1,), (1,)))
    second = plot(Series("d", (1,), (1,)), Series("c", (1,), (1,)), LINE)
    slots = slots_of([first, second])
    assert [slots[label] for label in ("ours", "b", "c")] == [0, 1, 2]
    assert slots["d"] == 3, "a colour that no other label has"


def test_no_two_labels_of_a_plot_share_a_colour_when_a_page_has_many() -> None:
    labels = [f"s{k}" for k in range(12)]
    plots = [
        plot(*(Series(s, (), ()) for s in part)) for part in (labels[:7], labels[:1] + labels[7:])
    ]
    slots = slots_of(plots)
    assert len({slots[label] % 8 for label in labels[:1] + labels[7:]}) == 6


@functools.cache
def drawings() -> list[tuple[Plot, PlotFiles]]:
    return [(each, draw_plot(each)) for each in (*overhead(), *encoded())]


@pytest.mark.slow
def test_png_is_twice_the_usual_resolution_and_both_are_the_same_each_time() -> None:
    for each, drawn in drawings():
        assert drawn == draw_plot(each)
        assert drawn.png.startswith(b"\x89PNG\r\n")
        assert struct.unpack(">I", drawn.png[16:20])[0] == round(WIDTH_INCHES * 192)


def test_every_colour_is_a_variable() -> None:
    for _, drawn in drawings():
        _, _, body = drawn.svg.partition("</style>")
        assert not re.search(r"(fill|stroke): *(#|rgb|black|white)", body)


def test_words_are_kept_to_the_letter() -> None:
    words = ['<b> & "$x_1$"', "_hidden", "#010101 is 0.123456", "因果"]
    series = [Series(label, (1, 2), (k, 3)) for k, label in enumerate(words[:3])]
    svg = draw_plot(plot(*series)._replace(title=words[3], x_label="0.0015")).svg
    assert {*words, "0.0015"} <= set(texts(svg))


def test_characters_that_xml_does_not_have_are_replaced() -> None:
    svg = draw_plot(plot(LINE._replace(label="a\x00b"))._replace(title="\x07")).svg
    assert "a\ufffdb" in texts(svg)


def test_who_does_not_see_the_plot_is_told_what_it_shows() -> None:
    each = plot(LINE._replace(paper=((3, 31.0),)))
    assert describe_plot(each) == (
        "bytes against peers. ours: 10 at 1, 30 at 3. The paper has 31 at 3."
    )
    root = ET.fromstring(draw_plot(each).svg)
    assert root.get("role") == "img"
    assert [root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")] == [
        "title",
        describe_plot(each),
    ]


def test_inlined_every_id_and_reference_is_its_own() -> None:
    part = inline_svg(draw_plot(encoded()[0]).svg, "p")
    root = ET.fromstring(part)
    ids = {node.get("id") for node in root.iter()} - {None}
    assert all(str(name).startswith("p-") for name in ids)
    used = set(re.findall(r'(?:href="#|url\(#)([^)"]*)', part))
    assert used
    assert used <= ids
    assert set(str(root.get("aria-labelledby")).split()) <= ids
    assert "<style" not in part
    assert "http" not in part


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0015, "0.0015"), (-0.5, "−0.5"), (-2000, "−2,000"), (12, "12"), (2.5e6, "2.5 M"), (0, "0")],
)
def test_ticks_say_numbers(value: float, words: str) -> None:
    assert number(value) == words
