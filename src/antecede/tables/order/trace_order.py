"""Traces in causal order: the steps of `antecede order` between reading and writing.

Events and causes are those of an audit (`tables.trace.rows`). Vector-clock logs are ordered by
their clocks, other traces by declared causes, each `run` by itself. Both engines return the same
table. Rows without a position go to the quarantine, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.order.spec import POSITIONED, OrderSpec, Status
from antecede.tables.order.table import order_rows
from antecede.tables.trace import (
    CONTENT,
    NEGATIVE,
    NO_NUMBER,
    QUARANTINE_SCHEMA,
    SCHEMA,
    SEQ,
    TAKEN,
    UNTOLD,
    Causes,
    Trace,
    conform,
    distinct,
    evidence,
    refuse,
)

pa: Any = pyarrow  # its stubs lack some of the types used here
pc: Any = pyarrow.compute

TIMES = ("arrival", "send_time", "commit_time", "author_time", "start_time", "ingest")
"""Columns that may break ties, best first; `file_order` is the last resort."""
UNTIMED = ("ingest", "file_order")
RUN, VECTOR = "order_run", "order_vector"

REASONS = {
    Status.DUPLICATE: "the same identity came before",
    Status.CONFLICT: "the same identity came before, with other content",
    Status.SELF_CAUSE: "names itself as its cause",
    Status.CYCLE: "is its own cause, by way of others",
    Status.NULL_KEY: "no member",
    Status.BAD_CLOCK: "the clock lacks the event's own member, or holds a bad number",
}

SEQ_REASONS = {
    **REASONS,
    Status.CONFLICT: TAKEN,
    Status.NULL_KEY: NO_NUMBER,
    Status.BAD_CLOCK: NEGATIVE,
}


def reason_of(status: str, spec: OrderSpec) -> str:
    """Return why a row has no position."""
    return (REASONS if spec.sender is None else SEQ_REASONS)[Status(status)]


Engine = Callable[[pyarrow.Table, OrderSpec], tuple[pyarrow.Table, bool]]
"""Function that adds the columns of a spec to a table; see `order_rows`."""


class Prepared(NamedTuple):
    """Distinct events with the spec that orders them, and the rows that are no events."""

    events: pyarrow.Table
    spec: OrderSpec
    quarantine: pyarrow.Table
    duplicates: int
    receipts: int
    deliveries: int
    causes: Causes
    """Counts of names among the causes that are left out."""
    source: str
    """Source of causality of the order: a constant of `antecede.tables.trace.evidence`."""


class Ordered(NamedTuple):
    """Events in causal order, by (run, position), and excluded rows with reasons."""

    events: pyarrow.Table
    quarantine: pyarrow.Table


def prepare(
    trace: Trace,
    by: str | None = None,
    use_clocks: bool | None = None,
    filled_columns: Collection[str] | None = None,
) -> Prepared:
    """Choose events, the source of causality, and the column that breaks ties (`by`).

    With `by="seq"` each member's own numbers define its program order. Raises InputError when no
    event has a value of `by`.
    """
    table = conform(trace.events)
    if by == SEQ:
        use_clocks = False
    use_clocks = _has_clocks(table, trace.format) if use_clocks is None else use_clocks
    rows = distinct(table, use_clocks)
    events: Any = rows.events
    if by == SEQ and not evidence.has_sequence(events):
        raise InputError(UNTOLD)
    if filled_columns is None:
        filled_columns = {
            name for name in events.column_names if events[name].null_count < len(events)
        }
    spec = spec_of(use_clocks, filled_columns, by)
    if spec.group:
        events = events.append_column(RUN, pc.fill_null(events["run"], ""))
    if use_clocks:
        lists = [events[name].combine_chunks() for name in ("clock_members", "clock_counts")]
        vectors = pa.StructArray.from_arrays(lists, ["members", "counts"])
        events = events.append_column(VECTOR, vectors)
    aside = pyarrow.concat_tables([trace.quarantine, rows.quarantine])
    return Prepared(
        events,
        spec,
        aside,
        rows.duplicates - rows.conflicts,
        rows.receipts,
        rows.deliveries,
        rows.causes.with_read(trace.details),
        find_source(events, spec, trace.format),
    )


def find_source(events: Any, spec: OrderSpec, format: str) -> str:
    """Return the source of causality that distinct events support under a spec."""
    if spec.sender is not None:
        return evidence.SEQUENCE
    if spec.clock is not None:
        return evidence.CLOCKS if evidence.has_clocks(events, format) else evidence.NONE
    return evidence.CAUSES if evidence.has_causes(events, format) else evidence.NONE


def order_trace(prepared: Prepared, engine: Engine = order_rows) -> Ordered:
    """Order prepared events by an engine; the result does not depend on which."""
    spec = prepared.spec
    table: Any = engine(prepared.events, spec)[0]
    table = table.sort_by(
        [("run", "ascending"), (spec.position, "ascending"), ("file_order", "ascending")]
    )
    table = table.drop_columns([name for name in (RUN, VECTOR) if name in table.column_names])
    placed = pc.is_in(table[spec.status], pa.array([str(status) for status in POSITIONED]))
    good, bad = table.filter(placed), table.filter(pc.invert(placed))
    reasons = [reason_of(status, spec) for status in bad[spec.status].to_pylist()]
    refused = refuse(bad.select(SCHEMA.names), reasons)
    aside = [QUARANTINE_SCHEMA.empty_table(), prepared.quarantine, refused]
    return Ordered(good, pyarrow.concat_tables(aside))


def refuse_empty(ordered: int, reasons: Mapping[str, int], aside: Path) -> None:
    """Raise InputError if no event has a position."""
    if not ordered:
        named = "; ".join(f"{count:,} x {reason}" for reason, count in reasons.items())
        raise InputError(
            f"no event has a position: all rows are quarantined ({named}); see {aside}"
        )


def _has_clocks(table: Any, format: str) -> bool:
    """Return whether clocks, not declared causes, are the source of causality, as in audits."""
    if format == "shiviz":
        return True
    clocks = table["clock_members"].null_count < len(table)
    return clocks and not pc.sum(pc.list_value_length(table["causes"])).as_py()


def spec_of(use_clocks: bool, filled_columns: Collection[str], by: str | None) -> OrderSpec:
    """Return the specification of a trace's order, given the columns with any value.

    The engine makes the columns RUN (`run`, "" for null) and VECTOR (struct of the clock's lists).
    Raises InputError when no event has a value of `by`.
    """
    times = [name for name in (*TIMES, "file_order") if name in filled_columns]
    if by == SEQ:
        by = None
        columns: dict[str, Any] = {"sender": "member", "seq": "seq", "content": ("id", *CONTENT)}
    elif use_clocks:
        columns = {"clock": VECTOR, "member": "member", "content": CONTENT}
    else:
        columns = {"id": "id", "after": ("causes",), "content": CONTENT}
    if by is not None and by not in times:
        raise InputError(f"no event has a value of {by}; choose from {', '.join(times)}")
    time = by or (times[0] if times else "file_order")
    unit: Any = None if time in UNTIMED else "ns"
    return OrderSpec(
        group=RUN if "run" in filled_columns else None, time=time, time_unit=unit, **columns
    )
