"""Causal past and future of events in a table of any size: by causal labels, or along edges.

With labels nothing runs in Python: the events' labels are reduced to one row per chain (or group)
and joined with the rows. Without labels declared causes are followed, each superstep joining only
the finds of the previous one (semi-naive evaluation: Bancilhon and Ramakrishnan 1986). The finds, a
small superset, then go through the engine of local tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.columns import column_of
from antecede.spark.partitions import is_analyzed
from antecede.spark.relations.edge_traversal import make_event_table, walk
from antecede.spark.relations.labels import LABEL_TYPE
from antecede.tables.causality import NO_PLACE, UNLIKE, not_there, order_spec

Events = Sequence[object] | DataFrame
_HIDDEN_NAME = "__antecede_{}"
_ROWS_ALIAS = "__antecede_rows"
MAX_SUPERSTEPS = 100
"""Default limit of joins along declared causes."""


def past(
    df: DataFrame,
    events: Events,
    *,
    id: str | None = None,
    causal_label: str = "causal_label",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    max_supersteps: int = MAX_SUPERSTEPS,
) -> DataFrame:
    """Return the rows that happened before any of the given events.

    `events`: values of the column `id` (in any group), or a DataFrame of rows with a causal label.
    `df` needs the label column of `add_causal_labels`, best read from a stored table. Nothing runs
    until the result is used. It then fails for events that are unknown, unordered, or labelled in
    another call.

    With `after` no labels are needed: declared causes are followed from the events at once, one
    Spark job per superstep (`id`, `after`, `group`, `time` as for `add_causal_labels`). Raises
    InputError for unknown or unordered events, and if `max_supersteps` do not suffice.

    >>> from antecede.spark import past, add_causal_labels
    >>> rows = [("a", None), ("b", "a"), ("c", "a"), ("d", "c")]
    >>> log = spark.createDataFrame(rows, "id string, after string")
    >>> sorted(row.id for row in past(log, ["d"], id="id", after="after").collect())
    ['a', 'c']
    >>> stamped = add_causal_labels(log, id="id", after="after")
    >>> [row.id for row in past(stamped, ["b"], id="id").collect()]
    ['a']
    """
    if after:
        ways = {"id": id, "after": after, "group": group, "time": time}
        return _traverse_edges(df, events, ways, max_supersteps, backwards=True)
    known = _find_labels(df, events, id, causal_label).select(
        F.explode(_expand_label("s")).alias("e")
    )
    entries = known.select("e.*").groupBy("g", "chain")
    frontier = entries.agg(F.max("position").alias("top"), *_find_versions())
    frontier = _hide_columns(frontier, "g", "chain", "top", "oldest", "newest")
    mine = column_of(causal_label)
    at = mine["group"].eqNullSafe(_get_hidden("g")) & (mine["chain"] == _get_hidden("chain"))
    found = _check_versions(mine, mine["position"] <= _get_hidden("top"))
    return (
        df.alias(_ROWS_ALIAS)
        .join(_broadcast_small(frontier, events), at)
        .where(found)
        .select(f"{_ROWS_ALIAS}.*")
    )


def future(
    df: DataFrame,
    events: Events,
    *,
    id: str | None = None,
    causal_label: str = "causal_label",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    max_supersteps: int = MAX_SUPERSTEPS,
) -> DataFrame:
    """Return the rows that happened after any of the given events; otherwise as `past`.

    >>> from antecede.spark import future
    >>> rows = [("a", None), ("b", "a"), ("c", "a"), ("d", "c")]
    >>> log = spark.createDataFrame(rows, "id string, after string")
    >>> [row.id for row in future(log, ["c"], id="id", after="after").collect()]
    ['d']
    """
    if after:
        ways = {"id": id, "after": after, "group": group, "time": time}
        return _traverse_edges(df, events, ways, max_supersteps, backwards=False)
    given = _find_labels(df, events, id, causal_label).select(
        F.col("s.group").alias("g"), "s.version", "s.chain", "s.position"
    )
    lowest = given.groupBy("g", "chain").agg(F.min("position").alias("low"), *_find_versions())
    entry = F.struct("chain", "low").alias("entry")
    starts = lowest.groupBy("g").agg(
        F.collect_list(entry).alias("starts"),
        F.min("oldest").alias("oldest"),
        F.max("newest").alias("newest"),
    )
    starts = _hide_columns(starts, "g", "starts", "oldest", "newest")
    mine = column_of(causal_label)

    def is_reachable(start: Column) -> Column:
        place = F.array_position(mine["chains"], start["chain"]).cast("int") - 1
        known = F.coalesce(F.get(mine["positions"], place) >= start["low"], F.lit(False))
        same = mine["chain"] == start["chain"]
        return F.when(same, mine["position"] > start["low"]).otherwise(known)

    found = _check_versions(mine, F.exists(_get_hidden("starts"), is_reachable))
    at = mine["group"].eqNullSafe(_get_hidden("g")) & mine.isNotNull()
    return (
        df.alias(_ROWS_ALIAS)
        .join(_broadcast_small(starts, events), at)
        .where(found)
        .select(f"{_ROWS_ALIAS}.*")
    )


def _traverse_edges(
    df: DataFrame, events: Events, columns: dict[str, Any], max_supersteps: int, *, backwards: bool
) -> DataFrame:
    if isinstance(events, DataFrame):
        raise InputError("with after=, events must be ids: give values of the column id=")
    return walk(df, events, order_spec(**columns), max_supersteps, backwards=backwards)


# -- causal labels -------------------------------------------------------------------------------


def _find_labels(df: DataFrame, events: Events, id: str | None, causal_label: str) -> DataFrame:
    _check_label(df, causal_label)
    if isinstance(events, DataFrame):
        _check_label(events, causal_label)
        given = events.select(column_of(causal_label).alias("s"))
        wrong = F.lit(f"one of the events: an event without a causal label {NO_PLACE}")
        return given.select(F.coalesce("s", F.raise_error(wrong).cast(LABEL_TYPE)).alias("s"))
    if id is None:
        raise InputError("events are ids: give id=, the column of ids")
    if not is_analyzed(df):
        raise InputError(
            "in a declarative pipeline ids cannot be looked up before it runs: give the events as "
            "a DataFrame of rows with causal labels, such as df.where(...)"
        )
    if id not in df.columns:
        raise InputError(f"no column {id}; columns are {', '.join(df.columns)}")
    wanted = make_event_table(df, events, id)
    rows = df.select(column_of(id).alias("k"), column_of(causal_label).alias("s"))
    # The ids are few; without the hint Spark would sort `df`.
    some = rows.join(
        F.broadcast(wanted.select(F.col("wanted").alias("w"))), F.col("k") == F.col("w")
    )
    joined = wanted.join(some, F.col("wanted") == F.col("k"), "left").groupBy("wanted")
    found = joined.agg(
        F.collect_list("s").alias("stamps"),
        F.count("k").alias("rows"),
        F.first("text").alias("text"),
    )
    nowhere = F.concat(F.lit(not_there("")), F.col("text"))
    unplaced = F.concat(F.lit("the event "), F.col("text"), F.lit(" " + NO_PLACE))
    wrong = F.when(F.col("rows") == 0, nowhere).otherwise(unplaced)
    stamps = F.when(
        F.size("stamps") == 0, F.array(F.raise_error(wrong).cast(LABEL_TYPE))
    ).otherwise(F.col("stamps"))
    return found.select(F.explode(stamps).alias("s"))


def _check_label(df: DataFrame, causal_label: str) -> None:
    if not is_analyzed(df):
        return
    if causal_label not in df.columns:
        raise InputError(
            f"no column {causal_label}: add it by add_causal_labels, or give after= to query "
            "without labels"
        )
    kind = df.schema[causal_label].dataType.simpleString()
    if kind != LABEL_TYPE.simpleString():
        raise InputError(
            f"column {causal_label} has type {kind}, expected a label of add_causal_labels"
        )


def _expand_label(causal_label: str) -> Column:
    """Return the chains that an event knows, and chain 0, which every group has."""
    s = F.col(causal_label)

    def entry(chain: Column, position: Column) -> Column:
        return F.struct(
            s["group"].alias("g"),
            s["version"].alias("version"),
            chain.alias("chain"),
            position.alias("position"),
        )

    pairs = F.arrays_zip(s["chains"], s["positions"])
    others = F.transform(pairs, lambda pair: entry(pair["chains"], pair["positions"]))
    own = entry(s["chain"], s["position"] - 1)
    return F.concat(F.array(own, entry(F.lit(0), F.lit(0))), others)


def _find_versions() -> tuple[Column, Column]:
    return F.min("version").alias("oldest"), F.max("version").alias("newest")


def _hide_columns(frontier: DataFrame, *names: str) -> DataFrame:
    return frontier.select(*(F.col(name).alias(_HIDDEN_NAME.format(name)) for name in names))


def _broadcast_small(frontier: DataFrame, events: Events) -> DataFrame:
    """Broadcast the result of listed ids; for a DataFrame Spark decides by size."""
    return frontier if isinstance(events, DataFrame) else F.broadcast(frontier)


def _get_hidden(name: str) -> Column:
    return F.col(_HIDDEN_NAME.format(name))


def _check_versions(mine: Column, found: Column) -> Column:
    unlike = (mine["version"] != _get_hidden("oldest")) | (mine["version"] != _get_hidden("newest"))
    return F.when(unlike, F.raise_error(F.lit(UNLIKE)).cast("boolean")).otherwise(found)
