"""Hidden columns, and messages about options and types."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark import OrderSpec, order
from antecede.tables.order.table import order_table
from tests.spark.test_stream import finish, source

ROWS = """VALUES ('a', null, 'g', 1, 'x', named_struct('p', interval '1' month)),
('b', 'a', 'g', 2, 'y', named_struct('p', interval '2' month)),
('b', 'a', 'g', 3, 'z', named_struct('p', interval '2' month)),
('b', 'a', 'g', 4, 'y', named_struct('p', interval '3' month))
AS t(id, after, g, n, note, payload)"""


@pytest.mark.slow
@pytest.mark.parametrize("giant", ["never", "always"])
def test_of_content_columns_only_the_digest_goes_to_python(spark: SparkSession, giant: Any) -> None:
    rows = spark.sql(ROWS)
    ways: dict[str, Any] = {"id": "id", "group": "g", "time": "n", "time_unit": "s"}
    made = rows.transform(order(after="after", content=["payload"], large_groups=giant, **ways))
    plan = made._jdf.queryExecution().executedPlan().toString()
    called = re.findall(r"(?:antecede_order_a_group_a_task|antecede_control)\((.*)\)#", plan)
    if giant == "never":
        assert called
    assert not any("payload" in words.split("xxhash64")[0] for words in called)
    statuses = {row.n: row.antecede_status for row in made.select("n", "antecede_status").collect()}
    assert statuses == {1: "ordered", 2: "ordered", 3: "duplicate", 4: "conflict"}
    months: Any = rows.drop("payload").toArrow()
    months = months.append_column("payload", pa.array([1, 2, 2, 3]))
    local = order_table(months, OrderSpec(after=("after",), content=("payload",), **ways))
    got = made.drop("payload").toArrow().to_pylist()
    assert sorted(map(repr, got)) == sorted(map(repr, local.drop_columns(["payload"]).to_pylist()))
    with pytest.raises(InputError, match="no column nope"):
        rows.transform(order(after="after", content=["nope"], large_groups=giant, **ways))


def test_an_array_of_nothing_is_refused_with_the_cast(spark: SparkSession) -> None:
    rows = spark.sql("values ('a', array()), ('b', array()) as t(id, after)")
    said = r"array<void> has no Arrow equivalent.*cast it, as with cast\('array<string>'\)"
    with pytest.raises(InputError, match=said):
        rows.transform(order(id="id", after="after"))
    typed = rows.withColumn("after", F.col("after").cast("array<string>"))
    got = typed.transform(order(id="id", after="after", large_groups="never")).collect()
    assert {(row.id, row.position) for row in got} == {("a", 0), ("b", 1)}


def test_plain_numbers_as_time_without_a_unit_are_named(
    rocks: SparkSession, tmp_path: Path
) -> None:
    rows = rocks.sql(ROWS)
    add = order(id="id", after="after", group="g", time="n", content=["note"])
    said = r"column n \(int\) has no unit, so waited_ms and released_at are null: give time"
    with pytest.warns(UserWarning, match=said):
        rows.transform(add)
    table = pa.table({"id": ["a"], "after": pa.nulls(1, pa.string()), "n": [7]})
    stream = source(rocks, tmp_path / "in", [table])
    with pytest.warns(UserWarning, match=r"column n \(bigint\) has no unit"):
        stream.transform(order(id="id", after="after", time="n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        rows.transform(order(id="id", after="after", time="n", time_unit="s", large_groups="never"))
        stream.transform(order(id="id", after="after"))


def test_text_as_time_names_the_function_that_reads_it(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", "b", "2026-01-01T00:00:00Z")], "id string, c string, t string"
    )
    with pytest.raises(
        InputError, match=r"column t must be a timestamp.*is string: to_timestamp\(t\)"
    ):
        rows.transform(order(id="id", after="c", time="t"))


def test_patience_without_effect_is_said_and_no_error(rocks: SparkSession, tmp_path: Path) -> None:
    stream = source(rocks, tmp_path / "in", [pa.table({"id": ["a"], "after": ["b"]})])
    with pytest.warns(UserWarning, match="patience='1 hour' has no effect with on_missing='hold'"):
        stream.transform(order(id="id", after="after", patience="1 hour"))


@pytest.mark.slow
def test_ids_that_are_times_go_through_a_stream(rocks: SparkSession, tmp_path: Path) -> None:
    kind = pa.timestamp("us", "UTC")
    rows = pa.table({"id": pa.array([2, 1], kind), "after": pa.array([1, None], kind)})
    stream = source(rocks, tmp_path / "in", [rows]).transform(
        order(id="id", after="after", shards=1)
    )
    got = finish(stream, tmp_path).sort_by("position").to_pylist()
    assert [row["id"].microsecond for row in got] == [1, 2]


def test_a_type_that_a_stream_cannot_hold_is_named(rocks: SparkSession) -> None:
    stream = rocks.readStream.format("rate").load()
    stream = stream.selectExpr("'a' id", "'b' after", "interval '1' month span")
    with pytest.raises(InputError, match=r"column span: type interval.*no Arrow equivalent"):
        stream.transform(order(id="id", after="after"))
