"""Taking in: the identities of new rows are numbered, and which of them stand for theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow

from antecede.order.stream.columns import ColumnHistory
from antecede.order.stream.index import Longs
from antecede.order.stream.interface import Batch
from antecede.order.stream.kernels import drain
from antecede.order.stream.kernels import rows as shape
from antecede.order.stream.kernels.memory import unique_links
from antecede.order.stream.kernels.names import Text, take_text
from antecede.order.stream.kernels.rows import NO_TIME
from antecede.order.stream.step import Step


def take_in(step: Step, batch: Batch) -> shape.Rows:
    """Number the new rows and settle which of them stand for their identity."""
    known = step.known
    valid = np.flatnonzero(batch.status == 0).astype(np.int32)
    whole = len(valid) == len(batch.status)
    group = np.full(len(batch.status), -1, np.int32)
    text = batch.group if whole else Text(*take_text(*batch.group, valid))
    group[valid], step.serials = known.group_numbers(text, step.serials)
    token, name = np.full_like(group, -1), np.full_like(group, -1)
    text = batch.name if whole else Text(*take_text(*batch.name, valid))
    name[valid], token[valid] = known.identify(group[valid], text, batch.number[valid])
    owner = np.repeat(group, np.diff(batch.first))
    _, cause = known.identify(owner, batch.cause_name, batch.cause_count)
    first, cause = unique_links(batch.first, cause, known.size)
    known.learn()
    rows = shape.Rows(
        token=token,
        group=group,
        time=batch.time,
        arrived=_arrivals(step, batch.time),
        digest=batch.digest,
        name=name,
        number=batch.number,
        first=first,
        cause=cause,
        link=np.zeros(len(cause), np.uint8),
        status=batch.status.copy(),
        lift=np.full(len(token), NO_TIME, np.int64),
    )
    tokens = step.tokens()
    step.find_elsewhere(tokens)
    drain.admit(rows, tokens, step.ties(), 0)
    known.digest = tokens.digest
    return rows


def compare_common_columns(
    rows: shape.Rows, step: Step, columns: ColumnHistory, table: pyarrow.Table
) -> None:
    """Mark a conflict as a duplicate where it is one by the columns that both rows have.

    `table` has the user's rows of the batch. Sets `rows.status`.
    """
    at = np.flatnonzero(rows.status == shape.CONFLICT)
    if len(at):
        given: Any = table
        known = step.known.digest[rows.token[at]]
        for digest in columns.earlier_digests(given.take(at)):
            rows.status[at[digest == known]] = shape.DUPLICATE


def _arrivals(step: Step, time: Longs) -> Longs:
    """Patience runs from a row's time, or from the clock when the row came after it."""
    if not step.plan.timed:
        return np.full(len(time), step.clock, np.int64)
    return np.maximum(np.where(time == NO_TIME, step.clock, time), step.before)
