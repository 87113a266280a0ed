"""State of an ordered stream, read from its checkpoint: identity and held rows.

Uses Spark's state readers (`state-metadata`, `statestore`). They work while the query runs, after
it has stopped, and over Spark Connect. They see the last committed micro-batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.columns import spark_schema
from antecede.spark.streams.processor import GUARD, STATE
from antecede.tables.order.stream import (
    NO_TIME,
    PART,
    Memory,
    ShardParts,
    WaitingRow,
    check_columns,
    check_same_stream,
    list_waiting_rows,
    unpack,
    unpack_schemas,
)

pa: Any = pyarrow
_HELD_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("id", pa.string()),
        ("since", pa.timestamp("us", tz="UTC")),
        ("waits_for", pa.list_(pa.string())),
        ("missing_causes", pa.list_(pa.string())),
        ("more_missing", pa.bool_()),
        ("behind", pa.int64()),
        ("row", pa.string()),
        ("shard", pa.int32()),
    ]
)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class StreamIdentity(NamedTuple):
    """JSON identity and columns of the ordered stream in a checkpoint; empty if not stored."""

    json_text: str = ""
    columns: pyarrow.Schema | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Return the JSON object as a dict."""
        found: dict[str, Any] = json.loads(self.json_text or "{}")
        return found


def held(checkpoint: str, *, operator: int | None = None) -> DataFrame:
    """Return the rows that an ordered stream holds back, read from its checkpoint.

    Columns:

    - `group` and `id` as text (member:number with clocks and sequence numbers).
    - `since`: start of the timeout; null without a clock.
    - `waits_for`: the row's own unreleased causes.
    - `missing_causes`: the missing or excluded causes at the root, at most 20; `more_missing`:
      there are more.
    - `behind`: number of held rows that depend on this one, directly or indirectly; null in shards
      with more than 50,000 held rows.
    - `row`: the row as JSON.
    - `shard`.

    `operator`: Spark's number of the operator, if a query orders several times. Uses the active
    session. Raises InputError without an ordered stream and a committed micro-batch in the folder.

    >>> held("/data/checkpoint").orderBy("since").show()  # doctest: +SKIP
    """
    session = SparkSession.active()
    number = _choose_operator(session, checkpoint, operator)
    kept = _read_identity(session, checkpoint, number)
    if kept is None:
        raise InputError(f"checkpoint {checkpoint} has no committed micro-batch yet: retry later")
    parts = _read_parts(session, checkpoint, number)
    rows = parts.where(F.col("name").rlike("^(head$|[px][0-9])")).repartition("shard")
    return rows.mapInArrow(_HeldRowReader(kept.facts), spark_schema(_HELD_SCHEMA))


def check_checkpoint(
    session: SparkSession, checkpoint: str, identity: str, columns: pyarrow.Schema
) -> None:
    """Check that a stream may continue from a checkpoint. Raises InputError with the difference."""
    if Path(checkpoint.removeprefix("file:")).is_file():
        raise InputError(f"checkpoint {checkpoint} is a file: give the checkpoint folder")
    found = _list_operator_ids(session, checkpoint)
    if not found:
        return
    refused = []
    for number in found:
        kept = _read_identity(session, checkpoint, number) or StreamIdentity()
        try:
            check_same_stream(kept.json_text, identity)
        except InputError as error:
            refused.append(error)
            continue
        try:
            if kept.columns is not None:
                check_columns(kept.columns, columns)
        except InputError as error:  # the same stream, so report this error first
            refused.insert(0, error)
            continue
        return
    raise refused[0]


def find_identity(
    session: SparkSession, checkpoint: str, describe: Callable[[dict[str, Any]], str]
) -> StreamIdentity:
    """Return the identity in a checkpoint: that of the same stream, else the first, else empty."""
    kept = [one for one in _read_identities(session, checkpoint) if "shards" in one.facts]
    same = [one for one in kept if json.loads(describe(one.facts)) == one.facts]
    return next(iter(same + kept), StreamIdentity())


