"""Columns of a stream that change between two starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import antecede.spark
from antecede.errors import InputError
from antecede.spark import held, order
from antecede.tables.order.replay.spec import DeliverSpec
from tests.spark.dirty_rows import CONTENT, NEW, OLD, assign_files, make_dirty_rows, write_files
from tests.spark.parts import write_parts
from tests.spark.test_dirty_rows import PARCELS, check_stream
from tests.spark.test_stream import finish, source
from tests.tables.order.logs import NAMES, many_groups

AT = pa.timestamp("us", tz="UTC")
OF = pa.struct([("x", pa.int32())])
V1: Any = pa.schema([("id", pa.string()), ("after", pa.string()), ("of", OF), ("at", AT)])


class RestartedStream:
    """Stream over files that is restarted for each further file."""

    def __init__(self, spark: SparkSession, folder: Path, *, told: bool = True) -> None:
        self.spark, self.folder = spark, folder
        self.checkpoint = str(folder / "checkpoint")
        self.options: dict[str, Any] = {"checkpoint": self.checkpoint} if told else {}
        self.files = 0
        (folder / "in").mkdir()

    def start(self, table: pa.Table, **more: Any) -> dict[str, dict[str, Any]]:
        """Process one more file; return all released rows by id and status.

        `more`: columns that the query adds.
        """
        self.files += 1
        return self.run(self.last(table, self.files).withColumns(more))

    def last(self, table: pa.Table, number: int) -> DataFrame:
        """Write a file, and return the stream with its columns."""
        write_parts(self.folder / "in", [table], number)
        schema = self.spark.createDataFrame(table).schema
        return self.spark.readStream.schema(schema).parquet(str(self.folder / "in"))

    def run(self, df: DataFrame) -> dict[str, dict[str, Any]]:
        made = order(df, id="id", after="after", time="at", shards=2, **self.options)
        self.schema = made.schema
        rows = finish(made, self.folder).to_pylist()
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
    stream = RestartedStream(rocks, tmp_path)
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
    stream = RestartedStream(rocks, tmp_path, told=told)
    stream.start(rows(V1, HELD))
    for said, schema in list(REFUSED.items())[: None if told else 2]:
        df = stream.last(rows(schema, {"id": "z"}), 2)
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
    stream = RestartedStream(rocks, tmp_path, told=False)
    stream.start(rows(V1, HELD))
    with pytest.raises(StreamingQueryException, match=r"column version is NOT NULL.*checkpoint="):
        stream.start(rows(V1, {"id": "z"}), version=F.lit(2))
    found = stream.start(rows(V1, {"id": "a"}), version=F.nullif(F.lit(2), F.lit(0)))
    assert found["b ordered"]["version"] is None
    assert found["a ordered"]["version"] == 2


@pytest.mark.slow
def test_columns_with_dots_keep_their_rows_apart(rocks: SparkSession, tmp_path: Path) -> None:
    stream = RestartedStream(rocks, tmp_path)
    v1: Any = pa.schema([*list(V1)[:2], ("at", AT), ("k.x", pa.string()), ("k.y", pa.string())])
    stream.start(rows(v1, {"id": "b", "after": "a", "k.x": "x", "k.y": "y"}))
    found = stream.start(rows(v1.insert(3, pa.field("k.n", pa.string())), {"id": "a", "k.n": "n"}))
    late = found["b ordered"]
    assert (late["k.x"], late["k.y"], late["k.n"]) == ("x", "y", None)


@pytest.mark.slow
def test_deliveries_with_a_column_added(rocks: SparkSession, tmp_path: Path) -> None:
    spec = DeliverSpec(order="bss", members=NAMES, group="run", tiebreak="number", sent="sent")
    table: Any = many_groups(spec, 1)
    table = table.append_column("note", pa.array(["old"] * len(table)))
    arrived = next(row for row in table.to_pylist() if not row["sent"])
    is_late: Any = pc.and_(pc.equal(table["wire"], arrived["wire"]), pc.invert(table["sent"]))
    first_rows, late = table.filter(pc.invert(is_late)), table.filter(is_late)
    without_color = source(rocks, tmp_path / "in", [first_rows])
    first = finish(antecede.spark.replay_log(without_color, spec), tmp_path).num_rows
    assert first < len(first_rows)
    rest = late.append_column("color", pa.array(["red"] * len(late)))
    write_parts(tmp_path / "in", [rest], 1)
    schema = rocks.read.parquet(str(tmp_path / "in" / "part-001.parquet")).schema
    df = rocks.readStream.schema(schema).parquet(str(tmp_path / "in"))
    with pytest.raises(StreamingQueryException, match=r"column note \(string\) is gone"):
        finish(antecede.spark.replay_log(df.drop("note"), spec), tmp_path)
    got = finish(antecede.spark.replay_log(df, spec), tmp_path).to_pylist()
    assert len(got) == len(table)
    assert sum(row["color"] is None for row in got) == len(first_rows)
    assert {row["note"] for row in got} == {"old"}


@pytest.mark.slow
def test_dirty_rows_with_a_column_added_in_the_middle(rocks: SparkSession, tmp_path: Path) -> None:
    files, changed = 4, 2
    dirty = assign_files(make_dirty_rows(PARCELS), files, changed)
    write_files([row for row in dirty if row["file"] < changed], tmp_path / "in", changed)
    ways: dict[str, Any] = {"id": "id", "after": "causes", "group": "parcel", "time": "seen"}
    ways |= {"shards": 4, "content": CONTENT, "checkpoint": str(tmp_path / "checkpoint")}
    for kinds in (OLD, NEW):
        if kinds is NEW:
            write_files(dirty, tmp_path / "in", changed)
        schema = rocks.createDataFrame(kinds.empty_table()).schema
        df = rocks.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        out = finish(order(df.parquet(str(tmp_path / "in")), **ways), tmp_path)
    waiting = held(str(tmp_path / "checkpoint")).toArrow().to_pylist()
    held_rows = [json.loads(one["row"]) for one in waiting]
    assert any(row["row"] for row in held_rows if "carrier" not in row)
    check_stream(out.to_pylist(), held_rows, dirty)
