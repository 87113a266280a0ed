"""Cuts and recovery lines on Spark: as on Arrow tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import antecede.spark as vocabulary
import antecede.tables.causality as local
from antecede.errors import InputError
from tests.spark.test_causality import frame_of, rows_of
from tests.tables.causality.naive import log
from tests.tables.causality.test_cuts import CLOCK, DECLARED
from tests.tables.causality.test_labels import table_of


@pytest.mark.slow
@pytest.mark.parametrize("ways", [DECLARED, CLOCK])
def test_frames_and_tables_say_the_same(
    spark: SparkSession, tmp_path: Path, ways: dict[str, Any]
) -> None:
    rows = log(9, 80, lost=0.1)
    rows.append(dict(rows[0]))
    rows.append({**rows[1], "member": None, "id": "nobody's"})
    saved = pa.array([row["seq"] % 3 == 0 for row in rows])
    table = table_of(rows).append_column("saved", saved)
    frame = frame_of(spark, table, tmp_path)
    positions = {"a": 7, "b": 5, "c": 9}
    made = vocabulary.check_cut(frame, positions, **ways, group="run").localCheckpoint()
    here = local.check_cut(table, positions, **ways, group="run")
    assert rows_of(made.toArrow()) == rows_of(here)
    seen = {name: sum(map(bool, here[name].to_pylist())) for name in here.column_names}
    assert all(seen[name] for name in ("outside_causes", "in_transit"))
    told = vocabulary.summarize_cut(made, group="run").toArrow()
    assert rows_of(told) == rows_of(local.summarize_cut(here, group="run"))
    whole = vocabulary.summarize_cut(made).toArrow()
    assert rows_of(whole) == rows_of(local.summarize_cut(here))
    named, known = frame.where("member IS NOT NULL"), table.filter(table["member"].is_valid())
    line = vocabulary.recovery_line(named, "saved", **ways, group="run").toArrow()
    assert rows_of(line) == rows_of(local.recovery_line(known, "saved", **ways, group="run"))
    assert any(line["discarded"].to_pylist())


@pytest.mark.slow
def test_refusals(spark: SparkSession) -> None:
    columns = "id string, after string, p string, n int, saved boolean"
    frame = spark.createDataFrame([("a", None, "x", 1, True), ("b", "a", None, 2, None)], columns)
    ways: dict[str, Any] = {"process": "p", "at": "n", "id": "id", "after": "after"}
    for positions, other, said in (
        ({"x": 1, "y": 1}, {}, "unknown process y: it has a position, but no row: proc"),
        ({"x": "one"}, {}, r"positions must map p \(string\) to n \(int\)"),
        ({}, {"at": "m"}, "no column m"),
        ({}, {"process": None}, "process= must name a column"),
    ):
        with pytest.raises(InputError, match=said):
            vocabulary.check_cut(frame, positions, **ways | other)
    with pytest.raises(PySparkException, match="1 events have no p"):
        vocabulary.recovery_line(frame, "saved", **ways).collect()
    with pytest.raises(InputError, match="column n must be boolean"):
        vocabulary.recovery_line(frame, "n", **ways)
    with pytest.raises(InputError, match=r"a column inside already"):
        vocabulary.check_cut(frame.withColumnRenamed("saved", "inside"), {}, **ways)
    empty = vocabulary.check_cut(frame, {}, **ways)
    assert {row.inside for row in empty.collect()} == {False, None}
