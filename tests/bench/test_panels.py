"""Curves as SVG: equal bytes for equal numbers, colours that follow the reader's scheme."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from bench.panels import Curve, Panel, draw_curves

POINTS = [(5, 20.0), (10, 40.0), (50, 200.0)]
PANELS = [
    Panel("bytes", [Curve("measured", POINTS), Curve("bound", POINTS, 1, ":", marked=False)]),
    Panel("time", [Curve("flat", [(5, 3.0), (10, 3.0)], None)]),
]


def read_svg(path: Path) -> str:
    draw_curves(PANELS, path, x_label="members", ticks=(5, 10, 50))
    return path.read_text(encoding="utf-8")


def test_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    assert read_svg(tmp_path / "a.svg") == read_svg(tmp_path / "b.svg")


def test_every_colour_is_a_variable_that_both_schemes_define(tmp_path: Path) -> None:
    svg = read_svg(tmp_path / "a.svg")
    style, _, rest = svg.partition("</style>")
    light, _, dark = style.partition("@media (prefers-color-scheme:dark)")
    used = set(re.findall(r"var\((--\w+)\)", rest))
    assert {"--ink", "--line", "--c0", "--c1", "--faint"} <= used
    for scheme in (light, dark):
        assert used <= set(re.findall(r"(--\w+):", scheme))
    assert not re.search(r"(fill|stroke): *(#|rgb|black|white)", rest)


def test_text_is_text_and_the_file_is_xml(tmp_path: Path) -> None:
    texts = {node.text for node in ET.fromstring(read_svg(tmp_path / "a.svg")).iter() if node.text}
    assert {"bytes", "time", "measured", "bound", "flat", "members", "5", "10", "50"} <= texts


@pytest.mark.slow
@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_without_the_extra_the_error_names_it(package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from antecede.errors import MissingExtraError\n"
        "try:\n    import antecede.lab.report.study\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'antecede[report]'" in ran.stdout
