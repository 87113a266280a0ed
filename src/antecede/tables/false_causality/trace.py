"""Executions out of a trace of the schema: who sent, who received, what the messages carried.

Three kinds of traces tell what is causal. Where rows of receipts or deliveries stand beside sends,
the clocks of the papers are run over them; what a member knows grows by what it had delivered
(Evropeytsev et al. 2016, Sahai et al. 2020, Bhavanasi and Iyer) or by all that had arrived
(Tsuneizumi et al., Nakayama 2017). Vector-clock logs bring their vectors. Anything else declares
causes. Where nobody receives there is one observer, who sees all messages in the order of the file.

What cannot be used is left out and counted in `Run.notes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import CycleError, InputError
from antecede.tables.false_causality.columns import (
    by_name,
    is_kind,
    note,
    times,
    topic_bits,
    whole,
)
from antecede.tables.false_causality.executions import (
    ABSENT,
    DELIVERY,
    EVERYTHING,
    RECEIPT,
    RELATIONS,
    REPLY,
    Run,
)
from antecede.tables.false_causality.kernels.timestamps import Happenings, steps_of
from antecede.tables.kernels import Bools, Graph, Ints, encode_column, graph
from antecede.tables.trace import DELIVER, RECEIVE, SEND, are_blank, conform, distinct, ids_of

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

NEVER_SENT = "received or delivered, never sent"


def runs_of(events: pa.Table, relation: str | None = None) -> Iterator[Run]:
    """Yield the executions of a table in the schema; columns may be absent but for `id`.

    `relation` is "delivery", "receipt" or "reply"; None: by delivery, else by receipt, else by
    vector clocks or declared causes, as the rows of the run allow. Raises InputError for a table
    that cannot be read so, CycleError where causes go in a circle.
    """
    return (run for run, _ in runs_with_rows(events, relation))


def runs_with_rows(events: pa.Table, relation: str | None = None) -> Iterator[tuple[Run, pa.Table]]:
    """Yield the executions of a table as `runs_of`, each with its rows."""
    if relation is not None and relation not in RELATIONS:
        raise InputError(f"there is no relation {relation!r}; relations: {', '.join(RELATIONS)}")
    if "id" not in events.column_names:
        raise InputError(f"no column id; there are {', '.join(events.column_names)}")
    for name, table in by_run(events):
        yield _run(name, table, relation), table


def _with_order(events: pa.Table) -> pa.Table:
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


def by_run(events: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield the rows of each run, with its name; the columns that all runs need are there."""
    events = _with_order(events)
    if "run" not in events.column_names or events["run"].null_count == len(events):
        yield None, events
        return
    names, codes = encode_column(events["run"], nulls=True)
    order = np.argsort(codes, kind="stable")
    events = events.take(order)
    start = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for code, name in enumerate(names):
        yield name, events.slice(int(start[code]), int(start[code + 1] - start[code]))


def _run(name: str | None, table: pa.Table, relation: str | None) -> Run:
    kinds = set(table["kind"].unique().to_pylist())
    if relation is None and SEND in kinds:
        relation = DELIVERY if DELIVER in kinds else RECEIPT if RECEIVE in kinds else None
    if relation in (DELIVERY, RECEIPT):
        wanted = {DELIVERY: {DELIVER}, RECEIPT: {RECEIVE, DELIVER}}[relation or ""]
        if SEND not in kinds or not kinds & wanted:
            raise InputError(
                f"causality by {relation} needs rows of sends and of "
                f"{' or '.join(sorted(wanted))}; this run has {', '.join(sorted(map(str, kinds)))}"
            )
        return _told(name, table, relation or "")
    clocked = "clock_members" in table.column_names
    if relation is None and clocked and table["clock_members"].null_count < len(table):
        from antecede.tables.false_causality.clock_log import logged  # it builds on this module

        return logged(name, table)
    return _declared(name, table)


# -- sends, receipts, deliveries ------------------------------------------------------------


