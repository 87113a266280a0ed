"""A trace as a page that can be explored: lanes of members, messages, causes, findings.

`picture` turns a trace into arrays, `page` into one HTML file that needs no network, `tiles` into a
folder of small pieces for millions of events, which `serving` hands to a browser on this machine.
The page's own code stands in `page/`, as plain JavaScript modules. `guarded` and `joining` serve
other pages too, which need no more than Python: the names below are imported when first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antecede.view.picture import Picture, picture
    from antecede.view.writing import page

_HOME = {
    "Picture": "antecede.view.picture",
    "picture": "antecede.view.picture",
    "page": "antecede.view.writing",
}

__all__ = ["Picture", "page", "picture"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
