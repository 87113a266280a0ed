"""`audit` and `quarantined` as DataFrames: each run as in the local engine."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark import audit, find_quarantined
from antecede.spark.audits.audit import COUNT_COLUMNS, DETAIL_COLUMNS, MAP_COLUMNS
from antecede.tables.audit.engine import audit_events
from antecede.tables.audit.pairs import CONFIDENCE_NAME, ESTIMATED, choose_pairs
from antecede.tables.trace.arrow import read, to_batch
from antecede.tables.trace.identities import is_blank
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.spark.sampling import sample_cases

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

FAILED = (PySparkException, Py4JJavaError)
"""The latter comes out of a broadcast where adaptive execution is off, as in these tests."""
IDS = ("", " ", "a", "b", "é", "e\u0301", "\u3000", "a:b", "1:a", "0", "\x00", "a" * 40)


def make_odd_rows(seed: int) -> pa.Table:
    """Return rows of few odd ids, so that repeats, conflicts, cycles and gaps are common."""
    rng = random.Random(seed)
    ids = IDS + tuple(f"m{k}" for k in range(rng.choice((4, 40))))
    runs = rng.choice(((None,), (None, "", "r"), ("r", "1:r", "s", "\u3000")))
    kinds = rng.choice((("event",), ("event", SEND, SEND, RECEIVE, DELIVER)))
    times = (None, 0, 1, -(2**63), 2**63 - 1, 5)
    rows = [
        Event(
            run=rng.choice(runs),
            kind=rng.choice(kinds),
            id=rng.choice(ids),
            member=rng.choice((None, "P", "Q", "")) if seed % 3 else None,
            causes=tuple(rng.choice(ids) for _ in range(rng.choice((0, 0, 1, 1, 3)))),
            file_order=k,
            arrival=rng.choice(times),
            send_time=rng.choice(times) if seed % 2 else None,
        )
        for k in range(rng.choice((1, 30, 90)))
    ]
    return pa.Table.from_batches([to_batch(rows)])


def audit_locally(table: pa.Table, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the local engine's report of each run."""
    runs = pc.fill_null(table["run"], "")
    return {
        run: audit_events(table.filter(pc.equal(runs, run)), **options).to_dict()
        for run in runs.unique().to_pylist()
    }


def rows_to_reports(found: DataFrame) -> dict[str, dict[str, Any]]:
    rows = [row.asDict() for row in found.collect()]
    assert len({row["run"] for row in rows}) == len(rows)
    return {row["run"] or "": row for row in rows}


def check_same(found: dict[str, dict[str, Any]], expected: dict[str, dict[str, Any]]) -> None:
    assert found.keys() == expected.keys()
    for run, row in found.items():
        report = expected[run]
        details = dict(report["details"])
        for name in ("separator_hint", "columns", "candidate_columns", "why_no_causality"):
            details.pop(name, None)  # in words; on Spark `causality_source` says it
        assert {n: row[n] for n in COUNT_COLUMNS} == {n: report[n] for n in COUNT_COLUMNS}, run
        assert {n: row[n] for n in DETAIL_COLUMNS} == {
            n: details.pop(n, 0) for n in DETAIL_COLUMNS
        }, run
        guesses = (*ESTIMATED, CONFIDENCE_NAME)
        assert {n: row[n] for n in guesses} == {n: details.pop(n, None) for n in guesses}, run
        maps = {n: report[n] if n in report else details.pop(n) for n in MAP_COLUMNS}
        assert {n: row[n] for n in MAP_COLUMNS} == maps, run
        if report["clock_inconsistencies"] is not None:
            details["clock_inconsistencies"] = report["clock_inconsistencies"]
        assert json.loads(row["details"] or "{}") == json.loads(json.dumps(details)), run


