"""A trace as a page that can be explored: lanes of members, messages, causes, findings.

`picture` turns a trace into arrays, `page` into one HTML file that needs no network, `tiles` into a
folder of small pieces for millions of events, which `serving` hands to a browser on this machine.
The page's own code stands in `page/`, as plain JavaScript modules.
"""

from antecede.view.picture import Picture, picture
from antecede.view.writing import page

__all__ = ["Picture", "page", "picture"]
