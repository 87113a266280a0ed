"""Audit by vector clocks, one row per run: the counts of `clock_tables`, and details as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.spark.audits import clock_tables
from antecede.spark.audits.causes import (
    build_order_maps,
    collect_reasons,
    count_all_pairs,
    count_edges,
    count_or_zero,
    count_rows,
    make_empty_counts,
)
from antecede.spark.audits.event_columns import RUN_KEY
from antecede.tables.audit import CONFIDENCE_NAME, ESTIMATED, PAIR_KEYS
from antecede.tables.trace import ORDERS, no_own_entry

VALUE_BYTES = 8
"""Approximate Arrow overhead of a number, a text or a list element, bytes."""
JSON_OPTIONS = {"ignoreNullFields": "false"}


def count_by_clocks(events: DataFrame, rows: clock_tables.ClockRows, pairs: bool) -> DataFrame:
    """Return a row per run: the columns of `audit`, with JSON parts in `__details`."""
    orders = [name for name in ORDERS if name in events.columns]
    logged = rows.events
    entries = clock_tables.explode_entries(logged)
    changed = clock_tables.join_known_clocks(entries.where("changed"), logged)
    edges, steps = clock_tables.find_message_edges(changed, orders)
    total = count_rows(rows.rows)
    covered = entries.groupBy(RUN_KEY).agg(F.sum("prefix").alias("covered"))
    parts = [_count_events(logged, orders), covered, count_edges(edges), steps]
    parts += [
        clock_tables.count_contradictions(entries, logged, changed),
        _count_reasons(rows.rows),
    ]
    parts += [_collect_defects(logged), _count_phantom_entries(entries, logged)]
    for part in parts:
        total = total.join(part, RUN_KEY, "left")
    return _build_count_row(total, orders, pairs)


def find_large_runs(events: DataFrame, max_run_bytes: int) -> list[str]:
    """Return the keys of runs with more than about half of `max_run_bytes`; runs a job."""
    size: Column = F.lit(0)
    for field in events.schema:
        column = F.col(field.name)
        many = isinstance(field.dataType, t.ArrayType)
        if many or isinstance(field.dataType, t.StringType):
            text = F.array_join(column, "", "") if many else column
            size += F.coalesce(F.octet_length(text), F.lit(0))
        size += VALUE_BYTES * (1 + F.greatest(F.size(column), F.lit(0)) if many else F.lit(1))
    sums = events.groupBy(RUN_KEY).agg(F.sum(size.cast("long")).alias("bytes"))
    large = sums.where(F.col("bytes") > max_run_bytes // 2).select(RUN_KEY).collect()
    return sorted(str(row[0]) for row in large)


def _count_events(events: DataFrame, orders: list[str]) -> DataFrame:
    step = F.col("own") - F.col("own_then")
    return events.groupBy(RUN_KEY).agg(
        F.count(F.lit(1)).alias("messages"),
        F.count_if(F.col("at") == 1).alias("members"),
        F.count_if("lowered").alias("lowered"),
        F.count_if(step == 0).alias("repeated"),
        F.count_if(F.coalesce(step, F.col("own")) > 1).alias("gaps"),
        *(F.count(f"orders.{name}").alias(f"known_{name}") for name in orders),
    )


def _count_reasons(rows: DataFrame) -> DataFrame:
    """Count quarantined rows by the part of the reason before its first colon."""
    bad = rows.where(F.col("reason").isNotNull())
    member = F.when(F.col("reason") == clock_tables.NO_OWN_REASON, F.col("member"))
    counted = bad.groupBy(RUN_KEY, "reason", member.alias("member")).count()
    worded = counted.mapInArrow(_format_reasons, f"{RUN_KEY} string, reason string, count long")
    return collect_reasons(worded.groupBy(RUN_KEY, "reason").agg(F.sum("count").alias("count")))


def _format_reasons(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        pairs = zip(batch["reason"].to_pylist(), batch["member"].to_pylist(), strict=True)
        texts = [
            no_own_entry(member) if reason == clock_tables.NO_OWN_REASON else str(reason)
            for reason, member in pairs
        ]
        reasons = [text.partition(":")[0] for text in texts]
        columns: dict[str, Any] = {
            RUN_KEY: batch[RUN_KEY],
            "reason": pa.array(reasons, pa.string()),
        }
        yield pa.RecordBatch.from_pydict({**columns, "count": batch["count"]})


def _collect_defects(events: DataFrame) -> DataFrame:
    """Return JSON of the events whose clock decreases in an entry, ordered by member."""
    none = F.lit(0).cast("long")
    lost = F.map_zip_with(
        "clock_then",
        "clock",
        lambda _, a, b: F.array(F.coalesce(a, none), F.coalesce(b, none)),
    )
    lost = F.map_filter(lost, lambda _, pair: pair[1] < pair[0])
    where = ("run", "id", "source", "line")
    detail = F.struct("member", F.col("at").alias("position"), *where, lost.alias("entries"))
    placed = F.struct("begins", "at", F.to_json(detail, JSON_OPTIONS).alias("json"))
    return _collect_json(
        events.where("lowered").select(RUN_KEY, placed.alias("one")), "clock_inconsistencies"
    )


def _count_phantom_entries(entries: DataFrame, events: DataFrame) -> DataFrame:
    """Count entries above a host's last logged number; JSON of each host's first one."""
    hosts = events.groupBy(RUN_KEY, F.col("member").alias("other")).agg(
        F.max("own").alias("logged"), F.min("begins").alias("begins")
    )
    logged = F.coalesce(F.col("logged"), F.lit(0))
    beyond = F.col("count") > logged
    first = F.min_by(F.struct("place", "member", "at", "count"), F.when(beyond, F.col("place")))
    each = entries.join(hosts, [RUN_KEY, "other"], "left").groupBy(RUN_KEY, "other")
    found = each.agg(
        F.count_if(beyond).alias("entries"),
        F.first(logged).alias("logged"),
        F.first("begins").alias("begins"),
        F.min(F.struct("place", "nth")).alias("named"),
        first.alias("first"),
    ).where("entries > 0")
    placed = found.select(
        *(RUN_KEY, "other", "entries", "logged", "begins", "named"),
        *(F.col(f"first.{name}").alias(name) for name in ("place", "member", "at", "count")),
    ).join(
        events.select(RUN_KEY, "member", "at", "run", "id", "source", "line"),
        [RUN_KEY, "member", "at"],
    )
    where = ("member", "run", "id", "source", "line")
    detail = F.struct(F.col("other").alias("host"), "count", "logged", *where)
    # Number hosts as the local engine does: members by their first row, then the others.
    absent = F.col("begins").isNull()
    one = F.struct(
        "place", absent.alias("absent"), "begins", "named", F.to_json(detail, JSON_OPTIONS)
    )
    one = one.cast(
        "struct<place:bigint,absent:boolean,begins:bigint,named:struct<place:bigint,"
        "nth:int>,json:string>"
    )
    counts = placed.groupBy(RUN_KEY).agg(F.sum("entries").alias("unlogged"))
    return _collect_json(placed.select(RUN_KEY, one.alias("one")), "unlogged_hosts").join(
        counts, RUN_KEY
    )


def _collect_json(found: DataFrame, name: str) -> DataFrame:
    ordered = F.transform(F.sort_array(F.collect_list("one")), lambda one: one["json"])
    return found.groupBy(RUN_KEY).agg(
        F.concat(F.lit("["), F.array_join(ordered, ", "), F.lit("]")).alias(name)
    )


def _build_count_row(total: DataFrame, orders: list[str], pairs: bool) -> DataFrame:
    nothing = F.lit(None).cast("long")
    messages, members, edges = (
        count_or_zero("messages"),
        count_or_zero("members"),
        count_or_zero("edges"),
    )
    made = {
        n: count_or_zero(n) for n in ("rows", "quarantined", "duplicates", "receipts", "deliveries")
    }
    made |= {"messages": messages, "edges": edges, "members": F.nullif(members, F.lit(0))}
    made["cross_member_edges"] = F.when(members > 0, count_or_zero("cross_member_edges"))
    declared = ("roots", "merges", "max_causes", "missing_causes", "self_causes")
    made |= dict.fromkeys((*declared, *ESTIMATED), nothing)
    made[CONFIDENCE_NAME] = F.lit(None).cast("double")
    sound = (
        (count_or_zero("lowered") == 0)
        & (count_or_zero("repeated") == 0)
        & (count_or_zero("mutual") == 0)
    )
    ordered = F.when(sound, count_or_zero("covered") - messages)
    implied = count_or_zero("implied_steps")
    values = (
        messages - members + edges - implied,
        implied,
        ordered,
        count_all_pairs(messages) - ordered,
    )
    for name, value in zip(PAIR_KEYS, values, strict=True):
        made[name] = value if pairs else nothing
    made |= build_order_maps(orders)
    made["quarantine"] = F.coalesce(F.col("__reasons"), make_empty_counts())
    details = {"clock_gaps": "gaps", "repeated_counters": "repeated"}
    details |= {"mutual_events": "mutual", "unmerged_events": "unmerged"}
    texts = [_format_pair(name, count_or_zero(of).cast("string")) for name, of in details.items()]
    texts.append(_format_pair("unlogged_entries", F.col("unlogged").cast("string")))
    texts.append(_format_pair("unlogged_hosts", F.col("unlogged_hosts")))
    texts.append(
        _format_pair(
            "clock_inconsistencies", F.coalesce(F.col("clock_inconsistencies"), F.lit("[]"))
        )
    )
    made["__details"] = F.concat_ws(", ", *texts)
    return total.select(RUN_KEY, "run", *(column.alias(name) for name, column in made.items()))


def _format_pair(name: str, text: Column) -> Column:
    return F.concat(F.lit(f'"{name}": '), text)
