"""Columns of a trace for a page: times of rows, and lists as texts."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

from antecede.formatting import pluralize
from antecede.tables.kernels import Bools, Ints
from antecede.tables.trace import DELIVER, RECEIVE

pa: Any = pyarrow
pc: Any = pyarrow.compute

TIMES: Final = ("send_time", "arrival", "start_time", "commit_time", "author_time")
"""Columns that can be an axis."""
OF_ARRIVALS: Final = ("arrival", "send_time", "start_time", "commit_time", "author_time")
OF_OTHERS: Final = ("send_time", "start_time", "arrival", "commit_time", "author_time")
MAX_SPAN_NS: Final = 2**62  # 146 years: differences must fit into 64 bits


class Times(NamedTuple):
    """Times in ns after `base` [rows]; `known`: rows with a time."""

    name: str
    base: int
    offset_ns: Ints
    known: Bools
    far_count: int  # rows with a time farther from the base than `MAX_SPAN_NS`, taken as unknown

    def to_floats(self) -> npt.NDArray[np.float64]:
        """Return ns after the base, exact below 2**53 (104 days); NaN if unknown."""
        return np.where(self.known, self.offset_ns.astype(np.float64), np.nan)

    def describe_far(self) -> list[str]:
        """Return a sentence on excluded times, if there are any."""
        if not self.far_count:
            return []
        lost = pluralize(self.far_count, "time")
        return [f"{lost} more than 146 years after the earliest: taken as unknown"]


def compute_event_time(events: pyarrow.Table) -> Any:
    """Return the time of each event (arrival, otherwise send or start), int64 ns or null."""
    arrived = pc.is_in(events["kind"], pa.array([RECEIVE, DELIVER]))
    of_arrivals = pc.coalesce(*(events[name] for name in OF_ARRIVALS))
    of_others = pc.coalesce(*(events[name] for name in OF_OTHERS))
    return pc.if_else(arrived, of_arrivals, of_others)


def read_times(name: str, column: Any, base: int | None = None) -> Times | None:
    """Return a column as ns after `base` (None: the earliest); None without any time."""
    if column.null_count == len(column):
        return None
    base = int(pc.min(column).as_py()) if base is None else base
    values = pc.fill_null(column, base).to_numpy().astype(np.int64)
    known = np.asarray(column.is_valid().to_numpy(), np.bool_)
    # Unsigned, so exact over all 64 bits.
    apart = values.astype(np.uint64) - np.array(base, np.int64).astype(np.uint64)
    within = known & (apart < MAX_SPAN_NS)
    after = np.where(within, apart, 0).astype(np.int64)
    return Times(name, base, after, within, int(np.count_nonzero(known & ~within)))


def list_axes(events: pyarrow.Table, base: int | None = None) -> list[Times]:
    """Return the times that can be an axis; the event time is first, and is relative to `base`."""
    found = [read_times("event_time", compute_event_time(events), base)]
    others = (read_times(name, events[name]) for name in TIMES)
    several = [one for one in others if one is not None]
    if len(several) > 1:
        found += several
    return [one for one in found if one is not None]


def join_lists(column: Any) -> Any:
    """Return lists of texts as one text each; null for an empty or null list."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    texts = pc.binary_join(column, ", ")
    return pc.if_else(pc.equal(pc.fill_null(texts, ""), ""), pa.scalar(None, pa.string()), texts)
