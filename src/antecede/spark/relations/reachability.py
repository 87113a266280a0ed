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
from antecede.spark.partitions import analysed
from antecede.spark.relations.edge_traversal import walk, wanted_of
from antecede.spark.relations.labels import LABEL_TYPE
from antecede.tables.causality import NO_PLACE, UNLIKE, not_there, order_spec

Events = Sequence[object] | DataFrame
_NAME = "__antecede_{}"
_ROWS = "__antecede_rows"
ROUNDS = 100
"""Joins along declared causes at most, unless the caller says otherwise."""


def past(
    df: DataFrame,
    events: Events,
    *,
    id: str | None = None,
    causal_label: str = "causal_label",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    rounds: int = ROUNDS,
) -> DataFrame:
    """Return the rows that happened before any of the given events.

    `events`: their ids, as values of the column `id` (in any group), or a DataFrame of rows with
    the column `causal_label`. `df` needs the column `causal_label` of `add_causal_labels`, best
    read from where it was written. Nothing runs until the result is asked for, which then fails for
    events that are nowhere, have no place in the order, or were stamped in another call.

    With `after` no stamps are needed: declared causes are followed from the events outwards (`id`,
    `after`, `group`, `time` as for `add_causal_labels`), a Spark job a step, at once. Raises
    InputError for events that are nowhere or have no place, and when `rounds` steps do not suffice.

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
        return _along_edges(df, events, ways, rounds, backwards=True)
    known = _events(df, events, id, causal_label).select(F.explode(_known("s")).alias("e"))
    entries = known.select("e.*").groupBy("g", "chain")
    frontier = entries.agg(F.max("position").alias("top"), *_versions())
    frontier = _hidden(frontier, "g", "chain", "top", "oldest", "newest")
    mine = column_of(causal_label)
    at = mine["group"].eqNullSafe(_its("g")) & (mine["chain"] == _its("chain"))
    found = _checked(mine, mine["position"] <= _its("top"))
    return df.alias(_ROWS).join(_lent(frontier, events), at).where(found).select(f"{_ROWS}.*")


def future(
    df: DataFrame,
    events: Events,
    *,
    id: str | None = None,
    causal_label: str = "causal_label",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    rounds: int = ROUNDS,
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
        return _along_edges(df, events, ways, rounds, backwards=False)
    given = _events(df, events, id, causal_label).select(
        F.col("s.group").alias("g"), "s.version", "s.chain", "s.position"
    )
    lowest = given.groupBy("g", "chain").agg(F.min("position").alias("low"), *_versions())
    entry = F.struct("chain", "low").alias("entry")
    starts = lowest.groupBy("g").agg(
        F.collect_list(entry).alias("starts"),
        F.min("oldest").alias("oldest"),
        F.max("newest").alias("newest"),
    )
    starts = _hidden(starts, "g", "starts", "oldest", "newest")
    mine = column_of(causal_label)

    def reached(start: Column) -> Column:
        place = F.array_position(mine["chains"], start["chain"]).cast("int") - 1
        known = F.coalesce(F.get(mine["positions"], place) >= start["low"], F.lit(False))
        same = mine["chain"] == start["chain"]
        return F.when(same, mine["position"] > start["low"]).otherwise(known)

    found = _checked(mine, F.exists(_its("starts"), reached))
    at = mine["group"].eqNullSafe(_its("g")) & mine.isNotNull()
    return df.alias(_ROWS).join(_lent(starts, events), at).where(found).select(f"{_ROWS}.*")


def _along_edges(
    df: DataFrame, events: Events, ways: dict[str, Any], rounds: int, *, backwards: bool
) -> DataFrame:
    if isinstance(events, DataFrame):
        raise InputError("with after=, events must be ids: give values of the column id")
    return walk(df, events, order_spec(**ways), rounds, backwards=backwards)


# -- stamps -----------------------------------------------------------------------------------


def _events(df: DataFrame, events: Events, id: str | None, causal_label: str) -> DataFrame:
    """Return the stamps of the events in a column `s`; a row without one fails when it runs."""
    _check_label(df, causal_label)
    if isinstance(events, DataFrame):
        _check_label(events, causal_label)
        given = events.select(column_of(causal_label).alias("s"))
        wrong = F.lit(f"one of the events: an event without a label {NO_PLACE}")
        return given.select(F.coalesce("s", F.raise_error(wrong).cast(LABEL_TYPE)).alias("s"))
    if id is None:
        raise InputError("events are ids: name their column by id=")
    if not analysed(df):
        raise InputError(
            "in a declarative pipeline ids cannot be looked up before it runs: give the events as "
            "a DataFrame of rows with stamps, such as df.where(...)"
        )
    if id not in df.columns:
        raise InputError(f"no column {id}; there are {', '.join(df.columns)}")
    wanted = wanted_of(df, events, id)
    rows = df.select(column_of(id).alias("k"), column_of(causal_label).alias("s"))
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
    stamps = F.when(
        F.size("stamps") == 0, F.array(F.raise_error(wrong).cast(LABEL_TYPE))
    ).otherwise(F.col("stamps"))
    return found.select(F.explode(stamps).alias("s"))


def _check_label(df: DataFrame, causal_label: str) -> None:
    if not analysed(df):
        return
    if causal_label not in df.columns:
        raise InputError(
            f"no column {causal_label}: make it by add_causal_labels, or give after= to do without "
            "labels"
        )
    kind = df.schema[causal_label].dataType.simpleString()
    if kind != LABEL_TYPE.simpleString():
        raise InputError(
            f"column {causal_label} has type {kind}; expected labels of add_causal_labels"
        )


def _known(causal_label: str) -> Column:
    """Return what an event knows: an entry a chain, and one of chain 0, which every group has."""
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


def _versions() -> tuple[Column, Column]:
    return F.min("version").alias("oldest"), F.max("version").alias("newest")


def _hidden(frontier: DataFrame, *names: str) -> DataFrame:
    """Give the columns names that no row has."""
    return frontier.select(*(F.col(name).alias(_NAME.format(name)) for name in names))


def _lent(frontier: DataFrame, events: Events) -> DataFrame:
    """Send what some listed ids make to every task; of a DataFrame Spark must judge the size."""
    return frontier if isinstance(events, DataFrame) else F.broadcast(frontier)


def _its(name: str) -> Column:
    return F.col(_NAME.format(name))


def _checked(mine: Column, found: Column) -> Column:
    """Return `found`, or fail where row and events were not stamped together."""
    unlike = (mine["version"] != _its("oldest")) | (mine["version"] != _its("newest"))
    return F.when(unlike, F.raise_error(F.lit(UNLIKE)).cast("boolean")).otherwise(found)
