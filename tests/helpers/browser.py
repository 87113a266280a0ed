"""A real browser for pages: the system's Chromium, driven by Playwright; skipped without either."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


def pin_fonts(folder: Path) -> dict[str, str]:
    """Return an environment in which a browser has the fonts of matplotlib and no others.

    Layouts depend on the widths of letters, and the fonts of machines differ.
    """
    matplotlib = pytest.importorskip("matplotlib", reason="the fonts are those of matplotlib")
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    config = folder / "fonts.conf"
    config.write_text(FONTS.format(fonts=fonts, cache=folder / "cache"), encoding="utf-8")
    return {**os.environ, "FONTCONFIG_FILE": str(config)}


class Pages:
    """Pages of a browser, and what was wrong in them: errors, warnings, requests to elsewhere."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self.contexts: list[Any] = []
        self.wrong: list[str] = []

    def blank(self, width: int, height: int) -> Any:
        """Return an empty page with a profile of its own."""
        context = self._browser.new_context(viewport={"width": width, "height": height})
        self.contexts.append(context)
        shown = context.new_page()
        shown.on("pageerror", lambda error: self.wrong.append(str(error)))
        shown.on("console", self._console)
        shown.on("request", self._request)
        return shown

    def close(self) -> None:
        for context in self.contexts:
            context.close()

    def _console(self, said: Any) -> None:
        if said.type in ("error", "warning") and "willReadFrequently" not in said.text:
            self.wrong.append(said.text)

    def _request(self, asked: Any) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:")):
            self.wrong.append(f"asks {asked.url}")


@contextmanager
def launched(folder: Path) -> Iterator[Any]:
    """Yield the system's browser with pinned fonts; skip where there is none."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser is installed ({', '.join(NAMES)})")
    with driver.sync_playwright() as playwright:
        env = pin_fonts(folder)
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS), env=env)
        yield found
        found.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a browser; each context of it has a profile of its own.

    For a module, and not longer: while it is driven, an event loop runs in this process, and tests
    of other modules could begin none.
    """
    with launched(tmp_path_factory.mktemp("fonts")) as found:
        yield found


def wait_until(shown: Any, true: str, arg: Any = None) -> None:
    """Wait until an expression holds in a page.

    `wait_for_function` of Playwright evaluates text, which the policy of the page forbids.
    """
    for _ in range(300):
        if shown.evaluate(true, arg):
            return
        shown.wait_for_timeout(50)
    raise AssertionError(f"{true} does not hold after 15 s")
