"""Pages that show a trace: timelines of members, messages, causes and findings.

`picture` turns a trace into arrays, `render_page` into one HTML file that needs no network. `tiles`
divides millions of events into small files, which `server` hands to a browser on this machine. The
code of the page is plain JavaScript in `assets/`.
"""

from antecede.tables.view.page import render_page
from antecede.tables.view.render_model import Picture, picture

__all__ = ["Picture", "picture", "render_page"]
