from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import InputError
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.tables.order.reference import compute_expected, random_rows

DECLARED = OrderSpec(id="id", after=("after",))
TIMED = dataclasses.replace(DECLARED, time="time", time_unit="ms")


def run(table: pa.Table, spec: OrderSpec) -> list[dict[str, Any]]:
    return order_table(table, spec).to_pylist()


def by_id(table: pa.Table, spec: OrderSpec = DECLARED) -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in run(table, spec)}


def table_of(*rows: tuple[Any, Any], **more: list[Any]) -> pa.Table:
    return pa.table({"id": [r[0] for r in rows], "after": [r[1] for r in rows], **more})


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from((0.0, 0.05, 0.3)))
def test_agrees_with_sets_and_loops(seed: int, n: int, backward: float) -> None:
    rows = random_rows(seed, n, backward=backward)
    table = pa.table(
        {
            "id": [r.id for r in rows],
            "after": pa.array([r.after for r in rows], pa.list_(pa.string())),
            "time": pa.array([r.time for r in rows], pa.int64()),
        }
    )
    want = compute_expected(rows)
    for row in run(table, TIMED):
        answer = want[row["id"]]
        got = (row["antecede_status"], row["position"], row["waited_for"], row["waited_ms"])
        assert got == (answer.status, answer.position, answer.waited_for, answer.waited)
        assert row["missing_causes"] == answer.missing


@given(st.integers(0, 10**6), st.integers(1, 40), st.randoms())
def test_the_order_of_rows_and_chunks_does_not_matter(seed: int, n: int, rng: Any) -> None:
    rows = random_rows(seed, n)
    table = pa.table(
        {
            "id": [rng.choice((r.id, "e0")) for r in rows],
            "after": pa.array([r.after for r in rows], pa.list_(pa.string())),
            "time": pa.array([r.time for r in rows], pa.int64()),
            "text": [rng.choice("ab") for _ in rows],
        }
    )
    order = list(range(n))
    rng.shuffle(order)
    cut = rng.randrange(n + 1)
    shuffled = table.take(pa.array(order, pa.int64()))
    shuffled = pa.concat_tables([shuffled.slice(0, cut), shuffled.slice(cut)])
    assert sorted(map(repr, run(table, TIMED))) == sorted(map(repr, run(shuffled, TIMED)))


def test_a_cause_that_came_later_is_waited_for_with_its_own_wait() -> None:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    seconds = [0, 1, 5]  # c came first, needs b, which needs a, which came last
    table = table_of(
        ("c", "b"), ("b", "a"), ("a", None), at=[moment + dt.timedelta(seconds=s) for s in seconds]
    )
    rows = by_id(table, dataclasses.replace(DECLARED, time="at"))
    assert [rows[i]["position"] for i in "abc"] == [0, 1, 2]
    assert [rows[i]["waited_for"] for i in "abc"] == [[], ["a"], ["b"]]
    assert [rows[i]["waited_ms"] for i in "abc"] == [0.0, 4000.0, 5000.0]


def test_without_times_waits_are_null_and_only_absent_causes_are_known() -> None:
    rows = by_id(table_of(("a", "b"), ("b", "nowhere")))
    assert rows["a"]["waited_for"] == []
    assert (rows["b"]["waited_for"], rows["b"]["missing_causes"]) == ([], ["nowhere"])
    assert rows["b"]["antecede_status"] == "missing_cause"
    assert rows["a"]["antecede_status"] == "ordered"
    assert rows["a"]["waited_ms"] is None


def test_a_plain_integer_time_orders_but_gives_no_duration() -> None:
    spec = dataclasses.replace(TIMED, time_unit=None)
    rows = by_id(table_of(("a", "b"), ("b", None), time=[1, 2]), spec)
    assert rows["a"]["waited_for"] == ["b"]
    assert rows["a"]["waited_ms"] is None