def _told(name: str | None, table: pa.Table, relation: str) -> Run:
    """Return a run of sends and what came of them."""
    notes: dict[str, int] = {}
    named = pc.fill_null(pc.invert(are_blank(table["id"])), False)
    usable = pc.and_(pc.fill_null(pc.invert(are_blank(table["member"])), False), named)
    told = pc.is_in(table["kind"], value_set=pa.array([SEND, RECEIVE, DELIVER]))
    note(notes, "neither sent, received nor delivered", pc.invert(told))
    note(notes, "no id", pc.and_(told, pc.invert(named)))
    note(notes, "no member", pc.and_(told, pc.and_(named, pc.invert(usable))))
    table = table.filter(pc.and_(told, usable)).combine_chunks()
    names, member = by_name(table["member"])
    ids, code = encode_column(table["id"])
    kind = {one: is_kind(table, one) for one in (SEND, RECEIVE, DELIVER)}
    sends = np.flatnonzero(kind[SEND])
    _, first = np.unique(code[sends], return_index=True)
    send = np.sort(sends[first])
    number = np.full(len(ids), -1, np.int64)
    number[code[send]] = np.arange(len(send))
    keep = (number[code] >= 0) & (~kind[SEND] | np.isin(np.arange(len(code)), send))
    note(notes, NEVER_SENT, number[code] < 0)
    note(notes, "sent twice", (number[code] >= 0) & ~keep)
    place = np.flatnonzero(keep)
    kind = {one: rows[place] for one, rows in kind.items()}
    member, message = member[place], number[code[place]]
    teaches = kind[DELIVER] if relation == DELIVERY else ~kind[SEND]
    rows = Happenings(kind[SEND], member, message, teaches)
    sender = member[kind[SEND]]
    try:
        steps = steps_of(rows)
    except CycleError as error:
        raise CycleError("receipts come before their sends in a circle") from error
    table = table.take(place).combine_chunks()
    declared = table.take(np.flatnonzero(kind[SEND])).combine_chunks()
    topic_names, topics = topic_bits(declared)
    return Run(
        name,
        relation,
        [str(ids[one]) for one in code[send]],
        names,
        sender,
        times(declared),
        topics,
        topic_names,
        _arrivals(rows, kind[RECEIVE], sender, names),
        rows=rows,
        steps=steps,
        delivered=kind[DELIVER] if kind[DELIVER].any() else kind[RECEIVE],
        file_order=whole(table["file_order"]),
        declared=_graph(declared) if "parents" in declared.column_names else None,
        notes=notes,
        never_sent=[str(ids[one]) for one in np.flatnonzero(number < 0)],
    )


def _arrivals(
    rows: Happenings, received: Bools, sender: Ints, names: Sequence[str]
) -> dict[str, Ints]:
    """Return the first copies of others' messages at each member; by receipts if there are any."""
    came = received if received.any() else ~rows.sends
    came = came & (sender[rows.message] != rows.member)
    place = np.flatnonzero(came)
    pair = rows.member[place] * len(sender) + rows.message[place]
    _, first = np.unique(pair, return_index=True)
    place = place[np.sort(first)]
    member = rows.member[place]
    return {names[one]: rows.message[place[member == one]] for one in np.unique(member).tolist()}


# -- declared causes ------------------------------------------------------------------------


def _declared(name: str | None, table: pa.Table) -> Run:
    """Return a run of declared causes; messages and causes are those of `tables.trace.rows`."""
    notes: dict[str, int] = {}
    if "parents" not in table.column_names:
        raise InputError("nothing tells what is causal: no receipts, no vector clocks, no parents")
    rows = distinct(conform(table), by_clock=False)
    table = rows.events.combine_chunks()
    second_hand = is_kind(table, RECEIVE) | is_kind(table, DELIVER)
    stand_in = int(np.count_nonzero(second_hand))
    note(notes, "receipts and deliveries", rows.receipts + rows.deliveries - stand_in)
    note(notes, "no id", len(rows.quarantine) - rows.conflicts)
    note(notes, "an earlier row has this id", rows.duplicates)
    of = _graph(table)
    circular = graph.nodes_on_cycles(of) >= 0
    if circular.any():
        note(notes, "causes go in a circle", circular)
        table = table.filter(pa.array(~circular)).combine_chunks()
        of = _graph(table)
    names, member = by_name(table["member"])
    topic_names, topics = topic_bits(table)
    return Run(
        name,
        REPLY,
        [str(one) for one in table["id"].to_pylist()],
        names,
        member,
        times(table),
        topics,
        topic_names,
        {EVERYTHING: np.argsort(whole(table["file_order"]), kind="stable").astype(np.int64)},
        past=of,
        notes=notes,
        absent=_absent(name, table),
        causes=rows.causes,
    )


def _edges(table: pa.Table) -> Any:
    if "run" in table.column_names:  # ids are those of one run anyway
        table = table.drop_columns(["run"])
    return graph.edge_table(table)


def _absent(name: str | None, table: pa.Table) -> pa.Table:
    """Return the declared causes that no counted row has, in the order of who names them."""
    edges = _edges(table)
    edges = edges.filter(edges["parent"].is_null())
    edges = edges.take(np.argsort(edges["child"].to_numpy(), kind="stable"))
    run = pa.array([name] * len(edges), pa.string())
    message = table["id"].take(edges["child"]).cast(pa.string())
    cause = edges["parent_id"].cast(pa.string())
    return pa.Table.from_arrays([run, message, cause], schema=ABSENT)


def _graph(table: pa.Table) -> Graph:
    edges = _edges(table)
    edges = edges.filter(edges["parent"].is_valid())
    child, parent = (edges[column].to_numpy().astype(np.int64) for column in ("child", "parent"))
    return graph.build_graph(len(table), child, parent)
