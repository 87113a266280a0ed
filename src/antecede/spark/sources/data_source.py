"""Every trace format as a DataFrame in the event schema: `spark.read.format("antecede")`.

Theory of operation
-------------------
A Python data source over the readers of `antecede.tables.trace`: a task a file (of Parquet:
about 64 MiB of row groups), folders and patterns. A git repository, or a chat log with its
annotation, stays whole. Executors open the files by their paths, which must lead to the same
files there.

By default the first bad record ends the query with its file, line and reason; `quarantine` chooses
otherwise. `file_order` is unique and follows the input (files by name), but has gaps: each file
begins at a multiple of 2**40.

A stream takes each file once, when it first sees it; files must come whole (by a rename). Its
offset names the taken files that are still there. So it is as durable as the query's checkpoint,
and moving old files away keeps it small.
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
    Batch,
    Reader,
    ReadOptions,
    arrow,
    inputs,
    is_expression,
    reader,
)
from antecede.tables.trace.user_tables import TableReader

pa: Any = pyarrow  # its stubs know too few of the types that meet here
NAME = "antecede"
REFUSE, INCLUDE, EXCLUDE, ONLY = "refuse", "include", "exclude", "only"
EVENTS, DETAILS = "events", "details"
FILE_ORDER_STEP = 1 << 40
"""`file_order` of each input begins at a multiple of this."""
BATCH_ROWS = 16_384
MAX_STREAM_FILES = 200_000
"""Most files of a folder that a stream reads."""
COLUMN_OPTIONS = {
    "id": "id",
    "after": "parents",
    "member": "member",
    "seq": "seq",
    "time": "send_time",
    "arrival": "arrival",
    "clock": "clock",
    "topic": "topics",
    "run": "run",
}
"""Options that name a user's column, as on the command line; several with commas between."""
_TEXT_OPTIONS = ("regex", "delimiter", "separator")
_OTHER_OPTIONS = ("as", "path", "quarantine", "rows", "timeunit", "maxfilespertrigger")


def register(session: SparkSession) -> None:
    """Make the SQL functions and the data source of antecede known in a session.

    The functions `happened_before`, `concurrent` and `past_size`
    (`antecede.spark.relations.labels.register_functions`), and `spark.read.format("antecede")`
    (`register_source`). Raises SetupError where Python workers lack antecede.

    >>> import antecede.spark
    >>> antecede.spark.register(spark)
    >>> spark.sql("SELECT happened_before(null, null) AS unknown").first().unknown is None
    True
    """
    register_functions(session)
    register_source(session)


def register_source(spark: SparkSession) -> None:
    """Make `spark.read.format("antecede")` and `spark.readStream.format("antecede")` known.

    Options: `as` (a format of `antecede.tables.trace`; default: found by looking); `regex`,
    `delimiter`, `separator`, `timeUnit` and `id`, `after`, `member`, `seq`, `time`, `arrival`,
    `clock`, `topic`, `run` as on the command line. `quarantine` chooses the fate of bad records:
    `refuse` (default: the query ends and names the first), `include` (rows with `reason` and `raw`,
    which are null for events), `exclude`, or `only` (nothing else, in the schema of the
    quarantine). `rows=details` gives the findings of reading in each file (`source`, `name`,
    `value`): unreadable times, a guessed unit, ... A stream needs PySpark 4.2 and takes
    `maxFilesPerTrigger`.

    Raises SetupError where Python workers lack antecede.

        register_source(spark)
        events = spark.read.format("antecede").option("as", "shiviz").load("logs/*.log")
        bad = spark.read.format("antecede").option("quarantine", "only").load("logs/*.log")
    """
    check_workers(spark)
    spark.dataSource.register(AntecedeSource)


class AntecedeSource(DataSource):
    """The data source; see the module."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options: Any = options
        self.plan = ReadPlan({key.lower(): value for key, value in options.items()})

    @classmethod
    def name(cls) -> str:
        """Return the name under which Spark knows it."""
        return NAME

    def schema(self) -> t.StructType:
        """Return the columns of what was asked for."""
        return self.plan.schema()

    def reader(self, schema: t.StructType) -> DataSourceReader:
        """Return what reads a batch."""
        return _BatchReader(self.plan)

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return what reads a stream."""
        return _StreamReader(self.plan)


