"""Bench in the browser of the trace page tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from antecede.core.pages.local_server import LocalServer
from antecede.lab.play.server import Bench, Opened
from tests.tables.view.conftest import Opened as Pages
from tests.tables.view.conftest import browser, opened

__all__ = ["browser", "opened"]

OVERTAKING = """\
title A message overtakes its cause
protocol bss
members P1 P2 P3

send P1 a
arrive P2 a
send P2 b after a
arrive P3 b
arrive P3 a
arrive P1 b
"""
THREE = ("unordered", "fifo", "bss")


class Benches:
    """Servers of playgrounds and their pages."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._ends: list[Callable[[], None]] = []
        self.url = ""

    def __call__(
        self,
        text: str | None = OVERTAKING,
        protocols: tuple[str, ...] = THREE,
        *,
        path: str | Path = "playground.scenario",
        relation: str = "",
        width: int = 1280,
        height: int = 720,
        hash: str | None = None,
    ) -> Any:
        """Serve a text (None: the default scenario) and open its page.

        `hash`: content of the address, if not `relation`.
        """
        site = Bench(Opened(text, path, protocols))
        serving = LocalServer(site)
        thread = threading.Thread(target=serving.serve)
        thread.start()
        self._ends += [serving.close, thread.join, site.close]
        self.url = serving.url
        pairs = [
            ("text", text or ""),
            *(("protocol", one) for one in protocols),
            ("relation", relation),
        ]
        held = f"#{urlencode(pairs)}" if relation and hash is None else hash or ""
        return self._pages(serving.url, held, width=width, height=height)

    def drop_rejections(self, times: int = 1) -> None:
        """Remove `times` rejected requests from the recorded browser errors."""
        refusals = [said for said in self._pages.wrong if "status of 422" in said]
        assert len(refusals) == times
        for said in refusals:
            self._pages.wrong.remove(said)

    def drop_unanswered(self) -> None:
        """Remove a request without an answer from the recorded browser errors."""
        (said,) = (said for said in self._pages.wrong if "ERR_FAILED" in said)
        self._pages.wrong.remove(said)

    def drop_blocked(self) -> None:
        """Remove violations of the page's policy from the recorded browser errors."""
        forbidden = [said for said in self._pages.wrong if "Content Security Policy" in said]
        assert forbidden
        for said in forbidden:
            self._pages.wrong.remove(said)

    def close(self) -> None:
        """End all servers."""
        for end in self._ends:
            end()


@pytest.fixture
def benches(opened: Pages) -> Iterator[Benches]:
    """Yield a factory of playground pages."""
    made = Benches(opened)
    yield made
    made.close()
