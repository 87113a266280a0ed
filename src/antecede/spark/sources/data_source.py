"""Data source for every trace format: `spark.read.format("antecede")`, in the event schema.

A file is one task (Parquet: about 64 MiB of row groups); paths may be folders and patterns. A git
repository, or a chat log with its annotation, is not split. Executors open files by path. By
default the first bad record fails the query; `quarantine` changes this. `file_order` follows the
input (files by name), with gaps: each file starts at a multiple of 2**40.

A stream reads each file once. Files must appear complete, by a rename. The offset lists the files
that were read and still exist, so moving old files away keeps it small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyspark.sql import SparkSession
from pyspark.sql import types as t
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from antecede.errors import InputError
from antecede.spark.columns import spark_schema
from antecede.spark.relations.labels import register_functions
from antecede.spark.sources.table_tasks import TableTask, read_task, work_of
from antecede.spark.workers import check_workers
from antecede.tables.trace import (
    QUARANTINE_SCHEMA,
    SCHEMA,
    EventBatch,
    Reader,
    ReadOptions,
    arrow,
    inputs,
    is_expression,
    reader,
)
from antecede.tables.trace.user_tables import TableReader

pa: Any = pyarrow  # its stubs lack types
NAME = "antecede"
REFUSE, INCLUDE, EXCLUDE, ONLY = "refuse", "include", "exclude", "only"
EVENTS, DETAILS = "events", "details"
FILE_ORDER_STEP = 1 << 40
"""Each input's `file_order` starts at a multiple of this."""
BATCH_ROWS = 16_384
MAX_STREAM_FILES = 200_000
"""Limit of files in a folder that a stream reads."""
COLUMN_OPTIONS = {
    "id": "id",
    "after": "causes",
    "member": "member",
    "seq": "seq",
    "time": "send_time",
    "arrival": "arrival",
    "clock": "clock",
    "topic": "topics",
    "run": "run",
}
"""Options that name a user's column, as on the command line; several are separated by commas."""
_TEXT_OPTIONS = ("regex", "delimiter", "separator")
_OTHER_OPTIONS = ("as", "path", "quarantine", "rows", "timeunit", "maxfilespertrigger")


def register(session: SparkSession) -> None:
    """Register the SQL functions and the data source of antecede in a session.

    The functions are `happened_before`, `concurrent` and `past_size`
    (`antecede.spark.relations.labels.register_functions`); the data source is
    `spark.read.format("antecede")` (`register_source`). Raises SetupError if Python workers lack
    antecede.

    >>> import antecede.spark
    >>> antecede.spark.register(spark)
    >>> spark.sql("SELECT happened_before(null, null) AS unknown").first().unknown is None
    True
    """
    register_functions(session)
    register_source(session)


def register_source(spark: SparkSession) -> None:
    """Register `spark.read.format("antecede")` and `spark.readStream.format("antecede")`.

    - `as`: a format of `antecede.tables.trace` (default: auto-detected).
    - `regex`, `delimiter`, `separator`, `timeUnit` and the columns `id`, `after`, `member`, `seq`,
      `time`, `arrival`, `clock`, `topic`, `run`: as on the command line.
    - `quarantine`: `refuse` (default: the first bad record fails the query), `include` (bad records
      are rows with `reason` and `raw`), `exclude`, or `only` (bad records in the quarantine
      schema).
    - `rows=details`: the findings of reading each file (`source`, `name`, `value`).
    - `maxFilesPerTrigger`: for streams, which need PySpark 4.2.

    Raises SetupError if Python workers lack antecede.

        register_source(spark)
        events = spark.read.format("antecede").option("as", "shiviz").load("logs/*.log")
    """
    check_workers(spark)
    spark.dataSource.register(AntecedeSource)


class AntecedeSource(DataSource):
    """Data source of all trace formats."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options: Any = options
        self.plan = ReadPlan({key.lower(): value for key, value in options.items()})

    @classmethod
    def name(cls) -> str:
        """Return the name of the format in Spark."""
        return NAME

    def schema(self) -> t.StructType:
        """Return the schema of the requested rows."""
        return self.plan.schema()

    def reader(self, schema: t.StructType) -> DataSourceReader:
        """Return the batch reader."""
        return _BatchReader(self.plan)

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the stream reader."""
        return _StreamReader(self.plan)


