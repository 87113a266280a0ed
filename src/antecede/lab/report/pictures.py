"""PNG and PDF files of diagrams, drawn by matplotlib.

It draws the few shapes of `antecede.lab.diagram.svg` in points, so a PDF has real text and lines.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any, Final

from antecede.errors import LocalError, MissingExtraError

try:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon, Rectangle
    from matplotlib.path import Path
    from matplotlib.text import Text
except ModuleNotFoundError as error:
    raise MissingExtraError("drawing PNG and PDF", "report") from error

PNG, PDF = "png", "pdf"
DPI: Final = 192
"""Dots per inch of a PNG. SVG pixels are 96 per inch."""
_INCH: Final = 96.0
_SVG: Final = "{http://www.w3.org/2000/svg}"
_COMMAND: Final = re.compile(r"([MmLlQqVvHhZz])([^MmLlQqVvHhZz]*)")
_NUMBER: Final = re.compile(r"-?\d+\.?\d*|-?\.\d+")
_SHIFT: Final = re.compile(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)")


def as_picture(svg: str, format: str) -> bytes:
    """Return an SVG of `lab.diagram.svg` as PNG or PDF. Raises LocalError."""
    if format not in (PNG, PDF):
        raise LocalError(f"unknown image format {format!r:.40}; choose from {PNG}, {PDF}")
    root = ET.fromstring(svg)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    figure = Figure(figsize=(width / _INCH, height / _INCH), dpi=_INCH)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    for order, artist in enumerate(_make_artists(root, 0.0, 1.0)):
        artist.set_zorder(order)
        artist.set_clip_on(False)
        axes.add_artist(artist)
    target = io.BytesIO()
    # The same diagram gives the same bytes.
    still: dict[str, Any] = {"CreationDate": None} if format == PDF else {"Software": None}
    with mpl.rc_context({"pdf.fonttype": 42, "path.simplify": False}):
        figure.savefig(target, format=format, dpi=DPI, metadata=still)
    return target.getvalue()


def _make_artists(parent: ET.Element, down: float, opacity: float) -> Iterator[Any]:
    for element in parent:
        kind = element.tag.removeprefix(_SVG)
        if kind in ("title", "desc"):
            continue
        alpha = opacity * float(element.get("opacity", 1))
        if kind == "g":
            shift = _SHIFT.match(element.get("transform", ""))
            yield from _make_artists(element, down + (float(shift[2]) if shift else 0.0), alpha)
        elif kind in _DRAW:
            yield _DRAW[kind](element, down, alpha)
        else:
            raise LocalError(f"unknown SVG element {kind!r}; expected shapes of lab.diagram.svg")


def _read_number(element: ET.Element, name: str, default: float = 0.0) -> float:
    return float(element.get(name, default))


def _make_style(element: ET.Element, alpha: float) -> dict[str, Any]:
    stroke = element.get("stroke", "none")
    width = _read_number(element, "stroke-width", 1.0) * 72 / _INCH
    look: dict[str, Any] = {
        "facecolor": element.get("fill", "black"),
        "edgecolor": stroke,
        "linewidth": width if stroke != "none" else 0.0,
        "alpha": alpha,
    }
    if dashes := element.get("stroke-dasharray"):
        pixels = [float(one) * 72 / _INCH for one in dashes.split()]
        look["linestyle"] = (0, tuple(max(one, 0.1) for one in pixels))
    return look


def _make_line(element: ET.Element, down: float, alpha: float) -> Any:
    look = _make_style(element, alpha)
    xs = [_read_number(element, "x1"), _read_number(element, "x2")]
    ys = [_read_number(element, "y1") + down, _read_number(element, "y2") + down]
    return Line2D(
        *(xs, ys),
        color=look["edgecolor"],
        linewidth=look["linewidth"],
        linestyle=look.get("linestyle", "-"),
        alpha=alpha,
    )


def _make_rectangle(element: ET.Element, down: float, alpha: float) -> Any:
    at = _read_number(element, "x"), _read_number(element, "y") + down
    size = _read_number(element, "width"), _read_number(element, "height")
    radius = _read_number(element, "rx")
    if radius:
        style = f"round,pad=0,rounding_size={radius}"
        return FancyBboxPatch(at, *size, boxstyle=style, **_make_style(element, alpha))
    return Rectangle(at, *size, **_make_style(element, alpha))


def _make_circle(element: ET.Element, down: float, alpha: float) -> Any:
    at = _read_number(element, "cx"), _read_number(element, "cy") + down
    return Circle(at, _read_number(element, "r"), **_make_style(element, alpha))


def _make_polygon(element: ET.Element, down: float, alpha: float) -> Any:
    points = [tuple(map(float, pair.split(","))) for pair in element.get("points", "").split()]
    return Polygon([(x, y + down) for x, y in points], closed=True, **_make_style(element, alpha))


def _make_path(element: ET.Element, down: float, alpha: float) -> Any:
    points, codes = _parse_path(element.get("d", ""))
    shifted = [(x, y + down) for x, y in points]
    return PathPatch(Path(shifted, codes), **_make_style(element, alpha))


def _parse_path(text: str) -> tuple[list[tuple[float, float]], list[Any]]:
    points: list[tuple[float, float]] = []
    codes: list[Any] = []
    x = y = 0.0
    begin = (0.0, 0.0)
    for command, rest in _COMMAND.findall(text):
        numbers = [float(one) for one in _NUMBER.findall(rest)]
        base = (x, y) if command.islower() else (0.0, 0.0)
        kind = command.upper()
        if kind == "Z":
            points.append(begin)
            codes.append(Path.CLOSEPOLY)
            x, y = begin
            continue
        if kind in "VH":
            pairs = [(x, base[1] + one) if kind == "V" else (base[0] + one, y) for one in numbers]
        else:
            pairs = []
            for k in range(0, len(numbers), 2):
                pairs.append((base[0] + numbers[k], base[1] + numbers[k + 1]))
                if command == "l":
                    base = pairs[-1]
        points += pairs
        if kind == "M":
            begin = pairs[0]
            codes += [Path.MOVETO, *[Path.LINETO] * (len(pairs) - 1)]
        else:
            codes += [Path.CURVE3 if kind == "Q" else Path.LINETO] * len(pairs)
        x, y = points[-1]
    return points, codes


def _make_text(element: ET.Element, down: float, alpha: float) -> Any:
    anchor: Any = {"middle": "center", "end": "right"}.get(element.get("text-anchor", ""), "left")
    text = Text(
        _read_number(element, "x"),
        _read_number(element, "y") + down,
        (element.text or "").replace("$", r"\$"),
        color=element.get("fill", "black"),
        fontsize=_read_number(element, "font-size", 12.0) * 72 / _INCH,
        fontweight="bold" if element.get("font-weight") else "normal",
        horizontalalignment=anchor,
        verticalalignment="baseline",
        alpha=alpha,
    )
    if stroke := element.get("stroke"):
        from matplotlib.patheffects import Stroke

        width = _read_number(element, "stroke-width", 1.0) * 72 / _INCH
        text.set_path_effects([Stroke(linewidth=width, foreground=stroke)])
    return text


_DRAW: Final = {
    "line": _make_line,
    "rect": _make_rectangle,
    "circle": _make_circle,
    "polygon": _make_polygon,
    "path": _make_path,
    "text": _make_text,
}
