"""Odd values: local engine, Spark batch and stream give equal results for every row."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antecede.spark.ordering import order_with
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.spark.test_stream import finish, source

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
IDS: dict[str, tuple[Any, Any, list[Any]]] = {
    "text": (
        pa.string(),
        pa.string(),
        ["", " ", "a", "A", "10", "2", "é", "🎈", "a:1", "null", "x\ny", "\t", "\xa0", " a"],
    ),
    "numbers": (pa.int64(), pa.int32(), [0, -1, 2, 10, 7, 2**31 - 1, -(2**31), 3, 4, 5, 6]),
    "decimals": (
        pa.decimal128(12, 2),
        pa.decimal128(12, 4),
        [Decimal(n) / 4 for n in (0, 1, -1, 2, 40, 41, 42, 100, 1000, 3, 5)],
    ),
    "bytes": (pa.binary(), pa.binary(), [bytes([n, 255 - n]) for n in range(0, 220, 20)]),
    "floats": (
        pa.float64(),
        pa.float64(),
        [0.0, -0.0, 1.0, 1e300, 0.1, float("inf"), float("nan"), 10.0, 2.0, 3.0, 4.0, 5.0, -7.0],
    ),
    "days": (pa.date32(), pa.date32(), [dt.date(2026, 1, n) for n in range(1, 12)]),
    "flags": (pa.bool_(), pa.bool_(), [True, False]),
}
UNLIKE: dict[str, tuple[Any, Any, list[Any]]] = {
    "numbers and floats": (pa.int64(), pa.float64(), [0, 1, 2, 3, 4, 5, 6, 7, 10, 20, 30]),
    "floats and text": (
        pa.float64(),
        pa.string(),
        [0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 5.0, 6.0, 10.0, float("nan")],
    ),
}
"""Types of ids and causes that Python does not find equal."""
GROUPS = (None, "", " ", "g", "G", "é")


def to_cause(value: Any, kind: Any) -> Any:
    """Return an id as a value of the type of causes."""
    return f"{value:.0f}" if isinstance(value, float) and pa.types.is_string(kind) else value


def history(case: str, seed: int, size: int = 60) -> pa.Table:
    """Return rows with duplicates, nulls, empty and null arrays, missing causes, cycles."""
    kind, other, values = (IDS | UNLIKE)[case]
    rng = random.Random(seed)
    moments = rng.sample(range(size), size)  # of equal ones in one micro-batch a digest decides
    rows = []
    for k in range(size):
        causes = [
            to_cause(rng.choice([*values, None]), other) for _ in range(rng.choice((0, 0, 1, 1, 2)))
        ]
        rows.append(
            {
                "id": None if rng.random() < 0.05 else rng.choice(values),
                "after": None if rng.random() < 0.2 else causes,
                "also": to_cause(rng.choice(values), other) if rng.random() < 0.1 else None,
                "group": rng.choice(GROUPS) if k % 3 else f"own-{k // 6}",
                "at": START + dt.timedelta(seconds=moments[k]),
                "note": rng.choice("ab"),
            }
        )
    kinds = {"id": kind, "after": pa.list_(other), "also": other, "group": pa.string()}
    kinds |= {"at": pa.timestamp("us", "UTC"), "note": pa.string()}
    return pa.Table.from_pylist(rows, pa.schema(kinds))


NAMES = ("group", "id", "waited_for", "missing_causes", "waited_ms", "antecede_status")


def list_outcomes(table: pa.Table, *more: str) -> list[tuple[str, ...]]:
    """Return the outcome of each row, sorted."""
    return sorted(tuple(repr(row[name]) for name in (*NAMES, *more)) for row in table.to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("case", IDS | UNLIKE)
def test_three_engines_say_the_same(rocks: SparkSession, tmp_path: Path, case: str) -> None:
    spec = OrderSpec(
        id="id",
        after=("after", "also"),
        group="group",
        time="at",
        content=("note",),
        on_missing="release",
        patience="0 s",
    )
    table = history(case, seed=len(case))
    local = order_table(table, spec)
    assert len(set(local.column("antecede_status").to_pylist())) >= 4
    frame = source(rocks, tmp_path / "in", [table])
    batch = rocks.read.parquet(str(tmp_path / "in")).transform(order_with(spec)).toArrow()
    assert list_outcomes(batch, "position") == list_outcomes(local, "position")
    streamed = finish(frame.transform(order_with(spec)), tmp_path)
    assert list_outcomes(streamed) == list_outcomes(local)
