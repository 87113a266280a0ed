"""Event tables that executors read for commands that count, with row numbers.

Like `order_tables` without the user's columns. A first pass counts (`order_tables.survey`), so that
each part of a file knows the number of its first row. The second pass reads the events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede import errors
from antecede.errors import AntecedeError
from antecede.spark.sources.order_tables import Survey, read_numbered_events, survey, write_rejected
from antecede.spark.sources.table_tasks import TableTask
from antecede.tables.trace import ReadOptions

pa: Any = pyarrow  # its stubs lack types
_ERROR_LINE = re.compile(r"^(?:\S+: )?antecede\.errors\.(\w+): (.*)$", re.MULTILINE)


@contextmanager
def events_of_tables(
    spark: SparkSession,
    tasks: Sequence[TableTask],
    options: ReadOptions,
    quarantine: Path | None,
    format: str,
) -> Iterator[tuple[DataFrame, Survey]]:
    """Yield the events of tables, persisted on executors, and the findings of the first pass.

    `quarantine`: folder for unreadable rows. Raises as `survey`.
    """
    found = survey(spark, tasks, options, quarantine, format)
    plain = replace(found, user_schema=pa.schema([]))
    events = read_numbered_events(spark, tasks, options, plain).persist(StorageLevel.DISK_ONLY)
    try:
        yield events, found
    finally:
        events.unpersist()


def write_bad(bad: DataFrame, quarantine: Path, format: str) -> None:
    """Write rows of `quarantined` (`reason` and `row`) as parts of a quarantine."""
    flat = bad.select("row.*", F.col("reason").alias("__reason"))
    write_rejected(flat, "__reason", str, quarantine / "counted", format)


@contextmanager
def unwrap_failures() -> Iterator[None]:
    """Raise the error that a worker raised, instead of Spark's wrapper."""
    try:
        yield
    except PySparkException as error:
        if mine := parse_worker_error(str(error)):
            raise mine from None
        raise


def parse_worker_error(text: str) -> AntecedeError | None:
    """Return the antecede error in a message of Spark, or None."""
    for name, message in reversed(_ERROR_LINE.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, AntecedeError):
            try:
                return kind(message)
            except TypeError:  # the class takes more arguments
                return errors.InputError(message)
    return None
