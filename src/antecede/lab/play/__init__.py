"""Playground: protocols side by side on an editable scenario (`antecede play`)."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.play.server import Bench, Opened
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "server": "Bench Opened",
        },
    )
