"""Columns of a running stream that change between two starts, on a real session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import antecede.spark
from antecede.errors import InputError
from antecede.spark import held, order
from antecede.tables.order.replay.spec import DeliverSpec
from tests.spark.dirty_rows import CONTENT, NEW, OLD, dirty_rows, in_files, write_files
from tests.spark.test_dirty_rows import PARCELS, check_stream
from tests.tables.order.logs import NAMES, many_groups

AT = pa.timestamp("us", tz="UTC")
OF = pa.struct([("x", pa.int32())])
V1: Any = pa.schema([("id", pa.string()), ("after", pa.string()), ("of", OF), ("at", AT)])


DEADLINE_S = 900
"""A query that takes longer hangs; on a busy machine one takes minutes."""


class Stream:
    """A stream over files that is started anew for each further file."""

    def __init__(self, spark: SparkSession, folder: Path, *, told: bool = True) -> None:
        self.spark, self.folder = spark, folder
        self.checkpoint = str(folder / "checkpoint")
        self.options: dict[str, Any] = {"checkpoint": self.checkpoint} if told else {}
        self.files = 0
        (folder / "in").mkdir()

    def start(self, table: pa.Table, **more: Any) -> dict[str, dict[str, Any]]:
        """Work one more file off; return all rows that ever left, by id and status.

        `more`: columns that the query adds.
        """
        path = self.folder / "in" / f"part-{self.files:03}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + self.files,) * 2)
        self.files += 1
        schema = self.spark.read.parquet(str(path)).schema
        df = self.spark.readStream.schema(schema).parquet(str(self.folder / "in"))
        return self.run(df.withColumns(more) if more else df)

    def run(self, df: DataFrame) -> dict[str, dict[str, Any]]:
        made = order(df, id="id", after="after", time="at", shards=2, **self.options)
        self.schema = made.schema
        return left_by(run(made, self.folder))


def run(made: DataFrame, folder: Path) -> DataFrame:
    """Run a query over all there is; return what its sink has by then."""
    out = str(folder / "out")
    query = (
        made.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(out)
    )
    try:
        assert query.awaitTermination(DEADLINE_S)
    finally:
        query.stop()
    return made.sparkSession.read.option("mergeSchema", "true").parquet(out)


def left_by(df: DataFrame) -> dict[str, dict[str, Any]]:
    rows = df.toArrow().to_pylist()
    return {f"{row['id']} {row['antecede_status']}": row for row in rows}


def rows(schema: pa.Schema, *given: dict[str, Any]) -> pa.Table:
    made = [{"at": 1_780_000_000_000_000, **row} for row in given]
    return pa.Table.from_pylist(made, schema)


HELD = {"id": "b", "after": "a", "of": {"x": 1}}
OUT = {"id": "c", "of": {"x": 2}}


@pytest.mark.slow
def test_columns_and_fields_are_added_while_rows_are_held(
    rocks: SparkSession, tmp_path: Path
) -> None:
    """In the middle, and NOT NULL at the end; the zone of the session changes as well."""
    stream = Stream(rocks, tmp_path)
    stream.start(rows(V1, HELD, OUT))
    of = pa.struct([("y", pa.string()), ("x", pa.int32())])
    v2 = V1.set(2, pa.field("of", of)).insert(1, pa.field("color", pa.string()))
    zone = rocks.conf.get("spark.sql.session.timeZone")
    rocks.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        again = {"id": "c", "of": {"x": 2, "y": "new"}, "color": "red"}
        other = {"id": "b", "after": "a", "of": {"x": 9}}
        stream.start(rows(v2, again, other), version=F.lit(2))
    finally:
        rocks.conf.set("spark.sql.session.timeZone", str(zone))
    assert stream.schema["version"].nullable
    found = stream.start(rows(v2, {"id": "a", "color": "blue"}), version=F.lit(3))
    assert stream.schema["version"].nullable  # rows of the first start may be held even now
    assert sorted(found) == ["a ordered", "b conflict", "b ordered", "c duplicate", "c ordered"]
    late = found["b ordered"]
    assert (late["of"], late["color"], late["version"]) == ({"x": 1, "y": None}, None, None)
    assert late["at"] == found["c ordered"]["at"]
    assert (found["a ordered"]["color"], found["a ordered"]["version"]) == ("blue", 3)
    assert found["c duplicate"]["version"] == 2


REFUSED: dict[str, pa.Schema] = {
    r"column of \(struct<x:int>\) is gone: add withColumn\(\"of\", lit\(None\)": V1.remove(2),
    "of was struct<x:int>, is bigint: cast it back": V1.set(2, pa.field("of", pa.int64())),
    r"field of.x \(int\) is gone": V1.set(2, pa.field("of", pa.struct([("y", pa.int32())]))),
    "of.x was int, is bigint": V1.set(2, pa.field("of", pa.struct([("x", pa.int64())]))),
    "of is now Of: rename it back": V1.set(2, V1[2].with_name("Of")),
}


@pytest.mark.slow
@pytest.mark.parametrize("told", [True, False])
def test_columns_that_are_gone_or_retyped_are_refused_at_the_start(
    rocks: SparkSession, tmp_path: Path, told: bool
) -> None:
    """Without `checkpoint=` in the first micro-batch, also if no row of it has anything held."""
    stream = Stream(rocks, tmp_path, told=told)
    stream.start(rows(V1, HELD))
    path = tmp_path / "in" / "part-001.parquet"
    for said, schema in list(REFUSED.items())[: None if told else 2]:
        pq.write_table(rows(schema, {"id": "z"}), path)
        os.utime(path, (1_700_000_001,) * 2)
        now = rocks.read.parquet(str(path)).schema
        df = rocks.readStream.schema(now).parquet(str(tmp_path / "in"))
        with pytest.raises(InputError if told else StreamingQueryException, match=said):
            stream.run(df)
    moved = pa.schema(list(V1)[::-1])
    found = stream.start(rows(moved, {"id": "a", "of": {"x": 5}}, HELD))
    assert sorted(found) == ["a ordered", "b duplicate", "b ordered"]
    assert found["b ordered"]["of"] == {"x": 1}


@pytest.mark.slow
def test_a_column_that_is_never_null_needs_the_checkpoint(
    rocks: SparkSession, tmp_path: Path
) -> None:
    stream = Stream(rocks, tmp_path, told=False)
    stream.start(rows(V1, HELD))
    with pytest.raises(StreamingQueryException, match=r"column version is NOT NULL.*checkpoint="):
        stream.start(rows(V1, {"id": "z"}), version=F.lit(2))
    found = stream.start(rows(V1, {"id": "a"}), version=F.nullif(F.lit(2), F.lit(0)))
    assert found["b ordered"]["version"] is None
    assert found["a ordered"]["version"] == 2


@pytest.mark.slow
def test_columns_with_dots_keep_their_rows_apart(rocks: SparkSession, tmp_path: Path) -> None:
    """A column that is added in the middle moves no value into another column."""
    stream = Stream(rocks, tmp_path)
    v1: Any = pa.schema([*list(V1)[:2], ("at", AT), ("k.x", pa.string()), ("k.y", pa.string())])
    stream.start(rows(v1, {"id": "b", "after": "a", "k.x": "x", "k.y": "y"}))
    found = stream.start(rows(v1.insert(3, pa.field("k.n", pa.string())), {"id": "a", "k.n": "n"}))
    late = found["b ordered"]
    assert (late["k.x"], late["k.y"], late["k.n"]) == ("x", "y", None)


@pytest.mark.slow
def test_deliveries_with_a_column_added(rocks: SparkSession, tmp_path: Path) -> None:
    """Held rows of `deliver` get null as well; a column that is gone is refused."""
    spec = DeliverSpec(order="bss", members=NAMES, group="run", tiebreak="number", sent="sent")
    table: Any = many_groups(spec, 1)
    table = table.append_column("note", pa.array(["old"] * len(table)))
    arrived = next(row for row in table.to_pylist() if not row["sent"])
    is_late: Any = pc.and_(pc.equal(table["wire"], arrived["wire"]), pc.invert(table["sent"]))
    first_rows, late = table.filter(pc.invert(is_late)), table.filter(is_late)
    (tmp_path / "in").mkdir()
    pq.write_table(first_rows, tmp_path / "in" / "part-0.parquet")
    reader = rocks.readStream.schema(rocks.read.parquet(str(tmp_path / "in")).schema)
    without_color = reader.parquet(str(tmp_path / "in"))
    first = run(antecede.spark.deliver(without_color, spec), tmp_path).count()
    assert first < len(first_rows)
    rest = late.append_column("color", pa.array(["red"] * len(late)))
    pq.write_table(rest, tmp_path / "in" / "part-1.parquet")
    schema = rocks.read.parquet(str(tmp_path / "in" / "part-1.parquet")).schema
    gone = rocks.readStream.schema(schema).parquet(str(tmp_path / "in")).drop("note")
    with pytest.raises(StreamingQueryException, match=r"column note \(string\) is gone"):
        run(antecede.spark.deliver(gone, spec), tmp_path)
    df = rocks.readStream.schema(schema).parquet(str(tmp_path / "in"))
    got = run(antecede.spark.deliver(df, spec), tmp_path).toArrow().to_pylist()
    assert len(got) == len(table)
    assert sum(row["color"] is None for row in got) == len(first_rows)
    assert {row["note"] for row in got} == {"old"}


@pytest.mark.slow
def test_dirty_rows_with_a_column_added_in_the_middle(rocks: SparkSession, tmp_path: Path) -> None:
    """Rows wait over the change, and repeats come on both sides of it."""
    files, changed = 4, 2
    dirty = in_files(dirty_rows(PARCELS), files, changed)
    write_files([row for row in dirty if row["file"] < changed], tmp_path / "in", changed)
    ways: dict[str, Any] = {"id": "id", "after": "causes", "group": "parcel", "time": "seen"}
    ways |= {"shards": 4, "content": CONTENT, "checkpoint": str(tmp_path / "checkpoint")}
    for kinds in (OLD, NEW):
        if kinds is NEW:
            write_files(dirty, tmp_path / "in", changed)
        schema = rocks.createDataFrame(kinds.empty_table()).schema
        df = rocks.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        out = run(order(df.parquet(str(tmp_path / "in")), **ways), tmp_path)
    waiting = held(str(tmp_path / "checkpoint")).toArrow().to_pylist()
    held_rows = [json.loads(one["row"]) for one in waiting]
    assert any(row["row"] for row in held_rows if "carrier" not in row)
    check_stream(out.toArrow().to_pylist(), held_rows, dirty)
