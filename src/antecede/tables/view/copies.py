"""Copies of messages: send, receipt and delivery; repeated and lost copies."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.tables.causality import first_rows
from antecede.tables.kernels import Ints, encode_column
from antecede.tables.trace import DELIVER, RECEIVE, SEND

pc: Any = pyarrow.compute

REPEATED_COPY: Final = 1  # bit: the copy arrived at this member before
NOT_RECEIVED: Final = 2  # bit: message without an arrival
UNDELIVERED: Final = 4  # bit: received by a member that delivers, but not delivered there


class CopyRelations(NamedTuple):
    """Relations between rows of one message [rows]; -1: none."""

    send_row: Ints  # of an arrival: row of its send
    receipt_row: Ints  # of the first delivery at a member: row of its receipt
    marks: Ints  # bits: REPEATED_COPY, NOT_RECEIVED, UNDELIVERED


def match_copies(events: pyarrow.Table) -> CopyRelations:
    """Return the relations between rows of a trace with arrivals. O(rows log rows)."""
    kinds = {k: pc.equal(events["kind"], k).to_numpy() for k in (SEND, RECEIVE, DELIVER)}
    run, member, message = (encode_column(events[name])[1] for name in ("run", "member", "id"))
    run += 1
    message = run * (int(message.max(initial=0)) + 1) + message
    sent = first_rows(message, kinds[SEND])
    sent[~(kinds[RECEIVE] | kinds[DELIVER])] = -1
    copy = message * (int(member.max(initial=0)) + 2) + member + 1
    marks = np.zeros(len(message), np.int64)
    rows = np.arange(len(message))
    for kind in (RECEIVE, DELIVER):
        first = first_rows(copy, kinds[kind])
        marks[kinds[kind] & (first != rows)] |= REPEATED_COPY
    received = first_rows(copy, kinds[RECEIVE])
    received[~kinds[DELIVER] | ((marks & REPEATED_COPY) > 0)] = -1
    # A message delivered at its own sender did not travel. Without a member it did.
    elsewhere = (sent >= 0) & ((member < 0) | (member != member[np.maximum(sent, 0)]))
    reached = np.zeros(len(message), np.bool_)
    reached[sent[elsewhere]] = True
    marks[kinds[SEND] & ~reached & (first_rows(message, kinds[SEND]) == rows)] |= NOT_RECEIVED
    delivers = np.isin(member, np.unique(member[kinds[DELIVER]]))
    never = kinds[RECEIVE] & delivers & (first_rows(copy, kinds[DELIVER]) < 0)
    marks[never & ((marks & REPEATED_COPY) == 0)] |= UNDELIVERED
    return CopyRelations(sent, received, marks)


def select_rows(copies: CopyRelations, rows: Ints) -> CopyRelations:
    """Return the relations of some rows, renumbered in their order; -1: not among them."""
    number = np.full(len(copies.marks) + 1, -1, np.int64)
    number[rows] = np.arange(len(rows))
    return CopyRelations(
        number[copies.send_row[rows]], number[copies.receipt_row[rows]], copies.marks[rows]
    )
