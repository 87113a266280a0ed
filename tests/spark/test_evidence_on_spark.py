"""Evidence of causality on Spark: errors, warnings and sources of the local engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import antecede.spark as on_spark
from antecede.cli import main
from antecede.errors import InputError
from antecede.tables.trace.evidence import NoEvidenceWarning
from tests.tables.trace.test_evidence import CLOCKED, TALK, WITHOUT, with_cells

WORDS = ("ask", "false-causality", "order", "audit")
SOME = ("kinds of shop", "receipts of others", "blank causes", "words", "several in one")


def write_rows(folder: Path, rows: Any) -> str:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("case", SOME)
def test_commands_refuse_and_warn_alike(
    case: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, why = WITHOUT[case]
    path = write_rows(tmp_path, rows)
    said: dict[Any, Any] = {}
    for engine in ("local", "spark"):
        for words in (["ask", path, "past", "b"], ["false-causality", path]):
            assert main([*words, "--engine", engine]) == 2
            said[engine, words[0]] = capsys.readouterr().err.splitlines()[-1]
            assert why in said[engine, words[0]]
        out = str(tmp_path / f"{engine}.jsonl")
        assert main(["order", path, "-o", out, "--engine", engine]) == 0
        told = " ".join(capsys.readouterr().out.split())
        said[engine, "order"] = [told[told.index("no causes") :].split(" Explore it")[0]]
        assert main(["audit", path, "--json", "--engine", engine]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["causality_source"] == "none"
        said[engine, "audit"] = [report["details"][n] for n in ("columns", "why_no_causality")]
    # The hint at a separator stands in another line of `order` on Spark.
    same = ("ask", "false-causality", "audit") if case == "several in one" else tuple(WORDS)
    for command in same:
        assert said["spark", command] == said["local", command]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "source"),
    [(with_cells(parent=["", "a"]), "causes"), (CLOCKED, "clocks"), (TALK, "receipts")],
)
def test_reports_name_the_source(
    rows: Any,
    source: str,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_rows(tmp_path, rows)
    for words in (["ask", path, "past", "b"], ["false-causality", path], ["audit", path]):
        assert main([*words, "--json", "--engine", "spark"]) == 0
        assert json.loads(capsys.readouterr().out)["causality_source"] == source


def frame(spark: SparkSession, *causes: str | None) -> DataFrame:
    rows = [
        (name, cause, "p", k) for k, (name, cause) in enumerate(zip("abc", causes, strict=True))
    ]
    return spark.createDataFrame(rows, "id string, after string, host string, n int")


@pytest.mark.slow
def test_functions_refuse_and_warn(spark: SparkSession) -> None:
    for causes in ((None, "", "c"), ("x", "y", None)):
        df = frame(spark, *causes)
        for name in ("order", "add_causal_labels"):
            if causes[0] is not None:  # rows with causes that are nowhere have a status
                getattr(on_spark, name)(df, id="id", after="after")
                continue
            with pytest.warns(NoEvidenceWarning, match="no data on causality"):
                getattr(on_spark, name)(df, id="id", after="after")
        with pytest.raises(InputError, match=r"causality_source: none.*columns are id.*--after"):
            on_spark.past(df, ["b"], id="id", after="after")
        with pytest.raises(InputError, match="causality_source: none"):
            on_spark.check_cut(df, {"p": 1}, process="host", at="n", id="id", after="after")
    df = frame(spark, None, "a", None)
    assert on_spark.order(df, id="id", after="after").count() == 3  # warnings are errors
    bare = spark.createDataFrame(
        [("a", [], 0), ("b", [], 1)], "id string, causes array<string>, file_order long"
    )
    with pytest.raises(InputError, match="causality_source: none"):
        on_spark.measure_false_causality(bare)
    assert [row.causality_source for row in on_spark.audit(bare).collect()] == ["none"]
    assert on_spark.audit_report(bare)["causality_source"] == "none"


@pytest.mark.slow
def test_a_cause_behind_many_that_are_nowhere_is_found(spark: SparkSession) -> None:
    rows = [(f"e{k}", f"gone{k}") for k in range(3000)] + [("last", "e7")]
    df = spark.createDataFrame(rows, "id string, after string").coalesce(1)
    assert on_spark.past(df, ["last"], id="id", after="after").count() == 1
