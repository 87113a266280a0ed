"""Arrival streams of a trace, and suitable watermark widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

from antecede.tables.kernels import clock_edges, clock_log
from antecede.tables.order import Arrival
from antecede.tables.trace import DELIVER, NAMES, RECEIVE, Event

pa: Any = pyarrow
pc: Any = pyarrow.compute

MS = 1_000_000
_LADDER = (
    *((ms, f"{ms} ms") for ms in (50, 100, 200, 400)),
    *((s * 1000, f"{s} s") for s in (1, 3, 10, 30)),
    *((m * 60_000, f"{m} min") for m in (1, 10)),
    *((h * 3_600_000, f"{h} h") for h in (1, 6)),
    *((d * 86_400_000, f"{d} days") for d in (1, 7, 30, 365, 3650, 36500)),
)
FAR_OFF_MS = 10 * 365 * 86_400_000
_ARRIVED = ("arrival", "ingest", "file_order")
_SENT = ("send_time", "author_time", "start_time", "commit_time")


class Arrivals(NamedTuple):
    """Rows that arrived, and their columns for ordering."""

    table: pyarrow.Table
    """Rows of the trace that arrived: receipts if there are any, else all rows."""
    arrived_by: str
    """Column of the arrival order: a time ("arrival") or a position."""
    sent_by: str | None
    """Column with the sender's timestamp; None: the trace has none."""

    @property
    def has_times(self) -> bool:
        """True if waits can be measured."""
        return self.arrived_by == "arrival"

    def rows(self) -> list[Arrival]:
        """Return the rows with a sender's timestamp, or all with the arrival order instead."""
        names = ["member", "id", "causes", self.arrived_by, self.sent_by or self.arrived_by]
        columns = [self.table.column(name).to_pylist() for name in names]
        by_member = self.by_member
        return [
            Arrival(member if by_member else "", name, tuple(causes), arrived, sent)
            for member, name, causes, arrived, sent in zip(*columns, strict=True)
            if sent is not None
        ]

    @property
    def by_member(self) -> bool:
        """True if each member is a stream of its own (a trace with receipts)."""
        return bool(pc.any(pc.equal(self.table.column("kind"), RECEIVE)).as_py())


def arrivals_of(events: pyarrow.Table) -> Arrivals:
    """Return the receipts of a recorded trace, or every row of an archive."""
    kind = events.column("kind")
    receipts = events.filter(pc.equal(kind, RECEIVE))
    if receipts.num_rows:
        # Only the send row has the sender's timestamp.
        sends = events.filter(pc.equal(kind, "send"))
        known = (sends.column(name).to_pylist() for name in ("id", "send_time"))
        sent = dict(zip(*known, strict=True))
        names = receipts.column("id").to_pylist()
        times = pa.array([sent.get(name) for name in names], pa.int64())
        place = receipts.column_names.index("send_time")
        return Arrivals(receipts.set_column(place, "send_time", times), "arrival", "send_time")
    table = events.filter(pc.not_equal(kind, DELIVER))
    arrived = next(name for name in _ARRIVED if not table.column(name).null_count)
    filled = {name: table.num_rows - table.column(name).null_count for name in _SENT}
    best = max(_SENT, key=lambda name: filled[name])
    return Arrivals(table, arrived, best if filled[best] else None)


def events_of(table: pyarrow.Table) -> list[Event]:
    """Convert the rows of a trace to events."""
    columns: dict[str, list[Any]] = {name: table.column(name).to_pylist() for name in NAMES}
    for name in ("causes", "topics"):
        columns[name] = list(map(tuple, columns[name]))
    return [Event(*row) for row in zip(*columns.values(), strict=True)]


def with_declared_causes(events: pyarrow.Table) -> pyarrow.Table:
    """Return the events with `causes` from vector clocks, if no causes are declared."""
    declared = pc.sum(pc.list_value_length(events.column("causes"))).as_py() or 0
    clocked = events.filter(pc.is_valid(events.column("clock_members"))).combine_chunks()
    if declared or not clocked.num_rows:
        return events
    log = clock_log(clocked)
    edges = clock_edges(log)
    names = pc.take(clocked.column("id"), pa.array(log.row)).to_pylist()
    causes: list[list[str]] = [[] for _ in names]
    for event in range(1, len(names)):
        if log.member[event] == log.member[event - 1]:
            causes[event].append(names[event - 1])
    for sender, receiver in zip(edges.sender.tolist(), edges.receiver.tolist(), strict=True):
        causes[receiver].append(names[sender])
    by_row = dict(zip(log.row.tolist(), causes, strict=True))
    column = pa.array(
        [by_row[row] for row in range(len(names))], events.schema.field("causes").type
    )
    return clocked.set_column(clocked.column_names.index("causes"), "causes", column)


def choose_watermarks(split: Mapping[str, Sequence[Arrival]]) -> list[tuple[int, str]]:
    """Return up to four watermark widths (ns, name), from too narrow to wide enough."""
    late: list[int] = []
    for rows in split.values():
        newest = accumulate((row.sent_ns for row in rows), max)
        late += (n - r.sent_ns for n, r in zip(newest, rows, strict=True) if n > r.sent_ns)
    if not late:
        return [(_LADDER[0][0] * MS, _LADDER[0][1])]
    late.sort()
    if late[len(late) // 2] > FAR_OFF_MS * MS:
        # One row dated decades ahead moves the watermark past all later rows.
        return [(ms * MS, name) for ms, name in _LADDER if name in ("1 h", "7 days", "365 days")]
    marks = [late[min(int(part * len(late)), len(late) - 1)] for part in (0.5, 0.9, 0.99, 1.0)]
    chosen = [next((w for w in _LADDER if w[0] * MS >= mark), _LADDER[-1]) for mark in marks]
    return [(ms * MS, name) for ms, name in dict.fromkeys(chosen)]
