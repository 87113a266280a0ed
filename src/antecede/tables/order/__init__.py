"""Causal order of tables: `OrderSpec` and the local engine of `antecede order`."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.order.baselines import (
        NS_PER_MS,
        Arrival,
        BaselineOutcome,
        as_they_come,
        by_timestamp,
        by_watermark,
        streams,
    )
    from antecede.tables.order.durations import duration_ms
    from antecede.tables.order.graph_partitions import KNOWN, OPEN, depths_of, release_of
    from antecede.tables.order.key_types import normalize_ids, plain
    from antecede.tables.order.keys import STATUSES, Array, code, goes_by_value, keys_of
    from antecede.tables.order.result import OrderResult, free_names, result_of, within_topics
    from antecede.tables.order.row_hash import digests, whole
    from antecede.tables.order.row_metadata import control, control_type, tie_names
    from antecede.tables.order.spec import (
        POSITIONED,
        LargeGroupPolicy,
        MissingPolicy,
        OrderSpec,
        OverflowPolicy,
        Status,
        TimeUnit,
    )
    from antecede.tables.order.table import (
        Digests,
        RowGraph,
        graph_of,
        kind_of,
        list_added_fields,
        make_release_column,
        order_rows,
        order_table,
        times_of,
    )
    from antecede.tables.order.trace_order import (
        RUN,
        TIMES,
        VECTOR,
        Ordered,
        Prepared,
        order_trace,
        prepare,
        reason_of,
        refuse_empty,
        spec_of,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "baselines": (
                "Arrival BaselineOutcome NS_PER_MS as_they_come by_timestamp by_watermark streams"
            ),
            "durations": "duration_ms",
            "graph_partitions": "KNOWN OPEN depths_of release_of",
            "key_types": "normalize_ids plain",
            "keys": "Array STATUSES code goes_by_value keys_of",
            "result": "OrderResult free_names result_of within_topics",
            "row_hash": "digests whole",
            "row_metadata": "control control_type tie_names",
            "spec": (
                "LargeGroupPolicy MissingPolicy OrderSpec OverflowPolicy POSITIONED Status TimeUnit"
            ),
            "table": (
                "Digests RowGraph list_added_fields graph_of kind_of order_rows order_table "
                "make_release_column "
                "times_of"
            ),
            "trace_order": (
                "Ordered Prepared RUN TIMES VECTOR order_trace prepare reason_of refuse_empty "
                "spec_of"
            ),
        },
    )
