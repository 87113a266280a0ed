"""Ids and causes from columns of unusual types: a common form, or a rejection."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from antecede.errors import InputError
from antecede.tables.order.durations import duration_ms
from antecede.tables.order.keys import keys_of
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table

SPEC = OrderSpec(id="id", after=("after",))
NOON = dt.datetime(2026, 1, 1, 12)
DAY = dt.timedelta(days=1)


def pair(ids: list[Any], cause: Any, kind: Any = None, other: Any = None) -> tuple[Any, Any]:
    """Return two ids, and a column of causes in which the second row names `cause`."""
    nothing: Any = [] if isinstance(cause, list) else None
    return pa.array(ids, kind), pa.array([nothing, cause], other or kind)


TENTHS = [Decimal("1.50"), Decimal("2.00")]
PAIRS: dict[str, tuple[Any, Any]] = {
    "whole numbers of two widths": pair([7, 8], 7, pa.int64(), pa.int8()),
    "decimals of two scales": pair(
        TENTHS, Decimal("1.500"), pa.decimal128(10, 2), pa.decimal128(20, 3)
    ),
    "decimals and whole numbers": pair(
        [Decimal(1), Decimal(2)], 1, pa.decimal128(10, 2), pa.int64()
    ),
    "timestamps of two units": pair(
        [NOON, NOON + DAY], NOON, pa.timestamp("s"), pa.timestamp("us")
    ),
    "bytes that are no text": pair([b"\xff", b"\xfe"], b"\xff", pa.binary()),
    "bytes of a fixed size": pair([b"\xff\x00", b"\xfe\x00"], b"\xff\x00", pa.binary(2)),
    "two kinds of zero": pair([0.0, 1.0], -0.0),
    "numbers with and without a point": pair([1, 2], 1.0),
    "numbers without and with a point": pair([1.0, 2.0], [1]),
    "text and numbers with a point": pair(["1", "2"], [1.0]),
    "text and whole numbers": pair(["7", "8"], 7, None, pa.int32()),
    "a dictionary": (pa.array(["a", "b"]).dictionary_encode(), pa.array([[], ["a"]])),
    "days in two forms": pair(
        [NOON.date(), NOON.date() + DAY], NOON.date(), pa.date32(), pa.date64()
    ),
}
UNLIKE: dict[str, tuple[Any, Any]] = {
    "with and without a zone": (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    "decimals and floats": (pa.decimal128(5, 2), pa.float64()),
    "decimals and text": (pa.decimal128(5, 2), pa.string()),
    "times and text": (pa.timestamp("us"), pa.string()),
    "days and times": (pa.date32(), pa.timestamp("us")),
    "flags and numbers": (pa.bool_(), pa.int64()),
    "times and numbers with a point": (pa.timestamp("us"), pa.float32()),
    "decimals too wide for one type": (pa.decimal256(76, 0), pa.decimal256(76, 76)),
}


@pytest.mark.parametrize("case", PAIRS)
def test_a_cause_finds_its_row_whatever_the_columns(case: str) -> None:
    ids, after = PAIRS[case]
    made = order_table(pa.table({"id": ids, "after": after}), SPEC)
    assert made.column("position").to_pylist() == [0, 1]
    assert made.column("antecede_status").to_pylist() == ["ordered", "ordered"]


@pytest.mark.parametrize("case", UNLIKE)
@pytest.mark.parametrize("listed", [False, True])
def test_columns_that_can_never_be_equal_are_refused(case: str, listed: bool) -> None:
    kind, other = UNLIKE[case]
    after = pa.nulls(1, pa.list_(other) if listed else other)
    with pytest.raises(InputError, match=r"ids and causes can never be equal: id is .*cast them"):
        order_table(pa.table({"id": pa.nulls(1, kind), "after": after}), SPEC)


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.time64("us"), pa.list_(pa.int8())])
def test_what_names_nothing_is_refused(kind: Any) -> None:
    table = pa.table({"id": pa.nulls(1, kind), "after": pa.nulls(1, pa.string())})
    with pytest.raises(InputError, match=r"column id has type .*: expected numbers, text"):
        order_table(table, SPEC)


@pytest.mark.parametrize(
    ("ids", "after", "statuses"),
    [
        ([1.0, float("nan")], [float("nan"), 1.0], ["ordered", "null_key"]),
        (["a", "b"], pa.nulls(2), ["ordered", "ordered"]),
    ],
)
def test_not_a_number_is_no_identity_and_nulls_cause_nothing(
    ids: Any, after: Any, statuses: list[str]
) -> None:
    made = order_table(pa.table({"id": ids, "after": after}), SPEC)
    assert made.column("antecede_status").to_pylist() == statuses


# -- the spec --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("10 min", 600_000),
        ("1 h 30 min", 5_400_000),
        ("1 hour and 30 minutes", 5_400_000),
        ("90s", 90_000),
        ("1.5 s", 1500),
        ("0.0001 s", 1),
        ("2 weeks", 1_209_600_000),
        ("INTERVAL 10 minutes", 600_000),
        ("1 day 250 microseconds", 86_400_001),
        (dt.timedelta(minutes=10), 600_000),
        (dt.timedelta(microseconds=1), 1),
    ],
)
def test_durations(text: str | dt.timedelta, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("patience", [600, 1.5, "600", "10 minuets", "", "-3 s", "5 m", None])
def test_a_length_of_time_without_unit_is_refused_at_once(patience: Any) -> None:
    with pytest.raises(InputError, match=r"patience.*write for instance '10 minutes'"):
        OrderSpec(id="id", after=("after",), patience=patience)


class Column:
    """Column without a truth value, like Spark's."""

    def __bool__(self) -> bool:
        raise ValueError("a column has no truth value")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"id": Column()}, r"id must be a column name \(text\), not Column"),
        ({"after": (Column(),)}, "after must be a column name"),
        ({"group": ""}, "group must be a column name"),
        ({"content": ("a", 7)}, "content must be a column name"),
        ({"position": Column()}, "position must be a column name"),
        ({"shards": "8"}, "shards must be a whole number, not '8'"),
        ({"shards": True}, "shards must be a whole number"),
        ({"time": "at", "time_unit": "m"}, "time_unit must be s, ms, us or ns, not 'm'"),
        ({"time_unit": "s"}, "give time, too"),
        ({"first_seq": 0}, "without sender and seq"),
    ],
)
def test_options_that_would_be_ignored_or_misread_are_refused(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        OrderSpec(**{"id": "id", "after": ("after",), **options})


def test_a_batch_does_not_pretend_to_drop() -> None:
    spec = OrderSpec(id="id", after=("after",), on_missing="drop")
    with pytest.raises(InputError, match=r"on_missing='drop' is for streams"):
        order_table(pa.table({"id": ["a"], "after": ["b"]}), spec)


def test_two_columns_of_one_name_and_fields_inside_a_column() -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"]), pa.array(["c"])], ["id", "after", "id"])
    with pytest.raises(InputError, match="two columns have the name id: rename one"):
        order_table(table, SPEC)
    inner = pa.table({"id": ["a"], "payload": [{"after": "a"}]})
    with pytest.raises(InputError, match=r"no column payload.after; .* select the field"):
        order_table(inner, OrderSpec(id="id", after=("payload.after",)))


@pytest.mark.parametrize("case", PAIRS)
def test_columns_that_pass_two_gibibytes_say_the_same(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, after = PAIRS[case]
    table = pa.table({"id": ids, "after": after, "group": ["é", "é"]})
    spec = OrderSpec(id="id", after=("after",), group="group", time=None)
    want = order_table(table, spec)
    monkeypatch.setattr("antecede.tables.order.keys._LONGEST", 0)
    monkeypatch.setattr("antecede.tables.order.key_types._LONGEST", 0)
    assert order_table(table, spec).equals(want)


def test_clocks_of_any_shape_may_pass_two_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pa.struct([("m", pa.list_(pa.string())), ("n", pa.list_(pa.int64()))])
    clocks = pa.array([{"m": ["a", "b"], "n": [1, 1]}, {"m": ["a"], "n": [1]}], pairs)
    table = pa.table({"host": ["b", "a"], "clock": clocks})
    spec = OrderSpec(clock="clock", member="host")
    want = order_table(table, spec)
    monkeypatch.setattr("antecede.tables.order.keys._LONGEST", 0)
    assert order_table(table, spec).equals(want)
    assert want.column("position").to_pylist() == [1, 0]


def test_names_that_fit_no_array_are_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full:
        def take(self, _: object) -> object:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    table = pa.table({"id": ["a"], "after": ["b"]})
    keys = keys_of(table, SPEC)
    keys.labels = Full()
    with pytest.raises(InputError, match=r"names of 1 late or missing.*2 GiB.*max_rows_per_task="):
        keys.format_causes(np.zeros(1, np.int64))
