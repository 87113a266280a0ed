"""Browser pages: bundles of script modules in one HTML file, and a local server."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.pages.bundle import as_title, filled, joined, read_asset
    from antecede.core.pages.local_server import JSON, NOTHING, Answer, Guarded, plain
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bundle": "as_title filled joined read_asset",
            "local_server": "Answer Guarded JSON NOTHING plain",
        },
    )
