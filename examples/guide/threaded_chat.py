"""A threaded chat: replies name what they reply to; one question was never archived."""

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from antecede.spark import order

MESSAGES = [  # id, room, who, text, answer to, time of arrival in the archive
    ("m3", "go", "cat", "at noon!", "m1", datetime(2027, 1, 15, 9, 1)),
    ("m1", "go", "ann", "lunch?", None, datetime(2027, 1, 15, 9, 2)),
    ("m4", "go", "ann", "see you", "m3", datetime(2027, 1, 15, 9, 3)),
    ("m5", "go", "dan", "yes, it does", "m0", datetime(2027, 1, 15, 9, 4)),  # m0 is nowhere
    ("m2", "go", "bob", "busy today", "m1", datetime(2027, 1, 15, 9, 5)),
]


def run(spark: SparkSession) -> DataFrame:
    """Return the messages, each after the one that it replies to."""
    schema = "id string, room string, who string, text string, answers string, archived timestamp"
    df = spark.createDataFrame(MESSAGES, schema)
    done = df.transform(order(id="id", after="answers", group="room", time="archived"))
    return done.orderBy("position").select(
        "position", "who", "text", "missing_causes", "antecede_status"
    )
