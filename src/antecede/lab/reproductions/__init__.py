"""Reproductions of the evaluations of the five sources."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.reproductions.hierarchy.study import config_of
else:
    __getattr__, __dir__ = lazy_names(__name__, {"hierarchy.study": "config_of"})
