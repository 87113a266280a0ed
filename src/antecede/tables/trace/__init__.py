"""Traces: one event schema, readers of many formats, a quarantine for bad rows.

The names below are what a reader of one's own format needs (docs/own-reader.md), and `read`,
`read_batches` and `Trace`, which need pyarrow. Each is imported when it is first asked for:
`antecede.tables.trace.schema` alone must load nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antecede.tables.trace.arrow import Trace, read, read_batches
    from antecede.tables.trace.reader import Detail, Item, Reader, ReadOptions, register
    from antecede.tables.trace.schema import Event, Quarantined

_HOME = {
    **dict.fromkeys(("Trace", "read", "read_batches"), "antecede.tables.trace.arrow"),
    **dict.fromkeys(
        ("Detail", "Item", "Reader", "ReadOptions", "register"), "antecede.tables.trace.reader"
    ),
    **dict.fromkeys(("Event", "Quarantined"), "antecede.tables.trace.schema"),
}

__all__ = [
    "Detail",
    "Event",
    "Item",
    "Quarantined",
    "ReadOptions",
    "Reader",
    "Trace",
    "read",
    "read_batches",
    "register",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
