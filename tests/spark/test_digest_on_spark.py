"""Row hashes: the local ones equal Spark's for every type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from antecede.spark.columns import hash_content
from antecede.tables.order.row_hash import content_digests, digests

ZONE = dt.UTC
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [1, -128],
    "smallint": [2, -32768],
    "int": [3, -(2**31), 2**31 - 1],
    "bigint": [4, -(2**63), 2**63 - 1],
    "float": [1.5, -0.0, 0.0, math.nan, math.inf],
    "double": [2.5, -0.0, 0.0, math.nan, -math.inf],
    "string": ["", "hé", "seven77", "0123456789abcdef" * 5],
    "binary": [b"", b"\xff\x00", b"y" * 31, b"y" * 33],
    "date": [dt.date(2020, 1, 2), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "timestamp": [
        dt.datetime(2020, 1, 2, 3, 4, 5, 678, ZONE),
        dt.datetime(1960, 1, 1, tzinfo=ZONE),
    ],
    "timestamp_ntz": [dt.datetime(2020, 1, 2, 3, 4, 5, 678), dt.datetime(1960, 1, 1)],
    "decimal(9,2)": [Decimal("1.25"), Decimal("-9999999.99")],
    "decimal(38,10)": [Decimal("-0.0000000001"), Decimal("9" * 28), Decimal("12.8"), Decimal(0)],
    "interval day to second": [dt.timedelta(days=1, microseconds=5), dt.timedelta(days=-1)],
    "array<int>": [[], [None], [1, None, 3]],
    "array<string>": [["a", "", "b" * 40]],
    "array<array<bigint>>": [[[1], [], None, [2, 3]]],
    "struct<x:int,y:string>": [(1, "z"), (None, None), (None, "z")],
    "array<struct<p:double,q:array<string>>>": [[(1.0, ["q"]), None, (None, None)], []],
}


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", VALUES)
def test_spark_says_the_same(spark: SparkSession, kind: str) -> None:
    rows = [(value, "and more") for value in [*VALUES[kind], None]]
    df = spark.createDataFrame(rows, f"v {kind}, s string").coalesce(1)
    made = {"spark": f.xxhash64("v", "s"), "nulls": hash_content(df, ["v", "s"])}
    both = df.withColumns(made).toArrow()
    assert digests(both.select(["v", "s"])).tolist() == both["spark"].to_pylist()
    assert content_digests(both.select(["v", "s"])).tolist() == both["nulls"].to_pylist()


MAPS: dict[str, list[Any]] = {
    "map<string,int>": [{"a": 1, "b": None}, {"a": None, "b": 1}, {}],
    "map<string,map<int,string>>": [{"a": {1: "x"}, "b": None}, {"a": None}, {"a": {}}],
    "struct<m:map<int,int>,n:int>": [({1: None}, 2), (None, 2), ({}, None)],
    "array<map<int,array<string>>>": [[{1: [None]}], [{1: []}], [None], []],
}


@pytest.mark.parametrize("kind", MAPS)
def test_maps_go_by_their_entries(spark: SparkSession, kind: str) -> None:
    rows = [(value, "and more") for value in [*MAPS[kind], None]]
    df = spark.createDataFrame(rows, f"v {kind}, s string").coalesce(1)
    both = df.withColumn("told", hash_content(df, ["v", "s"])).toArrow()
    assert content_digests(both.select(["v", "s"])).tolist() == both["told"].to_pylist()
    assert len(set(both["told"].to_pylist())) == len(rows)
