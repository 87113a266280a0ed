"""Replay of logged bytes through the groups of their members: `antecede replay`."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.order.replay.member import ReplayedMember, RowOutcome
    from antecede.tables.order.replay.spec import PER_S, DeliverSpec, DeliverStatus
    from antecede.tables.order.replay.table import (
        Engine,
        Key,
        deliver_table,
        deliver_wide,
        list_added_fields,
        read_log,
        reject_rows,
        take_all,
        times_of_rows,
        with_outcomes,
    )
    from antecede.tables.order.replay.trace_export import trace_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "member": "ReplayedMember RowOutcome",
            "spec": "DeliverSpec DeliverStatus PER_S",
            "table": (
                "Engine Key list_added_fields deliver_table deliver_wide read_log reject_rows "
                "take_all "
                "times_of_rows with_outcomes"
            ),
            "trace_export": "trace_of",
        },
    )
