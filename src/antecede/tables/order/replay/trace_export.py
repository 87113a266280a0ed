"""Trace of a replayed log: sends, arrivals, holds and deliveries.

Rows of an observer keep the order of the replay, and deliveries that of their positions. A held
message is delivered directly after the row that ended its wait.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow

from antecede.tables.order.replay.member import LoggedRow
from antecede.tables.order.replay.spec import DeliverSpec, DeliverStatus
from antecede.tables.order.replay.table import read_log
from antecede.tables.trace import DELIVER, EVENT, RECEIVE, SCHEMA, SEND, conform

MS = 1_000_000
MAX_TEXT = 200
ARRIVED = (
    DeliverStatus.DELIVERED,
    DeliverStatus.DUPLICATE,
    DeliverStatus.HELD,
    DeliverStatus.EXPIRED,
    DeliverStatus.DISCARDED,
)


class ExportedTrace(NamedTuple):
    """Trace in the schema, and the number of rows without an observer."""

    events: pyarrow.Table
    left_out: int


class _TraceRow(NamedTuple):
    at: int
    behind: int
    phase: int
    place: int
    event: dict[str, Any]


def trace_of(table: pyarrow.Table, done: pyarrow.Table, spec: DeliverSpec) -> ExportedTrace:
    """Return the trace of a log `table` and its replay `done` (`deliver_wide`)."""
    log = read_log(table, spec)
    names = ("status", "sender", "seq", "position", "waited_ms", "reason", "payload")
    cells = [done[spec.prefix + name].to_pylist() for name in names]
    outcomes = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
    rows: list[tuple[int, int, int, dict[str, Any]]] = []
    for observer, (key, arrivals) in enumerate(log.rows.items()):
        common = {"run": key.group, "member": key.observer}
        newest = 0
        for place, row in enumerate(_sort_events(arrivals, outcomes)):
            newest = max(newest, row.at) if place else row.at
            rows.append((newest, observer, place, {**common, **row.event}))
    rows.sort(key=lambda row: row[:3])
    columns = {
        name: pyarrow.array([event.get(name) for _, _, _, event in rows], SCHEMA.field(name).type)
        for name in ("run", "kind", "id", "member", "seq", "arrival", "send_time", "text")
    }
    return ExportedTrace(conform(pyarrow.table(columns)), len(log.refused))


def _sort_events(
    arrivals: Sequence[LoggedRow], outcomes: Sequence[dict[str, Any]]
) -> list[_TraceRow]:
    times = [arrival.time_ns for arrival in arrivals]
    rows, delivered = list[_TraceRow](), list[_TraceRow]()
    for k, arrival in enumerate(arrivals):
        outcome = outcomes[arrival.ticket]
        rows.append(_TraceRow(arrival.time_ns, k, 0, 0, _make_arrival(arrival, outcome)))
        # Own messages have positions only in total order.
        if outcome["position"] is not None:
            delivered.append(_make_delivery(arrival, k, times, outcome))
    delivered.sort(key=lambda row: row.place)
    last = (delivered[0].at, delivered[0].behind) if delivered else (0, 0)
    for row in delivered:
        last = max(last, (row.at, row.behind))
        rows.append(row._replace(at=last[0], behind=last[1]))
    return sorted(rows, key=lambda row: row[:4])


def _make_arrival(arrival: LoggedRow, outcome: dict[str, Any]) -> dict[str, Any]:
    status = outcome["status"]
    text = status if outcome["reason"] is None else f"{status}: {outcome['reason']}"
    known = outcome["sender"] is not None and outcome["seq"] is not None
    if known and status == DeliverStatus.SENT:
        return {"kind": SEND, "send_time": arrival.time_ns, **_read_message(outcome)}
    if known and status in ARRIVED:
        note = {} if outcome["reason"] is None else {"text": text}
        return {"kind": RECEIVE, "arrival": arrival.time_ns, **_read_message(outcome), **note}
    return {"kind": EVENT, "id": f"row {arrival.ticket}", "arrival": arrival.time_ns, "text": text}


def _make_delivery(
    arrival: LoggedRow, k: int, times: Sequence[int], outcome: dict[str, Any]
) -> _TraceRow:
    at = arrival.time_ns + round((outcome["waited_ms"] or 0) * MS)
    behind = k if at == arrival.time_ns else max(k, bisect_right(times, at) - 1)
    event = {"kind": DELIVER, "arrival": at, **_read_message(outcome)}
    return _TraceRow(at, behind, 1, outcome["position"], event)


def _read_message(outcome: dict[str, Any]) -> dict[str, Any]:
    fields = {"id": f"{outcome['sender']}:{outcome['seq']}", "seq": outcome["seq"]}
    if (text := _decode_text(outcome["payload"])) is not None:
        fields["text"] = text
    return fields


def _decode_text(payload: bytes | None) -> str | None:
    if not payload:
        return None
    try:
        text = payload[: 4 * MAX_TEXT].decode()
    except UnicodeDecodeError:
        return None
    return text[:MAX_TEXT] if text.isprintable() else None
