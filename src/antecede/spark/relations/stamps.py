"""What two stamps say, as Column expressions and as SQL functions; no Python runs in the plan.

`happened_before`, `concurrent` and `past_size` are look-ups in the arrays of a stamp. `register`
makes SQL functions of the same definitions, which Spark writes out where they are called.
When they are null: see `antecede.causality.relations`.
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

_TYPE = (
    "STRUCT<`group`: STRING, version: BIGINT, chain: INT, position: INT, "
    "chains: ARRAY<INT>, positions: ARRAY<INT>, complete: BOOLEAN>"
)


def happened_before(a: Column | str, b: Column | str) -> Column:
    """Return whether event a is among the causes, direct or indirect, of event b.

    `a` and `b` are stamps of one call of `with_clocks`, as columns or names. Boolean; null where a
    stamp is null or the two were not made together. For pairs in a join give Spark an equality
    too, so that it need not compare all with all: `a.stamp.group <=> b.stamp.group`.

    >>> from antecede.spark import happened_before, with_clocks
    >>> rows = [(1, None, None), (2, 1, 1), (3, 2, 1)]
    >>> events = spark.createDataFrame(rows, "id int, after int, other int")
    >>> made = with_clocks(events, id="id", after="after")
    >>> first = made.where("id = 1").select(made.stamp.alias("first"))
    >>> told = made.crossJoin(first).select("id", happened_before("first", "stamp").alias("x"))
    >>> told.sort("id").show()
    +---+-----+
    | id|    x|
    +---+-----+
    |  1|false|
    |  2| true|
    |  3| true|
    +---+-----+
    <BLANKLINE>
    """
    x, y = _column(a), _column(b)
    return _answered(x, y, F.lit(False), _before(x, y))


def concurrent(a: Column | str, b: Column | str) -> Column:
    """Return whether neither of two distinct events happened before the other.

    Arguments and null as for `happened_before`; an event is not concurrent with itself.

    >>> from antecede.spark import concurrent, with_clocks
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 1)], "id int, after int")
    >>> made = with_clocks(events, id="id", after="after")
    >>> two = made.where("id = 2").select(made.stamp.alias("two"))
    >>> made.crossJoin(two).where(concurrent("two", "stamp")).select("id").show()
    +---+
    | id|
    +---+
    |  3|
    +---+
    <BLANKLINE>
    """
    x, y = _column(a), _column(b)
    same = (x["chain"] == y["chain"]) & (x["position"] == y["position"])
    return _answered(x, y, F.lit(True), ~(same | _before(x, y) | _before(y, x)))


def past_size(stamp: Column | str) -> Column:
    """Return how many events happened before this one (long); null for a null stamp.

    The sum over all events is the number of ordered pairs, without making pairs.

    >>> from antecede.spark import past_size, with_clocks
    >>> events = spark.createDataFrame([(1, None), (2, 1), (3, 2)], "id int, after int")
    >>> made = with_clocks(events, id="id", after="after")
    >>> made.select("id", past_size("stamp").alias("before")).sort("id").show()
    +---+------+
    | id|before|
    +---+------+
    |  1|     0|
    |  2|     1|
    |  3|     2|
    +---+------+
    <BLANKLINE>
    """
    x = _column(stamp)
    start = (x["position"] - F.lit(1)).cast("long")
    return F.aggregate(x["positions"], start, lambda total, one: total + one.cast("long"))


def register_functions(session: SparkSession) -> None:
    """Make `happened_before`, `concurrent` and `past_size` temporary SQL functions of a session.

    Whoever has the session calls them in SQL and in `selectExpr`, over stamps of `with_clocks`. For
    functions in a catalog take `sql_functions`.

    >>> import antecede.spark
    >>> events = spark.createDataFrame([(1, None), (2, 1)], "id int, after int")
    >>> made = antecede.spark.with_clocks(events, id="id", after="after")
    >>> made.createOrReplaceTempView("events")
    >>> antecede.spark.register(spark)
    >>> spark.sql(
    ...     "SELECT a.id, b.id AS later FROM events a JOIN events b "
    ...     "ON happened_before(a.stamp, b.stamp)"
    ... ).show()
    +---+-----+
    | id|later|
    +---+-----+
    |  1|    2|
    +---+-----+
    <BLANKLINE>
    """
    for statement in sql_functions():
        session.sql(statement)


def sql_functions(prefix: str = "", *, temporary: bool = True) -> list[str]:
    """Return the statements that make the SQL functions.

    `prefix` comes before each name, such as "catalog.schema." with `temporary=False`. SQL functions
    came with Spark 4.0.

    >>> from antecede.spark.relations.stamps import sql_functions
    >>> sql_functions()[0].split("(")[0]
    'CREATE OR REPLACE TEMPORARY FUNCTION happened_before'
    """
    kind = "TEMPORARY FUNCTION" if temporary else "FUNCTION"
    two = f"a {_TYPE}, b {_TYPE}"
    same = "(a.chain = b.chain AND a.position = b.position)"
    unrelated = f"NOT ({same} OR {_BEFORE} OR {_AFTER})"
    made = {
        f"happened_before({two}) RETURNS BOOLEAN": _ANSWERED.format(across="FALSE", within=_BEFORE),
        f"concurrent({two}) RETURNS BOOLEAN": _ANSWERED.format(across="TRUE", within=unrelated),
        f"past_size(stamp {_TYPE}) RETURNS BIGINT": (
            "aggregate(stamp.positions, CAST(stamp.position - 1 AS BIGINT), "
            "(total, one) -> total + CAST(one AS BIGINT))"
        ),
    }
    return [f"CREATE OR REPLACE {kind} {prefix}{head} RETURN {body}" for head, body in made.items()]


_BEFORE = (
    "CASE WHEN a.chain = b.chain THEN a.position < b.position ELSE coalesce("
    "get(b.positions, CAST(array_position(b.chains, a.chain) AS INT) - 1) >= a.position, FALSE) END"
)
_AFTER = (
    "CASE WHEN a.chain = b.chain THEN b.position < a.position ELSE coalesce("
    "get(a.positions, CAST(array_position(a.chains, b.chain) AS INT) - 1) >= b.position, FALSE) END"
)
_ANSWERED = (
    "CASE WHEN a IS NULL OR b IS NULL OR (a.`group` IS NULL) <> (b.`group` IS NULL) THEN NULL "
    "WHEN a.`group` <> b.`group` THEN {across} WHEN a.version <> b.version THEN NULL "
    "ELSE {within} END"
)


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given


def _before(x: Column, y: Column) -> Column:
    place = F.array_position(y["chains"], x["chain"]).cast("int") - 1
    known = F.get(y["positions"], place) >= x["position"]
    return F.when(x["chain"] == y["chain"], x["position"] < y["position"]).otherwise(
        F.coalesce(known, F.lit(False))
    )


def _answered(x: Column, y: Column, across: Column, within: Column) -> Column:
    grouped = x["group"].isNull() != y["group"].isNull()
    nothing = F.lit(None).cast("boolean")
    return (
        F.when(x.isNull() | y.isNull() | grouped, nothing)
        .when(x["group"] != y["group"], across)
        .when(x["version"] != y["version"], nothing)
        .otherwise(within)
    )
