"""Pages that show a trace: timelines of members, messages, causes and findings.

`picture` turns a trace into arrays, `render_page` into one HTML file without network access.
`tiles` divides millions of events into small files, which `server` serves to a browser on this
machine.
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.view.columns import OF_ARRIVALS, OF_OTHERS
    from antecede.tables.view.diagrams import find_broken, find_in_transit, trace_of
    from antecede.tables.view.extra_columns import as_text
    from antecede.tables.view.live_source import Followed, event_named
    from antecede.tables.view.page import render_page
    from antecede.tables.view.render_model import LARGEST, RenderModel, picture
    from antecede.tables.view.server import Serving, Source
    from antecede.tables.view.tiles import (
        ABOUT,
        OWN,
        TILES,
        Tiles,
        about,
        check_new,
        is_tiles,
        write_tiles,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "columns": "OF_ARRIVALS OF_OTHERS",
            "diagrams": "find_broken find_in_transit trace_of",
            "extra_columns": "as_text",
            "live_source": "Followed event_named",
            "page": "render_page",
            "render_model": "LARGEST RenderModel picture",
            "server": "Serving Source",
            "tiles": "ABOUT OWN TILES Tiles about check_new is_tiles write_tiles",
        },
    )

__all__ = [
    "RenderModel",
    "picture",
    "render_page",
]
