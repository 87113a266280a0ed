"""Rows that a live group wrote to topics, ordered by Spark."""

from __future__ import annotations

import asyncio

import pytest
from pyspark.sql import SparkSession

import antecede.spark
from examples.live import into_kafka


@pytest.mark.slow
def test_rows_that_live_messages_caused_come_after_them(spark: SparkSession) -> None:
    rows: list[tuple[str, str, into_kafka.Headers]] = []

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await into_kafka.run(lambda *row: rows.append(row))

    asyncio.run(bounded())
    rows.sort(key=lambda row: row[0], reverse=True)  # parcels, invoices, orders last of all
    schema = "topic string, value string, headers array<struct<key: string, value: binary>>"
    topics = spark.createDataFrame(
        [(topic, value, [(k, bytearray(v)) for k, v in headers]) for topic, value, headers in rows],
        schema,
    )
    ordered = antecede.spark.read_context(topics).transform(
        antecede.spark.order(id="message_id", after=["causes"])
    )
    found = sorted(ordered.collect(), key=lambda row: row.position)
    assert len(found) == 4 * into_kafka.ORDERS
    assert {row.antecede_status for row in found} == {"ordered"}, "no cause is missing"
    place = {row.value: k for k, row in enumerate(found)}
    for n in range(1, into_kafka.ORDERS + 1):
        assert place[f"order {n}"] < place[f"paid {n}"] < place[f"parcel {n}"]
        assert place[f"order {n}"] < place[f"invoice {n}"]
