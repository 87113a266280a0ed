"""A run of a trace, as rules are measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.false_causality.kernels.rule_terms import Words
from antecede.tables.false_causality.kernels.timestamps import Clocks, Happenings, clocks_of
from antecede.tables.kernels import Bools, Graph, Ints
from antecede.tables.trace import Causes

DELIVERY, RECEIPT, REPLY = "delivery", "receipt", "reply"
RELATIONS = (DELIVERY, RECEIPT, REPLY)
EVERYTHING = "(file order)"  # the observer of a trace in which nobody receives
MAX_BYTES = 4 << 30
_ABSENT: list[Any] = [
    pa.field("run", pa.string()),
    pa.field("message", pa.string(), nullable=False),
    pa.field("cause", pa.string(), nullable=False),
]
ABSENT = pa.schema(_ABSENT)
"""One row a declared cause that no counted row of its run has: who names it, and its id."""


@dataclass
class Run:
    """One execution; messages are numbers in the order of rows, members in that of their names."""

    name: str | None
    relation: str
    ids: Sequence[str]
    members: Sequence[str]
    sender: Ints  # [messages] member
    pt_us: Ints | None  # [messages] None where a message has no time
    topics: Words | None  # [messages] None where there are none, or more than 64
    topic_names: Sequence[str]
    arrivals: Mapping[str, Ints]  # observer -> messages in the order in which they came
    past: Graph | None = None
    rows: Happenings | None = None
    steps: Ints | None = None
    delivered: Bools | None = None  # [rows] judged by `tables.false_causality.violations`
    file_order: Ints | None = None  # [rows]
    declared: Graph | None = None  # declared causes beside receipts or deliveries
    vector: Any = None  # [messages, members] of a vector-clock log
    notes: dict[str, int] = field(default_factory=dict)  # reason -> rows left out
    absent: pa.Table = field(default_factory=ABSENT.empty_table)
    causes: Causes = field(default_factory=Causes)
    never_sent: Sequence[str] = ()  # ids that were received or delivered without a sending
    contradictions: int = 0  # counted events whose clocks contradict others'

    @property
    def source(self) -> str:
        """Source of causality, in a word or two."""
        if self.vector is not None:
            return "vector clocks"
        return "declared causes" if self.past is not None else self.relation

    def clocks(self) -> tuple[Clocks, Ints]:
        """Return the clocks of the messages, and the number of each member among the senders.

        Raises InputError when they do not fit into memory.
        """
        assert self.rows is not None
        assert self.steps is not None
        senders = np.unique(self.sender)
        size = len(self.ids) * (len(senders) + len(self.topic_names)) * 4
        if size > MAX_BYTES:
            raise InputError(
                f"{len(self.ids):,} messages with vectors of {len(senders):,} senders take "
                f"{size / 2**30:.1f} GiB; the most is {MAX_BYTES >> 30} GiB"
            )
        column = np.full(len(self.members), -1, np.int64)
        column[senders] = np.arange(len(senders))
        topics = np.zeros(len(self.ids), np.uint64) if self.topics is None else self.topics
        width = 0 if self.topics is None else len(self.topic_names)
        return clocks_of(self.rows, self.steps, column, len(senders), topics, width), column
