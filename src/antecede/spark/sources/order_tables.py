"""Ordering of files by executors: `antecede order --engine spark`.

Two passes over the files, both by the readers of the local engine. The first counts the events of
each task, which numbers the rows, and the columns with values, which decide on ties, groups and
clocks. The second reads the events, each with its user row. Rows of one identity form one
partition, where `tables.trace.rows.distinct` works as locally; then `spark.order` orders, and the
result is range-sorted. Every task writes a part into a folder that is renamed when complete. Bad
rows are written by the task that reads them.
"""

from __future__ import annotations

import itertools
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t
from pyspark.sql.window import Window

from antecede.errors import AntecedeError, FormatError, InputError
from antecede.spark.columns import spark_schema
from antecede.spark.evidence import read_cells
from antecede.spark.ordering import order_with
from antecede.spark.sources.table_tasks import TableTask, read_task
from antecede.spark.sources.wire_types import from_wire, to_spark_type, to_wire, to_wire_type
from antecede.spark.workers import check_workers
from antecede.tables.order import (
    POSITIONED,
    RUN,
    VECTOR,
    OrderSpec,
    Status,
    free_names,
    list_added_fields,
    reason_of,
    spec_of,
)
from antecede.tables.trace import (
    CAUSES,
    CLOCKS,
    NAMES,
    NONE,
    QUARANTINE_SCHEMA,
    SCHEMA,
    SEQ,
    SEQUENCE,
    UNTOLD,
    Causes,
    Cells,
    Detail,
    ReadOptions,
    distinct,
    note,
    refuse,
)
from antecede.tables.trace.user_tables import (
    JSON_LINES,
    PARQUET,
    as_json,
    is_json,
    list_separators,
    remove_marks,
    several_in_one,
    table_writer,
    together,
)

pa: Any = pyarrow  # its stubs lack types
pc: Any = pyarrow.compute
Batches = Iterable[pyarrow.RecordBatch]
TOPIC_COLUMN = "order_topic"
MISSING_SAMPLE = 1000
"""Missing causes that are searched for several ids in one."""
SHUFFLE_BYTES = 32 << 20
"""Approximate input of one task after a shuffle, bytes."""


@dataclass
class Survey:
    """Findings of the first pass over all parts or one part."""

    events: list[int]
    """Number of events in each part."""
    known: Counter[str]
    """Number of rows with a value, by column of the schema."""
    causes: int = 0
    multi_topic_events: int = 0
    bad: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_bad: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    user_schema: Any = None
    """Schema of the user's columns; None for a part without any."""


@dataclass
class Done:
    """Counts of the written output."""

    spec: OrderSpec
    rows: int
    statuses: Counter[str]
    late: int
    missing: int
    duplicates: int
    receipts: int
    deliveries: int
    causes: Causes
    reasons: Counter[str]
    renamed: dict[str, str]
    topics: int
    source: str
    """Causality source of the order: a constant of `antecede.tables.trace.evidence`."""
    joined_ids: dict[str, Any] = field(default_factory=dict)
    """Hint of `several_in_one` from at most `MISSING_SAMPLE` missing causes."""
    cells: Cells | None = None
    """Samples of columns that could be evidence, if the source is none."""


