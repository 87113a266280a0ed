"""Causality queries over DataFrames: causal labels, past, future, cuts."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.spark.relations.queries import Part, part, way_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "queries": "Part part way_of",
        },
    )
