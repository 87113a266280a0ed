"""Past and future on Spark, by causal labels and along causes: as on Arrow tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import antecede.spark as vocabulary
import antecede.tables.causality as local
from antecede.errors import InputError
from tests.spark.sampling import sample_cases
from tests.spark.test_causality import ODD, frame_of
from tests.spark.test_odd_values import IDS, history
from tests.tables.causality.naive import log
from tests.tables.causality.test_labels import WAYS, table_of
from tests.tables.causality.test_reachability import ks, numbered


def find_ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("k").collect())


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_stamps_of_any_way(spark: SparkSession, tmp_path: Path, way: str) -> None:
    table = numbered(table_of(log(11, 80, lost=0.1)))
    made = local.add_causal_labels(table, **WAYS[way])
    frame = frame_of(spark, table, tmp_path).transform(vocabulary.add_causal_labels, **WAYS[way])
    frame = frame.localCheckpoint()
    for first, count in ((0, 1), (5, 3)):
        given = [k for k, ok in enumerate(made["causal_label"].is_valid().to_pylist()) if ok]
        given = given[first : first + count]
        events = made.take(pa.array(given))
        rows = frame.where(frame.k.isin(given))
        assert find_ids(vocabulary.past(frame, rows)) == ks(local.past(made, events))
        assert find_ids(vocabulary.future(frame, rows)) == ks(local.future(made, events))


@pytest.mark.slow
@pytest.mark.parametrize("case", sample_cases(IDS, {"text", "bytes", "decimals", "flags"}))
def test_stamps_and_edges_over_odd_values(spark: SparkSession, tmp_path: Path, case: str) -> None:
    table = numbered(history(case, seed=3))
    made = local.add_causal_labels(table, **ODD)
    frame = frame_of(spark, table, tmp_path)
    stamped = frame.transform(vocabulary.add_causal_labels, **ODD).localCheckpoint()
    rows = [row for row in made.to_pylist() if row["causal_label"] is not None]
    rows.sort(key=lambda row: -len(row["causal_label"]["chains"]) - row["causal_label"]["position"])
    related, walked = 0, False
    for name in {repr(row["id"]): row["id"] for row in rows[:3]}.values():
        for walk in ("past", "future"):
            want = ks(getattr(local, walk)(table, [name], **ODD))
            related += len(want)
            on_spark = getattr(vocabulary, walk)
            assert find_ids(on_spark(stamped, [name], id="id")) == want
            if not walked:  # a job a step: one event will do
                assert find_ids(on_spark(frame, [name], **ODD)) == want
        walked = True
    assert related > 0


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    rows = [("a", []), ("b", ["a", "c"]), ("c", ["b"]), ("d", ["a"])]
    return spark.createDataFrame(rows, "id string, after array<string>")


@pytest.mark.slow
@pytest.mark.parametrize("walk", [vocabulary.past, vocabulary.future])
def test_events_without_an_answer(frame: DataFrame, walk: Any) -> None:
    edges: dict[str, Any] = {"id": "id", "after": "after"}
    stamped = vocabulary.add_causal_labels(frame, **edges).localCheckpoint()
    for event, said in (("x", "no row has the id x"), ("b", "the event b has no position")):
        with pytest.raises(InputError, match=said):
            walk(frame, ["a", event], **edges)
        with pytest.raises(Exception, match=said):  # Spark's, or Py4J's where it was broadcasting
            walk(stamped, ["a", event], id="id").collect()
    with pytest.raises(
        PySparkException, match="one of the events: an event without a causal label"
    ):
        walk(stamped, stamped.where("id = 'b'")).collect()
    for rows, events, ways, said in (
        (stamped, [1], {"id": "id"}, "events do not match column id of type string"),
        (stamped, [None], {"id": "id"}, "null, which is not an id"),
        (stamped, ["a"], {}, "give id=, the column of ids"),
        (frame, ["a"], {"id": "id"}, r"no column causal_label.*after="),
        (
            stamped,
            ["a"],
            {"id": "id", "causal_label": "id"},
            "column id has type string, expected a label",
        ),
    ):
        with pytest.raises(InputError, match=said):
            walk(rows, events, **ways)
    assert walk(stamped, [], id="id").count() == 0
    assert walk(frame, [], **edges).count() == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("walk", [vocabulary.past, vocabulary.future])
def test_stamps_of_two_calls_fail(frame: DataFrame, walk: Any) -> None:
    stamped = vocabulary.add_causal_labels(frame, id="id", after="after")
    other = vocabulary.add_causal_labels(frame.where("id = 'd'"), id="id", after="after")
    with pytest.raises(PySparkException, match="from different calls of add_causal_labels"):
        walk(stamped, other).collect()


@pytest.mark.slow
def test_a_chain_longer_than_rounds_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(k, k - 1) for k in range(9)], "id long, after long")
    with pytest.raises(InputError, match="exceed max_supersteps=4"):
        vocabulary.past(frame, [8], id="id", after="after", max_supersteps=4)
    made = vocabulary.past(frame, [8], id="id", after="after", max_supersteps=9)
    assert sorted(row.id for row in made.collect()) == list(range(8))


@pytest.mark.slow
def test_by_stamps_nothing_runs_in_python(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, table_of(log(2)), tmp_path)
    stamped = frame.transform(vocabulary.add_causal_labels, **WAYS["declared"])
    stamped.write.parquet(str(tmp_path / "stamped"))
    kept = spark.read.parquet(str(tmp_path / "stamped"))
    rows = kept.where("id = 'e30'")
    for made in (vocabulary.past(kept, rows), vocabulary.future(kept, rows)):
        plan = made._jdf.queryExecution().executedPlan().toString()
        assert "Python" not in plan
        assert made.count() > 0