def survey(
    spark: SparkSession,
    tasks: Sequence[TableTask],
    options: ReadOptions,
    quarantine: Path | None,
    format: str,
) -> Survey:
    """Count all parts, and write bad rows to `quarantine`. Raises FormatError without events."""
    check_workers(spark)

    def look(batches: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result: Any
                try:
                    part = None if quarantine is None else quarantine / f"read-{number:06}"
                    result = _survey_task(tasks[number], options, part, format)
                except AntecedeError as error:
                    result = error
                packed = pa.array([pickle.dumps(result)], pa.binary())
                yield pa.RecordBatch.from_arrays([pa.array([number]), packed], ["n", "packed"])

    rows = _number_tasks(spark, len(tasks)).mapInArrow(look, "n long, packed binary").collect()
    found = Survey([], Counter())
    schemas: list[Any] = []
    for row in sorted(rows, key=lambda row: int(row.n)):
        result = pickle.loads(row.packed)
        if isinstance(result, AntecedeError):
            raise result
        found.events += result.events
        found.known.update(result.known)
        found.reasons.update(result.reasons)
        found.causes += result.causes
        found.multi_topic_events += result.multi_topic_events
        found.bad += result.bad
        found.first_bad = found.first_bad or result.first_bad
        for name, value in result.details.items():
            note(found.details, Detail(name, value))
        if result.user_schema is not None:
            schemas.append(result.user_schema)
    if not sum(found.events):
        path = tasks[0].path if tasks else None
        more = f": {found.bad:,} bad records; the first: {found.first_bad}" if found.bad else ""
        raise FormatError(f"holds no event{more}", path=path)
    found.user_schema = together([schema.empty_table() for schema in schemas]).schema
    return found


def _survey_task(task: TableTask, options: ReadOptions, part: Path | None, format: str) -> Survey:
    found = Survey([0], Counter())
    bad, own = [], []
    for last in read_task(task, options):
        table = last.events
        found.events[0] += table.num_rows
        for name in NAMES:
            found.known[name] += table.num_rows - table.column(name).null_count
        found.causes += _sum(pc.list_value_length(table["causes"]))
        found.multi_topic_events += _sum(pc.greater(pc.list_value_length(table["topics"]), 1))
        found.details = last.details
        if last.quarantine.num_rows:
            bad.append(last.quarantine)
        if last.own is not None:
            own.append(last.own.slice(0, 0))
            own = [together(own)]
    wrong: Any = pa.Table.from_batches(bad, QUARANTINE_SCHEMA)
    if part is not None:
        write_part(wrong, part, format)
    found.bad, found.reasons = wrong.num_rows, _count_reasons(wrong)
    found.first_bad = str(wrong["reason"][0]) if wrong.num_rows else ""
    found.user_schema = own[0].schema if own else None
    return found


def _sum(values: Any) -> int:
    return pc.sum(values).as_py() or 0


def _count_reasons(bad_rows: Any) -> Counter[str]:
    return Counter(str(reason).partition(":")[0] for reason in bad_rows["reason"].to_pylist())


def _number_tasks(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, max(count, 1))


def _get_partition_id() -> int:
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def write_part(table: Any, path: Path, format: str) -> None:
    """Write a part completely, unless it has no rows."""
    if table.num_rows:
        with _open_part(path, format, table.schema) as write:
            write(table)


@contextmanager
def _open_part(path: Path, format: str, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes tables to a part; a repeated task writes the same name again."""
    ending = "jsonl" if format == JSON_LINES else format
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    kept = remove_marks(schema) if format == PARQUET else schema
    with table_writer(draft, format, kept) as write:
        yield lambda table: write(table.cast(kept))
    draft.replace(path.with_name(f"{path.name}.{ending}"))


def write_rejected(
    rows: DataFrame, column: str, reason_of: Callable[[str], str], part: Path, format: str
) -> None:
    """Write rows as parts of a quarantine, with reasons from the text in `column`."""

    def write(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        parts = list(batches)
        if parts:
            table: Any = pa.Table.from_batches(parts).sort_by("file_order")
            reasons = [reason_of(text) for text in table[column].to_pylist()]
            bad = refuse(table.select(list(NAMES)), reasons)
            write_part(bad, part.with_name(f"{part.name}-{_get_partition_id():06}"), format)
            yield pa.RecordBatch.from_pydict({"rows": pa.array([bad.num_rows])})

    rows.mapInArrow(write, "rows long").collect()


# -- ordering --------------------------------------------------------------------------------------


def order_files(
    spark: SparkSession,
    tasks: Sequence[TableTask],
    options: ReadOptions,
    found: Survey,
    out: Path,
    quarantine: Path,
    format: str,
    *,
    by: str | None = None,
    within_topics: bool = False,
) -> Done:
    """Write the events in causal order as parts of `out`, and bad rows to `quarantine`.

    Raises InputError for columns that Spark or `format` cannot represent, and as `order_trace`.
    """
    if within_topics and found.multi_topic_events:
        raise InputError(
            f"{found.multi_topic_events:,} events have several topics, so no position within a "
            "topic: remove --topic, or name the column that holds an event's only topic"
        )
    _check_user_columns(found.user_schema, format)
    clocked = bool(found.known["clock_members"]) and not found.causes and by != SEQ
    distinct_rows = _select_distinct(
        read_numbered_events(spark, tasks, options, found),
        found.user_schema,
        clocked,
        quarantine,
        format,
    )
    distinct_rows = distinct_rows.persist(StorageLevel.DISK_ONLY)
    ordered = None
    try:
        parts = [
            pickle.loads(row.packed)
            for row in distinct_rows.where("packed is not null").select("packed").collect()
        ]
        known: Counter[str] = sum((part["known"] for part in parts), Counter())
        if by == SEQ and not (known["member"] and known["seq"]):
            raise InputError(UNTOLD)
        spec = spec_of(clocked, {name for name, count in known.items() if count}, by)
        rows = _add_order_columns(distinct_rows.where("packed is null").drop("packed"), spec)
        ordered = rows.transform(order_with(spec, warn=False)).persist(StorageLevel.DISK_ONLY)
        done = _count_outcomes(ordered, spec, parts, found)
        if done.missing and not spec.sender:
            done.joined_ids = _find_joined_ids(spark, ordered, spec)
        if done.source == NONE:
            plain = replace(found, user_schema=pa.schema([]))
            done.cells = read_cells(read_numbered_events(spark, tasks, options, plain))
        bad = ordered.where(~_has_position(spec)).select(*NAMES, spec.status)
        reason = partial(reason_of, spec=spec)
        write_rejected(bad, spec.status, reason, quarantine / "unordered", format)
        _write_parts(ordered, spec, found.user_schema, out, format, done, within_topics)
    finally:
        distinct_rows.unpersist()
        if ordered is not None:
            ordered.unpersist()
    return done


def _check_user_columns(user_schema: Any, format: str) -> None:
    for column in user_schema:
        to_spark_type(column.name, column.type)
        if is_json(column) and format != JSON_LINES:
            raise InputError(
                f"column {column.name} holds values of several types, which {format} does not "
                "support: write .jsonl, or use --engine local, which reports its conversions"
            )


def _name_user_column(number: int) -> str:
    return f"own_{number}"


def _make_spark_schema(user_schema: Any) -> t.StructType:
    mine = [
        t.StructField(_name_user_column(k), to_spark_type(column.name, column.type))
        for k, column in enumerate(user_schema)
    ]
    return t.StructType([*spark_schema(), *mine])


def _make_wire_schema(user_schema: Any) -> Any:
    mine = [
        pa.field(_name_user_column(k), to_wire_type(column.type))
        for k, column in enumerate(user_schema)
    ]
    return pa.schema([*(pa.field(f.name, f.type) for f in SCHEMA), *mine])


def read_numbered_events(
    spark: SparkSession, tasks: Sequence[TableTask], options: ReadOptions, found: Survey
) -> DataFrame:
    """Return the events numbered in input order, with the user's rows."""
    first = np.concatenate([[0], np.cumsum(found.events)])
    own = found.user_schema

    def read(batches: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                done = int(first[number])
                for part in read_task(tasks[number], options):
                    rows = part.events.num_rows
                    if rows:
                        yield _encode_events(part.events, part.own, own, done)
                    done += rows

    return _number_tasks(spark, len(tasks)).mapInArrow(read, _make_spark_schema(own))


def _encode_events(events: Any, user_rows: Any, user_schema: Any, first: int) -> Any:
    """Return events, numbered from `first`, with the user's columns in transport types."""
    columns = dict(zip(events.schema.names, events.columns, strict=True))
    columns["file_order"] = pa.array(np.arange(first, first + events.num_rows))
    for k, column in enumerate(user_schema):
        columns[_name_user_column(k)] = to_wire(_fit_column(user_rows, column))
    return pa.RecordBatch.from_pydict(columns, _make_wire_schema(user_schema))


def _fit_column(user_rows: Any, user_field: Any) -> Any:
    if user_field.name not in user_rows.column_names:
        return pa.nulls(user_rows.num_rows, user_field.type)
    at = user_rows.column_names.index(user_field.name)
    column = user_rows.column(at).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    if is_json(user_field) and not is_json(user_rows.schema.field(at)):
        return as_json(column.to_pylist())
    return column.cast(user_field.type)


def _select_distinct(
    events: DataFrame, user_schema: Any, by_clock: bool, quarantine: Path, format: str
) -> DataFrame:
    """Return each event once, by `tables.trace.rows`, and a row of counts per partition."""

    def choose(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        parts = list(batches)
        if not parts:
            return
        table: Any = pa.Table.from_batches(parts).sort_by("file_order")
        chosen = distinct(table.select(list(NAMES)).cast(SCHEMA), by_clock)
        number = _get_partition_id()
        write_part(chosen.quarantine, quarantine / f"repeated-{number:06}", format)
        at = np.searchsorted(table["file_order"].to_numpy(), chosen.events["file_order"].to_numpy())
        made = chosen.events
        for k in range(len(user_schema)):
            made = made.append_column(
                _name_user_column(k), table[_name_user_column(k)].take(pa.array(at))
            )
        schema = _make_wire_schema(user_schema).append(pa.field("packed", pa.binary()))
        made = made.append_column("packed", pa.nulls(made.num_rows, pa.binary()))
        yield from made.cast(schema).combine_chunks().to_batches()
        counts = {
            "known": Counter({name: made.num_rows - made[name].null_count for name in NAMES}),
            "duplicates": chosen.duplicates - chosen.conflicts,
            "receipts": chosen.receipts,
            "deliveries": chosen.deliveries,
            "causes": chosen.causes,
            "named": _sum(pc.list_value_length(chosen.events["causes"])),
            "reasons": _count_reasons(chosen.quarantine),
        }
        nothing = {field.name: pa.nulls(1, field.type) for field in schema}
        nothing["packed"] = pa.array([pickle.dumps(counts)], pa.binary())
        yield pa.RecordBatch.from_pydict(nothing, schema)

    kind = t.StructType(
        [*_make_spark_schema(user_schema).fields, t.StructField("packed", t.BinaryType())]
    )
    return events.repartition("run", "id").mapInArrow(choose, kind)


def _add_order_columns(rows: DataFrame, spec: OrderSpec) -> DataFrame:
    if spec.group:
        rows = rows.withColumn(RUN, F.coalesce(F.col("run"), F.lit("")))
    if spec.clock:
        pair = F.struct(
            F.col("clock_members").alias("members"), F.col("clock_counts").alias("counts")
        )
        rows = rows.withColumn(VECTOR, F.when(F.col("clock_members").isNotNull(), pair))
    return rows


def _count_outcomes(
    ordered: DataFrame, spec: OrderSpec, parts: Sequence[dict[str, Any]], found: Survey
) -> Done:
    late = F.size(spec.waited_for) > 0
    rows = (
        ordered.groupBy(spec.status)
        .agg(
            F.count("*").alias("rows"),
            F.count(F.when(late, 1)).alias("late"),
            F.coalesce(
                F.sum(F.when(F.size(spec.missing_causes) > 0, F.size(spec.missing_causes))),
                F.lit(0),
            ).alias("missing"),
        )
        .collect()
    )
    statuses = Counter({row[0]: row[1] for row in rows})
    causes = Causes()
    for part in parts:
        causes = causes.plus(part["causes"])
    reasons = found.reasons + sum((part["reasons"] for part in parts), Counter())
    for status, count in statuses.items():
        if Status(status) not in POSITIONED:
            reasons[reason_of(status, spec).partition(":")[0]] += count
    placed = sum(statuses[str(status)] for status in POSITIONED)
    missing = sum(row[3] for row in rows)
    if spec.sender:
        source = SEQUENCE
    elif spec.clock:
        source = CLOCKS if placed else NONE
    else:
        source = CAUSES if sum(part["named"] for part in parts) > missing else NONE
    return Done(
        spec=spec,
        rows=placed,
        source=source,
        statuses=statuses,
        late=sum(row[2] for row in rows),
        missing=missing,
        duplicates=sum(part["duplicates"] for part in parts),
        receipts=sum(part["receipts"] for part in parts),
        deliveries=sum(part["deliveries"] for part in parts),
        causes=causes.with_read(found.details),
        reasons=reasons,
        renamed={},
        topics=0,
    )


def _find_joined_ids(spark: SparkSession, ordered: DataFrame, spec: OrderSpec) -> dict[str, Any]:
    missing = ordered.select(F.explode(spec.missing_causes)).limit(MISSING_SAMPLE).collect()
    names = [row[0] for row in missing]
    parts = list_separators.list_parts(names)
    if not parts:
        return {}
    wanted = spark.createDataFrame([(part,) for part in parts], "id string")
    known = ordered.join(F.broadcast(wanted), "id", "left_semi").select("id").distinct().collect()
    return several_in_one(names, {row.id for row in known})


def _has_position(spec: OrderSpec) -> Any:
    return F.col(spec.status).isin([str(status) for status in POSITIONED])


def _write_parts(
    ordered: DataFrame,
    spec: OrderSpec,
    user_schema: Any,
    out: Path,
    format: str,
    summary: Done,
    within_topics: bool,
) -> None:
    names = free_names(user_schema.names, spec)
    summary.renamed = {name: written for name, written in names.items() if name != written}
    rows = ordered.where(_has_position(spec))
    order = [F.col("run").asc_nulls_last(), F.col(spec.position), F.col("file_order")]
    if within_topics:
        rows = rows.withColumn(TOPIC_COLUMN, F.get("topics", F.lit(0)))
        apart = Window.partitionBy("run", TOPIC_COLUMN).orderBy(spec.position)
        rows = rows.withColumn(spec.position, F.row_number().over(apart).cast("long") - 1)
        summary.topics = rows.select("run", TOPIC_COLUMN).distinct().count()
        order.insert(1, F.col(TOPIC_COLUMN).asc_nulls_last())
    mine = [_name_user_column(k) for k in range(len(user_schema))]
    made = [
        field.with_name(names[field.name])
        for field in list_added_fields(spec, None)
        if field.name in names
    ]
    schema = pa.schema([*user_schema, *made])
    wanted = rows.orderBy(*order).select(*mine, *spec.written)

    def write(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        path = out / f"part-{_get_partition_id():06}"
        count = _write_batches(itertools.chain([first], batches), schema, path, format)
        yield pa.RecordBatch.from_pydict({"rows": pa.array([count])})

    wanted.mapInArrow(write, "rows long").collect()


def _write_batches(batches: Batches, schema: Any, path: Path, format: str) -> int:
    count = 0
    with _open_part(path, format, schema) as write:
        for batch in batches:
            columns = [
                from_wire(column, field.type)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            write(pa.Table.from_arrays(columns, schema=schema))
            count += batch.num_rows
    return count
