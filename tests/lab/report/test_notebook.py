"""Curves within notebooks: one picture with ids and colours of its own, and its words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from antecede.lab.diagram.themes import DARK, LIGHT, SWITCHES
from antecede.lab.report import drawing
from antecede.lab.report.model import Plot, Series
from antecede.lab.report.notebook import curves
from antecede.lab.report.plots import describe_plot

PLOT = Plot("bytes", "What is sent", "peers", "bytes", [Series("bss", (10, 20), (40.0, 80.0))])


def test_curves_are_a_picture_for_a_cell() -> None:
    shown = curves(PLOT)
    assert shown.text == f"What is sent\n{describe_plot(PLOT)}"
    root = ET.fromstring(shown.svg)
    texts = {"".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")}
    assert {"What is sent", "peers", "bytes", "bss"} <= texts
    named = root.get("aria-labelledby", "").split()
    ids = {one.get("id") for one in root.iter() if one.get("id")}
    assert len(named) == 2
    assert set(named) <= ids


def test_ids_of_two_pictures_of_one_page_differ() -> None:
    other = PLOT._replace(title="What is kept")
    ids = [set(re.findall(r' id="([^"]+)"', curves(one).svg)) for one in (PLOT, other)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])


def test_colours_are_the_page_s_and_reach_nothing_else() -> None:
    style = re.search(r"<style>(.*?)</style>", curves(PLOT).svg, re.DOTALL)
    assert style is not None
    for scheme, colours in ((LIGHT, drawing.LIGHT), (DARK, drawing.DARK)):
        rule = ",".join(f"{switch} .ac-plot" for switch in SWITCHES[scheme])
        assert f"\n{rule}{{{drawing.declare_colours(colours)};" in style[1]
    selectors = re.findall(r"(?:^|[}\n])([^{}@\n]+)\{", style[1])
    assert selectors
    assert all(".ac-plot" in part for one in selectors for part in one.split(","))