class _HeldRowReader:
    """Function for mapInArrow: blobs of some shards -> one row for each held row."""

    def __init__(self, identity: dict[str, Any]) -> None:
        self.unit = _get_clock_unit(identity)

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        shards: dict[int, Memory] = {}
        for batch in batches:
            for shard, name, data in zip(*map(list, batch.columns), strict=True):
                shards.setdefault(shard.as_py(), Memory())[name.as_py()] = data.as_py()
        for shard, parts in shards.items():
            rows = [self._row(waiting, shard) for waiting in list_waiting_rows(parts)]
            yield from pa.Table.from_pylist(rows, _HELD_SCHEMA).to_batches()

    def _row(self, waiting: WaitingRow, shard: int) -> dict[str, Any]:
        since = None
        if waiting.since != NO_TIME:
            since = waiting.since * 10**6 // _PER_SECOND[self.unit]
        rows = {name: v for name, v in waiting.row.items() if not name.startswith("__antecede")}
        return {
            "group": waiting.group,
            "id": waiting.name,
            "since": since,
            "waits_for": waiting.causes,
            "missing_causes": waiting.missing_causes,
            "more_missing": waiting.more,
            "behind": waiting.behind,
            "row": json.dumps(rows, default=str, ensure_ascii=False),
            "shard": shard,
        }


def _get_clock_unit(identity: dict[str, Any]) -> str:
    if identity.get("time_unit"):
        return str(identity["time_unit"])
    time = identity.get("time") or ""
    if time.endswith(("(timestamp)", "(timestamp_ntz)")):
        return "us"
    return "ms"


def list_operators(session: SparkSession, checkpoint: str) -> list[Row]:
    """Return Spark's metadata of the ordering operators in a checkpoint."""
    try:
        found = session.read.format("state-metadata").load(checkpoint).collect()
    except PySparkException:
        return []
    ours = []
    for row in found:
        variables = json.loads(row.operatorProperties or "{}").get("stateVariables", [])
        if any(variable.get("stateName") == STATE for variable in variables):
            ours.append(row)
    return ours


def list_shard_counts(session: SparkSession, checkpoint: str) -> list[int]:
    """Return the distinct shard counts of a checkpoint's ordered streams. Raises InputError."""
    _choose_operator(session, checkpoint, None, any_of=True)
    facts = [kept.facts for kept in _read_identities(session, checkpoint)]
    found = {kept["shards"] for kept in facts if "shards" in kept}
    if not found:
        raise InputError(f"checkpoint {checkpoint} has no committed micro-batch yet")
    return sorted(found)


def _read_identities(session: SparkSession, checkpoint: str) -> list[StreamIdentity]:
    found = (
        _read_identity(session, checkpoint, number)
        for number in _list_operator_ids(session, checkpoint)
    )
    return [kept for kept in found if kept is not None and kept.json_text]


def _list_operator_ids(session: SparkSession, checkpoint: str) -> list[int]:
    return sorted({int(row.operatorId) for row in list_operators(session, checkpoint)})


def _choose_operator(
    session: SparkSession, checkpoint: str, number: int | None, *, any_of: bool = False
) -> int:
    found = _list_operator_ids(session, checkpoint)
    if not found:
        raise InputError(
            f"checkpoint {checkpoint} has no state of a stream ordered by antecede: wrong path, "
            "no committed micro-batch yet, or a deleted folder `state`"
        )
    if number is None and len(found) > 1 and not any_of:
        raise InputError(
            f"checkpoint {checkpoint} has several ordering operators: give operator=, one of "
            f"{', '.join(map(str, found))}"
        )
    if number is not None and number not in found:
        raise InputError(
            f"operator {number} of checkpoint {checkpoint} does not order rows; choose from "
            f"{', '.join(map(str, found))}"
        )
    return found[0] if number is None else number


def _read_parts(session: SparkSession, checkpoint: str, operator: int) -> DataFrame:
    reader = session.read.format("statestore").option("stateVarName", STATE)
    state = reader.option("operatorId", operator).load(checkpoint)
    return state.selectExpr("key.shard shard", "user_map_key.name name", "user_map_value.data data")


def _read_identity(session: SparkSession, checkpoint: str, operator: int) -> StreamIdentity | None:
    """Return the identity of an operator's stream; None: no micro-batch is committed."""
    try:
        found = (
            _read_parts(session, checkpoint, operator)
            .where((F.col("shard") == GUARD) & F.col("name").isin("head", PART))
            .collect()
        )
    except PySparkException as error:
        if "STDS_COMMITTED_BATCH_UNAVAILABLE" in str(error):
            return None
        raise
    except Py4JJavaError as error:  # missing or damaged files
        match = re.search(r"\[[A-Z_.]+\][^\n]*", str(error.java_exception))
        raise InputError(
            f"cannot read the state in {checkpoint}: {match[0] if match else error.java_exception}"
        ) from error
    blobs = Memory({row.name: bytes(row.data) for row in found})
    if "head" not in blobs:
        return StreamIdentity()
    head = unpack(bytearray(blobs["head"]))
    columns = None
    if PART in head:
        columns = unpack_schemas(ShardParts(blobs).open(PART, head[PART].tobytes()))[0]
    return StreamIdentity(head["about"].tobytes().decode(), columns)
