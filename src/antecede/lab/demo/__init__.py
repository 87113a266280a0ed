"""Demo: record a group, order its messages, compare, explain."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.demo.arrivals import Arrivals, arrivals_of, events_of, with_declared_causes
    from antecede.lab.demo.engines import SparkStart
    from antecede.lab.demo.page import write_page
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "arrivals": "Arrivals arrivals_of events_of with_declared_causes",
            "engines": "SparkStart",
            "page": "write_page",
        },
    )
