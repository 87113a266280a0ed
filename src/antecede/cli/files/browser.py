"""Pages for the user's browser: opened, and served until Ctrl-C."""

from __future__ import annotations

import sys
import webbrowser

from antecede.core.pages import LocalServer


def open_browser(address: str) -> None:
    """Open a page, or say that no browser could be."""
    if not webbrowser.open(address):
        print("antecede: no browser could be opened: open it by hand", file=sys.stderr)


def serve_until_interrupted(serving: LocalServer, what: str, *, browser: bool) -> None:
    """Say where a page is (`what` is the beginning of the sentence), open it, and serve it."""
    print(f"{what} at {serving.url} (Ctrl-C ends it)", flush=True)
    if browser:
        open_browser(serving.url)
    try:
        serving.serve()
    except KeyboardInterrupt:
        print("antecede: ended", file=sys.stderr)
    finally:
        serving.release_port()
