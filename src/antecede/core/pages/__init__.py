"""Browser pages: bundles of script modules in one HTML file, and a local server."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.pages.bundle import as_title, bundle_modules, fill_template, read_asset
    from antecede.core.pages.local_server import JSON, NOTHING, Answer, LocalServer, plain
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bundle": "as_title fill_template bundle_modules read_asset",
            "local_server": "Answer LocalServer JSON NOTHING plain",
        },
    )
