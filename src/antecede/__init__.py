"""Causal delivery of messages, and causal order of traces and tables.

`Group` gives causal delivery over any transport; `help(Group)` lists the options of each order.
`Bounds` and `Subscriptions` are options of clock and topic orders. `antecede.errors` has the
errors. `ContextPropagator` puts causes into message headers of other transports.

`read`, `audit`, `order_table` and `causality` work on traces and tables. They need
`antecede[trace]` and are imported on first use. `antecede.spark` does the same on Spark, in batch
and streams.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from antecede.core.clocks import Bounds
from antecede.core.group import Envelope, Group, GroupEffect, HeldMessage, Message, Packet, Thread
from antecede.core.group.message import Missing, SendArguments, Sent, Stats
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import (
    AntecedeError,
    ConflictError,
    DecodeError,
    IncarnationError,
    LimitError,
    LocalError,
    MismatchError,
    ProtocolError,
    RemoteError,
    SequenceError,
    UnknownMemberError,
)

if TYPE_CHECKING:
    from antecede.core.propagation import ContextPropagator
    from antecede.tables import causality
    from antecede.tables.audit import audit
    from antecede.tables.order import OrderSpec, order_table
    from antecede.tables.trace import read

__version__ = "0.1.0"
__all__ = [
    "AntecedeError",
    "Bounds",
    "ConflictError",
    "ContextPropagator",
    "DecodeError",
    "Envelope",
    "Group",
    "GroupEffect",
    "HeldMessage",
    "IncarnationError",
    "LimitError",
    "LocalError",
    "Message",
    "MismatchError",
    "Missing",
    "OrderSpec",
    "Packet",
    "ProtocolError",
    "RemoteError",
    "SendArguments",
    "Sent",
    "SequenceError",
    "Stats",
    "Subscriptions",
    "Thread",
    "UnknownMemberError",
    "__version__",
    "audit",
    "causality",
    "order_table",
    "read",
]

_MODULES = {
    "ContextPropagator": "antecede.core.propagation",
    "OrderSpec": "antecede.tables.order.spec",
    "audit": "antecede.tables.audit",
    "order_table": "antecede.tables.order.table",
    "read": "antecede.tables.trace",
}


def __getattr__(name: str) -> Any:
    if name == "causality":
        return importlib.import_module("antecede.tables.causality")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
