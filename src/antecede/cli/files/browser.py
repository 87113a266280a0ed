"""The user's browser."""

from __future__ import annotations

import sys
import webbrowser


def open_browser(address: str) -> None:
    """Open a page, or say that no browser could be."""
    if not webbrowser.open(address):
        print("antecede: no browser could be opened: open it by hand", file=sys.stderr)
