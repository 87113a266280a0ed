"""Counts of single formats, under the names that their users know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.audit.arrival_spread import summarize_arrivals
from antecede.tables.audit.counts import AuditCounts, measure_steps_back
from antecede.tables.audit.skew import clock_skew
from antecede.tables.trace import NO_ID

pc: Any = pyarrow.compute  # incomplete stubs

NS_IN_S = 10**9


def compute_format_metrics(
    format: str, counts: AuditCounts, table: pa.Table, duplicates: int, quarantine: pa.Table
) -> dict[str, Any]:
    """Return the details of one format; `table` has all rows as read."""
    keys = counts.keys
    if format == "shiviz":
        return _count_shiviz(counts)
    if format == "mail":
        return _count_mail(counts, len(table), duplicates, quarantine)
    if format == "spans":
        return _count_spans(counts, duplicates)
    if format == "editing":
        return _count_editing(counts)
    if format == "lora":
        return _count_lora(counts) | {"arrivals": summarize_arrivals(table, counts)}
    if format == "git":
        return {
            "commits": keys["messages"],
            "authors": keys["members"],
            "commit_time_violations": keys["inversions"].get("commit_time"),
            "author_time_violations": keys["inversions"].get("author_time"),
            **{
                name: keys[name]
                for name in (
                    "edges",
                    "redundant_edges",
                    "immediate_edges",
                    "merges",
                    "roots",
                    "concurrent_pairs",
                )
            },
        }
    return {}


def _count_shiviz(counts: AuditCounts) -> dict[str, Any]:
    keys = counts.keys
    return {
        "hosts": keys["members"],
        "events": keys["messages"],
        "executions": len(pc.unique(counts.events["run"])),
        "message_edges": keys["edges"],
        "immediate_edges": keys["immediate_edges"],
        "ordered_pairs": keys["ordered_pairs"],
        "concurrent_pairs": keys["concurrent_pairs"],
        "nonmonotone_clock_steps": len(keys["clock_inconsistencies"]),
        "message_receive_listed_before_send": keys["inversions"].get("file_order"),
        "host_order_inversions_in_file": _count_listed_backward(counts.events),
    }


def _count_listed_backward(events: pa.Table) -> int:
    """Count events listed before an event of the same member with a lower number."""
    last: dict[tuple[str | None, str | None], int] = {}
    found = 0
    columns = (events[name].to_pylist() for name in ("run", "member", "seq"))
    for run, member, seq in zip(*columns, strict=True):
        found += seq < last.get((run, member), seq)
        last[run, member] = seq
    return found


def _count_mail(
    counts: AuditCounts, rows: int, duplicates: int, quarantine: pa.Table
) -> dict[str, Any]:
    keys = counts.keys
    inversions = keys["inversions"]
    by_arrival = measure_steps_back(counts, "arrival")
    dated = counts.details["max_inversions"].get("send_time", 0)
    late = pc.greater(counts.events["send_time"], counts.events["arrival"])
    no_id = int(pc.sum(pc.equal(quarantine["reason"], NO_ID)).as_py() or 0)
    return {
        "messages": rows + no_id,
        "distinct_ids": keys["messages"] + counts.details.get("events_on_cycles", 0),
        "duplicates": duplicates,
        "no_id": no_id,
        "senders": keys["members"],
        "reply_edges": keys["edges"],
        "missing_parent": keys["missing_causes"],
        "self_reply": keys["self_causes"],
        "reply_before_parent_by_arrival_time": inversions.get("arrival"),
        "arrival_ties": None if by_arrival is None else int(np.count_nonzero(by_arrival == 0)),
        "reply_before_parent_by_ingest_seq": inversions.get("ingest"),
        "reply_dated_before_parent": inversions.get("send_time"),
        "max_date_inversion_s": dated // NS_IN_S,
        "dated_after_arrival": int(pc.sum(late).as_py() or 0),
    }


def _count_spans(counts: AuditCounts, duplicates: int) -> dict[str, Any]:
    keys = counts.keys
    outlasting = measure_steps_back(counts, "end_time")
    return {
        "duplicate_rows": duplicates,
        "spans": keys["messages"],
        "traces": len(pc.unique(pc.list_flatten(counts.events["topics"]))),
        "processes": keys["members"],
        "parent_edges": keys["edges"],
        "cross_process_edges": keys["cross_member_edges"],
        "child_starts_before_parent": keys["inversions"].get("start_time"),
        "max_skew_ns": counts.details["max_inversions"].get("start_time", 0),
        "child_ends_after_parent": None
        if outlasting is None
        else int(np.count_nonzero(outlasting < 0)),
        "clock_skew": clock_skew(counts.events, counts.sender, counts.receiver),
    }


def _count_editing(counts: AuditCounts) -> dict[str, Any]:
    keys = counts.keys
    names = ("immediate_edges", "merges", "max_causes", "concurrent_pairs")
    return {
        "events": keys["messages"],
        "processes": keys["members"],
        "cross_process_edges": keys["cross_member_edges"],
        **{name: keys[name] for name in names},
    }


def _count_lora(counts: AuditCounts) -> dict[str, Any]:
    seq = pc.fill_null(counts.events["seq"], 0).to_numpy()
    steps = seq[counts.receiver] - seq[counts.sender]
    return {
        "uplinks": counts.keys["messages"],
        "devices": counts.keys["members"],
        "uplinks_not_heard": int((steps - 1).clip(0).sum()),
    }
