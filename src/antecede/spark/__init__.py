"""Ordering, deliveries, audits and a vocabulary of causality as DataFrame -> DataFrame functions.

All work with any session that the caller has; nothing here creates one
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
from antecede.spark.cutting import cut, cut_verdict, recovery_line
from antecede.spark.delivering import deliver
from antecede.spark.ordering import order
from antecede.spark.reaching import future, past
from antecede.spark.relations import concurrent, happened_before, past_size, register
from antecede.spark.spec import OrderSpec, Status
from antecede.spark.stamping import with_clocks
from antecede.spark.stream import count_statuses

__all__ = [
    "DeliverSpec",
    "DeliverStatus",
    "OrderSpec",
    "Status",
    "audit",
    "concurrent",
    "count_statuses",
    "cut",
    "cut_verdict",
    "deliver",
    "future",
    "happened_before",
    "order",
    "past",
    "past_size",
    "recovery_line",
    "register",
    "with_clocks",
]
