"""Past and future of events in a table of any size: by stamps alone, or along its edges.

By stamps nothing runs in Python, and nothing before the result is asked for. The events' stamps are
brought to one row a chain (or a group), and joined to the rows. Without stamps declared causes are
followed outwards, each round joining only the finds of the round before (semi-naive evaluation:
Bancilhon and Ramakrishnan 1986). Repeats and cycles still take part, so the finds are a superset,
and that small part goes through the engine of local tables. Both ways agree with
`antecede.tables.causality.reachability`.
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
from antecede.spark.relations.labels import STAMP
from antecede.tables.causality import NO_PLACE, UNLIKE, not_there, order_spec

Events = Sequence[object] | DataFrame
_HIDDEN_NAME = "__antecede_{}"
_ROWS_ALIAS = "__antecede_rows"
MAX_SUPERSTEPS = 100
"""Joins along declared causes at most, unless the caller says otherwise."""


def past(
    df: DataFrame,
    events: Events,
    *,
    id: str | None = None,
    stamp: str = "stamp",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    max_supersteps: int = MAX_SUPERSTEPS,
) -> DataFrame:
    """Return the rows that happened before any of the given events.

    `events`: their ids, as values of the column `id` (in any group), or a DataFrame of rows with
    the column `stamp`. `df` needs the column `stamp` of `with_clocks`, best read from where it was
    written. Nothing runs until the result is asked for, which then fails for events that are
    nowhere, have no place in the order, or were stamped in another call.

    With `after` no stamps are needed: declared causes are followed from the events outwards (`id`,
    `after`, `group`, `time` as for `with_clocks`), a Spark job a step, at once. Raises InputError
    for events that are nowhere or have no place, and when `rounds` steps do not suffice.

    >>> from antecede.spark import past, with_clocks
    >>> rows = [("a", None), ("b", "a"), ("c", "a"), ("d", "c")]
    >>> log = spark.createDataFrame(rows, "id string, after string")
    >>> sorted(row.id for row in past(log, ["d"], id="id", after="after").collect())
    ['a', 'c']
    >>> stamped = with_clocks(log, id="id", after="after")
    >>> [row.id for row in past(stamped, ["b"], id="id").collect()]
    ['a']
    """
    if after:
        ways = {"id": id, "after": after, "group": group, "time": time}
        return _traverse_edges(df, events, ways, max_supersteps, backwards=True)
    known = _find_labels(df, events, id, stamp).select(F.explode(_expand_label("s")).alias("e"))
    entries = known.select("e.*").groupBy("g", "chain")
    frontier = entries.agg(F.max("position").alias("top"), *_find_versions())
    frontier = _hide_columns(frontier, "g", "chain", "top", "oldest", "newest")
    mine = column_of(stamp)
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
    stamp: str = "stamp",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    max_supersteps: int = MAX_SUPERSTEPS,
) -> DataFrame:
    """Return the rows that happened after any of the given events; all else as for `past`.

    >>> from antecede.spark import future
    >>> rows = [("a", None), ("b", "a"), ("c", "a"), ("d", "c")]
    >>> log = spark.createDataFrame(rows, "id string, after string")
    >>> [row.id for row in future(log, ["c"], id="id", after="after").collect()]
    ['d']
    """
    if after:
        ways = {"id": id, "after": after, "group": group, "time": time}
        return _traverse_edges(df, events, ways, max_supersteps, backwards=False)
    given = _find_labels(df, events, id, stamp).select(
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
    mine = column_of(stamp)

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
        raise InputError("with after=, events are ids: give the values of the column id")
    return walk(df, events, order_spec(**columns), max_supersteps, backwards=backwards)


# -- stamps -----------------------------------------------------------------------------------


def _find_labels(df: DataFrame, events: Events, id: str | None, stamp: str) -> DataFrame:
    """Return the stamps of the events in a column `s`; a row without one fails when it runs."""
    _check_stamp(df, stamp)
    if isinstance(events, DataFrame):
        _check_stamp(events, stamp)
        given = events.select(column_of(stamp).alias("s"))
        wrong = F.lit(f"one of the events: an event without a stamp {NO_PLACE}")
        return given.select(F.coalesce("s", F.raise_error(wrong).cast(STAMP)).alias("s"))
    if id is None:
        raise InputError("events given by their ids: id= names the column")
    if not is_analyzed(df):
        raise InputError(
            "in a declarative pipeline ids cannot be looked up before it runs: give the events as "
            "a DataFrame of rows with stamps, such as df.where(...)"
        )
    if id not in df.columns:
        raise InputError(f"no column {id}; there are {', '.join(df.columns)}")
    wanted = make_event_table(df, events, id)
    rows = df.select(column_of(id).alias("k"), column_of(stamp).alias("s"))
    # The ids came from the driver, so they fit anywhere; without the hint Spark would sort `df`.
    some = rows.join(
        F.broadcast(wanted.select(F.col("wanted").alias("w"))), F.col("k") == F.col("w")
    )
    joined = wanted.join(some, F.col("wanted") == F.col("k"), "left").groupBy("wanted")
    found = joined.agg(
        F.collect_list("s").alias("stamps"),
        F.count("k").alias("rows"),
        F.first("said").alias("said"),
    )
    nowhere = F.concat(F.lit(not_there("")), F.col("said"))
    unplaced = F.concat(F.lit("the event "), F.col("said"), F.lit(" " + NO_PLACE))
    wrong = F.when(F.col("rows") == 0, nowhere).otherwise(unplaced)
    stamps = F.when(F.size("stamps") == 0, F.array(F.raise_error(wrong).cast(STAMP))).otherwise(
        F.col("stamps")
    )
    return found.select(F.explode(stamps).alias("s"))


def _check_stamp(df: DataFrame, stamp: str) -> None:
    if not is_analyzed(df):
        return
    if stamp not in df.columns:
        raise InputError(
            f"no column {stamp}: make it by with_clocks, or give after= to do without stamps"
        )
    kind = df.schema[stamp].dataType.simpleString()
    if kind != STAMP.simpleString():
        raise InputError(f"column {stamp} is no stamp of with_clocks: {kind}")


def _expand_label(stamp: str) -> Column:
    """Return what an event knows: an entry a chain, and one of chain 0, which every group has."""
    s = F.col(stamp)

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
    """Give the columns names that no row has."""
    return frontier.select(*(F.col(name).alias(_HIDDEN_NAME.format(name)) for name in names))


def _broadcast_small(frontier: DataFrame, events: Events) -> DataFrame:
    """Send what some listed ids make to every task; of a DataFrame Spark must judge the size."""
    return frontier if isinstance(events, DataFrame) else F.broadcast(frontier)


def _get_hidden(name: str) -> Column:
    return F.col(_HIDDEN_NAME.format(name))


def _check_versions(mine: Column, found: Column) -> Column:
    """Return `found`, or fail where row and events were not stamped together."""
    unlike = (mine["version"] != _get_hidden("oldest")) | (mine["version"] != _get_hidden("newest"))
    return F.when(unlike, F.raise_error(F.lit(UNLIKE)).cast("boolean")).otherwise(found)
