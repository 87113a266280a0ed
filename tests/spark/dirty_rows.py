"""Generator of dirty rows: scans of parcels from many producers.

Each parcel is a group of steps that name earlier steps as causes. Delays have a heavy tail, so
effects often arrive before their causes. Faults are mixed in: missing causes, ids with other case
or blanks, nulls, cycles, self-causes, duplicates and conflicts. Equal arguments give equal rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.spark.parts import write_parts

STEPS = ("accepted", "weighed", "paid", "sorted", "loaded", "handed over")
A_PARCEL = 150
BEGIN_US = 1_780_000_000_000_000
LONGEST_US = 2 * 86_400 * 10**6
"""Longest delay between a step and its arrival."""
CONTENT = ("causes", "step", "details")
Row = dict[str, Any]

_DETAILS: list[Any] = [
    ("grams", pa.float64()),
    ("depot", pa.string()),
    ("labels", pa.list_(pa.struct([("code", pa.string()), ("n", pa.int32())]))),
]
_COLUMNS: list[Any] = [
    ("row", pa.int64()),
    ("id", pa.string()),
    ("causes", pa.list_(pa.string())),
    ("parcel", pa.string()),
    ("step", pa.string()),
    ("seen", pa.timestamp("us", tz="UTC")),
]
_MORE: list[Any] = [_DETAILS[0], ("sealed", pa.bool_()), *_DETAILS[1:]]
_ADDED: Any = ("carrier", pa.string())
OLD = pa.schema([*_COLUMNS, ("details", pa.struct(_DETAILS))])
NEW = pa.schema([*_COLUMNS[:4], _ADDED, *_COLUMNS[4:], ("details", pa.struct(_MORE))])
"""The columns after the change: `carrier` and `details.sealed` are added in the middle."""


def make_dirty_rows(parcels: int, seed: int = 11) -> list[Row]:
    """Return some 159 rows a parcel by arrival; `seen` is in microseconds, or None."""
    rng = random.Random(seed)
    rows = [row for number in range(parcels) for row in _make_parcel(number, rng)]
    _add_faults(rows, rng)
    rows += _make_repeats(rows, rng)
    for number, row in enumerate(rows):
        row["row"] = number
    return sorted(rows, key=lambda row: row["seen"] or row["made"])


def assign_files(rows: list[Row], files: int, changed_at: int) -> list[Row]:
    """Number the `file` of each row; rows from file `changed_at` on have the added columns."""
    rng = random.Random(5)
    size = -(-len(rows) // files)
    numbered = [row | {"file": place // size} for place, row in enumerate(rows)]
    for row in numbered:
        if row["file"] >= changed_at:
            row["carrier"] = rng.choice(["north", "south", None])
            row["details"] = row["details"] | {"sealed": rng.random() < 0.9}
    return numbered


def write_files(rows: list[Row], folder: Path, changed_at: int) -> None:
    """Write a Parquet file for each `file`; those from `changed_at` on have the new columns."""
    files: dict[int, list[Row]] = {}
    for row in rows:
        files.setdefault(row["file"], []).append(row)
    for number, part in files.items():
        write_parts(folder, [make_table(part, NEW if number >= changed_at else OLD)], number)


def make_table(rows: list[Row], schema: pa.Schema = OLD) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows],
                                schema)  # fmt: skip


def _make_parcel(number: int, rng: random.Random) -> Iterator[Row]:
    made = BEGIN_US + rng.randrange(86_400 * 10**6)
    ids: list[str] = []
    for count in range(A_PARCEL):
        made += 1 + int(rng.expovariate(1 / 4.0) * 1e6)
        causes = rng.sample(ids[-6:], min(len(ids), rng.choice([0, 1, 1, 1, 2, 3])))
        ids.append(f"Px{number:04}.{count:03}")
        yield {
            "id": ids[-1],
            "causes": causes,
            "parcel": f"parcel {number}",
            "step": STEPS[count % len(STEPS)],
            "made": made,
            "seen": _make_arrival(made, rng),
            "details": _make_details(rng),
        }


def _make_arrival(made: int, rng: random.Random) -> int:
    delay = int(rng.paretovariate(1.2) * 5e5) + rng.randrange(1000)
    return made + min(delay, LONGEST_US)


def _make_details(rng: random.Random) -> Row:
    labels = [
        {"code": f"c{rng.randrange(50)}", "n": rng.randrange(4)}
        for _ in range(rng.choice([0, 1, 2]))
    ]
    return {
        "grams": round(rng.random() * 5000, 1),
        "depot": rng.choice(["A", "b", None]),
        "labels": labels,
    }  # fmt: skip


def _add_faults(rows: list[Row], rng: random.Random) -> None:
    """Give one fault each to about one row in ninety."""
    share = len(rows) // 100_000 + 1
    left = iter(rng.sample(rows, len(rows)))

    def some(count: int) -> list[Row]:
        return [next(left) for _ in range(count * share)]

    ids = [row["id"] for row in rows]
    for row in some(200):
        row["causes"] = [*row["causes"], f"never {row['id']}"]
    for row in some(100):  # mostly of another parcel
        row["causes"] = [*row["causes"], rng.choice(ids)]
    for row in some(66):
        row["causes"] = [*row["causes"], row["id"]]
    for row in some(66):
        row["causes"] = [rng.choice([c.lower(), f"{c} ", f" {c}"]) for c in row["causes"]]
    for row in some(100):
        row["causes"] = [None, *row["causes"], None]
    for row in some(100):
        row["causes"] = row["causes"] * 2
    for row in some(66):
        row["id"] = rng.choice([row["id"].lower(), f" {row['id']}", f"{row['id']}\t"])
    for field, count in (("id", 100), ("parcel", 33), ("causes", 100), ("seen", 66)):
        for row in some(count):
            row[field] = None
    for row in some(20):
        row["id"] = rng.choice(["", "  "])
    for row in some(40):
        row["causes"] = [*(row["causes"] or []), rng.choice(["", " \t"])]
    for row in some(20):  # an indirect effect, most often
        parcel, _, step = (row["id"] or "").partition(".")
        if step.isdigit() and row["causes"] is not None:
            row["causes"] = [*row["causes"], f"{parcel}.{int(step) + rng.randrange(1, 6):03}"]


def _make_repeats(rows: list[Row], rng: random.Random) -> Iterator[Row]:
    """Yield rows once more: later, with other content, and as they are."""
    for row in rng.sample(rows, len(rows) // 20):
        late = (
            None if row["seen"] is None else _make_arrival(row["made"], rng) + rng.randrange(10**7)
        )
        yield row | {"seen": late}
    for row in rng.sample(rows, len(rows) // 100):
        fewer = row["causes"][:-1] if row["causes"] and rng.random() < 0.2 else row["causes"]
        other = row | {"seen": _make_arrival(row["made"], rng) + 1, "details": _make_details(rng)}
        yield other | {"causes": fewer}
    for row in rng.sample(rows, len(rows) // 600):
        yield dict(row)
