"""Tables in causal order, read, ordered and written by executors: `antecede order --engine spark`.

Theory of operation
-------------------
Two passes over the files, both by the readers of the local engine. The first only counts: events
of each piece (for their places in the input), columns that hold anything (ties, groups and
clocks are chosen as locally), columns of the user. The second makes the events, each with its
user's row beside it. Rows of one identity meet in one partition, where
`tables.trace.rows.distinct` does the same as locally; then `spark.order` orders. The result is
sorted by range. Every task writes its part with the local engine's writer, into a folder that
gets its name when all parts are there. Bad rows are written by the task that meets them. The
driver sees counts, schemas and the first rows of each table.
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
from antecede.spark.evidence import cells_on_spark
from antecede.spark.ordering import order_with
from antecede.spark.sources.table_tasks import Work, batches_of
from antecede.spark.sources.wire_types import carried, carried_back, spark_type, to_carry
from antecede.spark.workers import ready_workers
from antecede.tables.order import (
    POSITIONED,
    RUN,
    VECTOR,
    OrderSpec,
    Status,
    added,
    free_names,
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
    table_writer,
    together,
    unmarked,
)

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
Batches = Iterable[pyarrow.RecordBatch]
TOPIC = "order_topic"
SHUFFLE_BYTES = 32 << 20
"""About so much of the input is one task after a shuffle."""


@dataclass
class Survey:
    """Findings of the first pass, or of one piece of it."""

    events: list[int]
    """Events of each piece."""
    known: Counter[str]
    """Rows that hold a value, by column of the schema."""
    parents: int = 0
    several_topics: int = 0
    bad: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_bad: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    own: Any = None
    """Schema of the user's columns; of one piece None where it has none."""


@dataclass
class Done:
    """Counts of what was written."""

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
    """Source of causality of the order: a constant of `antecede.tables.trace.evidence`."""
    cells: Cells | None = None
    """Contents of the columns that could be evidence, where the source is none."""


