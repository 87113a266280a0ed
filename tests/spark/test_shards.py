"""Keys of shards: Spark assigns equally many to every task."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from antecede.spark.streams.shards import find_shard_keys, murmur3


def test_the_hash_is_spark_s(spark: SparkSession) -> None:
    words = [0, 1, 2, 41, 65_535, 65_536, 10**6, 2**31 - 1]
    rows = spark.createDataFrame([(word,) for word in words], "word int").coalesce(1)
    assert murmur3(np.array(words)).tolist() == [
        r[0] for r in rows.select(f.hash("word")).collect()
    ]


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 200, 1000])
def test_every_task_has_one_shard_and_of_fewer_tasks_as_many(shards: int) -> None:
    keys = find_shard_keys(shards)
    assert len(set(keys.tolist())) == shards
    assert keys.min() >= 0
    for tasks in (n for n in range(1, shards + 1) if shards % n == 0):
        counts = np.bincount(murmur3(keys.astype(np.int64)).astype(np.int64) % tasks)
        assert counts.tolist() == [shards // tasks] * tasks


def test_spark_itself_spreads_them(spark: SparkSession) -> None:
    keys = spark.createDataFrame([(int(key),) for key in find_shard_keys(8)], "key int")
    tasks = keys.repartition(8, "key").select(f.spark_partition_id()).collect()
    assert sorted(row[0] for row in tasks) == list(range(8))
