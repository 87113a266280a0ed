"""Causal labels against sets of rows; null where labels are not comparable."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from antecede.errors import InputError
from antecede.tables.causality import add_causal_labels, concurrent, happened_before, past_size
from antecede.tables.causality.spec import order_spec
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.spark.test_odd_values import IDS, history
from tests.tables.causality.naive import Past, direct, log, pasts

WAYS: dict[str, dict[str, Any]] = {
    "declared": {"id": "id", "after": "after", "group": "run"},
    "clock": {"clock": "clock", "member": "member", "group": "run"},
    "numbers": {"sender": "member", "seq": "seq", "group": "run"},
    "no group": {"id": "id", "after": "after"},
}
CLOCK = pa.map_(pa.string(), pa.int64())


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    made: Any = [{**row, "clock": list(row["clock"].items())} for row in rows]
    schema = {
        "id": pa.string(),
        "after": pa.list_(pa.string()),
        "run": pa.string(),
        "member": pa.string(),
        "clock": CLOCK,
        "seq": pa.int64(),
        "at": pa.int64(),
    }
    return pa.Table.from_pylist(made, pa.schema(schema))


def judge(table: pa.Table, spec: OrderSpec, made: pa.Table) -> Past:
    """Compare the labels of a table with sets, pair by pair; return the sets."""
    statuses: Any = made["antecede_status"].to_pylist()
    assert statuses == order_table(table, spec)["antecede_status"].to_pylist()
    rows: list[dict[str, Any]] = table.to_pylist()
    before = pasts(direct(rows, statuses, spec))
    stamps: Any = made["causal_label"].combine_chunks()
    group = [row[spec.group] if spec.group else 0 for row in rows]
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    left, right = (stamps.take(pa.array([pair[k] for pair in pairs])) for k in (0, 1))
    told = (happened_before(left, right).to_pylist(), concurrent(left, right).to_pylist())
    for (i, j), hb, apart in zip(pairs, *told, strict=True):
        if i not in before or j not in before:
            assert (hb, apart) == (None, None)
        else:
            assert hb == (i in before[j])
            assert apart == (i != j and i not in before[j] and j not in before[i])
    sizes = past_size(stamps).to_pylist()
    assert sizes == [len(before[k]) if k in before else None for k in range(len(rows))]
    assert all(group[i] == group[j] for j in before for i in before[j])
    return before


@pytest.mark.parametrize("lost", [0.0, 0.2])
@pytest.mark.parametrize("way", WAYS)
def test_stamps_are_exact(way: str, lost: float) -> None:
    related = 0
    for seed in range(12):
        table = table_of(log(seed, lost=lost))
        before = judge(table, order_spec(**WAYS[way]), add_causal_labels(table, **WAYS[way]))
        related += sum(map(len, before.values()))
    assert related > 300


@pytest.mark.parametrize("case", IDS)
def test_stamps_are_exact_over_odd_values(case: str) -> None:
    ways: dict[str, Any] = {"id": "id", "after": ("after", "also"), "group": "group", "time": "at"}
    statuses = set()
    for seed in range(8):
        table = history(case, seed)
        made = add_causal_labels(table, **ways)
        judge(table, order_spec(**ways), made)
        statuses |= set(made["antecede_status"].to_pylist())
    assert len(statuses) >= 5


def test_clocks_that_contradict_each_other() -> None:
    rows = log(3, 40)
    for row in rows[::7]:
        row["clock"] = {**row["clock"], "abcd"[row["at"] % 4]: 9}
    table = table_of(rows)
    made = add_causal_labels(table, **WAYS["clock"])
    assert "cycle" in made["antecede_status"].to_pylist()
    judge(table, order_spec(**WAYS["clock"]), made)


def test_the_order_of_rows_and_chunks_changes_nothing() -> None:
    table = table_of(log(5, 80))
    chunks = [table.slice(k, 9) for k in range(0, 80, 9)]
    again = pa.concat_tables(chunks[::-1])
    both = [add_causal_labels(one, **WAYS["declared"]).sort_by("id") for one in (table, again)]
    assert both[0]["causal_label"].to_pylist() == both[1]["causal_label"].to_pylist()


def chain_of(made: pa.Table) -> dict[str, int]:
    return {row["id"]: row["causal_label"]["chain"] for row in made.to_pylist()}


def test_branches_that_merged_give_their_chains_back() -> None:
    rows = []
    for k in range(1000):
        after = [f"m{k - 1}"] if k else []
        rows += [{"id": f"l{k}", "after": after}, {"id": f"r{k}", "after": after}]
        rows.append({"id": f"m{k}", "after": [f"l{k}", f"r{k}"]})
    made = add_causal_labels(pa.Table.from_pylist(rows), id="id", after="after", max_entries=1)
    assert set(chain_of(made).values()) == {0, 1}


def test_a_tree_has_short_stamps() -> None:
    rows: list[dict[str, Any]] = [
        {"id": k, "after": (k * 7919 % k) if k else None} for k in range(5000)
    ]
    made = add_causal_labels(pa.Table.from_pylist(rows), id="id", after="after")
    assert max(len(row["causal_label"]["chains"]) for row in made.to_pylist()) <= 12


def test_a_past_too_wide_is_refused_by_name() -> None:
    rows: list[dict[str, Any]] = [{"id": f"s{k}", "after": [], "g": "x"} for k in range(6)]
    rows.append({"id": "all", "after": [f"s{k}" for k in range(6)], "g": "x"})
    table = pa.Table.from_pylist(rows)
    ways: dict[str, Any] = {"id": "id", "after": "after", "group": "g"}
    with pytest.raises(InputError, match=r"id all.*group x meets more than 4 chains.*max_entries="):
        add_causal_labels(table, **ways, max_entries=4)
    assert add_causal_labels(table, **ways, max_entries=5).num_rows == 7


def test_stamps_of_two_calls_do_not_compare() -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "after": None},
        {"id": 2, "after": 1},
        {"id": 3, "after": 1},
    ]
    whole, part = pa.Table.from_pylist(rows), pa.Table.from_pylist(rows[1:])
    old, new = (add_causal_labels(t, id="id", after="after")["causal_label"] for t in (part, whole))
    assert happened_before(new[0], new[1])
    assert happened_before(new[0], old[0]) is None
    assert concurrent(new[1], old[0]) is None
    again = add_causal_labels(whole, id="id", after="after")["causal_label"]
    assert happened_before(new[0], again[1])
    grouped = whole.append_column("g", pa.array(["g"] * 3))
    other = add_causal_labels(grouped, id="id", after="after", group="g")["causal_label"]
    assert happened_before(new[0], other[1]) is None


def test_complete_says_whether_a_cause_is_missing_anywhere_before() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "after": ["gone"]},
        {"id": "b", "after": ["a"]},
        {"id": "c", "after": []},
        {"id": "d", "after": ["c"]},
        {"id": "e", "after": ["b", "d"]},
    ]
    made = add_causal_labels(pa.Table.from_pylist(rows), id="id", after="after").to_pylist()
    told = {row["id"]: row["causal_label"]["complete"] for row in made}
    assert told == {"a": False, "b": False, "c": True, "d": True, "e": False}


def test_an_empty_table() -> None:
    table = pa.table({"id": pa.array([], pa.string()), "after": pa.array([], pa.string())})
    made = add_causal_labels(table, id="id", after="after")
    assert happened_before(made["causal_label"], made["causal_label"]).to_pylist() == []
    assert made.column_names == ["id", "after", "causal_label", "antecede_status"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"causal_label": "id"}, "a column id already.*causal_label="),
        ({"status": "after"}, "a column after already.*status="),
        ({"causal_label": "x", "status": "x"}, "distinct names"),
        ({"causal_label": ""}, "must be a column name"),
        ({"max_entries": 0}, "max_entries must be a whole number of at least 1"),
        ({"max_entries": True}, "max_entries must be"),
        ({"clock": "c"}, "give exactly one of"),
        ({"group": "nowhere"}, "no column nowhere"),
    ],
)
def test_refusals(given: dict[str, Any], said: str) -> None:
    table = pa.table({"id": ["a"], "after": ["b"]})
    with pytest.raises(InputError, match=said):
        add_causal_labels(table, **{"id": "id", "after": "after", **given})


def test_what_is_no_stamp_is_refused() -> None:
    stamps = add_causal_labels(pa.table({"id": [1, 2], "after": [2, 3]}), id="id", after="after")[
        "causal_label"
    ]
    with pytest.raises(InputError, match=r"labels of add_causal_labels, got int64"):
        happened_before(stamps, pa.array([1, 2]))
    with pytest.raises(InputError, match=r"labels of add_causal_labels, got list"):
        concurrent([1], stamps)
    with pytest.raises(InputError, match="2 labels and 1"):
        happened_before(stamps, stamps.slice(1))