def survey(
    spark: SparkSession,
    works: Sequence[Work],
    options: ReadOptions,
    aside: Path | None,
    format: str,
) -> Survey:
    """Count what is in the pieces, and write their bad rows as parts of the folder `aside`, if any.

    Raises what reading raises, and FormatError where there is no event at all.
    """
    ready_workers(spark)

    def look(batches: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                told: Any
                try:
                    part = None if aside is None else aside / f"read-{number:06}"
                    told = _looked(works[number], options, part, format)
                except AntecedeError as error:
                    told = error
                packed = pa.array([pickle.dumps(told)], pa.binary())
                yield pa.RecordBatch.from_arrays([pa.array([number]), packed], ["n", "told"])

    rows = _pieces(spark, len(works)).mapInArrow(look, "n long, told binary").collect()
    found = Survey([], Counter())
    schemas: list[Any] = []
    for row in sorted(rows, key=lambda row: int(row.n)):
        told = pickle.loads(row.told)
        if isinstance(told, AntecedeError):
            raise told
        found.events += told.events
        found.known.update(told.known)
        found.reasons.update(told.reasons)
        found.parents += told.parents
        found.several_topics += told.several_topics
        found.bad += told.bad
        found.first_bad = found.first_bad or told.first_bad
        for name, value in told.details.items():
            note(found.details, Detail(name, value))
        if told.own is not None:
            schemas.append(told.own)
    if not sum(found.events):
        path = works[0].path if works else None
        more = f": {found.bad:,} bad records; the first: {found.first_bad}" if found.bad else ""
        raise FormatError(f"holds no event{more}", path=path)
    found.own = together([schema.empty_table() for schema in schemas]).schema
    return found


def _looked(work: Work, options: ReadOptions, aside: Path | None, format: str) -> Survey:
    found = Survey([0], Counter())
    bad, own = [], []
    for last in batches_of(work, options):
        table = last.events
        found.events[0] += table.num_rows
        for name in NAMES:
            found.known[name] += table.num_rows - table.column(name).null_count
        found.parents += _sum(pc.list_value_length(table["parents"]))
        found.several_topics += _sum(pc.greater(pc.list_value_length(table["topics"]), 1))
        found.details = last.details
        if last.quarantine.num_rows:
            bad.append(last.quarantine)
        if last.own is not None:
            own.append(last.own.slice(0, 0))
            own = [together(own)]
    wrong: Any = pa.Table.from_batches(bad, QUARANTINE_SCHEMA)
    if aside is not None:
        write_part(wrong, aside, format)
    found.bad, found.reasons = wrong.num_rows, _reasons(wrong)
    found.first_bad = str(wrong["reason"][0]) if wrong.num_rows else ""
    found.own = own[0].schema if own else None
    return found


def _sum(values: Any) -> int:
    return pc.sum(values).as_py() or 0


def _reasons(bad: Any) -> Counter[str]:
    return Counter(str(reason).partition(":")[0] for reason in bad["reason"].to_pylist())


def _pieces(spark: SparkSession, n: int) -> DataFrame:
    """Return the numbers of the pieces, each in a partition of its own."""
    return spark.range(0, n, 1, max(n, 1))


def _partition() -> int:
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def write_part(table: Any, path: Path, format: str) -> None:
    """Write a part whole, unless it has no rows."""
    if table.num_rows:
        with _part(path, format, table.schema) as write:
            write(table)


@contextmanager
def _part(path: Path, format: str, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Give what writes tables to a part: a task that runs again writes the same name once more."""
    ending = "jsonl" if format == JSON_LINES else format
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    kept = unmarked(schema) if format == PARQUET else schema
    with table_writer(draft, format, kept) as write:
        yield lambda table: write(table.cast(kept))
    draft.replace(path.with_name(f"{path.name}.{ending}"))


def write_refused(
    rows: DataFrame, said: str, reason_of: Callable[[str], str], part: Path, format: str
) -> None:
    """Write rows as parts of a quarantine, with the reasons of what the column `said` holds."""

    def write(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        parts = list(batches)
        if parts:
            table: Any = pa.Table.from_batches(parts).sort_by("file_order")
            reasons = [reason_of(text) for text in table[said].to_pylist()]
            bad = refuse(table.select(list(NAMES)), reasons)
            write_part(bad, part.with_name(f"{part.name}-{_partition():06}"), format)
            yield pa.RecordBatch.from_pydict({"rows": pa.array([bad.num_rows])})

    rows.mapInArrow(write, "rows long").collect()


# --- events, distinct and in order ---------------------------------------------------------


def order_files(
    spark: SparkSession,
    works: Sequence[Work],
    options: ReadOptions,
    found: Survey,
    out: Path,
    aside: Path,
    format: str,
    *,
    by: str | None = None,
    within_topics: bool = False,
) -> Done:
    """Write the events in causal order as parts of the folder `out`, and bad rows to `aside`.

    Both folders are there and empty but for what `survey` wrote. Raises InputError for columns that
    cannot pass through Spark or that `format` cannot hold, and as `order_trace` does.
    """
    if within_topics and found.several_topics:
        raise InputError(
            f"{found.several_topics:,} events have several topics, but positions within a topic "
            "need one: leave out --topic, or name one column with the topic"
        )
    _check_own(found.own, format)
    clocked = bool(found.known["clock_members"]) and not found.parents and by != SEQ
    told = _distinct(placed_events(spark, works, options, found), found.own, clocked, aside, format)
    told = told.persist(StorageLevel.DISK_ONLY)
    ordered = None
    try:
        parts = [
            pickle.loads(row.told)
            for row in told.where("told is not null").select("told").collect()
        ]
        known: Counter[str] = sum((part["known"] for part in parts), Counter())
        if by == SEQ and not (known["member"] and known["seq"]):
            raise InputError(UNTOLD)
        spec = spec_of(clocked, {name for name, count in known.items() if count}, by)
        rows = _with_made(told.where("told is null").drop("told"), spec)
        ordered = rows.transform(order_with(spec, warn=False)).persist(StorageLevel.DISK_ONLY)
        done = _counted(ordered, spec, parts, found)
        if done.source == NONE:
            plain = replace(found, own=pa.schema([]))
            done.cells = cells_on_spark(placed_events(spark, works, options, plain))
        bad = ordered.where(~_placed(spec)).select(*NAMES, spec.status)
        reason = partial(reason_of, spec=spec)
        write_refused(bad, spec.status, reason, aside / "unordered", format)
        _write(ordered, spec, found.own, out, format, done, within_topics)
    finally:
        told.unpersist()
        if ordered is not None:
            ordered.unpersist()
    return done


def _check_own(own: Any, format: str) -> None:
    for column in own:
        spark_type(column.name, column.type)
        if is_json(column) and format != JSON_LINES:
            raise InputError(
                f"column {column.name} holds values of several types, which one column of {format} "
                "cannot: write .jsonl, or say --engine local, which tells what it changes"
            )


def _own_name(k: int) -> str:
    """Name of a user's column on its way: theirs may be any text."""
    return f"own_{k}"


def _fields(own: Any) -> t.StructType:
    mine = [
        t.StructField(_own_name(k), spark_type(column.name, column.type))
        for k, column in enumerate(own)
    ]
    return t.StructType([*spark_schema(), *mine])


def _wire_schema(own: Any) -> Any:
    """Return the Arrow schema of events with the user's columns on their way."""
    mine = [pa.field(_own_name(k), carried(column.type)) for k, column in enumerate(own)]
    return pa.schema([*(pa.field(f.name, f.type) for f in SCHEMA), *mine])


def placed_events(
    spark: SparkSession, works: Sequence[Work], options: ReadOptions, found: Survey
) -> DataFrame:
    """Return the events with their place in the input, and the user's rows."""
    first = np.concatenate([[0], np.cumsum(found.events)])
    own = found.own

    def read(batches: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                done = int(first[number])
                for part in batches_of(works[number], options):
                    rows = part.events.num_rows
                    if rows:
                        yield _carrying(part.events, part.own, own, done)
                    done += rows

    return _pieces(spark, len(works)).mapInArrow(read, _fields(own))


def _carrying(events: Any, mine: Any, own: Any, first: int) -> Any:
    """Return events, numbered from `first`, with the user's columns as they pass through Spark."""
    columns = dict(zip(events.schema.names, events.columns, strict=True))
    columns["file_order"] = pa.array(np.arange(first, first + events.num_rows))
    for k, column in enumerate(own):
        columns[_own_name(k)] = to_carry(_fitted(mine, column))
    return pa.RecordBatch.from_pydict(columns, _wire_schema(own))


def _fitted(mine: Any, wanted: Any) -> Any:
    """Return a column of a user's rows as the whole table has it."""
    if wanted.name not in mine.column_names:
        return pa.nulls(mine.num_rows, wanted.type)
    at = mine.column_names.index(wanted.name)
    column = mine.column(at).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    if is_json(wanted) and not is_json(mine.schema.field(at)):
        return as_json(column.to_pylist())
    return column.cast(wanted.type)


def _distinct(events: DataFrame, own: Any, clocked: bool, aside: Path, format: str) -> DataFrame:
    """Return each event once, by `tables.trace.rows`, and a row of counts a partition."""

    def choose(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        parts = list(batches)
        if not parts:
            return
        table: Any = pa.Table.from_batches(parts).sort_by("file_order")
        chosen = distinct(table.select(list(NAMES)).cast(SCHEMA), clocked)
        number = _partition()
        write_part(chosen.quarantine, aside / f"repeated-{number:06}", format)
        at = np.searchsorted(table["file_order"].to_numpy(), chosen.events["file_order"].to_numpy())
        made = chosen.events
        for k in range(len(own)):
            made = made.append_column(_own_name(k), table[_own_name(k)].take(pa.array(at)))
        schema = _wire_schema(own).append(pa.field("told", pa.binary()))
        made = made.append_column("told", pa.nulls(made.num_rows, pa.binary()))
        yield from made.cast(schema).combine_chunks().to_batches()
        counts = {
            "known": Counter({name: made.num_rows - made[name].null_count for name in NAMES}),
            "duplicates": chosen.duplicates - chosen.conflicts,
            "receipts": chosen.receipts,
            "deliveries": chosen.deliveries,
            "causes": chosen.causes,
            "named": _sum(pc.list_value_length(chosen.events["parents"])),
            "reasons": _reasons(chosen.quarantine),
        }
        nothing = {field.name: pa.nulls(1, field.type) for field in schema}
        nothing["told"] = pa.array([pickle.dumps(counts)], pa.binary())
        yield pa.RecordBatch.from_pydict(nothing, schema)

    kind = t.StructType([*_fields(own).fields, t.StructField("told", t.BinaryType())])
    return events.repartition("run", "id").mapInArrow(choose, kind)


def _with_made(rows: DataFrame, spec: OrderSpec) -> DataFrame:
    """Add the columns that are made for ordering."""
    if spec.group:
        rows = rows.withColumn(RUN, F.coalesce(F.col("run"), F.lit("")))
    if spec.clock:
        pair = F.struct(
            F.col("clock_members").alias("members"), F.col("clock_counts").alias("counts")
        )
        rows = rows.withColumn(VECTOR, F.when(F.col("clock_members").isNotNull(), pair))
    return rows


def _counted(
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


def _placed(spec: OrderSpec) -> Any:
    return F.col(spec.status).isin([str(status) for status in POSITIONED])


def _write(
    ordered: DataFrame,
    spec: OrderSpec,
    own: Any,
    out: Path,
    format: str,
    done: Done,
    within_topics: bool,
) -> None:
    """Write the rows that have a position, in order over all parts."""
    names = free_names(own.names, spec)
    done.renamed = {name: written for name, written in names.items() if name != written}
    rows = ordered.where(_placed(spec))
    order = [F.col("run").asc_nulls_last(), F.col(spec.position), F.col("file_order")]
    if within_topics:
        rows = rows.withColumn(TOPIC, F.get("topics", F.lit(0)))
        apart = Window.partitionBy("run", TOPIC).orderBy(spec.position)
        rows = rows.withColumn(spec.position, F.row_number().over(apart).cast("long") - 1)
        done.topics = rows.select("run", TOPIC).distinct().count()
        order.insert(1, F.col(TOPIC).asc_nulls_last())
    mine = [_own_name(k) for k in range(len(own))]
    made = [
        field.with_name(names[field.name]) for field in added(spec, None) if field.name in names
    ]
    schema = pa.schema([*own, *made])
    wanted = rows.orderBy(*order).select(*mine, *spec.written)

    def write(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        path = out / f"part-{_partition():06}"
        count = _write_batches(itertools.chain([first], batches), schema, path, format)
        yield pa.RecordBatch.from_pydict({"rows": pa.array([count])})

    wanted.mapInArrow(write, "rows long").collect()


def _write_batches(batches: Batches, schema: Any, path: Path, format: str) -> int:
    """Write the rows of a partition as the user's columns and the added ones."""
    count = 0
    with _part(path, format, schema) as write:
        for batch in batches:
            columns = [
                carried_back(column, field.type)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            write(pa.Table.from_arrays(columns, schema=schema))
            count += batch.num_rows
    return count