class ReadPlan:
    """Options of a read. Raises InputError for unknown and meaningless ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        known = {*COLUMN_OPTIONS, *_TEXT_OPTIONS, *_OTHER_OPTIONS}
        if unknown := sorted(set(given) - known):
            raise InputError(
                f"no option is called {unknown[0]!r}; known are {', '.join(sorted(known))}"
            )
        if not given.get("path"):
            raise InputError("no path: say .load(PATH); a pattern names several files")
        self.path = given["path"].removeprefix("file://")
        if "://" in self.path or self.path.startswith(("hdfs:", "s3:", "s3a:", "dbfs:")):
            raise InputError("is no path of files that executors can open", path=self.path)
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
        self.format = self.format or arrow.implied_format(self.options)
        if self.format is not None:
            reader.by_name(self.format)

    def schema(self) -> t.StructType:
        """Return the columns of the rows."""
        if self.rows == DETAILS:
            return _make_text_schema("source", "name", "value")
        if self.quarantine == ONLY:
            return spark_schema(QUARANTINE_SCHEMA)
        more = _make_text_schema("reason", "raw").fields if self.quarantine == INCLUDE else []
        return t.StructType([*spark_schema(), *more])

    def inputs(self) -> list[Path]:
        """Return what is one input each, in order of names."""
        return _drop_same_traces(inputs(self.path, self.format), self.format)

    def plan_partitions(self, inputs: Sequence[Path], first: int = 0) -> list[InputPartition]:
        """Return the work on inputs numbered from `first`: a file each, of Parquet row groups."""
        found = []
        together: dict[str, Reader] = {}
        for number, path in enumerate(inputs, first):
            name = self.format or reader.choose(path, self.options).name
            table = name == TableReader.name
            among = getattr(reader.by_name(name), "among", None)
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
        """Yield the rows of one piece."""
        first, work = partition.value
        last: Batch | None = None
        for last in self._batches(work):
            if self.rows == EVENTS:
                yield from self._rows(last, first)
                first += last.events.num_rows
        if self.rows == DETAILS and last is not None:
            found = [(work.path, name, str(value)) for name, value in last.details.items()]
            columns = list(zip(*found, strict=True)) or [()] * 3
            arrays = [pa.array(column, pa.string()) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, ["source", "name", "value"])

    def _batches(self, work: TableTask) -> Iterator[Batch]:
        if work.columns is not None:
            return read_task(work, self.options)
        if work.reader is not None:
            chosen = [(Path(work.path), work.reader)]
            return arrow.batches_of(chosen, self.options, BATCH_ROWS)
        return arrow.read_batches([work.path], self.format, self.options, BATCH_ROWS)

    def _rows(self, batch: Batch, first: int) -> Iterator[pyarrow.RecordBatch]:
        bad: Any = batch.quarantine
        if bad.num_rows and self.quarantine == REFUSE:
            row = bad.slice(0, 1).to_pylist()[0]
            message = (
                f"{row['reason']}; option quarantine: include gives such records as rows with a "
                "reason, exclude leaves them out, only gives nothing else"
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
        both = pa.concat_tables(parts, promote_options="default")  # null where a part has no value
        yield from both.select([*SCHEMA.names, "reason", "raw"]).to_batches()


def _split_columns(text: str) -> tuple[str, ...]:
    """Return names of columns between commas, or one expression, which may have commas."""
    if is_expression(text):
        return (text,)
    return tuple(part.strip() for part in text.split(","))


def _drop_metadata(batch: Any, schema: Any) -> Any:
    """Return a batch without the meanings that its columns carry: Spark compares schemas."""
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    return pa.RecordBatch.from_arrays(batch.columns, schema=plain)


def _drop_same_traces(inputs: list[Path], format: str | None) -> list[Path]:
    """Leave out a path that stands for the same trace as an earlier one (a log, its annotation)."""
    kept: dict[Any, Path] = {}
    for number, path in enumerate(inputs):
        one = reader.by_name(format) if format is not None else reader.choose(path)
        same = getattr(one, "stands_for", None)
        kept.setdefault(same(path) if same else number, path)
    return list(kept.values())


def _make_text_schema(*names: str) -> t.StructType:
    return t.StructType([t.StructField(name, t.StringType()) for name in names])


def _read_choice(options: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    found = options.get(name, choices[0]).lower()
    if found not in choices:
        raise InputError(f"option {name} is one of {', '.join(choices)}, not {found!r}")
    return found


def _read_unit(text: str | None) -> str | None:
    if text not in (None, "s", "ms", "us", "ns"):
        raise InputError(f"option timeUnit is s, ms, us or ns, not {text!r}")
    return text


def _read_count(text: str | None) -> int | None:
    if text is not None and not (text.isdecimal() and int(text)):
        raise InputError(f"option maxFilesPerTrigger is a number of files, not {text!r}")
    return None if text is None else int(text)


class _BatchReader(DataSourceReader):
    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return self.plan.plan_partitions(self.plan.inputs())

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return self.plan.read(partition)


class _StreamReader(DataSourceStreamReader):
    """Offsets: `taken`, the number of each file that is taken and still there; `next`, the next."""

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
            message = (
                f"more than {MAX_STREAM_FILES:,} files: move away those that the stream has taken"
            )
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
            return set()  # no file has come yet

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        new = {n: path for path, n in end["taken"].items() if n >= start["next"]}
        if len(new) < end["next"] - start["next"]:
            raise InputError("a file of the batch to be read again is gone", path=self.plan.path)
        found = []
        for number, path in sorted(new.items()):
            if not Path(path).exists():
                raise InputError("was to be read by the stream and is gone", path=path)
            found += self.plan.plan_partitions([Path(path)], number)
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return self.plan.read(partition)


def _get_arrival(path: str) -> tuple[int, str]:
    try:
        return Path(path).stat().st_ctime_ns, path
    except OSError:
        return 0, path
