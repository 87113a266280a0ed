"""Columns of a stream that change between two starts: held rows, digests, rejections."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from antecede.errors import InputError
from antecede.tables.order.row_hash import content_digests
from antecede.tables.order.spec import Status
from antecede.tables.order.stream.columns import (
    StreamColumns,
    check_columns,
    check_nulls,
    concat_rows,
)
from antecede.tables.order.stream.shard import Shard
from antecede.tables.order.stream.storage.blobs import Memory, pack, unpack
from antecede.tables.order.stream.types import ShardPlan
from tests.tables.order.stream.reference import Item
from tests.tables.order.stream.test_shard import batch

OF_FIELDS: list[Any] = [
    ("id", pa.string()),
    ("n", pa.int64()),
    ("what", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])),
    ("at", pa.timestamp("us", "Europe/Berlin")),
]
OF_OLD: Any = pa.schema(OF_FIELDS)


def schema(*fields: Any) -> pa.Schema:
    return pa.schema(list(fields))


def change_columns(at: int, name: str, kind: Any, nullable: bool = True) -> pa.Schema:
    made: pa.Schema = OF_OLD.set(at, pa.field(name, kind, nullable))
    return made


def what(element: Any) -> Any:
    return pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", element)])))])


REQUIRED = pa.field("x", pa.int8(), nullable=False)


@pytest.mark.parametrize(
    ("check", "now", "said"),
    [
        (check_columns, OF_OLD, None),
        (check_columns, schema(*list(OF_OLD)[::-1], ("x", pa.binary())), None),
        (check_columns, change_columns(3, "at", pa.timestamp("us", "UTC")), None),
        (check_columns, change_columns(0, "id", pa.large_string(), False), None),
        (
            check_columns,
            change_columns(2, "what", pa.struct([("d", pa.int8()), *OF_OLD[2].type])),
            None,
        ),
        (check_columns, OF_OLD.remove(1), r'column n \(bigint\) is gone: add withColumn\("n", lit'),
        (check_columns, change_columns(1, "n", pa.int32()), "n was bigint, is int: cast it back"),
        (check_columns, change_columns(1, "N", pa.int64()), "n is now N: rename it back"),
        (
            check_columns,
            change_columns(3, "at", pa.timestamp("us")),
            "at was timestamp, is timestamp_ntz",
        ),
        (
            check_columns,
            change_columns(2, "what", pa.struct([("a", pa.int32())])),
            r"field what.b \(array<struct<c:string>>\) is gone: add it back",
        ),
        (
            check_columns,
            change_columns(2, "what", what(pa.int64())),
            "b.element.c was string, is bigint",
        ),
        (check_columns, change_columns(2, "what", pa.string()), "what was struct<a:int,b:array<"),
        (check_nulls, OF_OLD.append(pa.field("x", pa.int8())), None),
        (check_nulls, OF_OLD.append(REQUIRED), "column x is NOT NULL"),
        (check_nulls, change_columns(1, "n", pa.int64(), False), "column n is NOT NULL"),
        (
            check_nulls,
            change_columns(2, "what", pa.struct([*OF_OLD[2].type, REQUIRED])),
            "column what.x is NOT NULL",
        ),
    ],
)
def test_columns_may_be_moved_and_added_if_held_rows_may_have_null_there(
    check: Any, now: pa.Schema, said: str | None
) -> None:
    if said is None:
        check(OF_OLD, now)
    else:
        with pytest.raises(InputError, match=said):
            check(OF_OLD, now)


def test_rows_of_several_times_have_the_columns_of_now() -> None:
    old = pa.Table.from_pylist(
        [
            {"id": "a", "n": 1, "what": {"a": 1, "b": [{"c": "x"}, None]}, "at": 0},
            {"id": "b", "n": None, "what": None, "at": None},
        ],
        OF_OLD,
    )
    moved = pa.struct([("b", pa.list_(pa.struct([("d", pa.int8()), ("c", pa.string())]))),
                      ("a", pa.int32())])  # fmt: skip
    now = schema(("new", pa.float64()), ("at", pa.timestamp("us", "UTC")), ("what", moved),
                 ("id", pa.string()), ("n", pa.int64()))  # fmt: skip
    got = concat_rows([old, now.empty_table()], StreamColumns(now, ()))
    assert got.schema == now
    rows = got.to_pylist()
    assert rows[0]["what"] == {"b": [{"d": None, "c": "x"}, None], "a": 1}
    assert [row["new"] for row in rows] == [None, None]
    assert rows[1]["what"] is None
    assert rows[0]["at"].timestamp() == 0


class Rows:
    """Stream in one shard, restarted for each micro-batch; ids are single letters."""

    def __init__(self) -> None:
        self.state = Memory()

    def step(
        self, rows: list[dict[str, Any]], kinds: pa.Schema, content: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Process rows; return those that leave, each with its status."""
        names = kinds.names if content is None else content
        table = pa.Table.from_pylist(rows, kinds)
        digest = content_digests(table.select(names)).tolist()
        items = [
            Item(None, b"g", r["id"].encode(), causes_of_row(r), digest=one, time=0)
            for r, one in zip(rows, digest, strict=True)
        ]
        plan = ShardPlan(False, False, columns=StreamColumns(kinds, tuple(names)))
        out = Shard(plan, self.state).step(batch(items), 0, table)
        assert out.rows is not None
        said = [str(list(Status)[number - 1]) for number in out.status]
        left = out.rows.to_pylist()
        return [row | {"status": status} for row, status in zip(left, said, strict=True)]

    def statuses(self, *given: Any) -> list[str]:
        return [row["status"] for row in self.step(*given)]


