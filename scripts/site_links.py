"""MkDocs hook: links that leave `docs/` lead to the repository.

Such a link becomes one below `repo_url` of `mkdocs.yml`, or plain text without a `repo_url`. A link
to a missing file is unchanged and fails the build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return the page's text with replaced links; called by MkDocs."""
    folder = posixpath.dirname(posixpath.join("docs", page.file.src_uri))

    def target(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, link[2]))
        if place.startswith("docs/") or not (ROOT / place).exists():
            return link[0]
        if not config.repo_url:
            return link[1]
        return f"[{link[1]}]({config.repo_url.rstrip('/')}/blob/main/{place}{link[3] or ''})"

    return LINK.sub(target, markdown)
