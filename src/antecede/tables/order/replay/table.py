"""Replay of an Arrow table of logged bytes: the engine of local runs and of every Spark task.

Rows are split by (group, observer) and sorted by (time, tiebreak, bytes, the whole row), so the
result does not depend on their order. Each observer's rows go through one `ReplayedMember`. Rows
without observer or time are rejected. Costs: docs/design/replay.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

from antecede.core.clocks import NS
from antecede.errors import InputError, LocalError
from antecede.tables.order.replay.member import LoggedRow, ReplayedMember, RowOutcome
from antecede.tables.order.replay.spec import ADDED_COLUMNS, PER_S, DeliverSpec, DeliverStatus
from antecede.tables.trace import is_blank

pa: Any = pyarrow  # its stubs lack some of the types used here
pc: Any = pyarrow.compute

MAX_TIME_NS = 2**62
"""Limit of times, ns from the epoch (the year 2116)."""

ROW_COLUMN = "__antecede_row"
"""Hidden column: number of the row."""

Engine = Callable[[pyarrow.Table, DeliverSpec], pyarrow.Table]
"""Function that adds the columns of a spec to a table, rows in any order."""


class Key(NamedTuple):
    """Group (as text, None without one) and observer that own a log."""

    group: str | None
    observer: str


class ReplayLog(NamedTuple):
    """Rows of a table by observer, each in order of arrival, and rejected ones."""

    rows: dict[Key, list[LoggedRow]]
    refused: list[RowOutcome]


def deliver_table(table: pyarrow.Table, spec: DeliverSpec) -> pyarrow.Table:
    """Return the table, rows in their order, with the added columns of the spec.

    Raises InputError for absent columns and unusable types; rows with bad values are rejected.
    """
    spec.check_columns(table.column_names)
    log = read_log(table, spec)
    outcomes = list(log.refused)
    check_time_type(table.schema.field(spec.time).type, spec)
    for key, rows in log.rows.items():
        outcomes += _replay_log(key, rows, spec)
    return with_outcomes(table, outcomes, spec)


def _replay_log(key: Key, rows: list[LoggedRow], spec: DeliverSpec) -> list[RowOutcome]:
    try:
        observer = ReplayedMember(spec, key.observer, key.group)
    except LocalError as error:
        return reject_rows(rows, error)
    return [*take_all(observer, rows), *observer.finish(spec.finish_s)]


def take_all(observer: ReplayedMember, rows: Iterable[LoggedRow]) -> list[RowOutcome]:
    """Return the rows that leave while an observer processes others."""
    return [outcome for row in rows for outcome in observer.process_row(row)]


def reject_rows(rows: Iterable[LoggedRow], error: LocalError) -> list[RowOutcome]:
    """Return the outcomes of the rows of an observer that can have no group."""
    return [RowOutcome(row.ticket, DeliverStatus.REJECTED, reason=str(error)) for row in rows]


# -- columns in -----------------------------------------------------------------------------


def read_log(table: pyarrow.Table, spec: DeliverSpec) -> ReplayLog:
    """Return rows by observer in order of arrival. Raises InputError for unusable types."""
    names, groups = _read_texts(table, spec.observer), _read_texts(table, spec.group)
    observers = [None if is_blank(name) else name for name in names]
    times = times_of_rows(table, spec)
    wires = _read_values(table, spec.wire, pa.binary())
    ties: Any = [None] * table.num_rows
    if spec.tiebreak is not None:
        ties = _read_plain(table, spec.tiebreak).to_pylist()
    sent = _read_values(table, spec.sent, pa.bool_())
    to, topics = _read_lists(table, spec.to), _read_lists(table, spec.topics)
    log = ReplayLog({}, [])
    ranked: dict[Key, list[tuple[Any, LoggedRow]]] = {}
    for row, (observer, at) in enumerate(zip(observers, times, strict=True)):
        if observer is None or at is None:
            lack = f"no {spec.observer}" if observer is None else f"no valid {spec.time}"
            log.refused.append(RowOutcome(row, DeliverStatus.REJECTED, reason=lack))
            continue
        arrival = LoggedRow(row, at, wires[row], bool(sent[row]), to[row], topics[row])
        tie = ties[row]
        rank = at, tie is None, 0 if tie is None else tie, wires[row] or b""
        ranked.setdefault(Key(groups[row], observer), []).append((rank, arrival))
    for key, rows in ranked.items():
        log.rows[key] = _sort_rows(table, rows)
    return log


def _sort_rows(table: pyarrow.Table, rows: list[tuple[Any, LoggedRow]]) -> list[LoggedRow]:
    rows.sort(key=lambda pair: pair[0])
    ordered: list[LoggedRow] = []
    for _, equal in groupby(rows, key=lambda pair: pair[0]):
        arrivals = [arrival for _, arrival in equal]
        if len(arrivals) > 1:
            whole = table.take(pa.array([arrival.ticket for arrival in arrivals])).to_pylist()
            content = {a.ticket: repr(row) for a, row in zip(arrivals, whole, strict=True)}
            arrivals.sort(key=lambda arrival: content[arrival.ticket])
        ordered += arrivals
    return ordered


def check_time_type(kind: Any, spec: DeliverSpec) -> None:
    """Raise InputError for an Arrow type that is no time."""
    types = pa.types
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_timestamp(kind)):
        raise InputError(f"time column {spec.time} must be a timestamp or a number; it is {kind}")


def times_of_rows(table: pyarrow.Table, spec: DeliverSpec) -> list[Any]:
    """Return times as whole ns, None where out of range; floats as their shortest decimal."""
    column: Any = table.column(spec.time)
    check_time_type(column.type, spec)
    if pa.types.is_floating(column.type):
        per_s = PER_S[spec.time_unit]
        return [_float_to_ns(time, per_s) for time in column.to_pylist()]
    unit = column.type.unit if pa.types.is_timestamp(column.type) else spec.time_unit
    ns = NS // PER_S[unit]
    whole = column.cast(pa.int64(), safe=False) if unit else column
    times = [None if time is None else time * ns for time in whole.to_pylist()]
    return [
        time if time is not None and -MAX_TIME_NS < time < MAX_TIME_NS else None for time in times
    ]


def _float_to_ns(time: float | None, per_s: int) -> int | None:
    if time is None or not math.isfinite(time):
        return None
    ns = math.floor(Fraction(Decimal(repr(time))) * NS / per_s)
    return ns if -MAX_TIME_NS < ns < MAX_TIME_NS else None


def _read_texts(table: pyarrow.Table, name: str | None) -> list[str | None]:
    if name is None:
        return [None] * table.num_rows
    return list(_cast(_read_plain(table, name), pa.string(), name).to_pylist())


def _read_plain(table: pyarrow.Table, name: str) -> Any:
    column: Any = table.column(name)
    if pa.types.is_nested(column.type):
        raise InputError(f"column {name} must hold plain values; it is {column.type}")
    return column


def _read_values(table: pyarrow.Table, name: str | None, kind: Any) -> list[Any]:
    if name is None:
        return [None] * table.num_rows
    return list(_cast(table.column(name), kind, name).to_pylist())


def _cast(column: Any, kind: Any, name: str) -> Any:
    """Cast between layouts of one kind (large or not), never between kinds of values."""
    if kind != pa.string() and str(column.type).removeprefix("large_") not in (str(kind), "null"):
        raise InputError(f"column {name} must be {kind}; it is {column.type}")
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"column {name} of type {column.type}: {error}") from error


def _read_lists(table: pyarrow.Table, name: str | None) -> list[tuple[str, ...] | None]:
    if name is None:
        return [None] * table.num_rows
    column: Any = table.column(name)
    if not pa.types.is_list(column.type) or not pa.types.is_string(column.type.value_type):
        raise InputError(f"column {name} must be an array of strings; it is {column.type}")
    return [None if value is None else tuple(value) for value in column.to_pylist()]


# -- columns out ----------------------------------------------------------------------------


def list_added_fields(spec: DeliverSpec) -> tuple[Any, ...]:
    """Return the Arrow fields of the added columns, in order."""
    texts = pa.list_(pa.string())
    text, whole = pa.string(), pa.int64()
    kinds = (whole, text, pa.float64(), texts, text, text, whole, pa.binary())
    return tuple(pa.field(name, kind) for name, kind in zip(spec.added_columns, kinds, strict=True))


def with_outcomes(
    table: pyarrow.Table, outcomes: Sequence[RowOutcome], spec: DeliverSpec
) -> pyarrow.Table:
    """Append the added columns; there is one outcome for each row number."""
    by_row = sorted(outcomes)
    assert [outcome.ticket for outcome in by_row] == list(range(table.num_rows))
    for name, field in zip(ADDED_COLUMNS, list_added_fields(spec), strict=True):
        values = [getattr(outcome, name) for outcome in by_row]
        if name == "status":
            values = [str(status) for status in values]
        elif name == "seq":  # a relayed message may contain any number
            values = [seq if seq is None or seq < MAX_TIME_NS else None for seq in values]
        table = table.append_column(field, pa.array(values, field.type))
    return table


# -- wide tables and either engine ----------------------------------------------------------


def deliver_wide(
    table: pyarrow.Table, spec: DeliverSpec, engine: Engine = deliver_table
) -> pyarrow.Table:
    """Return the table of the local engine by any engine, which gets only the columns it needs.

    Without a `tiebreak` rows of equal time keep their order.
    """
    spec.check_columns(table.column_names)
    narrow, inner = _narrow_table(table, spec)
    done: Any = engine(narrow, inner)
    done = done.sort_by(ROW_COLUMN)
    for name, field in zip(inner.added_columns, list_added_fields(spec), strict=True):
        table = table.append_column(field, done[name].combine_chunks().cast(field.type))
    return table


def _narrow_table(table: pyarrow.Table, spec: DeliverSpec) -> tuple[pyarrow.Table, DeliverSpec]:
    chosen: dict[str, Any] = {}
    for name in spec.used:
        column: Any = table.column(name)
        if name in (spec.observer, spec.group):
            column = _cast(_read_plain(table, name), pa.string(), name)
        elif pa.types.is_timestamp(column.type):  # Spark has only microseconds
            if name == spec.time:
                spec = replace(spec, time_unit=column.type.unit)
            column = column.cast(pa.int64())
        chosen[name] = column
    chosen[ROW_COLUMN] = pa.array(range(table.num_rows), pa.int64())
    return pa.table(chosen), replace(spec, tiebreak=spec.tiebreak or ROW_COLUMN)
