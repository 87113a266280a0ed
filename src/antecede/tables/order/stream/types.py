"""Input and output of a shard: plan, batch of control columns, released rows."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from antecede.errors import InputError
from antecede.tables.order.stream.columns import StreamColumns
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.kernels.rows import Bits, Longs


class ShardPlan(NamedTuple):
    """Rules of a shard; durations are in units of the clock, limits below 0 are none.

    - `counted`: ids are (member, number)
    - `timed`: rows have times, which are the clock; otherwise the caller's `now` is
    - `numbers`: names are numbers, and ties are broken by value
    - `about`: JSON object that describes the stream; the state of another stream is rejected
    - `columns`: the user's columns (None: not checked, and never changed)
    """

    counted: bool
    timed: bool
    policy: str = "hold"
    patience: int = 0
    state_ttl: int = -1
    numbers: bool = False
    max_held_rows: int = -1
    on_overflow: str = "fail"
    about: str = ""
    columns: StreamColumns | None = None


class ControlColumns(NamedTuple):
    """Control columns of n new rows; edges of row r: first[r]:first[r + 1].

    `name` is the id, or the member whose `number` it is. `status` is 0, or NULL or BAD without an
    id.
    """

    group: Text
    name: Text
    number: Longs
    time: Longs
    digest: Longs
    status: Bits
    first: Longs
    cause_name: Text
    cause_count: Longs


class ReleasedCauses(NamedTuple):
    """Causes of leaving rows: those of row k of `ShardOutput` are first[k] to first[k + 1]."""

    first: Longs
    name: Text
    number: Longs


class ShardOutput(NamedTuple):
    """Rows that leave, in order of release: first those with a position, then excluded ones.

    `rows` are the user's (None if there were none). `released` is the clock at the release, never
    before that of an earlier micro-batch; NO_TIME: none.
    """

    rows: pyarrow.Table | None
    status: Bits
    position: Longs
    waited_units: Longs
    waited: ReleasedCauses
    missing_causes: ReleasedCauses
    released: Longs


def make_empty_columns() -> ControlColumns:
    """Return a batch of zero rows."""
    none = np.zeros(0, np.int64)
    text = Text(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    bits = np.zeros(0, np.uint8)
    return ControlColumns(text, text, none, none, none, bits, np.zeros(1, np.int64), text, none)


def make_writable(batch: ControlColumns) -> ControlColumns:
    """Copy read-only arrays (Arrow's buffers); numba would compile every kernel again for them."""
    columns: list[Any] = [
        Text(*(np.require(part, requirements="W") for part in column))  # type: ignore[arg-type]
        if isinstance(column, Text)
        else np.require(column, requirements="W")
        for column in batch
    ]
    return ControlColumns(*columns)


def check_same_stream(before: str, now: str) -> None:
    """Raise InputError that names the differences of two streams' JSON descriptions.

    An empty text, of old checkpoints, fits all.
    """
    old, new = (json.loads(text) if text else {} for text in (before, now))
    changed = [
        f"{name} was {old.get(name)!r}, is {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old and old.get(name) != new.get(name)
    ]
    if changed:
        hint = ""
        if old.get("shards") != new.get("shards"):
            hint = f" (shards={old.get('shards')}, or leave it out and give checkpoint=)"
        elif old.get("digests") != new.get("digests"):
            hint = " (give checkpoint=, which continues with the earlier digests)"
        raise InputError(
            f"this checkpoint was written by another stream: {'; '.join(changed)}; restore "
            f"that{hint}, or start from a new checkpoint"
        )
