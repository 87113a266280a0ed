"""Dirty rows through batch and stream, compared row for row with a model in plain sets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from antecede.spark import held, order
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from pipeline.processes import count_batches
from tests.spark.dirty_model import (
    Outcome,
    compute_outcomes,
    compute_stream_outcomes,
    find_differences,
    find_twins,
    list_causes,
    read_outcome,
)
from tests.spark.dirty_rows import (
    CONTENT,
    NEW,
    OLD,
    Row,
    assign_files,
    make_dirty_rows,
    make_table,
    write_files,
)
from tests.spark.killing import DEADLINE_S, kill_within_a_batch, start

PARCELS = 20
FULL = int(os.environ.get("ANTECEDE_SOAK_PARCELS", "2000"))
"""2,000 parcels are 318,500 rows."""
FILES = 24
WAYS: dict[str, Any] = {"id": "id", "after": "causes", "time": "seen", "content": CONTENT}


def test_the_rows_are_dirty_and_always_the_same() -> None:
    rows = make_dirty_rows(PARCELS)
    assert rows == make_dirty_rows(PARCELS)
    statuses = {outcome.status for outcome in compute_outcomes(rows).values()}
    expected = "ordered missing_cause duplicate conflict self_cause cycle null_key"
    assert statuses == set(expected.split())
    assert any(outcome.waited_for for outcome in compute_outcomes(rows).values())


@pytest.mark.parametrize("group", ["parcel", None])
def test_the_local_engine_agrees_with_the_model(group: str | None) -> None:
    rows = make_dirty_rows(PARCELS)
    spec = OrderSpec(group=group, **WAYS | {"after": ("causes",)})
    got = order_table(make_table(rows), spec).to_pylist()
    assert (
        find_differences(got, compute_outcomes(rows, grouped=group is not None), find_twins(rows))
        == ""
    )


@pytest.mark.slow
@pytest.mark.parametrize(("group", "giant"), [("parcel", "auto"), (None, "auto"), (None, "always")])
def test_a_batch_agrees_with_the_model(
    spark: SparkSession, tmp_path: Path, group: str | None, giant: Any
) -> None:
    check_batch(spark, tmp_path, make_dirty_rows(PARCELS), group, giant)


@pytest.mark.soak
@pytest.mark.parametrize("group", ["parcel", None])
def test_a_large_batch_agrees_with_the_model(
    spark: SparkSession, tmp_path: Path, group: str | None
) -> None:
    check_batch(spark, tmp_path, make_dirty_rows(FULL), group, "auto")


def check_batch(
    spark: SparkSession, folder: Path, rows: list[Row], group: str | None, giant: Any
) -> None:
    pq.write_table(make_table(rows), folder / "rows.parquet")
    made = spark.read.parquet(str(folder / "rows.parquet"))
    got = made.transform(order(group=group, large_groups=giant, **WAYS)).toArrow().to_pylist()
    assert (
        find_differences(got, compute_outcomes(rows, grouped=group is not None), find_twins(rows))
        == ""
    )
    details = {row["row"]: row["details"] for row in rows}
    assert all(row["details"] == details[row["row"]] for row in got)


@pytest.mark.soak
def test_a_stream_that_is_killed_twice_with_columns_added_in_the_middle(
    spark: SparkSession, tmp_path: Path
) -> None:
    changed = FILES // 2
    rows = assign_files(make_dirty_rows(FULL), FILES, changed)
    for kinds, kill_after in ((OLD, changed // 2), (NEW, changed + changed // 2)):
        pq.write_table(kinds.empty_table(), tmp_path / "columns.parquet")
        known = rows if kinds is NEW else [row for row in rows if row["file"] < changed]
        write_files(known, tmp_path / "in", changed)
        kill_within_a_batch(tmp_path, start(tmp_path, "dirty"), kill_after)
        last = start(tmp_path, "dirty")
        assert last.wait(4 * DEADLINE_S) == 0, (tmp_path / "log").read_text()
        assert count_batches(tmp_path, "commits") == (FILES if kinds is NEW else changed)
    out = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out"))
    waiting = held(str(tmp_path / "checkpoint")).toArrow().to_pylist()
    check_stream(out.toArrow().to_pylist(), [json.loads(one["row"]) for one in waiting], rows)


def check_stream(got: Iterable[Row], waiting: Iterable[Row], rows: list[Row]) -> None:
    """Compare the released and held rows of a stream with the model.

    Positions depend on the micro-batches: they must be causal and without gaps.
    """
    found, held_rows = list(got), {row["row"] for row in waiting}
    repeats = ("duplicate", "conflict")
    taken = {row["row"] for row in found if row["antecede_status"] not in repeats} | held_rows
    expected, held = compute_stream_outcomes(rows, taken)
    unplaced = {row: outcome._replace(position=None) for row, outcome in expected.items()}
    assert (
        find_differences(({**row, "position": None} for row in found), unplaced, find_twins(rows))
        == ""
    )
    assert held_rows == held
    places = {(r["parcel"], r["id"]): r["position"] for r in found if r["position"] is not None}
    for row in found:
        if row["position"] is not None:
            causes = [places[row["parcel"], cause] for cause in list_causes(row)]
            assert all(place < row["position"] for place in causes), row
    for parcel in {row["parcel"] for row in found} - {None}:
        own = sorted(place for (name, _), place in places.items() if name == parcel)
        assert own == list(range(len(own)))


def test_what_the_comparison_says_of_a_wrong_row() -> None:
    rows = make_dirty_rows(PARCELS)
    made = order_table(make_table(rows), OrderSpec(group="parcel", **WAYS | {"after": ("causes",)}))
    got = made.to_pylist()
    got[0]["antecede_status"] = "late"
    assert "only found 1x" in find_differences(got, compute_outcomes(rows), find_twins(rows))
    assert read_outcome(got[0]) != Outcome("ordered")
