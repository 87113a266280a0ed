"""Axes of a tiled trace: number of events in a range, as a total and by bin and member."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.dataset

from antecede.tables.kernels import Ints
from antecede.tables.view.binary_block import Array
from antecede.tables.view.severity import ERROR

pa: Any = pyarrow
pc: Any = pyarrow.compute
ds: Any = pyarrow.dataset
MAX_BINS: Final = 700  # bins across a range
MAX_CELLS: Final = 1_000_000  # bins of members in a response
PLACE: Final = "at:"  # prefix of columns with places along further axes
NO_MEMBER: Final = "(no member)"  # name of the last member, if a row has none


def number_members(column: Any, names: Any) -> Ints:
    """Return the number of each row's member; rows without a member have the last number."""
    found = pc.index_in(column, names)
    return pc.fill_null(found, len(names) - 1).to_numpy()  # type: ignore[no-any-return]


class AxisCells(NamedTuple):
    """Number of events and errors by bin and member [cells]; a bin begins at bin * width."""

    width: int
    bin: Array
    member: Array
    rows: Array
    errors: Array


class Axis(Protocol):
    """Axis of all events; places are whole numbers from `low` to `high`."""

    name: str
    column: str  # column of the places
    low: int
    high: int
    is_timed: bool

    def count(self, first: int, last: int) -> int:
        """Return about how many events a range has."""

    def read_cells(self, first: int, last: int) -> AxisCells:
        """Return the cells of a range; bins are relative to `low`."""


class LevelAxis:
    """First axis, with counts in the files `level-K.parquet`."""

    column = "at"

    def __init__(self, folder: Path, description: Mapping[str, Any]) -> None:
        self._folder, self._levels = folder, description["levels"]
        self.low, self.high = int(description["low"]), int(description["high"])
        self.is_timed = bool(description["timed"])
        self.name = "event_time" if self.is_timed else "file"

    def read_level(self, level: int) -> Any:
        """Return the dataset of a level: bin, member, rows, and errors if there are any."""
        return ds.dataset(self._folder / f"level-{level}.parquet", format="parquet")

    @cached_property
    def _sums(self) -> tuple[Ints, Ints]:
        """Bins of the finest level, and the number of rows before each."""
        cells = self.read_level(self._levels[-1]["level"]).to_table(columns=["bin", "rows"])
        sums = cells.group_by("bin").aggregate([("rows", "sum")]).sort_by("bin")
        return sums["bin"].to_numpy(), np.concatenate([[0], np.cumsum(sums["rows_sum"].to_numpy())])

    def count(self, first: int, last: int) -> int:
        """Return the number of events in the finest bins of a range."""
        bins, before = self._sums
        width = self._levels[-1]["width"]
        begin = np.searchsorted(bins, (first - self.low) // width)
        end = np.searchsorted(bins, (last - self.low) // width, side="right")
        return int(before[end] - before[begin])

    def read_cells(self, first: int, last: int) -> AxisCells:
        """Return the cells of the finest level that divides the range into at most `MAX_BINS`."""
        fitting = [one for one in self._levels if (last - first) // one["width"] <= MAX_BINS]
        for level in reversed(fitting or self._levels[:1]):
            width = level["width"]
            bins = (first - self.low) // width, (last - self.low) // width
            mask = (ds.field("bin") >= bins[0]) & (ds.field("bin") <= bins[1])
            cells = self.read_level(level["level"]).to_table(filter=mask)
            if len(cells) <= MAX_CELLS:
                break
        rows = cells["rows"].to_numpy()
        errors = cells["errors"].to_numpy() if "errors" in cells.column_names else 0 * rows
        return AxisCells(width, cells["bin"].to_numpy(), cells["member"].to_numpy(), rows, errors)


class ColumnAxis:
    """Further axis, with places in a column that is read into memory on first use."""

    def __init__(self, events: Any, members: Any, about: Mapping[str, Any]) -> None:
        self._events, self._members = events, members
        self.name = str(about["name"])
        self.column = PLACE + self.name
        self.low, self.high = int(about["low"]), int(about["high"])
        self.is_timed = bool(about["timed"])

    @cached_property
    def _rows(self) -> tuple[Ints, Ints, Ints]:
        """Places in ascending order, with member and errors of each."""
        has_errors = "severity" in self._events.schema.names
        columns = [self.column, "member", *(["severity"] if has_errors else [])]
        table = self._events.to_table(columns=columns, filter=ds.field(self.column).is_valid())
        place = table[self.column].to_numpy()
        order = np.argsort(place, kind="stable")
        number = number_members(table["member"], self._members)
        errors = table["severity"].to_numpy() == ERROR if has_errors else np.zeros(len(place), bool)
        return place[order], number[order], errors[order]

    def count(self, first: int, last: int) -> int:
        """Return the number of events in a range."""
        places = self._rows[0]
        return int(np.searchsorted(places, last, "right") - np.searchsorted(places, first))

    def read_cells(self, first: int, last: int) -> AxisCells:
        """Return the cells of a range in `MAX_BINS` bins."""
        places, member, errors = self._rows
        part = slice(np.searchsorted(places, first), np.searchsorted(places, last, "right"))
        width = max(1, -(-(last - first + 1) // MAX_BINS))
        members = len(self._members)
        key = (places[part] - self.low) // width * members + member[part]
        keys, at = np.unique(key, return_inverse=True)
        counts = [
            np.bincount(at, weights, len(keys)).astype(np.int64)
            for weights in (None, errors[part].astype(np.float64))
        ]
        return AxisCells(width, keys // members, keys % members, *counts)
