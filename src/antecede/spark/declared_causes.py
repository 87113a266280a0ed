"""Keys of events and of their declared causes, as columns of a DataFrame."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.order.spec import OrderSpec
from antecede.spark.columns import column_of
from antecede.spark.identities import id_column, id_of


def keys_of(df: DataFrame, spec: OrderSpec) -> tuple[Column, Column]:
    """Return a row's group and id as `g` and `k`, in the form in which causes are looked for."""
    group = F.lit(0) if spec.group is None else column_of(spec.group)
    own = column_of(str(spec.id))
    key = id_column(df, str(spec.id)) if _as_text(df, spec) else own
    return group.alias("g"), key.alias("k")


def named_causes(df: DataFrame, spec: OrderSpec, *, backwards: bool) -> DataFrame:
    """Return the declared causes, as (g, step from, step to), as often as they are named."""
    as_text = _as_text(df, spec)
    kind = "string" if as_text else df.schema[str(spec.id)].dataType
    ends = ("k", "cause") if backwards else ("cause", "k")

    def of(name: str) -> DataFrame:
        column = column_of(name)
        several = isinstance(df.schema[name].dataType, t.ArrayType)
        # A cause that is no value of the ids' type means none; the engine decides.
        cause = (F.explode(column) if several else column).alias("cause")
        one = df.select(*keys_of(df, spec), cause)
        cause = F.col("cause")
        inner = one.schema["cause"].dataType
        one = one.withColumn("cause", id_of(cause, inner) if as_text else cause.try_cast(kind))
        return one.select("g", F.col(ends[0]).alias("start"), F.col(ends[1]).alias("end"))

    every = reduce(DataFrame.unionAll, map(of, spec.after))
    return every.where("g IS NOT NULL AND start IS NOT NULL AND end IS NOT NULL")


def _as_text(df: DataFrame, spec: OrderSpec) -> bool:
    """Tell whether ids and causes meet as text: text, or floats (see `key_types`)."""
    kinds = [df.schema[name].dataType for name in (str(spec.id), *spec.after)]
    plain = [kind.elementType if isinstance(kind, t.ArrayType) else kind for kind in kinds]
    return any(isinstance(kind, t.StringType | t.FloatType | t.DoubleType) for kind in plain)
