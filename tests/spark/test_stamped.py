"""Causal contexts of Kafka headers as columns: as read by `antecede.core.propagation`."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from antecede.core.propagation import CAUSES, ID, MAX_ID, ContextPropagator, MessageContext, read
from antecede.errors import DecodeError, InputError
from antecede.spark import order, read_context

KAFKA = "n int, headers array<struct<key: string, value: binary>>"


def rows() -> list[list[tuple[str, bytes | None]]]:
    """Headers as clients and other languages may write them, good and bad."""
    stamp = ContextPropagator("pay", incarnation="i")
    first = stamp.make_headers([("k", b"v")])
    stamp.receive({ID: "x:1:1", CAUSES: ""})
    return [
        first,
        stamp.make_headers(),
        [(ID.title(), b" a "), (CAUSES.upper(), b"b,c")],
        [(ID, b"a"), (ID, b"a"), (CAUSES, b"")],
        [(ID, b"a"), (ID, b"b"), (CAUSES, b"")],
        [(ID, b"a")],
        [(CAUSES, b"a")],
        [(ID, b""), (CAUSES, b"a")],
        [("other", None)],
        [],
        *odd(),
    ]


def odd() -> list[list[tuple[str, bytes | None]]]:
    """Every odd id with every odd list of causes."""
    ids = [b"a", b" \ta\t", b"a\n", b"a b", b"", b"\xff", "ä".encode(), b"x" * MAX_ID, b"x;", None]
    ids += [b"x" * (MAX_ID + 1), b'"', b"!~[]%=:/", b"\\", b"\x7f", b"\x00"]
    lists = [b"", b" ", b"a", b"b", b"b,b", b"b,", b",", b"b, c", b"b,a", b"b,c,b,d", b"\xff", None]
    return [[(ID, one), (CAUSES, many)] for one in ids for many in lists]


def compute_expected(headers: list[tuple[str, Any]]) -> tuple[Any, Any]:
    try:
        stamp = read(headers)
    except DecodeError:
        stamp = None
    return (None, None) if stamp is None else (stamp.id, list(stamp.causes))


def test_spark_reads_what_the_stamper_reads(spark: SparkSession) -> None:
    given = rows()
    df = spark.createDataFrame(list(enumerate(given)), KAFKA)
    got = {row.n: (row.id, row.causes) for row in read_context(df, id="id").collect()}
    assert got == {n: compute_expected(headers) for n, headers in enumerate(given)}
    assert got[2] == ("a", ["b", "c"])
    nothing = spark.createDataFrame([(0, None)], KAFKA)
    assert read_context(nothing).select("message_id", "causes").collect() == [(None, None)]


def test_text_and_maps_are_headers_too(spark: SparkSession) -> None:
    made = ContextPropagator("pay", incarnation="i").make_headers({"Host": "h"})
    as_map = spark.createDataFrame([(made,)], "headers map<string, string>")
    pairs = spark.createDataFrame(
        [(list(made.items()),)], "`my headers` array<struct<key: string, value: string>>"
    )
    for df in (read_context(as_map), read_context(pairs, headers="my headers")):
        row = df.collect()[0]
        assert MessageContext(row.message_id, tuple(row.causes)) == read(made)


def test_rows_without_a_stamp_are_set_aside_by_order(spark: SparkSession) -> None:
    df = spark.createDataFrame(list(enumerate([*rows()[:2], []])), KAFKA)
    done = read_context(df).select("n", "message_id", "causes")
    done = done.transform(order(id="message_id", after="causes"))
    got = {row.n: row.antecede_status for row in done.collect()}
    assert got == {0: "ordered", 1: "missing_cause", 2: "null_key"}


def test_columns_that_cannot_serve_are_refused(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, [])], KAFKA)
    for said, names in (
        ("no column other", {"headers": "other"}),
        ("must be an array", {"headers": "n"}),
        ("column n exists already", {"id": "n"}),
        ("column causes exists already", {"id": "causes"}),
    ):
        with pytest.raises(InputError, match=said):
            read_context(df, **names)
