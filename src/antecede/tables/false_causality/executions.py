"""Run of a trace, as input of ordering rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.false_causality.kernels.rule_terms import Words
from antecede.tables.false_causality.kernels.timestamps import ClockColumns, Happenings, clocks_of
from antecede.tables.kernels import Bools, Graph, Ints
from antecede.tables.trace import Causes

DELIVERY, RECEIPT, REPLY = "delivery", "receipt", "reply"
RELATIONS = (DELIVERY, RECEIPT, REPLY)
FILE_ORDER = "(file order)"  # observer of a trace without receipts
MAX_BYTES = 4 << 30
_MISSING_CAUSE_FIELDS: list[Any] = [
    pa.field("run", pa.string()),
    pa.field("message", pa.string(), nullable=False),
    pa.field("cause", pa.string(), nullable=False),
]
MISSING_CAUSE_SCHEMA = pa.schema(_MISSING_CAUSE_FIELDS)
"""One row for each declared cause without a counted row in its run: the naming message, and the
cause.
"""


@dataclass
class TraceRun:
    """One execution; messages are numbered by row, members by sorted name."""

    name: str | None
    relation: str
    ids: Sequence[str]
    members: Sequence[str]
    sender: Ints  # [messages] member
    pt_us: Ints | None  # [messages] None if a message has no time
    topics: Words | None  # [messages] None without topics, or with more than 64
    topic_names: Sequence[str]
    arrivals: Mapping[str, Ints]  # observer -> messages in order of arrival
    past: Graph | None = None
    rows: Happenings | None = None
    causal_order: Ints | None = None
    is_checked: Bools | None = None  # [rows] checked by `tables.false_causality.violations`
    file_order: Ints | None = None  # [rows]
    declared_causes: Graph | None = None  # declared causes in addition to receipts or deliveries
    vector: Any = None  # [messages, members] of a vector-clock log
    excluded_rows: dict[str, int] = field(default_factory=dict)  # reason -> excluded rows
    absent: pa.Table = field(default_factory=MISSING_CAUSE_SCHEMA.empty_table)
    causes: Causes = field(default_factory=Causes)
    never_sent: Sequence[str] = ()  # ids that were received or delivered without a send
    clock_inconsistencies: int = 0  # counted events with inconsistent clocks

    @property
    def source(self) -> str:
        """Source of causality in reports."""
        if self.vector is not None:
            return "vector clocks"
        return "declared causes" if self.past is not None else self.relation

    def compute_clocks(self) -> tuple[ClockColumns, Ints]:
        """Return the clocks of the messages, and the index of each member among the senders.

        Raise InputError if they do not fit into memory.
        """
        assert self.rows is not None
        assert self.causal_order is not None
        senders = np.unique(self.sender)
        size = len(self.ids) * (len(senders) + len(self.topic_names)) * 4
        if size > MAX_BYTES:
            raise InputError(
                f"{len(self.ids):,} messages with vectors of {len(senders):,} senders need "
                f"{size / 2**30:.1f} GiB; the limit is {MAX_BYTES >> 30} GiB"
            )
        column = np.full(len(self.members), -1, np.int64)
        column[senders] = np.arange(len(senders))
        topics = np.zeros(len(self.ids), np.uint64) if self.topics is None else self.topics
        width = 0 if self.topics is None else len(self.topic_names)
        return clocks_of(self.rows, self.causal_order, column, len(senders), topics, width), column
