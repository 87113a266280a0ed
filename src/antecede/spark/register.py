"""`register`: what a session must be told once, in one call."""

from __future__ import annotations

from pyspark.sql import SparkSession

from antecede.spark.relations.labels import register_functions
from antecede.spark.sources.data_source import register_source


def register(session: SparkSession) -> None:
    """Make the SQL functions and the data source of antecede known in a session.

    The functions `happened_before`, `concurrent` and `past_size`
    (`antecede.spark.relations.labels.register_functions`), and `spark.read.format("antecede")`
    (`antecede.spark.sources.data_source.register_source`). Raises SetupError where Python workers
    lack antecede.

    >>> import antecede.spark
    >>> antecede.spark.register(spark)
    >>> spark.sql("SELECT happened_before(null, null) AS unknown").first().unknown is None
    True
    """
    register_functions(session)
    register_source(session)
