"""Explicit-state model checker: all interleavings of a small group."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.check.model_checker.explorer import SearchLimits, explore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "explorer": "SearchLimits explore",
        },
    )