def test_several_columns_and_arrays_give_causes_each_named_once() -> None:
    table = table_of(
        ("a", ["x", "y", None, "x"]), ("b", []), ("c", None), also=["y", None, "b"], time=[1, 2, 3]
    )
    spec = dataclasses.replace(DECLARED, after=("also", "after"))
    rows = by_id(table, spec)
    assert rows["a"]["missing_causes"] == ["y", "x"]
    assert [rows[i]["antecede_status"] for i in "bc"] == ["ordered", "ordered"]


def test_one_name_is_as_good_as_a_tuple_of_one() -> None:
    assert OrderSpec(id="id", after="after", content="id") == OrderSpec(  # type: ignore[arg-type]
        id="id", after=("after",), content=("id",)
    )


def test_numbers_as_ids_are_compared_as_numbers() -> None:
    rows = by_id(table_of((10, None), (9, None), (2, None)))
    assert [rows[i]["position"] for i in (2, 9, 10)] == [0, 1, 2]


def test_groups_are_numbered_apart_and_do_not_see_each_other() -> None:
    table = table_of(("a", "b"), ("b", None), ("a", "b"), ("z", None), group=["g", "g", "h", None])
    rows = run(table, dataclasses.replace(DECLARED, group="group"))
    assert [r["position"] for r in rows] == [1, 0, 0, None]
    status = [r["antecede_status"] for r in rows]
    assert status == ["ordered", "ordered", "missing_cause", "null_key"]


def test_repeated_rows_are_told_from_conflicting_ones() -> None:
    table = table_of(
        ("a", None),
        ("a", None),
        ("a", None),
        ("b", "a"),
        text=["x", "y", "x", "z"],
        time=[2, 3, 4, 1],
    )
    rows = run(table, TIMED)
    status = [r["antecede_status"] for r in rows]
    assert status == ["ordered", "conflict", "duplicate", "ordered"]
    rows = run(table, dataclasses.replace(TIMED, content=("after",)))
    assert [r["antecede_status"] for r in rows][:3] == ["ordered", "duplicate", "duplicate"]


def test_a_good_row_is_taken_where_another_with_its_id_is_bad() -> None:
    rows = run(table_of(("a", "a"), ("a", None), ("b", "a")), DECLARED)
    assert [r["antecede_status"] for r in rows] == ["self_cause", "ordered", "ordered"]


def test_a_long_chain_in_reverse() -> None:
    n = 200_000
    table = pa.table({"id": np.arange(n), "after": pa.array([*range(1, n), None], pa.int64())})
    position = order_table(table, DECLARED).column("position").to_numpy()
    assert (position == np.arange(n)[::-1]).all()


CLOCKS = pa.map_(pa.string(), pa.int64())


def clocks(*rows: tuple[str | None, dict[str, int | None] | None]) -> pa.Table:
    return pa.table(
        {
            "host": pa.array([r[0] for r in rows], pa.string()),
            "clock": pa.array([None if r[1] is None else list(r[1].items()) for r in rows], CLOCKS),
        }
    )


BY_CLOCK = OrderSpec(clock="clock", member="host")


def test_a_vector_that_names_an_event_not_there_still_follows_the_one_before_it() -> None:
    table = clocks(("b", {"a": 9, "b": 1}), ("a", {"a": 5}), ("a", {"a": 12}))
    rows = run(table, BY_CLOCK)
    assert rows[0]["position"] > rows[1]["position"]
    assert rows[0]["missing_causes"] == ["a:9"]
    assert [r["antecede_status"] for r in rows] == ["missing_cause"] * 3
    assert rows[2]["missing_causes"] == ["a:11"]


def test_vectors_without_an_own_entry_or_with_bad_numbers_are_set_aside() -> None:
    huge = 2**62
    table = clocks(
        ("a", {"b": 1}),
        ("a", {"a": 0}),
        ("a", {"a": 1, "b": -1}),
        (None, {"a": 1}),
        ("a", None),
        ("b", {"b": huge}),
        ("a", {"a": 1, "b": None}),
        ("a", {"a": 1}),
    )
    status = [r["antecede_status"] for r in run(table, BY_CLOCK)]
    bad = ["bad_clock"] * 3
    assert status == [*bad, "null_key", "bad_clock", "missing_cause", "bad_clock", "ordered"]


