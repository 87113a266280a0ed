"""Invalid input is rejected on the driver, by name."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark import OrderSpec, order
from antecede.spark.workers import _try_import
from antecede.tables.order.table import order_table
from tests.spark.parts import run_python
from tests.spark.test_stream import finish, source

AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


# -- columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("id timestamp, after timestamp_ntz", "can never be equal"),
        ("id bigint, after array<timestamp>", "can never be equal"),
        ("id decimal(9,2), after string", "can never be equal"),
        ("id interval day, after string", "column id has type duration.*expected numbers, text"),
        ("id variant, after string", "column id"),
    ],
)
def test_types_that_cannot_match_are_refused_before_anything_runs(
    spark: SparkSession, schema: str, said: str
) -> None:
    df = spark.createDataFrame([], schema)
    with pytest.raises(InputError, match=said):
        df.transform(order(id="id", after="after"))


def test_names_that_spark_takes_for_one(spark: SparkSession) -> None:
    made = order(id="id", after="after")
    twice = spark.createDataFrame([("a", "b", "c")], "id string, after string, x string")
    for name, said in (
        ("id", "two columns have the name id"),
        ("ID", "columns ID, id differ in case only|id, ID"),
        ("Position", "columns Position, position differ in case only"),
        ("__antecede_shard", "__antecede_shard: reserved column name"),
    ):
        with pytest.raises(InputError, match=said):
            twice.toDF("id", "after", name).transform(made)


@pytest.mark.slow
def test_names_with_dots_and_backticks_are_whole_names(rocks: SparkSession, tmp_path: Path) -> None:
    names = ["a.id", "af`ter", "the group.x"]
    values = (["y", "x"], ["x", None], ["g", "g"])
    rows = pa.table(dict(zip(names, values, strict=True)))
    spec = OrderSpec(id=names[0], after=(names[1],), group=names[2])
    local = sorted(map(repr, order_table(rows, spec).to_pylist()))
    made = order(id=names[0], after=names[1], group=names[2])
    batch = rocks.createDataFrame(rows).transform(made)
    assert sorted(map(repr, batch.toArrow().to_pylist())) == local
    stream = source(rocks, tmp_path / "in", [rows]).transform(made)
    assert sorted(map(repr, finish(stream, tmp_path).to_pylist())) == local


def test_columns_are_named_by_text(spark: SparkSession) -> None:
    wrongs: tuple[dict[str, Any], ...] = (
        {"id": F.col("id"), "after": "after"},
        {"id": "id", "after": F.col("after")},
    )
    for wrong in wrongs:
        with pytest.raises(InputError, match=r"must be a column name \(text\), not Column"):
            order(**wrong)


# -- time ------------------------------------------------------------------------------------


def test_patience_over_plain_numbers_without_a_unit(rocks: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "after": pa.nulls(1, pa.string()), "at": [7]})
    df = source(rocks, tmp_path / "in", [rows])
    choices: tuple[dict[str, Any], ...] = (
        {"on_missing": "release"},
        {"on_missing": "drop"},
        {"state_ttl": "1 hour"},
    )
    for options in choices:
        with pytest.raises(InputError, match="column at has no unit: give time_unit="):
            df.transform(order(id="id", after="after", time="at", **options))
    with pytest.warns(UserWarning, match="give time_unit="):
        assert df.transform(order(id="id", after="after", time="at")).isStreaming


# -- a checkpoint belongs to a stream --------------------------------------------------------

FIRST: dict[str, Any] = {"id": "id", "after": "after", "group": "g", "time": "at", "shards": 4}
BY_CLOCK = {"id": None, "after": (), "group": None, "clock": "v", "member": "id"}
CHANGED: dict[str, dict[str, Any]] = {
    "id was 'id (string)', is 'other (string)'": {"id": "other"},
    "time was 'at (timestamp)', is None": {"time": None},
    "group was 'g (string)', is None": {"group": None},
    "shards was 4, is 5": {"shards": 5},
    "on_missing was 'hold', is 'release'": {"on_missing": "release"},
    "after was ['after (string)'], is ['other (string)']": {"after": "other"},
    "member was None, is 'id": BY_CLOCK,
}


def table_of(name: str, group: str) -> pa.Table:
    return pa.table(
        {
            "id": [name],
            "other": ["o" + name],
            "after": pa.nulls(1, pa.string()),
            "g": [group],
            "at": pa.array([AT], pa.timestamp("us", "UTC")),
            "v": pa.array([[1]], pa.list_(pa.int64())),
        }
    )


@pytest.mark.slow
def test_a_stream_started_again_as_another_one_is_refused(
    rocks: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    finish(source(rocks, folder, [table_of("a", "x")]).transform(order(**FIRST)), tmp_path)
    for name, group in (("b", "y"), ("c", "z"), ("d", "w")):
        pa.parquet.write_table(table_of(name, group), folder / f"more-{name}.parquet")
    again = rocks.readStream.schema(rocks.read.parquet(str(folder)).schema).parquet(str(folder))
    for said, other in CHANGED.items():
        options: dict[str, Any] = {**FIRST, **other}
        with pytest.raises(StreamingQueryException, match=re.escape(said)):
            finish(again.transform(order(**options)), tmp_path)
    rest = finish(again.transform(order(**FIRST, max_held_rows=99)), tmp_path)
    assert sorted(map(str, rest.column("id").to_pylist())) == ["a", "b", "c", "d"]


# -- interpreters ----------------------------------------------------------------------------

OWN_SESSION = """
import os
from pyspark.sql import SparkSession
from antecede.spark.java import use_java
from antecede.spark import order
use_java()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
df = spark.sql("values ('a', 'b'), ('b', null) as t(id, after)")
made = df.transform(order(id="id", after="after")).orderBy("position")
print("ORDER", [row.id for row in made.collect()])
"""


def run_own(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with its own session, where `python3` on the PATH lacks all packages."""
    fake = path / "python3"
    fake.write_text("#!/bin/sh\necho 'ModuleNotFoundError: this is no python' >&2\nexit 1\n")
    fake.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
    kept |= {"PATH": f"{path}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    return run_python(OWN_SESSION, env=kept)


@pytest.mark.slow
def test_a_session_of_ones_own_works_without_pyspark_python(
    spark: SparkSession, tmp_path: Path
) -> None:
    done = run_own(tmp_path)
    assert "ORDER ['b', 'a']" in done.stdout, done.stderr[-2000:]


@pytest.mark.slow
def test_an_interpreter_without_antecede_is_named_in_one_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    done = run_own(tmp_path, PYSPARK_PYTHON=str(tmp_path / "python3"))
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("antecede.errors.SetupError: Spark's Python workers run ")
    assert f"set PYSPARK_PYTHON={sys.executable} before" in last
    assert "local_session()" in last


@pytest.mark.slow
def test_workers_that_have_it_say_nothing(spark: SparkSession) -> None:
    assert _try_import(spark.sparkContext) == ""
