"""The order specification under the name by which the Spark functions use it."""

from __future__ import annotations

from antecede.order.spec import POSITIONED, MissingPolicy, OrderSpec, Status, TimeUnit

__all__ = ["POSITIONED", "MissingPolicy", "OrderSpec", "Status", "TimeUnit"]
