"""Logs for the tests of `deliver`, and their deliveries by a plain loop over `Group`."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from antecede.core.group.group import Group
from antecede.core.group.message import Message
from antecede.errors import ProtocolError
from antecede.lab.record.example_logs import Talk, record_log
from antecede.tables.order.replay.spec import DeliverSpec

NAMES = ("ann", "bob", "cat", "dan")


def log_of(spec: DeliverSpec, seed: int = 1, run: str = "r", **talk: Any) -> pa.Table:
    """Return the log of a group that the spec can replay."""
    groups = {name: spec.group_of(name, run) for name in NAMES}
    return record_log(groups, Talk(**talk), seed=seed)


def many_groups(spec: DeliverSpec, runs: int = 4, **talk: Any) -> pa.Table:
    """Return the logs of several groups in one table, renumbered, by time."""
    tables = []
    for run in range(runs):
        table: Any = log_of(spec, run, f"run {run}", **{"messages": 40, **talk})
        tables.append(table.append_column("run", pa.array([f"run {run}"] * len(table))))
    whole: Any = pa.concat_tables(tables).sort_by([("time", "ascending"), ("number", "ascending")])
    numbers = pa.array(range(len(whole)), pa.int64())
    result: pa.Table = whole.set_column(1, "number", numbers)
    return result


def with_defects(table: pa.Table) -> pa.Table:
    """Insert rows that no member can have sent, or that lack something."""
    rows = [row for row in table.to_pylist() if row["wire"] is not None]
    made = []
    for k, row in enumerate(rows[::9]):
        wire = row["wire"]
        defects: list[dict[str, Any]] = [
            {"wire": None},
            {"wire": b""},
            {"wire": wire[: len(wire) // 3]},
            {"wire": bytes([wire[0], wire[1] ^ 1, *wire[2:]])},
            {"observer": None},
            {"observer": "x" * 300},
            {"time": None},
        ]
        made.append({**row, "sent": False, **defects[k % 7], "number": 10_000 + k})
    return pa.concat_tables([table, pa.Table.from_pylist(made, table.schema)])


def ended(table: pa.Table) -> pa.Table:
    """Append a row without observer, ten seconds after all others."""
    row: dict[str, Any] = max(
        (row for row in table.to_pylist() if row["time"] is not None), key=lambda row: row["time"]
    )
    last = {**row, "time": row["time"] + dt.timedelta(seconds=10), "wire": None, "sent": False}
    last |= {"observer": "nobody", "number": 20_000}
    return pa.concat_tables([table, pa.Table.from_pylist([last], table.schema)])


def pieces(table: pa.Table, count: int) -> list[pa.Table]:
    """Split a log by time: no row precedes one of an earlier part."""
    table = table.sort_by("time")
    size = -(-table.num_rows // count)
    return [table.slice(k, size) for k in range(0, table.num_rows, size)]


def filter_status(table: pa.Table, statuses: set[str]) -> pa.Table:
    """Return the rows with one of these statuses."""
    return table.filter(pc.is_in(table["status"], pa.array(sorted(statuses))))


def replay_in_loop(table: pa.Table, spec: DeliverSpec) -> dict[str, list[tuple[str, int, bytes]]]:
    """Return the deliveries of every observer's own group, with a tick at every multiple."""
    delivered: dict[str, list[tuple[str, int, bytes]]] = {}
    rows: list[dict[str, Any]] = table.sort_by("number").to_pylist()
    for name in sorted({row["observer"] for row in rows}):
        group = spec.group_of(name, "r")
        got: list[Message] = []
        tick_us, last = round(spec.tick_s * 1e6), 0
        for row in rows:
            if row["observer"] != name:
                continue
            now_us = round(row["time"].timestamp() * 1e6)
            ticks = range(last or now_us // tick_us, now_us // tick_us)
            for tick in ticks:
                got += group.tick((tick + 1) * tick_us / 1e6)
            last = now_us // tick_us
            try:
                got += _one(group, row, now_us / 1e6)
            except ProtocolError:
                continue
        for tick in range(last, last + round(spec.finish_s / spec.tick_s)):
            got += group.tick((tick + 1) * tick_us / 1e6)
        delivered[name] = [(m.sender, m.seq, m.payload) for m in got]
    return delivered


def _one(group: Group, row: dict[str, Any], now: float) -> list[Message]:
    if not row["sent"]:
        return group.receive(row["wire"], now=now)
    known = row["status"] in ("sent", "held", "expired")  # in total order a sending may wait
    if known and row["sender"] is not None:  # not a second packet of a message
        chosen = {name: row[name] for name in ("to", "topics") if row[name] is not None}
        group.send_packets(row["payload"], now=now, **chosen)
    return []
