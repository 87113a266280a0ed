"""Colours and output formats of plots.

An SVG is drawn in placeholder colours, because matplotlib has no colour schemes. They become CSS
variables of the SVG's style sheet or of its page (`inlined`). Text stays text, in the reader's
font. The user's matplotlibrc has no effect.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, NamedTuple, cast

from antecede.errors import MissingExtraError

try:
    import matplotlib as mpl
except ModuleNotFoundError as error:
    raise MissingExtraError("drawing plots", "report") from error

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_NAMES = ("ink", "faint", "line", *(f"c{k}" for k in range(8)))
_LIGHT = (
    "#1f2933 #667585 #d5dce3 "
    "#1d4ed8 #b45309 #15803d #c81e1e #7c3aed #0e7490 #be185d #57534e"
)  # fmt: skip
_DARK = (
    "#e6ebf0 #93a1b0 #3a4551 "
    "#8ab4ff #f0a95c #5fd38a #ff7b72 #c4a1ff #5cc8dd #ff8fc0 #c9c4bd"
)  # fmt: skip
LIGHT = dict(zip(_NAMES, _LIGHT.split(), strict=True))
DARK = dict(zip(_NAMES, _DARK.split(), strict=True))
COLOURS = 8
PNG_DPI = 192
"""Twice the 96 pixels per inch of browsers."""
_PLACEHOLDERS = {name: f"#{k:02x}{k:02x}{k:02x}" for k, name in enumerate(LIGHT, start=1)}
_FONTS = 'system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif'
_TAG = re.compile(r"<[^>]*>")


class Palette(NamedTuple):
    """Colours of a drawing: placeholders (SVG) or the light scheme (PNG)."""

    ink: str
    faint: str
    line: str
    curves: tuple[str, ...]


def _make_palette(colours: dict[str, str]) -> Palette:
    ink, faint, line, *curves = colours.values()
    return Palette(ink, faint, line, tuple(curves))


SCHEMED = _make_palette(_PLACEHOLDERS)
LIGHT_PALETTE = _make_palette(LIGHT)


def declare_colours(colours: dict[str, str]) -> str:
    """Return CSS declarations of the colour variables."""
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


_STYLE = f"""<style>
text{{font-family:{_FONTS}}}
:root{{{declare_colours(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{declare_colours(DARK)}}}}}
</style>
"""


@contextmanager
def settings(palette: Palette, points: float = 9) -> Iterator[None]:
    """Set matplotlib's defaults and this package's settings for the block."""
    ours: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "antecede",
        "text.parse_math": False,
        "font.size": points,
        "text.color": palette.ink,
        "axes.edgecolor": palette.faint,
        "axes.labelcolor": palette.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": palette.faint,
        "ytick.color": palette.faint,
        "xtick.labelcolor": palette.ink,
        "ytick.labelcolor": palette.ink,
        "hatch.linewidth": 0.7,
    }
    with mpl.rc_context(), warnings.catch_warnings():
        # Layout measures text in DejaVu Sans. The reader's font may have the glyph.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(cast("Any", ours))
        yield


def svg_of(figure: Figure) -> str:
    """Return the SVG of a figure in SCHEMED. Call within `settings`."""
    FigureCanvasSVG(figure)
    written = io.StringIO()
    figure.savefig(
        written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
    )
    svg = re.sub(r" <metadata>.*?</metadata>\n", "", written.getvalue(), flags=re.DOTALL)
    head, defs, rest = _TAG.sub(_replace_placeholders, svg).partition(" <defs>")
    body = " ".join(line.strip() for line in f"{defs}{rest}".splitlines())
    return f"{head}{_STYLE}{body.replace('> <', '>' + chr(10) + '<')}\n"


def figure_to_png(figure: Figure) -> bytes:
    """Return the PNG of a figure in LIGHT_PALETTE, on white. Call within `settings`."""
    FigureCanvasAgg(figure)
    written = io.BytesIO()
    figure.savefig(
        written, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None}
    )
    return written.getvalue()


def add_description(svg: str, title: str, description: str) -> str:
    """Return the SVG with title and description for screen readers."""
    words = f"<title>{escape(clean(title))}</title>\n<desc>{escape(clean(description))}</desc>\n"
    start = svg.index("<svg ")
    end = svg.index(">", start) + 1
    return f'{svg[:start]}<svg role="img" {svg[start + 5 : end]}\n{words}{svg[end:].lstrip()}'


def inline_svg(svg: str, prefix: str) -> str:
    """Return an SVG for an HTML page with `declare_colours` and `PLOT_RULES`, with unique ids."""
    svg = svg[svg.index("<svg ") :]
    svg = re.sub(r"<style\b.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*</defs>\s*", "", svg)

    def own(tag: re.Match[str]) -> str:
        text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", tag[0])
        text = re.sub(r' id="([^"]*)"', rf' id="{prefix}-\1"', text)
        text = re.sub(r"url\(#([^)]*)\)", rf"url(#{prefix}-\1)", text)
        return re.sub(r' xlink:href="#([^"]*)"', rf' href="#{prefix}-\1"', text)

    return _add_label_references(_TAG.sub(own, svg), prefix)


def _add_label_references(svg: str, prefix: str) -> str:
    for _ in ("width", "height"):
        svg = re.sub(r"^<svg([^>]*?) (width|height)=\"[^\"]*\"", r"<svg\1", svg)
    if "<title>" not in svg:
        return svg
    named = f'<svg aria-labelledby="{prefix}-title {prefix}-desc" '
    svg = svg.replace("<title>", f'<title id="{prefix}-title">', 1)
    svg = svg.replace("<desc>", f'<desc id="{prefix}-desc">', 1)
    return svg.replace("<svg ", named, 1)


def make_css_rules(css: str) -> str:
    """Return the CSS rules of inlined plots within elements of a class."""
    return f""".{css} text {{ font-family: {_FONTS}; }}
.{css} * {{ stroke-linejoin: round; stroke-linecap: butt; }}"""


PLOT_RULES = make_css_rules("plot")


def clean(text: str) -> str:
    """Return the text without characters that XML forbids."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def number(value: float, _: int | None = None) -> str:
    """Return the text of a tick, with thousands separators and the suffixes M, G and T."""
    for scale, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= scale:
            return f"{value / scale:,g} {name}".replace("-", "−")
    short = f"{value:,.0f}" if value == round(value) else f"{value:,g}"
    return short.replace("-", "−", 1) if value < 0 else short


def _replace_placeholders(tag: re.Match[str]) -> str:
    text = tag[0]
    for name, colour in _PLACEHOLDERS.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r" font-family: [^;]*;", "", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    return re.sub(r"(\d\.\d\d)\d+", r"\1", text)
