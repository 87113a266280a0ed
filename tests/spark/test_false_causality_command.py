"""`antecede false-causality --engine spark`: the output of the local engine for the same files."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antecede.cli import main
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND
from tests.spark.test_audit_command import run_call, write_table
from tests.spark.test_false_causality import events
from tests.spark.test_order_files_on_spark import events as declared


def both(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> dict[str, Any]:
    """Return the JSON of both engines, which must be equal, as must their text."""
    call = ["false-causality", str(path), *words]
    texts = [run_call(capsys, [*call, "--engine", engine]) for engine in ("local", "spark")]
    assert texts[1] == texts[0]
    reports = [
        json.loads(run_call(capsys, [*call, "--json", "--engine", engine]))
        for engine in ("local", "spark")
    ]
    assert reports[1] == reports[0]
    found: dict[str, Any] = reports[0]
    return found


def odd(seed: int) -> dict[str, Any]:
    """Receipts and deliveries of several runs, rows mixed, some lost, some without their names."""
    rows = events(3, deliver=True).select(
        ["run", "kind", "id", "member", "causes", "topics", "send_time", "arrival"]
    )
    draw = random.Random(seed)
    chosen = [row for row in rows.to_pylist() if draw.random() > 0.05]
    for row in chosen:
        if draw.random() < 0.1:
            row[draw.choice(["id", "member", "send_time"])] = None
        if draw.random() < 0.1:
            row["causes"] = [draw.choice(chosen)["id"]]
        if seed % 2 and row["run"] == "run 1":
            row["run"] = ""
    return pa.Table.from_pylist(chosen, rows.schema).to_pydict()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_runs_of_receipts_and_deliveries(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    columns = odd(seed)
    assert {SEND, RECEIVE, DELIVER} <= {*columns["kind"]}
    found = both(capsys, write_table(tmp_path, columns))
    assert len(found["counts"]) > 20
    assert found["violations"]
    assert found["excluded_rows"]


@pytest.mark.slow
def test_what_is_asked_for(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = odd(0)
    columns["send_time"] = list(range(10**9, 10**9 + len(columns["id"])))
    path = write_table(tmp_path, columns)
    words = [
        "--rules",
        "arrival,physical",
        "--observers",
        "P,Q",
        "--max-delay",
        "4",
        "--accuracy",
        "1",
    ]
    found = both(capsys, path, *words, "--relation", "receipt", "--broadcast")
    assert {row["observer"] for row in found["counts"]} == {"P", "Q"}
    assert {row["rule"] for row in found["counts"]} == {"arrival", "physical"}


@pytest.mark.slow
def test_declared_causes_with_circles_and_gaps(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(3)
    columns = declared(draw, 120, "ab")
    columns["run"] = [draw.choice(["r", None, "s"]) for _ in columns["id"]]
    found = both(capsys, write_table(tmp_path, columns))
    assert found["missing_causes"]
    assert "causes form a cycle" in found["excluded_rows"]


@pytest.mark.slow
def test_refusals_are_those_of_the_local_engine(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_table(tmp_path, odd(0)))
    for words in (
        ["--observers", "nobody"],
        ["--rules", "physical"],
        ["--subscribe", "X=y"],
        ["--subscribe", "P=nothing"],
    ):
        told = []
        for engine in ("local", "spark"):
            assert main(["false-causality", path, *words, "--engine", engine]) == 2
            told.append(capsys.readouterr().err.splitlines()[-1])
        # Of several members that cannot be measured the first task to fail names one.
        either = [
            re.sub(r"measure physical at [PQRS]:", "measure physical at a member:", line)
            for line in told
        ]
        assert either[1] == either[0]
        assert told[0].startswith("antecede: ")