class ReadPlan:
    """Parsed options of a read. Raises InputError for unknown and contradictory ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        known = {*COLUMN_OPTIONS, *_TEXT_OPTIONS, *_OTHER_OPTIONS}
        if unknown := sorted(set(given) - known):
            raise InputError(
                f"unknown option {unknown[0]!r}; choose from {', '.join(sorted(known))}"
            )
        if not given.get("path"):
            raise InputError("no path: call .load(PATH); a pattern may match several files")
        self.path = given["path"].removeprefix("file://")
        if "://" in self.path or self.path.startswith(("hdfs:", "s3:", "s3a:", "dbfs:")):
            raise InputError("executors cannot open this path: use a path of files", path=self.path)
        self.format = given.get("as")
        self.quarantine = _read_choice(given, "quarantine", (REFUSE, INCLUDE, EXCLUDE, ONLY))
        self.rows = _read_choice(given, "rows", (EVENTS, DETAILS))
        self.max_files = _read_count(given.get("maxfilespertrigger"))
        texts: dict[str, Any] = {name: given[name] for name in _TEXT_OPTIONS if name in given}
        self.options = ReadOptions(
            **texts,
            time_unit=_read_unit(given.get("timeunit")),
            columns={
                field: _split_columns(given[name])
                for name, field in COLUMN_OPTIONS.items()
                if name in given
            },
        )
        self.format = self.format or arrow.find_implied_format(self.options)
        if self.format is not None:
            reader.by_name(self.format)

    def schema(self) -> t.StructType:
        """Return the schema of the rows."""
        if self.rows == DETAILS:
            return _make_text_schema("source", "name", "value")
        if self.quarantine == ONLY:
            return spark_schema(QUARANTINE_SCHEMA)
        more = _make_text_schema("reason", "raw").fields if self.quarantine == INCLUDE else []
        return t.StructType([*spark_schema(), *more])

    def inputs(self) -> list[Path]:
        """Return the inputs, sorted by name."""
        return _drop_same_traces(inputs(self.path, self.format), self.format)

    def plan_partitions(self, inputs: Sequence[Path], first: int = 0) -> list[InputPartition]:
        """Return the partitions of inputs, numbered from `first`: a file, or Parquet row groups."""
        found = []
        together: dict[str, Reader] = {}
        for number, path in enumerate(inputs, first):
            name = self.format or reader.choose(path, self.options).name
            table = name == TableReader.name
            among = getattr(reader.by_name(name), "create_for_files", None)
            if among is not None and len(inputs) > 1 and name not in together:
                together[name] = among(inputs)
            one = TableTask(str(path), str(path), reader=together.get(name))
            works = work_of([path], self.options) if table else [one]
            order = number * FILE_ORDER_STEP
            for work in works:
                found.append(InputPartition((order, work)))
                order += work.rows
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of one partition."""
        first, work = partition.value
        last: EventBatch | None = None
        for last in self._batches(work):
            if self.rows == EVENTS:
                yield from self._rows(last, first)
                first += last.events.num_rows
        if self.rows == DETAILS and last is not None:
            found = [(work.path, name, str(value)) for name, value in last.details.items()]
            columns = list(zip(*found, strict=True)) or [()] * 3
            arrays = [pa.array(column, pa.string()) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, ["source", "name", "value"])

    def _batches(self, work: TableTask) -> Iterator[EventBatch]:
        if work.columns is not None:
            return read_task(work, self.options)
        if work.reader is not None:
            chosen = [(Path(work.path), work.reader)]
            return arrow.batches_of(chosen, self.options, BATCH_ROWS)
        return arrow.read_batches([work.path], self.format, self.options, BATCH_ROWS)

    def _rows(self, batch: EventBatch, first: int) -> Iterator[pyarrow.RecordBatch]:
        bad: Any = batch.quarantine
        if bad.num_rows and self.quarantine == REFUSE:
            row = bad.slice(0, 1).to_pylist()[0]
            message = (
                f"{row['reason']}; set option quarantine to include (rows with a reason), exclude "
                "or only"
            )
            raise InputError(message, path=row["source"], line=row["line"], record_id=row["id"])
        if self.quarantine == ONLY:
            yield _drop_metadata(bad, QUARANTINE_SCHEMA)
            return
        events: Any = batch.events
        order = pa.array(np.arange(first, first + events.num_rows))
        at = events.schema.get_field_index("file_order")
        events = _drop_metadata(events.set_column(at, "file_order", order), SCHEMA)
        if self.quarantine != INCLUDE:
            yield events
            return
        parts = [
            pa.Table.from_batches([one]) for one in (events, _drop_metadata(bad, QUARANTINE_SCHEMA))
        ]
        both = pa.concat_tables(parts, promote_options="default")  # missing columns are null
        yield from both.select([*SCHEMA.names, "reason", "raw"]).to_batches()