def write_spread(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).repartition(3, F.rand(1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample_cases(range(6), {0, 2, 4}))
def test_each_run_as_locally_over_odd_rows(spark: SparkSession, seed: int) -> None:
    table = make_odd_rows(seed)
    found = audit(write_spread(spark, table), by="causes")
    check_same(rows_to_reports(found), audit_locally(table))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_handed_out_are_those_counted(spark: SparkSession, seed: int) -> None:
    table = make_odd_rows(seed)
    expected: list[tuple[Any, ...]] = []
    runs = pc.fill_null(table["run"], "")
    for run in runs.unique().to_pylist():
        aside = audit_events(table.filter(pc.equal(runs, run))).quarantine
        expected += zip(aside["id"].to_pylist(), aside["reason"].to_pylist(), strict=True)
    found = (
        find_quarantined(write_spread(spark, table), by="causes")
        .select("row.id", "reason")
        .collect()
    )
    got = [(None if is_blank(row.id) else row.id, row.reason) for row in found]
    assert len(got) > 0
    assert sorted(map(repr, got)) == sorted(repr((i or None, why)) for i, why in expected)


@pytest.mark.slow
def test_a_log_of_clocks_a_run_at_a_time(spark: SparkSession, shared_data: Any) -> None:
    table = read([shared_data / "shiviz/simpledb.log"]).events
    found = audit(write_spread(spark, table), format="shiviz")
    check_same(rows_to_reports(found), audit_locally(table, format="shiviz"))


@pytest.mark.slow
def test_too_large_is_refused_by_name(spark: SparkSession) -> None:
    rows = [Event(run="big", id=str(k), causes=(str(k - 1), str(k - 2))) for k in range(20)]
    df = spark.createDataFrame(pa.Table.from_batches([to_batch(rows)]))
    refused: dict[str, dict[str, Any]] = {
        "limited to 5 edges": {"by": "causes", "max_graph_edges": 5},
        "pairs=False": {"by": "causes", "pair_steps": 5},
        "limited to 9 bytes": {"by": "clocks", "max_run_bytes": 9, "large_groups": "never"},
        "one task per run, limited to 9 bytes": {"format": "shiviz", "max_run_bytes": 9},
    }
    for said, options in refused.items():
        with pytest.raises(FAILED, match=f"run 'big'.*{said}"):
            audit(df, **options).collect()
    (row,) = audit(df, by="causes", pairs=False).collect()
    assert (row.edges, row.ordered_pairs, row.messages) == (37, None, 20)
    (row,) = audit(df, by="clocks", max_run_bytes=9).collect()
    assert (row.messages, row.quarantine) == (0, {"no clock": 20})


def test_wrong_arguments(spark: SparkSession) -> None:
    declared = spark.createDataFrame([("a", ["b"])], "id string, causes array<string>")
    wrong: dict[str, dict[str, Any]] = {
        "choose from auto, causes, clocks": {"by": "guess"},
        "choose from auto, always, never": {"large_groups": "big"},
        "this audit is by declared causes: remove the argument": {"large_groups": "always"},
        "this audit is of format shiviz: remove the argument": {
            "format": "shiviz",
            "large_groups": "never",
        },
    }
    for said, options in wrong.items():
        with pytest.raises(InputError, match=said):
            audit(declared, **options)
    with pytest.raises(
        InputError, match="column id must be string; it is boolean: cast the column"
    ):
        audit(spark.createDataFrame([(True,)], "id boolean"))


@pytest.mark.slow
def test_pairs_beyond_the_steps_are_estimated_as_locally(spark: SparkSession) -> None:
    rng = random.Random(3)
    rows = [
        Event(
            run=f"run {k % 3}",
            id=f"é{k}",
            causes=tuple(f"é{rng.randrange(k)}" for _ in range(rng.choice((1, 2, 3)))) if k else (),
            file_order=k,
        )
        for k in range(600)
    ]
    rows += [Event(run="chain", id=str(k), causes=(str(k - 1),), file_order=k) for k in range(9)]
    rows += [Event(run="none", id="alone", file_order=700)]
    rows += [Event(run="run 0", id=i, causes=(j,), file_order=701) for i, j in ("xy", "yx")]
    table = pa.Table.from_batches([to_batch(rows)])
    options: dict[str, Any] = {"pairs": "estimate", "pair_steps": 9, "pair_ranks": 64}
    found = rows_to_reports(audit(write_spread(spark, table), by="causes", **options))
    check_same(found, audit_locally(table, choice=choose_pairs("estimate", 9, 64)))
    estimated = {run for run, row in found.items() if row["ordered_pairs_estimated"] is not None}
    assert estimated == {"run 0", "run 1", "run 2"}
    assert found["run 1"]["ordered_pairs"] is found["run 1"]["redundant_edges"] is None
    assert found["run 1"]["pairs_confidence"] == 0.95
    assert found["chain"]["ordered_pairs"] == 36
    check_same(
        rows_to_reports(audit(write_spread(spark, table), by="causes", pairs="estimate")),
        audit_locally(table),
    )
