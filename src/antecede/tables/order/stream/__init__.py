"""Causal order of a stream, without Spark. Reasons and costs: `docs/design/streaming.md`."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.order.stream.columns import (
        PART,
        StreamColumns,
        check_columns,
        check_nulls,
        joined,
        unpacked,
    )
    from antecede.tables.order.stream.held_report import WaitingRow, held_by
    from antecede.tables.order.stream.kernels.interning import Text
    from antecede.tables.order.stream.kernels.rows import BAD, NO_TIME, NULL
    from antecede.tables.order.stream.shard import Shard
    from antecede.tables.order.stream.storage.blobs import Memory, ShardParts, opened
    from antecede.tables.order.stream.types import (
        Batch,
        Links,
        ShardOutput,
        ShardPlan,
        check_same_stream,
        nothing_new,
    )
    from antecede.tables.order.stream.warmup import warm_up, warm_up_once
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "columns": "PART StreamColumns check_columns check_nulls joined unpacked",
            "held_report": "WaitingRow held_by",
            "kernels.interning": "Text",
            "kernels.rows": "BAD NO_TIME NULL",
            "shard": "Shard",
            "storage.blobs": "Memory ShardParts opened",
            "types": "Batch Links ShardOutput ShardPlan check_same_stream nothing_new",
            "warmup": "warm_up warm_up_once",
        },
    )
