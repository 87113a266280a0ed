"""Columns of a trace as a picture needs them: times of rows, numbers of names, lists in a row."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

from antecede.tables.trace import DELIVER, RECEIVE

pa: Any = pyarrow
pc: Any = pyarrow.compute
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TIMES: Final = {
    "send_time": "sender's clock",
    "arrival": "arrival",
    "start_time": "start of span",
    "commit_time": "commit time",
    "author_time": "author time",
}
"""Columns that can be an axis, and what the page calls them."""
EVENT_TIME: Final = "event_time"
"""The time of what a row tells: of an arrival when it arrived, else when it was sent or began."""
OF_ARRIVALS: Final = ("arrival", "send_time", "start_time", "commit_time", "author_time")
OF_OTHERS: Final = ("send_time", "start_time", "arrival", "commit_time", "author_time")


FAR: Final = 2**62
"""ns that an axis spans at most, 146 years: differences must fit into 64 bits."""


class Times(NamedTuple):
    """Times in ns behind `base` [rows]; `known` where a row tells one."""

    name: str
    base: int
    after: Ints
    known: Bools
    far: int
    """Rows whose time is farther from the base than `FAR`: not known here."""

    def to_floats(self) -> Floats:
        """Return ns behind the base, exact below 2**53 (104 days); not a number where unknown."""
        return np.where(self.known, self.after.astype(np.float64), np.nan)


def event_time(events: pyarrow.Table) -> Any:
    """Return the time of what each row tells, int64 ns, null where unknown."""
    arrived = pc.is_in(events["kind"], pa.array([RECEIVE, DELIVER]))
    of_arrivals = pc.coalesce(*(events[name] for name in OF_ARRIVALS))
    of_others = pc.coalesce(*(events[name] for name in OF_OTHERS))
    return pc.if_else(arrived, of_arrivals, of_others)


def times(name: str, column: Any, base: int | None = None) -> Times | None:
    """Return a column of ns behind `base` (the earliest if None, and never later than that); None
    where no row has one.
    """
    if column.null_count == len(column):
        return None
    base = int(pc.min(column).as_py()) if base is None else base
    values = pc.fill_null(column, base).to_numpy().astype(np.int64)
    known = np.asarray(column.is_valid().to_numpy(), np.bool_)
    # Unsigned, so exact over all 64 bits.
    apart = values.astype(np.uint64) - np.array(base, np.int64).astype(np.uint64)
    within = known & (apart < FAR)
    after = np.where(within, apart, 0).astype(np.int64)
    return Times(name, base, after, within, int(np.count_nonzero(known & ~within)))


def axes(events: pyarrow.Table, base: int | None = None) -> list[Times]:
    """Return the times that can be an axis, that of the event first; this one behind `base`."""
    found = [times(EVENT_TIME, event_time(events), base)]
    told = {name: times(name, events[name]) for name in TIMES}
    several = [one for one in told.values() if one is not None]
    if len(several) > 1:
        found += several
    return [one for one in found if one is not None]


def numbers(column: Any) -> Ints:
    """Return a number for each value, from 0; -1 for null."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    codes = column.dictionary_encode().indices.cast(pa.int64())
    found: Ints = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def joined(column: Any) -> Any:
    """Return lists of texts as one text each; null where a list is empty or null."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    made = pc.binary_join(column, ", ")
    return pc.if_else(pc.equal(pc.fill_null(made, ""), ""), pa.scalar(None, pa.string()), made)
