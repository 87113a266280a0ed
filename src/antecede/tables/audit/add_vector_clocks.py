"""Conversion of any trace into a vector-clock log, as ShiViz reads it.

If every row has a clock, rows and clocks are unchanged. Otherwise each row is an event of its
member. A send or plain event is caused by its declared causes, a receipt by the send of its
message, a delivery also by the receipt at its member. A member's own clock or numbers order its
events, if all rows have them, as far as causes allow. This program order adds edges, except for
edges on a cycle with causes. A row's clock is the maximum of its causes' clocks and of the member's
last clock, plus one. It is kept only until all rows that it causes are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.kernels import Bools, Ints, encode_column, graph
from antecede.tables.trace import DELIVER, EVENT, RECEIVE, conform
from antecede.tables.trace.formats import ShivizEvent

pc: Any = pyarrow.compute  # incomplete stubs

OWN_ORDERS = ("seq", "start_time", "send_time", "author_time")
"""Columns that order a member's rows: the first one that all rows have."""


@dataclass
class VectorClockLog:
    """Entries of a vector-clock log, grouped by execution, and excluded rows."""

    entries: Iterator[ShivizEvent]
    events: int
    several_runs: bool
    computed: bool  # from causes; otherwise as logged
    left_out: dict[str, int] = field(default_factory=dict)  # reason -> rows


def with_clocks(events: pa.Table, format: str = "table") -> VectorClockLog:
    """Return the rows of a trace as entries of a log with vector clocks.

    `events` in the schema. Traces of `spans` become executions if no cause crosses from one to
    another. Raise InputError if a column is not of the schema.
    """
    table = conform(events)
    if len(table) and not table["clock_members"].null_count:
        return _keep_logged_clocks(table)
    table, left_out = _drop_repeats(table)
    if format == "spans":
        table = _use_traces_as_runs(table)
    columns = ("arrival",) if _mask_arrivals(table).any() else OWN_ORDERS
    known = next((name for name in columns if not table[name].null_count), "file_order")
    table = table.sort_by([(known, "ascending"), ("file_order", "ascending")])
    effect, cause = _find_edges(table)
    cycle = graph.nodes_on_cycles(graph.build_graph(len(table), effect, cause)) >= 0
    if cycle.any():
        left_out["caused by itself, through others"] = int(cycle.sum())
        table = table.filter(pa.array(~cycle))
        effect, cause = _find_edges(table)
    entries = _compute_entries(table, graph.build_graph(len(table), effect, cause))
    return VectorClockLog(entries, len(table), _has_several_runs(table), True, left_out)


def _keep_logged_clocks(table: pa.Table) -> VectorClockLog:
    table = table.take(_group_by_run(table, np.arange(len(table))))
    good = pa.array(
        [
            member is not None and dict(zip(names, counts or (), strict=False)).get(member, 0) > 0
            for member, names, counts in zip(
                *(table[n].to_pylist() for n in ("member", "clock_members", "clock_counts")),
                strict=True,
            )
        ],
        pa.bool_(),
    )
    kept = table.filter(good)
    bad = len(table) - len(kept)
    left_out = {"the clock has no entry of its own member": bad} if bad else {}
    return VectorClockLog(
        _read_logged_entries(kept), len(kept), _has_several_runs(kept), False, left_out
    )


def _read_logged_entries(table: pa.Table) -> Iterator[ShivizEvent]:
    names = ("run", "member", "clock_members", "clock_counts", "text", "kind", "id")
    for batch in table.select(names).to_batches():
        for run, member, hosts, counts, *event in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            yield ShivizEvent(
                run, member, dict(zip(hosts, counts, strict=False)), _describe_event(*event)
            )


def _describe_event(text: str | None, kind: str, identity: str) -> str:
    """Return the text of an event, or its id, after the kind of a message row."""
    words = text or identity
    return words if kind == EVENT else f"{kind} {identity}" + (f": {text}" if text else "")


