"""Oversized groups: the fixpoint over joins gives the local engine's result for every row."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import antecede.spark
from antecede.errors import InputError
from antecede.spark.fixpoint import ordering as fixpoint
from antecede.spark.fixpoint.tables import TaskLimits
from antecede.spark.ordering import order_with
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.spark.sampling import sample_cases
from tests.spark.test_odd_values import IDS, history
from tests.spark.test_stream import SCHEMA_OF_ROWS

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
ROUNDS = TaskLimits(partition_rows=60, small_edges=0, task_edges=10**6)
"""Supersteps of joins to the end, over several partitions."""
PARTS = TaskLimits(partition_rows=100, small_edges=0, task_edges=60, max_supersteps=2)
"""Two supersteps of joins, then ranges of rows with exchanges at their borders."""
FAR = (-(2**63) + 1, -5, 0, 1, 2, 3, 3, 3, 2**63 - 1, None)

Rows = list[dict[str, Any]]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixpoint, "LIMITS", PARTS)


def check_same_order(
    spark: SparkSession, table: pa.Table, spec: OrderSpec, *without: str
) -> pa.Table:
    """Order by the fixpoint and by the local engine, and compare row for row.

    `without` are columns in which rows may differ that mean the same: no causes and none at all.
    """
    local = order_table(table, spec)
    frame = spark.createDataFrame(table).repartition(3)
    made = frame.transform(order_with(replace(spec, large_groups="always"))).toArrow()
    assert made.column_names == local.column_names
    told = [sorted(map(repr, t.drop(list(without)).to_pylist())) for t in (made, local)]
    assert told[0] == told[1]
    return local


def list_statuses(local: pa.Table) -> set[Any]:
    return set(local.column("antecede_status").to_pylist())


def make_declared(case: str, seed: int) -> pa.Table:
    """Return rows of many groups with odd ids at distant, repeated or null times."""
    table = history(case, seed, 192)
    rng = random.Random(seed)
    at = pa.array([rng.choice(FAR) for _ in range(len(table))], pa.int64())
    return table.set_column(table.column_names.index("at"), "at", at)


DECLARED = OrderSpec(
    id="id", after=("after", "also"), group="group", time="at", time_unit="us", content=("note",)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", sample_cases(sorted({*IDS} - {"text", "days", "flags"}), {"bytes", "decimals"})
)
def test_odd_ids_in_many_groups(spark: SparkSession, case: str) -> None:
    local = check_same_order(spark, make_declared(case, seed=len(case)), DECLARED, "after")
    assert len(list_statuses(local)) >= 6


@pytest.mark.slow
def test_odd_ids_in_parts(spark: SparkSession, parts: None) -> None:
    local = check_same_order(spark, make_declared("text", seed=8), DECLARED, "after")
    assert {"cycle", "conflict", "missing_cause"} <= list_statuses(local)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "timed"),
    [
        (ROUNDS, True),
        (PARTS, True),
        (PARTS, False),
        pytest.param(TaskLimits(), False, marks=pytest.mark.soak),
    ],
)
def test_one_group_of_all(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limits: TaskLimits, timed: bool
) -> None:
    monkeypatch.setattr(fixpoint, "LIMITS", limits)
    rng = random.Random(3)
    rows = []
    for k in range(120):
        near = [f"e{max(0, k - rng.randrange(1, 9))}" for _ in range(rng.choice((0, 1, 2)))]
        if rng.random() < 0.1:
            near.append(rng.choice((f"e{rng.randrange(120)}", "nowhere")))
        at = START + dt.timedelta(milliseconds=k + rng.choice((0, 0, 0, 20, -20)))
        rows.append({"id": f"e{k}", "after": near, "at": None if rng.random() < 0.1 else at})
    table = pa.Table.from_pylist(rows, SCHEMA_OF_ROWS).drop_columns(["group"])
    spec = OrderSpec(id="id", after=("after",), time="at" if timed else None)
    local = check_same_order(spark, table, spec)
    assert {"ordered", "cycle", "missing_cause"} <= list_statuses(local)


def make_entries(rng: random.Random, members: str, top: int) -> dict[str, int | None]:
    counts = (1, 2, 3, 4, 7, top, top - 1, 0, -1, None)
    weights = (9, 9, 9, 9, 5, 1, 1, 1, 0.2, 0.2)
    return {m: rng.choices(counts, weights)[0] for m in members if rng.random() < 0.6}


def make_clocked(seed: int, shape: str) -> pa.Table:
    """Vectors that contradict themselves, with gaps, absurd numbers, repeats and nulls."""
    rng = random.Random(seed)
    rows: Rows = []
    for k in range(160):
        vector = make_entries(rng, "abcd", 2**62)
        clock: Any = list(vector.items())
        if shape == "pairs":
            clock = {"m": list(vector), "n": list(vector.values())}
            if rng.random() < 0.05:
                clock["n"] = clock["n"][1:]
        if shape == "numbers":
            clock = [vector.get(m, 0) for m in "abcd"]
        member: Any = rng.choice("abcd")
        host = "abcd".index(member) if shape == "numbers" else member
        rows.append(
            {
                "host": None if rng.random() < 0.03 else host,
                "clock": None if rng.random() < 0.03 else clock,
                "group": k % 8,
                "at": k * 7919 % 163 if shape == "map" else rng.choice((1, 2, 3, 9, None)),
                "note": rng.choice("ab"),
            }
        )
    kinds: dict[str, Any] = {
        "map": pa.map_(pa.string(), pa.int64()),
        "pairs": pa.struct([("m", pa.list_(pa.string())), ("n", pa.list_(pa.int64()))]),
        "numbers": pa.list_(pa.int64()),
    }
    fields: dict[str, Any] = {"host": pa.int32() if shape == "numbers" else pa.string()}
    fields |= {"clock": kinds[shape], "group": pa.int16(), "at": pa.int32(), "note": pa.string()}
    return pa.Table.from_pylist(rows, pa.schema(fields))


CLOCKED = OrderSpec(clock="clock", member="host", group="group", time="at", content=("note",))


@pytest.mark.slow
@pytest.mark.parametrize("shape", sample_cases(["map", "pairs", "numbers"], {"map"}))
def test_odd_vectors(spark: SparkSession, shape: str) -> None:
    local = check_same_order(spark, make_clocked(5, shape), CLOCKED)
    assert {"bad_clock", "null_key", "missing_cause", "cycle"} <= list_statuses(local)


@pytest.mark.slow
def test_odd_vectors_in_parts(spark: SparkSession, parts: None) -> None:
    check_same_order(spark, make_clocked(6, "pairs"), replace(CLOCKED, group=None))


def make_numbered(seed: int) -> pa.Table:
    """Numbers that are huge, shifted, sparse, repeated, null or below 0."""
    rng = random.Random(seed)
    rows = []
    for k in range(160):
        sender = rng.choice(("a", "b", "ü", "", "10", "9", None))
        start = {"a": 0, "b": 2**62, "ü": -3}.get(sender or "", 5)
        rows.append(
            {
                "from": sender,
                "n": None if rng.random() < 0.04 else start + rng.choice((0, 1, 2, 3, 5, 8, 40)),
                "at": rng.choice((*FAR[:5], None)),
                "group": k % 5,
            }
        )
    fields: dict[str, Any] = {"from": pa.string()}
    fields |= dict.fromkeys(("n", "at", "group"), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema(fields))


NUMBERED = OrderSpec(sender="from", seq="n", first_seq=3, time="at", group="group")


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "group"), [(PARTS, "group"), (TaskLimits(), None)])
def test_odd_numbers(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limits: TaskLimits, group: str | None
) -> None:
    monkeypatch.setattr(fixpoint, "LIMITS", limits)
    local = check_same_order(spark, make_numbered(1), replace(NUMBERED, group=group))
    assert {"bad_clock", "null_key", "missing_cause", "duplicate"} <= list_statuses(local)


CHAINS: dict[str, Callable[[int], Any]] = {
    "later causes": lambda k: 1000 - k,
    "one clock far ahead": lambda k: 10**9 if k == 0 else k,
    "equal times": lambda k: 5,
    "no times": lambda k: None,
}


@pytest.mark.slow
@pytest.mark.parametrize("limits", [replace(PARTS, task_edges=80), TaskLimits()])
def test_long_chains_and_large_cycles(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limits: TaskLimits
) -> None:
    monkeypatch.setattr(fixpoint, "LIMITS", limits)
    count = 80
    rows: Rows = [
        {"g": case, "id": k, "after": [k - 1] if k else [], "at": at(k)}
        for case, at in CHAINS.items()
        for k in range(count)
    ]
    cycles: Rows = [{"id": k, "after": [(k + 1) % 30]} for k in range(30)]
    cycles += [{"id": 100, "after": [5]}]
    for k in range(30):
        cycles += [{"id": 200 + k, "after": [200 + (k + 1) % 30, *([100] * (k == 9))]}]
        cycles += [{"id": 300 + k, "after": [299 + k if k else 215]}]
    rows += [{"g": "cycles", "at": None, **row} for row in cycles]
    whole = pa.int64()
    kinds: dict[str, Any] = {"g": pa.string(), "id": whole, "after": pa.list_(whole), "at": whole}
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    spec = OrderSpec(id="id", after=("after",), group="g", time="at", time_unit="s")
    local = check_same_order(spark, table, spec)
    assert local.column("position").to_pylist()[: 4 * count] == [*range(count)] * 4
    assert local.column("antecede_status").to_pylist().count("cycle") == 60
    assert local.column("antecede_status").to_pylist().count("missing_cause") == 2


@pytest.mark.slow
def test_beyond_every_bound_there_is_an_error_that_tells_the_way_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixpoint, "LIMITS", replace(PARTS, max_exchanges=3))
    frame = spark.range(200).selectExpr(
        "id * 7919 % 211 AS id", "IF(id > 0, (id - 1) * 7919 % 211, NULL) AS after", "-id AS at"
    )
    giant: dict[str, Any] = {"id": "id", "after": "after", "large_groups": "always"}
    with pytest.raises(InputError, match="more than 3 times: give a time column, or a group"):
        frame.transform(antecede.spark.order(**giant))
    shuffled = frame.withColumn("at", f.expr("IF(after IS NULL, 1000, id)"))
    with pytest.raises(InputError, match="more than 3 times: give a time column that follows"):
        shuffled.transform(antecede.spark.order(**giant, time="at"))


def two_sizes(spark: SparkSession) -> DataFrame:
    return spark.range(90).selectExpr(
        "id", "IF(id < 60, 'giant', CAST(id % 3 AS STRING)) AS g", "id + 1 AS after", "-id AS at"
    )


def unknown_size(spark: SparkSession) -> DataFrame:
    """Return rows without a size estimate: Spark knows the size of a range, not of a list."""
    return spark.createDataFrame(two_sizes(spark).collect())


def plan_of(df: DataFrame) -> str:
    frame: Any = df
    return str(frame._jdf.queryExecution().executedPlan().toString())


KERNEL, JOINS = "antecede_order_a_group_a_task", "__antecede_fixpoint"


@pytest.mark.slow
def test_giant_groups_and_small_ones_come_out_as_one(spark: SparkSession) -> None:
    df = unknown_size(spark)
    spec = OrderSpec(id="id", after=("after",), group="g", time="at")
    local = sorted(map(repr, order_table(df.toArrow(), spec).to_pylist()))
    for rows, joins in {59: True, 60: False, 9: True}.items():  # 9: no group is left for the kernel
        done = df.transform(order_with(replace(spec, max_rows_per_task=rows)))
        assert sorted(map(repr, done.toArrow().to_pylist())) == local
        assert KERNEL in plan_of(done)
        assert (JOINS in plan_of(done)) == joins
    done = df.transform(order_with(replace(spec, max_rows_per_task=1, large_groups="never")))
    assert JOINS not in plan_of(done)


def count_jobs(spark: SparkSession, work: Callable[[], Any]) -> int:
    """Return how many jobs some work runs."""
    context: Any = spark.sparkContext
    context.setJobGroup("counted", "counted")
    before = len(context.statusTracker().getJobIdsForGroup("counted"))
    try:
        work()
    finally:
        context._jsc.clearJobGroup()
    return len(context.statusTracker().getJobIdsForGroup("counted")) - before


@pytest.mark.slow
def test_few_rows_by_estimate_are_not_counted(spark: SparkSession) -> None:
    small, unknown = two_sizes(spark), unknown_size(spark)
    by: dict[str, Any] = {"id": "id", "after": "after", "group": "g"}
    evidence = count_jobs(spark, lambda: small.transform(antecede.spark.order(**by)))
    assert evidence <= 1  # it looks for a row with a cause, and ends at the first
    assert count_jobs(spark, lambda: unknown.transform(antecede.spark.order(**by))) > 1
    never = antecede.spark.order(**by, large_groups="never")
    assert count_jobs(spark, lambda: unknown.transform(never)) == 0


@pytest.mark.slow
def test_intermediate_tables_are_freed(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    before = set(context._jsc.getPersistentRDDs())
    done = two_sizes(spark).transform(
        antecede.spark.order(id="id", after="after", large_groups="always")
    )
    assert done.count() == 90
    assert len(set(context._jsc.getPersistentRDDs()) - before) == 1  # the answer itself


@pytest.mark.slow
def test_rows_that_change_between_two_readings_are_an_error(spark: SparkSession) -> None:
    changing = f.udf(lambda: random.random(), "double").asNondeterministic()
    df = two_sizes(spark).withColumn("also", changing().cast("string"))
    done = df.transform(
        antecede.spark.order(id="id", after=["after", "also"], large_groups="always")
    )
    with pytest.raises((PySparkException, ValueError), match="changed between two reads"):
        done.toArrow()


@pytest.mark.slow
def test_payload_is_not_read_where_nobody_asks(spark: SparkSession, tmp_path: Any) -> None:
    df = two_sizes(spark).withColumn("payload", f.lit("x"))
    df.write.parquet(str(tmp_path / "rows"))
    read = spark.read.parquet(str(tmp_path / "rows"))
    spec = OrderSpec(id="id", after=("after",), content=("id",), large_groups="always")
    done = read.transform(order_with(spec)).select("id", "position")
    scan = [line for line in plan_of(done).splitlines() if "FileScan" in line]
    assert len(scan) == 1
    assert "payload" not in scan[0].split("ReadSchema")[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"large_groups": "maybe"},
        {"max_rows_per_task": 0},
        {"max_rows_per_task": True},
        {"max_rows_per_task": 1.5},
    ],
)
def test_wrong_choices_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        OrderSpec(id="id", after=("after",), **wrong)


@pytest.mark.parametrize("given", [{"large_groups": "always"}, {"max_rows_per_task": 7}])
def test_a_stream_refuses_what_it_would_have_to_ignore(given: dict[str, Any]) -> None:
    OrderSpec(id="id", after=("after",), large_groups="never").check_stream()
    with pytest.raises(InputError, match=f"{next(iter(given))} is for batches"):
        OrderSpec(id="id", after=("after",), **given).check_stream()
