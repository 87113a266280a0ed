"""Ordering, deliveries and audits as DataFrame -> DataFrame functions.

`order`, `deliver`, `audit` and `events_of_spans` work with any session that the caller has, and
`register_source` makes `spark.read.format("antecede")` known in it; nothing here creates one
except `antecede.spark.session.local_session`. Importing this package without pyspark raises
MissingExtraError.
"""

from __future__ import annotations

from antecede.errors import MissingExtraError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtraError("antecede.spark", "spark") from error

from antecede.order.deliver_spec import DeliverSpec, DeliverStatus
from antecede.spark.auditing import audit
from antecede.spark.data_source import register_source
from antecede.spark.delivering import deliver
from antecede.spark.ordering import order
from antecede.spark.span_tables import events_of_spans
from antecede.spark.spec import OrderSpec, Status
from antecede.spark.stamped import stamped
from antecede.spark.stream import count_statuses
from antecede.spark.stream_state import held

__all__ = [
    "DeliverSpec",
    "DeliverStatus",
    "OrderSpec",
    "Status",
    "audit",
    "count_statuses",
    "deliver",
    "held",
    "order",
    "stamped",
    "events_of_spans",
    "order",
    "register_source",
]
