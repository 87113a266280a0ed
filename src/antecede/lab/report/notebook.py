"""Plots in notebooks: SVG, or a text where images are not shown."""

from __future__ import annotations

import zlib

from antecede.lab.diagram import Picture, page_switches
from antecede.lab.report.drawing import DARK, LIGHT, declare_colours, inline_svg, make_css_rules
from antecede.lab.report.model import Plot
from antecede.lab.report.plots import describe_plot, draw_plot

WIDTH = 560
_CSS = "ac-plot"
_PAPERS = ("#ffffff", "#14181d")


def curves(plot: Plot) -> Picture:
    """Return a plot for a notebook cell, in the colours of its page. Raises like `draw_plot`."""
    words = describe_plot(plot)
    svg = draw_plot(plot).svg
    # Ids must be unique among all plots of the notebook.
    inner = inline_svg(svg, f"p{zlib.crc32(svg.encode()):08x}")
    light, dark = (
        f"{declare_colours(colours)};--paper:{paper}"
        for colours, paper in zip((LIGHT, DARK), _PAPERS, strict=True)
    )
    style = (
        f".{_CSS}{{{light};background:var(--paper)}}\n"
        f"@media (prefers-color-scheme:dark){{.{_CSS}{{{dark}}}}}\n"
        f"{page_switches(_CSS, light, dark)}{make_css_rules(_CSS)}"
    )
    head, _, rest = inner.partition(">")
    look = f'class="{_CSS}" style="width:100%;max-width:{WIDTH}px;height:auto"'
    named = head.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" {look} ', 1)
    return Picture(f"{named}><style>{style}</style>{rest}", f"{plot.title}\n{words}")
