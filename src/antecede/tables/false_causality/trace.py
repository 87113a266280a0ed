"""Runs of a trace: senders, receivers, and the clocks that messages carried.

There are three sources of causality: receipts or deliveries, vector clocks, and declared causes.
With receipts, a member's knowledge grows with its deliveries (Evropeytsev et al. 2016, Sahai et al.
2020, Bhavanasi and Iyer) or with all arrivals (Tsuneizumi et al., Nakayama 2017). Without receipts
there is one observer of all messages in the order of the file.

Unusable rows are excluded and counted in `TraceRun.excluded_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import CycleError, InputError
from antecede.tables.false_causality.columns import (
    count_excluded,
    encode_sorted,
    encode_topics,
    mask_kind,
    read_send_times,
    to_integers,
)
from antecede.tables.false_causality.executions import (
    DELIVERY,
    FILE_ORDER,
    MISSING_CAUSE_SCHEMA,
    RECEIPT,
    RELATIONS,
    REPLY,
    TraceRun,
)
from antecede.tables.false_causality.kernels.timestamps import Happenings, sort_rows
from antecede.tables.kernels import Bools, Graph, Ints, encode_column, graph
from antecede.tables.trace import (
    DELIVER,
    RECEIVE,
    SEND,
    are_blank,
    conform,
    distinct,
    ids_of,
    schema,
)

pc: Any = pyarrow.compute  # incomplete stubs

NEVER_SENT = "received or delivered, never sent"


def runs_of(events: pa.Table, relation: str | None = None) -> Iterator[TraceRun]:
    """Yield the runs of a table in the schema; all columns but `id` are optional.

    `relation`: "delivery", "receipt" or "reply"; None: the first of delivery, receipt, clocks and
    causes that the rows of the run allow. Raise InputError without its rows, CycleError for a
    cycle.
    """
    return (run for run, _ in runs_with_rows(events, relation))


def runs_with_rows(
    events: pa.Table, relation: str | None = None
) -> Iterator[tuple[TraceRun, pa.Table]]:
    """Yield the runs of a table as `runs_of`, each with its rows."""
    if relation is not None and relation not in RELATIONS:
        raise InputError(f"unknown relation {relation!r}; choose from {', '.join(RELATIONS)}")
    if "id" not in events.column_names:
        raise InputError(f"no column id; found {', '.join(events.column_names)}")
    schema.check_cause_column(events.column_names)
    for name, table in split_by_run(events):
        yield _read_run(name, table, relation), table


def _add_columns(events: pa.Table) -> pa.Table:
    if "file_order" not in events.column_names:
        events = events.append_column("file_order", pa.array(np.arange(len(events))))
    if "run" in events.column_names:
        at = events.column_names.index("run")
        events = events.set_column(at, "run", ids_of(events["run"]))
    if "kind" not in events.column_names:
        events = events.append_column("kind", pa.array(["event"] * len(events), pa.string()))
    if "member" not in events.column_names:
        events = events.append_column("member", pa.nulls(len(events), pa.string()))
    return events.combine_chunks()


def split_by_run(events: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield the name and rows of each run, with the columns that all runs need."""
    events = _add_columns(events)
    if "run" not in events.column_names or events["run"].null_count == len(events):
        yield None, events
        return
    names, codes = encode_column(events["run"], nulls=True)
    order = np.argsort(codes, kind="stable")
    events = events.take(order)
    start = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for code, name in enumerate(names):
        yield name, events.slice(int(start[code]), int(start[code + 1] - start[code]))


def _read_run(name: str | None, table: pa.Table, relation: str | None) -> TraceRun:
    kinds = set(table["kind"].unique().to_pylist())
    if relation is None and SEND in kinds:
        relation = DELIVERY if DELIVER in kinds else RECEIPT if RECEIVE in kinds else None
    if relation in (DELIVERY, RECEIPT):
        arrival_kinds = {DELIVERY: {DELIVER}, RECEIPT: {RECEIVE, DELIVER}}[relation or ""]
        if SEND not in kinds or not kinds & arrival_kinds:
            raise InputError(
                f"causality by {relation} needs rows of kind send and "
                f"{' or '.join(sorted(arrival_kinds))}; found {', '.join(sorted(map(str, kinds)))}"
            )
        return _read_sends_and_arrivals(name, table, relation or "")
    clocked = "clock_members" in table.column_names
    if relation is None and clocked and table["clock_members"].null_count < len(table):
        from antecede.tables.false_causality.clock_log import (
            read_clock_log,  # depends on this module
        )

        return read_clock_log(name, table)
    return _read_declared_causes(name, table)


# -- sends, receipts, deliveries ------------------------------------------------------------