def causes_of_row(row: dict[str, Any]) -> tuple[tuple[bytes, int], ...]:
    return tuple((cause.encode(), 0) for cause in row.get("after") or [])


ID = ("id", pa.string())
AFTER = ("after", pa.list_(pa.string()))
V1 = schema(ID, AFTER, ("n", pa.int64()))
V2 = schema(ID, ("color", pa.string()), AFTER, ("n", pa.int64()))
V3 = schema(ID, ("n", pa.int64()), AFTER, ("tag", pa.string()), ("color", pa.string()))


def row(name: str, n: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"id": name, "after": [], "n": n, **more}


def test_held_rows_get_null_in_added_columns_also_after_pieces_were_merged() -> None:
    stream = Rows()
    for number in range(12):  # eight segments of one size are merged
        assert stream.step([{"id": f"w{number}", "after": ["a"], "n": number}], V1) == []
    for number in range(12, 24):
        part = [{"id": f"w{number}", "after": ["a"], "n": number, "color": "red"}]
        assert stream.step(part, V2) == []
    left = stream.step([row("a", color="blue", tag="t")], V3)
    assert [list(one) for one in left] == [[*V3.names, "status"]] * 25
    held = {one["id"]: one for one in left[1:]}
    assert {one["color"] for name, one in held.items() if int(name[1:]) < 12} == {None}
    assert {one["color"] for name, one in held.items() if int(name[1:]) >= 12} == {"red"}
    assert sorted(one["n"] for one in held.values()) == list(range(24))
    assert {one["tag"] for one in held.values()} == {None}


@pytest.mark.parametrize("waits", [False, True])
def test_repeats_are_compared_by_the_columns_that_both_rows_have(waits: bool) -> None:
    stream = Rows()
    after = {"after": ["later"] if waits else []}
    stream.step([row("a") | after], V1)
    for kinds in (V2, V3):
        again = [row("a", color="red", tag="x") | after, row("a", 2, color="red") | after]
        assert stream.statuses(again, kinds) == ["duplicate", "conflict"]
        again = [row("a", color=None, tag=None) | after]
        assert stream.statuses(again, kinds) == ["duplicate"]
        if kinds is V2:
            stream.step([row("b", color="red") | after], V2)
    again = [row("b", color="red", tag="x") | after, row("b", color="blue") | after]
    assert stream.statuses(again, V3) == ["duplicate", "conflict"]


def test_columns_in_another_order_are_the_same_content() -> None:
    stream = Rows()
    moved = schema(("n", pa.int64()), AFTER, ID)
    stream.step([row("a")], V1)
    assert stream.statuses([row("a")], moved) == ["duplicate"]
    assert stream.statuses([row("a", 2)], moved) == ["conflict"]
    given = Rows()
    given.step([row("a", color="red")], V2, ["n", "color"])
    assert given.step([row("a", color="red")], V2, ["color", "n"])[0]["status"] == "duplicate"
    assert given.step([row("a", color="blue")], V2, ["color", "n"])[0]["status"] == "conflict"


def test_a_field_added_inside_a_struct_is_no_other_content() -> None:
    def kinds(*fields: Any) -> pa.Schema:
        return schema(ID, AFTER, ("of", pa.list_(pa.struct(list(fields)))))

    stream = Rows()
    waiting = {"id": "w", "after": ["q"], "of": [{"x": 2}]}
    stream.step([{"id": "a", "of": [{"x": 1}, None]}, waiting], kinds(("x", pa.int64())))
    new = kinds(("y", pa.string()), ("x", pa.int64()))
    assert stream.statuses([{"id": "a", "of": [{"x": 1, "y": "z"}, None]}], new) == ["duplicate"]
    assert stream.statuses([{"id": "a", "of": [{"x": 3, "y": "z"}, None]}], new) == ["conflict"]
    left = stream.step([{"id": "q", "of": None}], new)
    assert left[1]["of"] == [{"y": None, "x": 2}]


def test_what_is_refused_changes_nothing() -> None:
    stream = Rows()
    stream.step([{"id": "w", "after": ["a"], "n": 7}], V1)
    stream.step([row("x", color="c")], V2)
    before = dict(stream.state)
    for worse in (V1, V2.remove(3), V2.set(3, pa.field("n", pa.int32()))):
        with pytest.raises(InputError, match=r"color .* is gone|n .* is gone|n was bigint, is int"):
            stream.step([row("y")], worse)
        assert stream.state == before
    assert [one["n"] for one in stream.step([row("a", color="c")], V2)] == [1, 7]


def test_a_state_of_before_columns_were_kept_goes_on() -> None:
    stream = Rows()
    stream.step([{"id": "w", "after": ["a"], "n": 7}], V1)
    head = unpack(bytearray(stream.state["head"]))
    del head["columns"], stream.state["columns"]
    stream.state["head"] = pack(head)
    with pytest.raises(InputError, match=r"column n \(bigint\) is gone"):
        stream.step([row("y")], V2.remove(3))
    again = [{"id": "w", "after": ["a"], "n": 7, "color": "red"}, row("a")]
    assert sorted(stream.statuses(again, V2)) == ["duplicate", "ordered", "ordered"]
