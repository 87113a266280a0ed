"""Causal violations of a trace: messages that were delivered before one of their causes.

A message is addressed to the members at which it arrived or was delivered, and to those in
`addressed`. Other messages need not be delivered, but causality passes through them all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from antecede.errors import InputError
from antecede.tables.false_causality.executions import REPLY, TraceRun
from antecede.tables.false_causality.kernels.violations import (
    NEVER,
    AddressedCopies,
    Violations,
    find_by_causes,
    find_by_vectors,
)
from antecede.tables.false_causality.trace import runs_of
from antecede.tables.kernels import Ints
from antecede.tables.trace import DELIVER, RECEIVE, SEND

_FIELDS: list[Any] = [
    pa.field("run", pa.string()),
    pa.field("member", pa.string(), nullable=False),
    pa.field("message", pa.string(), nullable=False),
    pa.field("file_order", pa.int64(), nullable=False),
    pa.field("cause", pa.string(), nullable=False),
    pa.field("cause_order", pa.int64()),
]
VIOLATION_SCHEMA = pa.schema(_FIELDS)
"""One row for each violation: its row in the files, a cause that was missing, and the row in which
that cause was delivered; null if it never was.
"""


class RunViolations(NamedTuple):
    """Causal violations of one run."""

    run: TraceRun
    checked: int  # checked deliveries
    table: pa.Table  # as `VIOLATION_SCHEMA`
    partial: int = 0  # messages that some receiving members did not receive


def find_violations(
    events: pa.Table,
    relation: str | None = None,
    addressed: Mapping[str, Collection[str]] | None = None,
) -> pa.Table:
    """Return the causal violations in the order of rows, as `VIOLATION_SCHEMA`.

    `relation`: see `runs_of`; under "reply" causes are the declared ones. `addressed`: message
    -> members, in addition to its receivers. Raise as `runs_of`, and InputError if `addressed`
    names a message without a send.
    """
    parts = [VIOLATION_SCHEMA.empty_table()]
    parts += [found.table for found in find_in_events(events, relation, addressed)]
    return pa.concat_tables(parts)


def find_in_events(
    events: pa.Table,
    relation: str | None = None,
    addressed: Mapping[str, Collection[str]] | None = None,
    *,
    to_everybody: bool = False,
) -> Iterator[RunViolations]:
    """Yield the violations of each run; `to_everybody`: every message is for every member."""
    kinds = {*events["kind"].unique().to_pylist()} if "kind" in events.column_names else set()
    if SEND not in kinds or not kinds & {RECEIVE, DELIVER}:
        return
    declared = relation == REPLY
    for run in runs_of(events, None if declared else relation):
        if run.rows is None:
            continue
        copies = _list_copies(
            run, _pair_all(run) if to_everybody else _pair_addressed(run, addressed or {})
        )
        if declared:
            if run.declared_causes is None:
                raise InputError("no declared causes in column causes")
            violations = find_by_causes(run.declared_causes, copies)
        else:
            assert run.causal_order is not None
            violations = find_by_vectors(run.rows, run.causal_order, run.sender, copies)
        checked = int(np.count_nonzero(copies.place != NEVER))
        yield RunViolations(
            run, checked, _make_table(run, copies, violations), _count_received_by_some(run, copies)
        )


def _count_received_by_some(run: TraceRun, copies: AddressedCopies) -> int:
    receivers = np.unique(copies.member)
    has = np.bincount(copies.message, minlength=len(run.ids))
    due = len(receivers) - np.isin(run.sender, receivers)
    return int(np.count_nonzero(has < due))


def _list_copies(run: TraceRun, addressed: Ints) -> AddressedCopies:
    """Return the copies: delivered ones, then others; `addressed`: member * messages + message."""
    rows = run.rows
    assert rows is not None
    assert run.is_checked is not None
    foreign = ~rows.is_send & (run.sender[rows.message] != rows.member)
    pair = rows.member * len(run.ids) + rows.message
    delivered_rows = np.flatnonzero(foreign & run.is_checked)
    delivered, first = np.unique(pair[delivered_rows], return_index=True)
    others = np.unique(np.r_[pair[foreign], addressed])
    others = np.setdiff1d(others, delivered, assume_unique=True)
    pairs = np.r_[delivered, others]
    place = np.r_[delivered_rows[first], np.full(len(others), NEVER)]
    return AddressedCopies(pairs % max(len(run.ids), 1), pairs // max(len(run.ids), 1), place)


def _pair_all(run: TraceRun) -> Ints:
    message = np.tile(np.arange(len(run.ids)), len(run.members))
    member = np.repeat(np.arange(len(run.members)), len(run.ids))
    others = run.sender[message] != member
    found: Ints = (member * len(run.ids) + message)[others]
    return found


def _pair_addressed(run: TraceRun, addressed: Mapping[str, Collection[str]]) -> Ints:
    if not addressed:
        return np.zeros(0, np.int64)
    messages = {name: number for number, name in enumerate(run.ids)}
    members = {name: number for number, name in enumerate(run.members)}
    found = []
    for message, receivers in addressed.items():
        if message not in messages:
            raise InputError(
                f"unknown message {message!r} in addressed: no row of kind send has it"
            )
        number = messages[message]
        others = {members[name] for name in receivers if name in members} - {run.sender[number]}
        found += [member * len(run.ids) + number for member in others]
    return np.array(found, dtype=np.int64)


def _make_table(run: TraceRun, copies: AddressedCopies, violations: Violations) -> pa.Table:
    ids, members = np.asarray(run.ids, object), np.asarray(run.members, object)
    assert run.file_order is not None
    place, missing = copies.place[violations.copy], copies.place[violations.cause]
    never = missing == NEVER
    order = run.file_order[np.where(never, 0, missing)] if len(missing) else missing
    return pa.table(
        [
            pa.array([run.name] * len(place), pa.string()),
            pa.array(members[copies.member[violations.copy]], pa.string()),
            pa.array(ids[copies.message[violations.copy]], pa.string()),
            pa.array(run.file_order[place], pa.int64()),
            pa.array(ids[copies.message[violations.cause]], pa.string()),
            pa.array(order, pa.int64(), mask=never),
        ],
        schema=VIOLATION_SCHEMA,
    )
