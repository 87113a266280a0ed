"""Rows for streams that are killed: held over batches, duplicates, conflicts, missing causes.

Rows arrive some seconds (of event time) after their creation, so effects often arrive some
micro-batches before their causes. `state_ttl` is shorter than the whole stream and longer than any
reference, so the state expires ids and the result equals that of a batch.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SPEC = OrderSpec(
    id="id",
    after=("after",),
    group="group",
    time="at",
    content=("note",),
    on_missing="release",
    patience="10 seconds",
    state_ttl="30 seconds",
    shards=4,
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("after", pa.list_(pa.string())),
        ("group", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
    ]
)
DDL = "id string, after array<string>, `group` string, at timestamp, note string"
A_BATCH = 100
_PACE_S = 0.05
"""Seconds of event time between two rows."""


def make_files(batches: int, seed: int, a_batch: int = A_BATCH) -> list[pa.Table]:
    """Return the rows of each micro-batch; the last one only advances the clock."""
    rng = random.Random(seed)
    past: dict[str, list[tuple[float, str]]] = {f"g{k}": [] for k in range(12)}
    coming: list[tuple[float, dict[str, Any]]] = []
    size = batches * a_batch
    number = 0
    while len(coming) < size:
        made = number * _PACE_S
        group = rng.choice(list(past))
        near = [name for when, name in past[group] if when > made - 8]
        after = rng.sample(near, min(len(near), rng.randrange(4)))
        if rng.random() < 0.02:
            after.append(f"never-{number}")
        name, at = f"{rng.randrange(1000)}-{number}", made + rng.uniform(-1.5, 1.5)
        row = {"id": name, "after": after, "group": group, "at": _make_time(at), "note": "x"}
        comes = made + rng.random() ** 3 * 6
        coming.append((comes, row))
        if rng.random() < 0.06:
            coming.append((comes + rng.random() * 6, row))
        elif rng.random() < 0.03:  # other content: later by its time, and in a later batch
            other = {**row, "at": _make_time(at + 7), "note": "other"}
            coming.append((comes + 7, other))
        past[group].append((made, name))
        number += 1
    coming = sorted(coming[:size], key=lambda pair: pair[0])
    rows = [row for _, row in coming]
    parts = [rows[k : k + a_batch] for k in range(0, size, a_batch)]
    end = _make_time(number * _PACE_S + 1000)
    parts.append([{"id": "end", "after": [], "group": "end", "at": end, "note": ""}])
    return [pa.Table.from_pylist(part, SCHEMA) for part in parts]


def _make_time(seconds: float) -> dt.datetime:
    return START + dt.timedelta(milliseconds=round(seconds * 1000))


def check_rows(
    got: Iterable[dict[str, Any]], parts: list[pa.Table], undisturbed: pa.Table | None = None
) -> None:
    """Compare rows of a killed stream with a batch, and with an undisturbed stream.

    A batch does not determine positions, release clocks, and waits behind a missing cause.
    `undisturbed` read the same micro-batches and determines all.
    """
    rows = list(got)
    table = pa.concat_tables(parts)
    batch = order_table(table, SPEC).to_pylist()
    behind = _find_behind_missing(batch)
    assert Counter(_is_settled(row, behind) for row in rows) == Counter(
        _is_settled(row, behind) for row in batch
    )
    _check_positions(rows)
    if undisturbed is not None:
        assert Counter(map(repr, rows)) == Counter(map(repr, undisturbed.to_pylist()))


def _is_settled(row: dict[str, Any], behind: set[str]) -> str:
    free = ["position", "released_at"]
    free += ["waited_for", "waited_ms"] if row["id"] in behind else []
    return repr({key: value for key, value in row.items() if key not in free})


def _find_behind_missing(rows: list[dict[str, Any]]) -> set[str]:
    """Ids that have a cause in their past that never came."""
    names = {row["id"] for row in rows}
    after = {row["id"]: row["after"] for row in rows}
    behind = {name for name, causes in after.items() if not names.issuperset(causes)}
    size = -1
    while size < len(behind):
        size = len(behind)
        behind |= {name for name, causes in after.items() if behind.intersection(causes)}
    return behind


def _check_positions(rows: list[dict[str, Any]]) -> None:
    place = {row["id"]: row["position"] for row in rows if row["position"] is not None}
    for row in rows:
        if row["position"] is not None:
            assert all(place[c] < row["position"] for c in row["after"] if c in place), row
    for group in {row["group"] for row in rows}:
        own = [r["position"] for r in rows if r["group"] == group and r["position"] is not None]
        assert sorted(own) == list(range(len(own)))
