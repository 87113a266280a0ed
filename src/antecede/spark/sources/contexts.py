"""Message ids and causes from headers (`antecede.core.propagation`) as columns."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.core.propagation import CAUSES, ID, TOKEN
from antecede.errors import InputError
from antecede.spark.columns import column_of


def read_context(
    df: DataFrame,
    *,
    headers: str = "headers",
    id: str = "message_id",
    causes: str = "causes",
) -> DataFrame:
    """Add the message id and the array of its causes' ids, read from message headers.

    `headers` is an array<struct<key: string, value: binary or string>>, as Spark's Kafka source
    provides with `includeHeaders`, or a map<string, string>. Header names ignore case. Rows without
    a valid context by `antecede.core.propagation.read` (absent, incomplete, contradictory,
    malformed ids) have null in both columns; `order` marks them as null_key. Batch and stream.
    Raises InputError for columns that are missing, exist already, or have another type.

        events = spark.readStream.format("kafka").option("includeHeaders", "true")...load()
        ordered = read_context(events).transform(
            order(id="message_id", after="causes", group="key", time="timestamp")
        )
    """
    if headers not in df.columns:
        raise InputError(f"no column {headers}; columns are {', '.join(df.columns)}")
    taken = [name for name in (id, causes) if name in df.columns]
    if taken or id == causes:
        raise InputError(f"column {', '.join(taken) or id} exists already: choose another name")
    given, names = _find_values(df, headers, ID), _find_values(df, headers, CAUSES)
    own, text = F.get(given, F.lit(0)), F.get(names, F.lit(0))
    nothing = F.array().cast("array<string>")
    listed = F.when(text == "", nothing).otherwise(F.array_distinct(F.split(text, ",", -1)))
    whole = (
        (F.size(given) == 1)
        & (F.size(names) == 1)
        & _is_id(own)
        & F.forall(listed, _is_id)
        & ~F.array_contains(listed, own)
    )
    return df.withColumns({id: F.when(whole, own), causes: F.when(whole, listed)})


def _is_id(column: Column) -> Column:
    return column.rlike(rf"\A{TOKEN}\z")


def _find_values(df: DataFrame, headers: str, name: str) -> Column:
    kind = df.schema[headers].dataType
    column = column_of(headers)
    if isinstance(kind, t.MapType) and isinstance(kind.keyType, t.StringType):
        pairs = F.map_entries(column)
    elif (
        isinstance(kind, t.ArrayType)
        and isinstance(kind.elementType, t.StructType)
        and {"key", "value"} <= set(kind.elementType.names)
    ):
        pairs = column
    else:
        raise InputError(
            f"column {headers} must be an array of structs of key and value, or a map of strings; "
            f"it is {kind.simpleString()}"
        )
    found = F.filter(pairs, lambda pair: F.lower(pair["key"]) == name)
    texts = F.transform(found, lambda pair: F.trim(pair["value"].cast("string"), F.lit(" \t")))
    return F.array_distinct(texts)
