"""Doctests of the causality functions."""

from __future__ import annotations

import doctest
import importlib

import pytest
from pyspark.sql import SparkSession

ARROW = ("cuts", "labels", "reachability", "recovery_lines", "relations")
SPARK = (
    "audits.audit",
    "audits.false_causality",
    "audits.quarantine",
    "relations.cuts",
    "relations.reachability",
    "relations.labels",
)


def examples(module: str, **given: object) -> tuple[int, int]:
    home = importlib.import_module(module)
    failed, tried = doctest.testmod(home, extraglobs=given, report=True)
    return failed, tried


@pytest.mark.parametrize("name", ARROW)
def test_examples_on_tables(name: str) -> None:
    failed, tried = examples(f"antecede.tables.causality.{name}")
    assert failed == 0
    assert tried >= 3


def test_examples_of_order_and_register(spark: SparkSession) -> None:
    for name in ("ordering", "sources.data_source"):
        failed, tried = examples(f"antecede.spark.{name}", spark=spark)
        assert (failed, tried > 1) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPARK)
def test_examples_on_frames(name: str, spark: SparkSession) -> None:
    failed, tried = examples(f"antecede.spark.{name}", spark=spark)
    assert failed == 0
    assert tried >= 3
