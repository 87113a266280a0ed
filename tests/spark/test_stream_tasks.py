"""Stream that continues with another number of tasks: equal shards and results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antecede.errors import InputError
from antecede.spark import repartition_stream
from antecede.spark.streams.ordering import order_stream, plan_worker
from antecede.spark.streams.shards import choose_shard_count
from antecede.tables.order.spec import OrderSpec
from tests.spark.parts import write_parts
from tests.spark.test_stream import (
    DECLARED,
    check_as_batch,
    finish,
    make_history,
    source,
    split_rows,
)

PARTITIONS = "spark.sql.shuffle.partitions"
COMPACT = "spark.sql.streaming.fileSink.log.compactInterval"


@pytest.fixture
def settings(rocks: SparkSession) -> Iterator[SparkSession]:
    before = {name: rocks.conf.get(name) for name in (PARTITIONS, COMPACT)}
    yield rocks
    for name, value in before.items():
        rocks.conf.set(name, str(value))


class RepartitionedStream:
    """Stream that reads one file at a time and stops after each."""

    def __init__(self, spark: SparkSession, folder: Path, parts: list[pa.Table]) -> None:
        self.spark, self.folder, self.parts = spark, folder, parts
        self.checkpoint, self.out = str(folder / "checkpoint"), str(folder / "out")
        self.df = source(spark, folder / "in", parts[:1])
        self.came = 1

    def more(self, spec: OrderSpec) -> pa.Table:
        """Add one file, and return all output."""
        write_parts(self.folder / "in", [self.parts[self.came]], self.came)
        self.came += 1
        return self.run(spec)

    def run(self, spec: OrderSpec) -> pa.Table:
        return finish(order_stream(self.df, spec), self.folder)

    def tasks(self) -> set[int]:
        read = self.spark.read.format("state-metadata").load(self.checkpoint)
        return {row.numPartitions for row in read.collect()}


@pytest.mark.slow
@pytest.mark.parametrize("compact_every", [10, 2])
def test_tasks_grow_and_shrink_and_the_stream_goes_on(
    settings: SparkSession, tmp_path: Path, compact_every: int
) -> None:
    settings.conf.set(COMPACT, str(compact_every))
    table = make_history(120, seed=3)
    stream = RepartitionedStream(settings, tmp_path, split_rows(table, 3))
    spec = replace(DECLARED, shards=8, checkpoint=stream.checkpoint)
    stream.run(spec)
    assert stream.tasks() == {2}
    repartition_stream(stream.checkpoint, 4, output=stream.out)
    stream.more(spec)
    assert stream.tasks() == {4}
    repartition_stream(stream.checkpoint, 1, output=stream.out)
    check_as_batch(stream.more(spec), table)
    assert stream.tasks() == {1}


@pytest.mark.slow
def test_a_session_of_other_partitions_goes_on_with_the_shards_of_the_checkpoint(
    settings: SparkSession, tmp_path: Path
) -> None:
    table = make_history(90, seed=4)
    stream = RepartitionedStream(settings, tmp_path, split_rows(table, 2))
    stream.run(replace(DECLARED, shards=6))
    settings.conf.set(PARTITIONS, "5")
    spec = replace(DECLARED, checkpoint=stream.checkpoint)
    assert plan_worker(stream.df, spec).shards == 6
    with pytest.raises(InputError, match=r"shards was 6, is 7; restore that \(shards=6, or"):
        order_stream(stream.df, replace(spec, shards=7))
    with pytest.raises(InputError, match=r"this checkpoint was .*content was None") as caught:
        order_stream(stream.df, replace(spec, content=("id",)))
    assert "shards" not in str(caught.value)
    check_as_batch(stream.more(spec), table)


@pytest.mark.slow
def test_tasks_that_cannot_be_are_refused_and_nothing_is_changed(
    settings: SparkSession, tmp_path: Path
) -> None:
    table = make_history(60, seed=5)
    stream = RepartitionedStream(settings, tmp_path, split_rows(table, 2))
    spec = replace(DECLARED, shards=8, checkpoint=stream.checkpoint)
    with pytest.raises(InputError, match="has no state of a stream"):
        repartition_stream(stream.checkpoint, 4)
    stream.run(spec)
    for tasks in (True, "4", 4.0):
        with pytest.raises(InputError, match=f"tasks={tasks!r}: expected an integer"):
            repartition_stream(stream.checkpoint, tasks)  # type: ignore[arg-type]
    for tasks in (0, 3, 16):
        with pytest.raises(InputError, match=r"the 8 shards of .*; choose from 1, 2, 4, 8$"):
            repartition_stream(stream.checkpoint, tasks)
    with pytest.raises(InputError, match="has 2 tasks already"):
        repartition_stream(stream.checkpoint, 2)
    with pytest.raises(InputError, match="has no log of a file sink"):
        repartition_stream(stream.checkpoint, 4, output=str(tmp_path / "in"))
    assert not (tmp_path / "in" / "_spark_metadata").exists()
    assert stream.tasks() == {2}
    check_as_batch(stream.more(spec), table)


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_read_is_said_before_the_query_starts(
    settings: SparkSession, tmp_path: Path
) -> None:
    stream = RepartitionedStream(settings, tmp_path, split_rows(make_history(40, seed=6), 2))
    spec = replace(DECLARED, shards=4, checkpoint=stream.checkpoint)
    stream.run(spec)
    file = tmp_path / "file"
    file.write_text("no folder")
    for place in (str(file), f"file:{file}"):
        with pytest.raises(InputError, match="is a file: give the checkpoint folder"):
            order_stream(stream.df, replace(spec, checkpoint=place))
    for kept in (tmp_path / "checkpoint" / "state").rglob("*"):
        if kept.suffix in (".zip", ".changelog"):
            kept.unlink()
    with pytest.raises(InputError, match=r"cannot read the state in .*: "):
        order_stream(stream.df, spec)


@pytest.mark.parametrize(("tasks", "shards"), [(1, 32), (2, 32), (3, 48), (32, 32), (200, 200)])
def test_a_new_stream_has_shards_to_grow_into(
    settings: SparkSession, tmp_path: Path, tasks: int, shards: int
) -> None:
    assert choose_shard_count(tasks) == shards
    settings.conf.set(PARTITIONS, str(tasks))
    df = source(settings, tmp_path / "in", [make_history(2)])
    grouped = plan_worker(df, replace(DECLARED, max_held_rows=1000))
    assert (grouped.shards, grouped.plan.max_held_rows) == (shards, -(-1000 // shards))
    alone = plan_worker(df, replace(DECLARED, group=None, max_held_rows=1000))
    assert (alone.shards, alone.plan.max_held_rows) == (tasks, 1000)