def _split_columns(text: str) -> tuple[str, ...]:
    """Return comma-separated column names, or one expression, which may contain commas."""
    if is_expression(text):
        return (text,)
    return tuple(part.strip() for part in text.split(","))


def _drop_metadata(batch: Any, schema: Any) -> Any:
    """Return a batch without the metadata of its columns, because Spark compares schemas."""
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    return pa.RecordBatch.from_arrays(batch.columns, schema=plain)


def _drop_same_traces(inputs: list[Path], format: str | None) -> list[Path]:
    """Drop a path that stands for the same trace as an earlier one (a log, its annotation)."""
    kept: dict[Any, Path] = {}
    for number, path in enumerate(inputs):
        one = reader.by_name(format) if format is not None else reader.choose(path)
        same = getattr(one, "find_canonical_path", None)
        kept.setdefault(same(path) if same else number, path)
    return list(kept.values())


def _make_text_schema(*names: str) -> t.StructType:
    return t.StructType([t.StructField(name, t.StringType()) for name in names])


def _read_choice(options: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    found = options.get(name, choices[0]).lower()
    if found not in choices:
        raise InputError(
            f"option {name}: unknown value {found!r}; choose from {', '.join(choices)}"
        )
    return found


def _read_unit(text: str | None) -> str | None:
    if text not in (None, "s", "ms", "us", "ns"):
        raise InputError(f"option timeUnit: unknown unit {text!r}; choose from s, ms, us, ns")
    return text


def _read_count(text: str | None) -> int | None:
    if text is not None and not (text.isdecimal() and int(text)):
        raise InputError(f"option maxFilesPerTrigger: expected a number of files, got {text!r}")
    return None if text is None else int(text)


class _BatchReader(DataSourceReader):
    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return self.plan.plan_partitions(self.plan.inputs())

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return self.plan.read(partition)


class _StreamReader(DataSourceStreamReader):
    """Stream reader; offsets hold `taken` (existing files already read -> number) and `next`."""

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"next": 0, "taken": {}}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        there = self._list_inputs()
        taken = start["taken"]
        new = sorted((path for path in there if path not in taken), key=_get_arrival)
        if not new:
            return start
        if len(there) > MAX_STREAM_FILES:
            message = f"more than {MAX_STREAM_FILES:,} files: move away the files already read"
            raise InputError(message, path=self.plan.path)
        new = new[: self.plan.max_files]
        first = start["next"]
        kept = {path: number for path, number in taken.items() if path in there}
        kept.update({path: first + number for number, path in enumerate(new)})
        return {"next": first + len(new), "taken": kept}

    def _list_inputs(self) -> set[str]:
        try:
            return {str(path) for path in self.plan.inputs()}
        except InputError:
            return set()  # no file yet

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        new = {n: path for path, n in end["taken"].items() if n >= start["next"]}
        if len(new) < end["next"] - start["next"]:
            raise InputError("a file of the batch to re-read is missing", path=self.plan.path)
        found = []
        for number, path in sorted(new.items()):
            if not Path(path).exists():
                raise InputError("a file of the stream is missing", path=path)
            found += self.plan.plan_partitions([Path(path)], number)
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return self.plan.read(partition)


def _get_arrival(path: str) -> tuple[int, str]:
    try:
        return Path(path).stat().st_ctime_ns, path
    except OSError:
        return 0, path