def test_vectors_may_be_pairs_of_arrays_or_arrays_by_number() -> None:
    pairs = pa.struct([("members", pa.list_(pa.string())), ("counts", pa.list_(pa.int64()))])
    entries = [
        {"members": ["a", "b"], "counts": [1, 1]},
        {"members": ["a"], "counts": [1]},
        {"members": ["a"], "counts": [1, 2]},
        {"members": None, "counts": [3]},
    ]
    table = pa.table({"host": ["b", "a", "a", "a"], "clock": pa.array(entries, pairs)})
    rows = run(table, BY_CLOCK)
    assert [r["position"] for r in rows] == [1, 0, None, None]
    assert rows[2]["antecede_status"] == "bad_clock"
    table = pa.table({"host": [1, 0], "clock": pa.array([[1, 1], [1, 0]], pa.list_(pa.int32()))})
    assert [r["position"] for r in run(table, BY_CLOCK)] == [1, 0]


@given(st.integers(0, 10**6))
def test_vectors_of_a_random_run_agree_with_declared_causes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    latest: dict[str, dict[str, int]] = {m: {} for m in "abc"}
    rows: list[tuple[str | None, dict[str, int | None] | None]] = []
    declared = []
    for _ in range(30):
        me, other = rng.choice(list("abc"), 2)
        after = [f"{m}:{latest[m][m]}" for m in {me, other} if m in latest[m]]
        merged = {m: max(latest[me].get(m, 0), latest[other].get(m, 0)) for m in "abc"}
        merged[me] += 1
        latest[me] = {m: c for m, c in merged.items() if c}
        rows.append((str(me), dict(latest[me])))
        declared.append((f"{me}:{merged[me]}", after))
    table = clocks(*rows)
    by_clock = run(table, BY_CLOCK)
    position = {ident: row["position"] for (ident, _), row in zip(declared, by_clock, strict=True)}
    assert sorted(position.values()) == list(range(30))
    for ident, causes in declared:
        assert all(position[cause] < position[ident] for cause in causes)


BY_NUMBER = OrderSpec(sender="from", seq="n", time="at", time_unit="ms")


def test_numbers_of_a_sender_wait_for_the_ones_before() -> None:
    table = pa.table(
        {
            "from": ["a", "a", "b", "a", "b", None, "c", "c"],
            "n": [2, 1, 1, 5, 2, 1, None, -1],
            "at": [0, 10, 5, 6, 7, 8, 9, 9],
        }
    )
    rows = run(table, BY_NUMBER)
    assert rows[0]["waited_for"] == ["a:1"]
    assert rows[0]["waited_ms"] == 10.0
    assert rows[3]["missing_causes"] == ["a:4"]
    assert rows[3]["antecede_status"] == "missing_cause"
    assert rows[3]["position"] > rows[0]["position"] > rows[1]["position"]
    assert rows[2]["waited_for"] == []
    status = [r["antecede_status"] for r in rows[5:]]
    assert status == ["null_key", "null_key", "bad_clock"]


def test_numbers_up_to_the_first_lack_nothing_but_stay_in_order() -> None:
    table = pa.table({"from": ["a", "a"], "n": [1, 0]})
    rows = run(table, OrderSpec(sender="from", seq="n"))
    assert [r["antecede_status"] for r in rows] == ["ordered", "ordered"]
    assert [r["position"] for r in rows] == [1, 0]


def test_absurd_numbers_cost_no_memory_and_extreme_times_do_not_wrap() -> None:
    table = pa.table({"from": ["a", "a"], "n": [2**63 - 1, 1], "at": [-(2**63) + 1, 2**63 - 1]})
    rows = run(table, BY_NUMBER)
    assert rows[0]["missing_causes"] == [f"a:{2**63 - 2}"]
    assert rows[0]["waited_ms"] == pytest.approx(2.0**64)


