"""Input and output of a shard: plan, batch of control columns, leaving rows."""

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
    """Rules of a shard; `patience` and `state_ttl` are in units of the clock.

    `counted`: identities are (member, number). `timed`: rows carry times, which are the clock;
    otherwise the caller's `now` is. `state_ttl` below 0: for good. `numbers`: names are numbers,
    and ties go by their value. `max_held_rows`: the most rows that this shard holds (below 0: no
    limit); `on_overflow`: the fate of the oldest then, "fail", "release" or "drop". `about` is a
    JSON object that describes the stream; a state of another one is refused. `columns` are those of
    the user's rows (None: not checked, and never changed).
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


class Batch(NamedTuple):
    """Control columns of n new rows, in any order.

    `name` is the id, or the member whose `number` it is. `status` is 0, or NULL or BAD for
    rows without identity, which have no links. Links of row r: first[r]:first[r + 1].
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


class Links(NamedTuple):
    """Causes of leaving rows: row k of `ShardOutput` has those from first[k] to first[k + 1]."""

    first: Longs
    name: Text
    number: Longs


class ShardOutput(NamedTuple):
    """The rows that leave, in order of release; rows with a position first, then those set aside.

    `rows` are the user's (None where none were given). `waited` are the awaited causes of a row,
    `missing_causes` those without which it went. `released` is the clock at the release, never
    before that of an earlier micro-batch; NO_TIME: none.
    """

    rows: pyarrow.Table | None
    status: Bits
    position: Longs
    waited_units: Longs
    waited: Links
    missing_causes: Links
    released: Longs


def nothing_new() -> Batch:
    """Return a batch of no rows."""
    none = np.zeros(0, np.int64)
    text = Text(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    bits = np.zeros(0, np.uint8)
    return Batch(text, text, none, none, none, bits, np.zeros(1, np.int64), text, none)


def make_writable(batch: Batch) -> Batch:
    """Copy read-only arrays (Arrow's buffers), for which numba would compile every kernel again."""
    columns: list[Any] = [
        Text(*(np.require(part, requirements="W") for part in column))  # type: ignore[arg-type]
        if isinstance(column, Text)
        else np.require(column, requirements="W")
        for column in batch
    ]
    return Batch(*columns)


def check_same_stream(before: str, now: str) -> None:
    """Compare two JSON objects that describe streams: a checkpoint's, and the present one's.

    An empty text, of old checkpoints, fits all. Raises InputError that names the differences.
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
            hint = " (give checkpoint=, which goes on with the digests of before)"
        raise InputError(
            f"this checkpoint was written by another stream: {'; '.join(changed)}; bring that "
            f"back{hint}, or start from a new checkpoint"
        )