def _drop_repeats(table: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    """Drop repeated rows of an id, except for receipts and deliveries."""
    codes = encode_column(graph.keys(table))[1]
    own_rows = np.flatnonzero(~_mask_arrivals(table))
    _, first = np.unique(codes[own_rows], return_index=True)
    keep = _mask_arrivals(table)
    keep[own_rows[first]] = True
    later = int(np.count_nonzero(~keep))
    return table.filter(pa.array(keep)), {"a later row of an id": later} if later else {}


def _find_edges(table: pa.Table) -> tuple[Ints, Ints]:
    second = _mask_arrivals(table)
    own_rows = np.flatnonzero(~second)
    edges = graph.edge_table(table.take(own_rows))
    edges = edges.filter(edges["cause"].is_valid())
    effect, cause = own_rows[edges["effect"].to_numpy()], own_rows[edges["cause"].to_numpy()]
    codes = encode_column(graph.keys(table))[1]
    sent = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    sent[codes[own_rows]] = own_rows
    copies = np.flatnonzero(second)
    source = sent[codes[copies]]
    at = codes * (len(table) + 1) + encode_column(table["member"], nulls=True)[1]
    received = copies[_mask_kind(table, RECEIVE)[copies]][::-1]
    delivered = copies[_mask_kind(table, DELIVER)[copies]]
    first = dict(zip(at[received].tolist(), received.tolist(), strict=True))
    before = np.array([first.get(key, -1) for key in at[delivered].tolist()], np.int64)
    effects = np.concatenate([effect, copies[source >= 0], delivered[before >= 0]])
    return effects, np.concatenate([cause, source[source >= 0], before[before >= 0]])


def _compute_entries(table: pa.Table, causes: graph.Graph) -> Iterator[ShivizEvent]:
    members = [
        f"unknown:{identity}" if member is None else str(member)
        for member, identity in zip(
            table["member"].to_pylist(), table["id"].to_pylist(), strict=True
        )
    ]
    runs = table["run"].to_pylist()
    texts, kinds, ids = (table[name].to_pylist() for name in ("text", "kind", "id"))
    order = _group_by_run(table, _sort_rows(table, causes, members))
    waiting = np.bincount(causes.cause, minlength=causes.nodes).tolist()
    clocks: dict[int, dict[str, int]] = {}
    last: dict[str, dict[str, int]] = {}
    for place, row in enumerate(order.tolist()):
        member = members[row]
        if place and runs[row] != runs[int(order[place - 1])]:
            last = {}
        clock = dict(last.get(member, ()))
        for above in causes.cause[causes.start[row] : causes.start[row + 1]].tolist():
            for host, count in clocks[above].items():
                if clock.get(host, 0) < count:
                    clock[host] = count
            waiting[above] -= 1
            if not waiting[above]:
                del clocks[above]
        clock[member] = clock.get(member, 0) + 1
        last[member] = clock
        if waiting[row]:
            clocks[row] = clock
        yield ShivizEvent(
            runs[row], member, clock, _describe_event(texts[row], kinds[row], ids[row])
        )


def _sort_rows(table: pa.Table, causes: graph.Graph, members: list[str]) -> Ints:
    """Return all rows, causes first, each member's rows in its own order as far as causes allow."""
    run = encode_column(table["run"], nulls=True)[1]
    member = encode_column(pa.array(members, pa.string()))[1]
    rows = np.lexsort((np.arange(len(table)), member, run))
    same = (member[rows][1:] == member[rows][:-1]) & (run[rows][1:] == run[rows][:-1])
    after, before = rows[1:][same], rows[:-1][same]
    effect = causes.effect()
    whole = graph.build_graph(
        causes.nodes, np.concatenate([effect, after]), np.concatenate([causes.cause, before])
    )
    cycle = graph.nodes_on_cycles(whole)
    if (cycle >= 0).any():  # a member's own order contradicts the causes
        keep = (cycle[after] < 0) | (cycle[after] != cycle[before])
        whole = graph.build_graph(
            causes.nodes,
            np.concatenate([effect, after[keep]]),
            np.concatenate([causes.cause, before[keep]]),
        )
    return graph.sort_causes_first(whole)


def _use_traces_as_runs(table: pa.Table) -> pa.Table:
    """Use each trace of spans as a run, if each span has one and no cause crosses."""
    topics = table["topics"].combine_chunks()
    one_each = pc.all(pc.equal(pc.list_value_length(topics), 1)).as_py()
    if _has_several_runs(table) or not one_each:
        return table
    trace = pc.list_flatten(topics)
    code = encode_column(trace, nulls=True)[1]
    edges = graph.edge_table(table)
    edges = edges.filter(edges["cause"].is_valid())
    crossing = code[edges["effect"].to_numpy()] != code[edges["cause"].to_numpy()]
    place = table.column_names.index("run")
    return table if crossing.any() else table.set_column(place, "run", trace)


def _group_by_run(table: pa.Table, order: Ints) -> Ints:
    """Group rows by run, in order of the first row of each run; keep the order within."""
    return order[np.argsort(encode_column(table["run"], nulls=True)[1][order], kind="stable")]


def _has_several_runs(table: pa.Table) -> bool:
    return table["run"].null_count < len(table)


def _mask_arrivals(table: pa.Table) -> Bools:
    return _mask_kind(table, RECEIVE) | _mask_kind(table, DELIVER)


def _mask_kind(table: pa.Table, kind: str) -> Bools:
    found: Bools = pc.equal(table["kind"], kind).to_numpy()
    return found.copy()
