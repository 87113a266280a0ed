from __future__ import annotations

import dataclasses
import datetime as dt
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import antecede.spark
from antecede.errors import InputError
from antecede.tables.audit.engine import audit, audit_events
from antecede.tables.trace.arrow import SCHEMA, read, to_batch
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.tables.order.reference import random_rows


def sample(runs: int) -> pa.Table:
    """Return runs with cycles, self-causes, repeated rows, conflicts and receipts."""
    rng = random.Random(runs)
    events = [
        Event(
            run=f"run {k}" if runs > 1 else None,
            id=row.id,
            member=rng.choice(("a", "b", "c", None)),
            causes=tuple(p for p in row.after if p is not None),
            arrival=row.time,
            send_time=rng.randrange(100) if k else None,
        )
        for k in range(runs)
        for row in random_rows(k, 50, backward=0.02)
    ]
    events += [row for k in range(runs) for row in talk(f"run {k}" if runs > 1 else None, rng)]
    # Only members of their own tell whether those on a cycle are counted.
    events += [e._replace(member="twice") for e in events[:3]]
    events += [events[5], events[6]._replace(kind=RECEIVE, member="receiver")]
    circle = [("x", "y"), ("y", "x")]
    events += [events[0]._replace(id=i, causes=(p,), member="circle") for i, p in circle]
    return pa.Table.from_batches([to_batch(events)])


def talk(run: str | None, rng: random.Random) -> list[Event]:
    """Return messages whose copies arrive and are delivered in any order, some never."""
    sends = [Event(run=run, kind=SEND, id=f"said {k}", member=rng.choice("abc")) for k in range(9)]
    copies = [e._replace(kind=RECEIVE, member=m) for e in sends for m in "abc" if m != e.member]
    arrivals = rng.sample(copies, len(copies) - 2)
    deliveries = [e._replace(kind=DELIVER) for e in rng.sample(arrivals, len(arrivals) - 2)]
    return [*sends, *arrivals, *deliveries]


@pytest.mark.few(1)
@pytest.mark.parametrize("runs", [1, 6])
def test_same_report_as_the_local_engine(spark: SparkSession, runs: int) -> None:
    table = sample(runs)
    local = audit_events(table).to_dict()
    assert local["details"]["cycles"] >= 1
    assert local["duplicates"] > 0
    assert local["details"]["channels"]["deliveries"]["model"] == "non-FIFO"
    df = spark.createDataFrame(table).repartition(3, f.rand(1))
    assert antecede.spark.audit_report(df) == local


def test_runs_are_counted_in_several_tasks(spark: SparkSession) -> None:
    df = spark.createDataFrame(sample(6))
    spread = df.repartition(df["run"]).select(f.spark_partition_id()).distinct().count()
    assert spread == 2  # else the test above would add up nothing


def test_vector_clocks_and_formats_with_details(spark: SparkSession, shared_data: Path) -> None:
    for name in ("shiviz/simpledb.log", "lore/speakup.jsonl.gz"):
        trace = read([shared_data / name])
        local = audit([shared_data / name])
        on_spark = antecede.spark.audit_report(
            spark.createDataFrame(trace.events), format=trace.format
        )
        if trace.quarantine.num_rows == 0:
            bare = dataclasses.replace(local, details=on_spark["details"]).to_dict()
            assert on_spark == bare
        for key, value in on_spark["details"].items():
            assert local.details[key] == value


def test_timestamps_serve_as_times_and_without_file_order_none_is_made_up(
    spark: SparkSession,
) -> None:
    early, late = (dt.datetime(2026, 1, d, tzinfo=dt.UTC) for d in (1, 2))
    df = spark.createDataFrame(
        [("a", [], late, 1.5), ("b", ["a"], early, 2.5)],
        "id string, causes array<string>, send_time timestamp, price double",
    )
    report = antecede.spark.audit_report(df)
    assert report["inversions"] == {"send_time": 1}
    assert report["details"]["max_inversions"] == {"send_time": 86_400 * 10**9}
    assert (report["messages"], report["edges"]) == (2, 1)


def test_nothing_and_unusable_columns(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], "id string, causes array<string>, file_order long")
    assert antecede.spark.audit_report(empty) == audit_events(SCHEMA.empty_table()).to_dict()
    with pytest.raises(InputError, match="no column id"):
        antecede.spark.audit_report(spark.range(1).toDF("n"))
    wrong = spark.createDataFrame([], "id string, causes string")
    with pytest.raises(InputError, match="column causes must be list<item: string>; it is string"):
        antecede.spark.audit_report(wrong)
    old = spark.createDataFrame([], "id string, parents array<string>")
    with pytest.raises(InputError, match="rename it to causes"):
        antecede.spark.audit_report(old)


@pytest.mark.slow
def test_spans_have_the_same_bounds_of_clocks(spark: SparkSession, shared_data: Path) -> None:
    path = shared_data / "traces/onlineboutique-17_00.csv.gz"
    local = audit([path]).to_dict()
    df = spark.createDataFrame(read([path]).events).repartition(3)
    found = antecede.spark.audit_report(df, format="spans")
    assert local["details"].pop("worst_inversions")  # names events: from files alone
    assert found["details"]["clock_skew"]["total_shift_ns"] == 244_899
    assert found == local
