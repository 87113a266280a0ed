"""Pages in the user's browser, opened or served until Ctrl-C."""

from __future__ import annotations

import sys
import webbrowser

from antecede.core.pages import LocalServer


def open_browser(address: str) -> None:
    """Open a page, or print that no browser is available."""
    if not webbrowser.open(address):
        print("antecede: no browser could be opened; open the page yourself", file=sys.stderr)


def serve_until_interrupted(serving: LocalServer, title: str, *, browser: bool) -> None:
    """Print the address of a page, open the page, and serve it."""
    print(f"{title} at {serving.url} (Ctrl-C ends it)", flush=True)
    if browser:
        open_browser(serving.url)
    try:
        serving.serve()
    except KeyboardInterrupt:
        print("antecede: server stopped", file=sys.stderr)
    finally:
        serving.release_port()
