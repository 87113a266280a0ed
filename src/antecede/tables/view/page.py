"""HTML page of a render model: code, style and data in one file.

Its policy allows no connection. The script shows the trace as text, never as markup.
"""

from __future__ import annotations

import base64
import html
import zlib
from functools import cache
from typing import Final

from antecede.core.pages import as_title, bundle_modules, fill_template, read_asset
from antecede.tables.view.render_model import RenderModel

MODULES: Final = (
    "data.js",
    "graph.js",
    "timelines.js",
    "axis.js",
    "search.js",
    "render_model.js",
    "text.js",
    "elements.js",
    "paint.js",
    "svg.js",
    "state.js",
    "gestures.js",
    "panels.js",
    "main.js",
)
"""JavaScript modules; each imports only from earlier ones."""


def render_page(model: RenderModel) -> str:
    """Return the HTML file of a render model."""
    data = base64.b64encode(zlib.compress(model.pack(), 6)).decode("ascii")
    return _fill_page(str(model.meta["title"]), data, "'none'", "", "")


def render_served_page(title: str, source: str, *, grows: bool = False) -> str:
    """Return a page that requests data at the path `source` of its server (`grows`: repeatedly)."""
    return _fill_page(title, "", "'self'", source, "yes" if grows else "")


def _fill_page(title: str, data: str, connect: str, source: str, grows: str) -> str:
    parts = {
        "TITLE": as_title(title),
        "DATA": data,
        "SOURCE": html.escape(source),
        "GROWS": grows,
    }
    return fill_template(
        _read_asset("page.html"), join_modules(), _read_asset("page.css"), connect, parts
    )


@cache
def join_modules() -> str:
    """Return the modules as one script."""
    return bundle_modules(_read_asset(name) for name in MODULES)


def _read_asset(name: str) -> str:
    return read_asset("antecede.tables.view", name)
