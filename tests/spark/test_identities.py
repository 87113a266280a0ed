"""Ids, causes and blanks on Spark: columns, audit, order, held, past, cut, violations."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.spark import (
    audit,
    check_cut,
    find_quarantined,
    held,
    measure_false_causality,
    order,
    past,
)
from antecede.spark.columns import is_blank, to_cause, to_id
from antecede.tables.audit.engine import audit_events
from antecede.tables.causality import check_cut as local_cut
from antecede.tables.causality import past as local_past
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from antecede.tables.trace import identities
from tests.spark.test_stream import finish, source
from tests.tables.trace.test_identities import FLOATS, ODD, WHITE

TEXT = "id string, causes array<string>"
LOG: list[tuple[str | None, list[str | None] | None]] = [
    ("a", []),
    ("b", ["a", "", "\xa0"]),
    ("c", ["b", None, "\t"]),
    ("d", [" ", ""]),
    ("", ["a"]),
    (" \u3000", []),
    (None, ["a"]),
    (" a", ["a", " a "]),
    ("e", None),
]


def test_expressions_are_the_definition(spark: SparkSession) -> None:
    texts = spark.createDataFrame([(one,) for one in ODD], "x string")
    kind: Any = t.StringType()
    for row in texts.select(
        "x", is_blank(F.col("x")).alias("b"), to_id(F.col("x"), kind).alias("i")
    ).collect():
        assert row.b == identities.is_blank(row.x)
        assert row.i == identities.name_of(row.x)
    for kind in (t.DoubleType(), t.FloatType()):
        values = [one for one in FLOATS if kind != t.FloatType() or one is None or one != 1e300]
        floats = spark.createDataFrame([(one,) for one in values], t.StructType().add("x", kind))
        made = floats.select(
            to_id(F.col("x"), kind).alias("i"), to_cause(F.col("x"), kind).alias("c")
        )
        for one, row in zip(floats.collect(), made.collect(), strict=True):
            assert row.i == identities.name_of(one.x)
            blank = identities.is_blank(one.x)
            assert (row.c is None) == blank
            if not blank and row.i is None:
                ending = identities.unreadable_name(one.x).partition(" ")[2]
                assert row.c.partition(" ")[2] == ending
            elif not blank:
                assert row.c == row.i


def table() -> pa.Table:
    kinds: Any = {"id": pa.string(), "causes": pa.list_(pa.string())}
    return pa.Table.from_pylist(
        [{"id": one, "causes": causes} for one, causes in LOG], pa.schema(kinds)
    )


@pytest.mark.slow
def test_audits_count_alike(spark: SparkSession) -> None:
    log = spark.createDataFrame(LOG, TEXT)
    (row,) = audit(log).collect()
    local = audit_events(table())
    assert row.blank_causes == local.details["blank_causes"] == 6
    assert row.quarantine == local.details["quarantine"] == {"no id": 3}
    assert row.missing_causes == 1
    assert {r.row.id for r in find_quarantined(log).collect()} == {"", " \u3000", None}


@pytest.mark.few(1)
@pytest.mark.parametrize("giant", ["never", "always"])
def test_orders_are_alike(spark: SparkSession, giant: Any) -> None:
    log = spark.createDataFrame(LOG, TEXT)
    made = order(log, id="id", after="causes", large_groups=giant)
    names = ["id", "position", "missing_causes", "antecede_status"]
    local = order_table(table(), OrderSpec(id="id", after=("causes",)))
    found = {tuple(map(repr, row)) for row in made.select(names).collect()}
    assert found == {tuple(map(repr, row.values())) for row in local.select(names).to_pylist()}
    statuses = local["antecede_status"].to_pylist()
    assert statuses == ["ordered"] * 4 + ["null_key"] * 3 + ["missing_cause", "ordered"]


@pytest.mark.slow
def test_a_stream_holds_no_row_for_a_blank(rocks: SparkSession, tmp_path: Path) -> None:
    rows: Any = [
        {"id": one, "after": [white]} for one, white in zip("abcdefgh", WHITE, strict=True)
    ]
    rows += [{"id": "z", "after": ["y", " "]}, {"id": " ", "after": []}]
    kinds: Any = {"id": pa.string(), "after": pa.list_(pa.string())}
    frame = source(rocks, tmp_path / "in", [pa.Table.from_pylist(rows, pa.schema(kinds))])
    made = finish(order(frame, id="id", after="after"), tmp_path)
    assert {*made["id"].to_pylist()} == {" ", *"abcdefgh"}
    assert {row["id"] for row in made.to_pylist() if row["antecede_status"] == "null_key"} == {" "}
    (left,) = held(str(tmp_path / "checkpoint")).collect()
    assert (left.id, left.waits_for) == ("z", ["y"])


@pytest.mark.slow
def test_the_past_along_blanks_and_floats(spark: SparkSession) -> None:
    log = spark.createDataFrame(LOG, TEXT)
    found = past(log, ["c"], id="id", after="causes").select("id").collect()
    assert sorted(row.id for row in found) == ["a", "b"]
    ways: Any = {"id": "id", "after": "after"}
    columns = {"id": pa.array([1, 2, 3]), "after": pa.array([None, 1.0, math.nan])}
    frame = spark.createDataFrame([(1, None), (2, 1.0), (3, math.nan)], "id long, after double")
    for event in (1, 2, 3):
        want = local_past(pa.table(columns), [event], **ways)["id"].to_pylist()
        assert [row.id for row in past(frame, [event], **ways).collect()] == want
    floats = frame.selectExpr("double(id) AS id", "string(try_cast(after AS bigint)) AS after")
    assert [row.id for row in past(floats, [2.0], **ways).collect()] == [1.0]


def test_cuts_know_no_blank_process(spark: SparkSession) -> None:
    rows = [("a", None, "p", 1), ("b", "a", " ", 1), ("c", " ", "q", 1)]
    ways: Any = {"process": "host", "at": "n", "id": "id", "after": "after"}
    frame = spark.createDataFrame(rows, "id string, after string, host string, n int")
    made = check_cut(frame, {"p": 1}, **ways).select("id", "inside").collect()
    names = ("id", "after", "host", "n")
    local = local_cut(
        pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)}), {"p": 1}, **ways
    )
    want = dict(zip(local["id"].to_pylist(), local["inside"].to_pylist(), strict=True))
    assert {row.id: row.inside for row in made} == want == {"a": True, "b": None, "c": False}


@pytest.mark.slow
def test_floats_in_the_schema(spark: SparkSession) -> None:
    rows = [(1.0, [], 0), (2.0, [1.0, math.nan], 1), (2.5, [], 2), (3.0, [0.5, 2.0], 3)]
    log = spark.createDataFrame(rows, "id double, causes array<double>, file_order long")
    (row,) = audit(log).collect()
    assert (row.messages, row.missing_causes, row.blank_causes) == (3, 1, 1)
    assert row.quarantine == {"no id": 1}
    (counts,) = measure_false_causality(log, rules=["arrival"]).collect()
    assert counts.events == 3
