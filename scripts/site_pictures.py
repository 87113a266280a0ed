"""MkDocs hook for notebooks: inline SVG in the page's colours, and links to pages.

MkDocs shows SVG as images, which ignore the page's colour scheme. Those of
`antecede.lab.diagram.notebook` are inlined instead, because their style sheet names its own class.
Links to other pages are as in the repository (`../errata.md`); a link without a page fails the
build.
"""

from __future__ import annotations

import base64
import logging
import posixpath
import re
from typing import Any

IMAGE = re.compile(r'<img\b[^>]*src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)"[^>]*>')
INLINED_SVG = re.compile(r'<svg\b[^>]*\bclass="ac(-plot)?"')
LINK = re.compile(r'href="([^":#]+\.(?:md|ipynb))(#[^"]*)?"')
LOG = logging.getLogger("mkdocs.hooks.site_pictures")


def on_page_content(html: str, page: Any, files: Any, **_: Any) -> str:
    """Return the HTML of a notebook with these changes; called by MkDocs."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    folder = posixpath.dirname(page.file.src_uri)

    def target(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, link[1]))
        file = files.get_file_from_path(place)
        if file is None:
            LOG.warning("%s links to %s, which is no page", page.file.src_uri, place)
            return link[0]
        return f'href="{file.url_relative_to(page.file)}{link[2] or ""}"'

    return LINK.sub(target, IMAGE.sub(_inline, html))


def _inline(image: re.Match[str]) -> str:
    svg = base64.b64decode(image[1]).decode()
    return svg if INLINED_SVG.match(svg) else image[0]