@pytest.mark.parametrize("extra", [{}, {"group": "g"}, {"time": "t"}])
def test_an_empty_table_gains_the_columns(extra: dict[str, Any]) -> None:
    kinds: dict[str, Any] = {"id": pa.string(), "after": pa.string(), "g": pa.string()}
    empty = pa.schema(kinds | {"t": pa.date32()}).empty_table()
    table = order_table(empty, dataclasses.replace(DECLARED, **extra))
    assert table.num_rows == 0
    assert table.column_names[-6:] == list(DECLARED.added)


def test_columns_that_cannot_serve_are_named() -> None:
    with pytest.raises(InputError, match="no column after; there are id"):
        run(pa.table({"id": ["a"]}), DECLARED)
    with pytest.raises(InputError, match="has a column position already"):
        run(table_of(("a", None), position=[1]), DECLARED)
    with pytest.raises(InputError, match="must be a timestamp, not double"):
        run(table_of(("a", None), time=[1.5]), TIMED)
    with pytest.raises(InputError, match="map from member"):
        run(pa.table({"host": ["a"], "clock": ["a:1"]}), BY_CLOCK)
    with pytest.raises(InputError, match="whole numbers, not string"):
        run(pa.table({"from": ["a"], "n": ["1"], "at": [0]}), BY_NUMBER)
    with pytest.raises(InputError, match="expected numbers, text, bytes"):
        run(pa.table({"id": [{"x": 1}], "after": ["a"]}), DECLARED)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"id": "a"},
        {"id": "a", "after": ("b",), "clock": "c"},
        {"sender": "s"},
        {"id": "a", "after": ("b",), "shards": 0},
        {"id": "a", "after": ("b",), "on_missing": "wait"},
        {"id": "a", "after": ("b",), "status": "position"},
    ],
)
def test_a_spec_that_is_not_one_way_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        OrderSpec(**arguments)


def test_without_times_rows_go_by_depth_and_then_by_identity() -> None:
    table = table_of(("c", None), ("a", "b"), ("b", None), ("0", "a"))
    assert [row["id"] for row in sorted(run(table, DECLARED), key=lambda r: r["position"])] == [
        *("b", "c"),
        *("a", "0"),
    ]


def test_a_unit_of_a_timestamp_is_refused() -> None:
    table = pa.table({"id": ["a"], "after": [[]], "at": pa.array([0], pa.timestamp("ms"))})
    with pytest.raises(InputError, match="time_unit is for integer columns, and column at"):
        order_table(table, OrderSpec(id="id", after=("after",), time="at", time_unit="ms"))


def test_contents_that_differ_in_what_is_null_alone_conflict() -> None:
    for first, second in (((None, "x"), ("x", None)), (([], "x"), ([None], "x"))):
        kind = pa.list_(pa.string()) if isinstance(first[0], list) else pa.string()
        table = pa.table(
            {
                "id": ["a", "a"],
                "after": pa.array([[], []], pa.list_(pa.string())),
                "old": pa.array([first[0], second[0]], kind),
                "new": [first[1], second[1]],
            }
        )
        for rows in (table, table.take(pa.array([1, 0]))):
            found = run(rows, DECLARED)
            assert sorted(row["antecede_status"] for row in found) == ["conflict", "ordered"]
        kept = [
            {row["antecede_status"]: row["old"] for row in run(rows, DECLARED)}
            for rows in (table, table.take(pa.array([1, 0])))
        ]
        assert kept[0] == kept[1]


def test_policies_that_would_do_nothing_are_refused() -> None:
    given: dict[str, Any] = {"id": "id", "after": ("after",)}
    with pytest.raises(InputError, match="on_overflow has no effect without max_held_rows"):
        OrderSpec(**given, max_held_rows=None, on_overflow="drop")
    with pytest.warns(UserWarning, match="patience='3 s' has no effect with on_missing='hold'"):
        OrderSpec(**given, patience="3 s").check_stream()
    OrderSpec(**given, patience="3 s", on_missing="release").check_stream()