def _read_sends_and_arrivals(name: str | None, table: pa.Table, relation: str) -> TraceRun:
    notes: dict[str, int] = {}
    named = pc.fill_null(pc.invert(are_blank(table["id"])), False)
    usable = pc.and_(pc.fill_null(pc.invert(are_blank(table["member"])), False), named)
    is_message = pc.is_in(table["kind"], value_set=pa.array([SEND, RECEIVE, DELIVER]))
    count_excluded(notes, "neither sent, received nor delivered", pc.invert(is_message))
    count_excluded(notes, "no id", pc.and_(is_message, pc.invert(named)))
    count_excluded(notes, "no member", pc.and_(is_message, pc.and_(named, pc.invert(usable))))
    table = table.filter(pc.and_(is_message, usable)).combine_chunks()
    names, member = encode_sorted(table["member"])
    ids, code = encode_column(table["id"])
    kind = {one: mask_kind(table, one) for one in (SEND, RECEIVE, DELIVER)}
    sends = np.flatnonzero(kind[SEND])
    _, first = np.unique(code[sends], return_index=True)
    send = np.sort(sends[first])
    number = np.full(len(ids), -1, np.int64)
    number[code[send]] = np.arange(len(send))
    keep = (number[code] >= 0) & (~kind[SEND] | np.isin(np.arange(len(code)), send))
    count_excluded(notes, NEVER_SENT, number[code] < 0)
    count_excluded(notes, "sent twice", (number[code] >= 0) & ~keep)
    place = np.flatnonzero(keep)
    kind = {one: rows[place] for one, rows in kind.items()}
    member, message = member[place], number[code[place]]
    teaches = kind[DELIVER] if relation == DELIVERY else ~kind[SEND]
    rows = Happenings(kind[SEND], member, message, teaches)
    sender = member[kind[SEND]]
    try:
        steps = sort_rows(rows)
    except CycleError as error:
        raise CycleError("receipts precede their sends in a cycle") from error
    table = table.take(place).combine_chunks()
    declared = table.take(np.flatnonzero(kind[SEND])).combine_chunks()
    topic_names, topics = encode_topics(declared)
    return TraceRun(
        name,
        relation,
        [str(ids[one]) for one in code[send]],
        names,
        sender,
        read_send_times(declared),
        topics,
        topic_names,
        _collect_arrivals(rows, kind[RECEIVE], sender, names),
        rows=rows,
        causal_order=steps,
        is_checked=kind[DELIVER] if kind[DELIVER].any() else kind[RECEIVE],
        file_order=to_integers(table["file_order"]),
        declared_causes=_build_graph(declared) if "causes" in declared.column_names else None,
        excluded_rows=notes,
        never_sent=[str(ids[one]) for one in np.flatnonzero(number < 0)],
    )


def _collect_arrivals(
    rows: Happenings, received: Bools, sender: Ints, names: Sequence[str]
) -> dict[str, Ints]:
    """Return the first copies of others' messages at each member; by receipts if there are any."""
    is_arrival = received if received.any() else ~rows.is_send
    is_arrival = is_arrival & (sender[rows.message] != rows.member)
    place = np.flatnonzero(is_arrival)
    pair = rows.member[place] * len(sender) + rows.message[place]
    _, first = np.unique(pair, return_index=True)
    place = place[np.sort(first)]
    member = rows.member[place]
    return {names[one]: rows.message[place[member == one]] for one in np.unique(member).tolist()}


# -- declared causes ------------------------------------------------------------------------


def _read_declared_causes(name: str | None, table: pa.Table) -> TraceRun:
    notes: dict[str, int] = {}
    if "causes" not in table.column_names:
        raise InputError("no source of causality: no receipts, no vector clocks, no column causes")
    rows = distinct(conform(table), by_clock=False)
    table = rows.events.combine_chunks()
    second_hand = mask_kind(table, RECEIVE) | mask_kind(table, DELIVER)
    stand_in = int(np.count_nonzero(second_hand))
    count_excluded(notes, "receipts and deliveries", rows.receipts + rows.deliveries - stand_in)
    count_excluded(notes, "no id", len(rows.quarantine) - rows.conflicts)
    count_excluded(notes, "an earlier row has this id", rows.duplicates)
    causes = _build_graph(table)
    circular = graph.nodes_on_cycles(causes) >= 0
    if circular.any():
        count_excluded(notes, "causes form a cycle", circular)
        table = table.filter(pa.array(~circular)).combine_chunks()
        causes = _build_graph(table)
    names, member = encode_sorted(table["member"])
    topic_names, topics = encode_topics(table)
    return TraceRun(
        name,
        REPLY,
        [str(one) for one in table["id"].to_pylist()],
        names,
        member,
        read_send_times(table),
        topics,
        topic_names,
        {FILE_ORDER: np.argsort(to_integers(table["file_order"]), kind="stable").astype(np.int64)},
        past=causes,
        excluded_rows=notes,
        absent=_list_missing_causes(name, table),
        causes=rows.causes,
    )


def _list_edges(table: pa.Table) -> Any:
    if "run" in table.column_names:  # all ids are of one run
        table = table.drop_columns(["run"])
    return graph.edge_table(table)


def _list_missing_causes(name: str | None, table: pa.Table) -> pa.Table:
    edges = _list_edges(table)
    edges = edges.filter(edges["cause"].is_null())
    edges = edges.take(np.argsort(edges["effect"].to_numpy(), kind="stable"))
    run = pa.array([name] * len(edges), pa.string())
    message = table["id"].take(edges["effect"]).cast(pa.string())
    cause = edges["cause_id"].cast(pa.string())
    return pa.Table.from_arrays([run, message, cause], schema=MISSING_CAUSE_SCHEMA)


def _build_graph(table: pa.Table) -> Graph:
    edges = _list_edges(table)
    edges = edges.filter(edges["cause"].is_valid())
    effect, cause = (edges[column].to_numpy().astype(np.int64) for column in ("effect", "cause"))
    return graph.build_graph(len(table), effect, cause)
