"""Shared Spark session of all tests: two task threads, minimal start-up time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from antecede.errors import SetupError
from antecede.spark.java import find_java
from antecede.spark.session import local_session


@pytest.fixture(scope="session")
def java() -> None:
    """Skip a test where no Java is found."""
    try:
        find_java()
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:
    session = local_session(
        2,
        partitions=2,
        name="antecede-tests",
        java_options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        settings={
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        },
    )
    yield session
    session.stop()


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the state store that streams need, restored for every test."""
    provider = "spark.sql.streaming.stateStore.providerClass"
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set(provider, rocksdb)
    yield spark
    spark.conf.set(provider, rocksdb)
