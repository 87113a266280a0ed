"""Causal order and causality queries as functions of Spark DataFrames.

All functions work with any session of the caller. Only `antecede.spark.session` creates sessions.
`register` adds the SQL functions and `spark.read.format("antecede")` to a session. Importing this
package without pyspark raises MissingExtraError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antecede.errors import MissingExtraError
from antecede.lazy import lazy_names

try:
    import pyspark
except ImportError as error:
    raise MissingExtraError("antecede.spark", "spark") from error

from antecede.spark.audits.audit import audit
from antecede.spark.audits.false_causality import find_violations, measure_false_causality
from antecede.spark.audits.quarantine import find_quarantined
from antecede.spark.audits.report import audit_report
from antecede.spark.ordering import order
from antecede.spark.relations.cuts import check_cut, recovery_line, summarize_cut
from antecede.spark.relations.labels import (
    add_causal_labels,
    concurrent,
    happened_before,
    past_size,
)
from antecede.spark.relations.reachability import future, past
from antecede.spark.replay import replay_log
from antecede.spark.sources.contexts import read_context
from antecede.spark.sources.data_source import register, register_source
from antecede.spark.sources.span_tables import spans_to_events
from antecede.spark.streams.state import held
from antecede.spark.streams.tasks import repartition_stream
from antecede.tables.order import OrderSpec, Status
from antecede.tables.order.replay import DeliverSpec, DeliverStatus

if TYPE_CHECKING:
    from antecede.spark.evidence import describe_none, source_in, supports_way
    from antecede.spark.java import find_java, use_java
    from antecede.spark.ordering import order_with
    from antecede.spark.replay import deliver_on_spark
    from antecede.spark.session import cluster_session, local_session, quiet_failures
    from antecede.spark.tiles import write_tiles
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "evidence": "describe_none source_in supports_way",
            "java": "find_java use_java",
            "ordering": "order_with",
            "replay": "deliver_on_spark",
            "session": "cluster_session local_session quiet_failures",
            "tiles": "write_tiles",
        },
    )

__all__ = [
    "DeliverSpec",
    "DeliverStatus",
    "OrderSpec",
    "Status",
    "add_causal_labels",
    "audit",
    "audit_report",
    "check_cut",
    "concurrent",
    "find_quarantined",
    "find_violations",
    "future",
    "happened_before",
    "held",
    "measure_false_causality",
    "order",
    "past",
    "past_size",
    "read_context",
    "recovery_line",
    "register",
    "register_source",
    "repartition_stream",
    "replay_log",
    "spans_to_events",
    "summarize_cut",
]
