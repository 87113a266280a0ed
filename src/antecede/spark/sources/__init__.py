"""DataFrames from traces, tables, spans and message headers."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.spark.sources.event_tables import events_of_tables, unwrap_failures, write_bad
    from antecede.spark.sources.order_tables import (
        MISSING_SAMPLE,
        Done,
        Survey,
        order_files,
        survey,
    )
    from antecede.spark.sources.table_tasks import tables_of, work_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "event_tables": "events_of_tables unwrap_failures write_bad",
            "order_tables": "MISSING_SAMPLE Done Survey order_files survey",
            "table_tasks": "tables_of work_of",
        },
    )
