"""Pages of traces in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antecede.tables.trace.arrow import Trace
from antecede.tables.view.page import render_page
from antecede.tables.view.render_model import picture
from tests.helpers.browser import Pages, browser

__all__ = ["browser"]


class Opened(Pages):
    """Opens pages of traces."""

    def __init__(self, browser: Any, folder: Path) -> None:
        super().__init__(browser)
        self._folder = folder

    def __call__(
        self,
        trace: Trace | str,
        hash: str = "",
        *,
        width: int = 1200,
        height: int = 800,
        **how: Any,
    ) -> Any:
        """Open the page of a trace, or an address."""
        if isinstance(trace, Trace):
            file = self._folder / f"page-{len(self.contexts)}.html"
            text = render_page(picture(trace, **{"title": "a trace", **how}))
            file.write_text(text, encoding="utf-8")
            trace = file.as_uri()
        shown = self.blank(width, height)
        shown.goto(trace + hash)
        shown.wait_for_selector("#loading", state="detached", timeout=60_000)
        shown.wait_for_timeout(50)
        return shown


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    """Yield an opener of pages; fail on errors in any page."""
    made = Opened(browser, tmp_path)
    yield made
    made.close()
    assert made.wrong == []
