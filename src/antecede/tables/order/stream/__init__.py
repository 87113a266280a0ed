"""Causal order of a stream, without Spark. Reasons and costs: `docs/design/streaming.md`."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.order.stream.columns import (
        PART,
        StreamColumns,
        check_columns,
        check_nulls,
        concat_rows,
        unpack_schemas,
    )
    from antecede.tables.order.stream.held_report import WaitingRow, list_waiting_rows
    from antecede.tables.order.stream.kernels.interning import Text
    from antecede.tables.order.stream.kernels.rows import BAD, NO_TIME, NULL
    from antecede.tables.order.stream.shard import Shard
    from antecede.tables.order.stream.storage.blobs import Memory, ShardParts, unpack
    from antecede.tables.order.stream.types import (
        ControlColumns,
        ReleasedCauses,
        ShardOutput,
        ShardPlan,
        check_same_stream,
        make_empty_columns,
    )
    from antecede.tables.order.stream.warmup import warm_up, warm_up_once
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "columns": "PART StreamColumns check_columns check_nulls concat_rows unpack_schemas",
            "held_report": "WaitingRow list_waiting_rows",
            "kernels.interning": "Text",
            "kernels.rows": "BAD NO_TIME NULL",
            "shard": "Shard",
            "storage.blobs": "Memory ShardParts unpack",
            "types": (
                "ControlColumns ReleasedCauses ShardOutput ShardPlan check_same_stream "
                "make_empty_columns"
            ),
            "warmup": "warm_up warm_up_once",
        },
    )
