"""Past and future by labels and along declared causes, against sets of rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from antecede.errors import InputError
from antecede.tables.causality import add_causal_labels, future, past
from antecede.tables.causality.spec import order_spec
from tests.spark.test_odd_values import IDS, history
from tests.tables.causality.naive import Past, direct, log, pasts
from tests.tables.causality.test_labels import WAYS, table_of


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column("k", pa.array(range(table.num_rows)))


def compute_expected(before: Past, events: set[int]) -> tuple[list[int], list[int]]:
    """Return the rows before and the rows after any of the events."""
    earlier = {row for k in events & before.keys() for row in before[k]}
    later = {row for row, some in before.items() if some & events}
    return sorted(earlier), sorted(later)


def statuses(made: pa.Table) -> list[Any]:
    return made["antecede_status"].to_pylist()


def ks(table: pa.Table) -> list[int]:
    rows: list[Any] = table["k"].to_pylist()
    return sorted(rows)


@pytest.mark.parametrize("way", WAYS)
def test_stamps_of_any_way(way: str) -> None:
    for seed in range(6):
        made = add_causal_labels(numbered(table_of(log(seed, lost=0.1))), **WAYS[way])
        rows: list[Any] = made.to_pylist()
        before = pasts(direct(rows, statuses(made), order_spec(**WAYS[way])))
        rng = random.Random(seed)
        for count in (1, 2, 5):
            events = set(rng.sample(sorted(before), count))
            given = made.take(pa.array(sorted(events)))
            found = ks(past(made, given)), ks(future(made, given))
            assert found == compute_expected(before, events)


@pytest.mark.few(1)
@pytest.mark.parametrize("case", IDS)
def test_stamps_and_edges_over_odd_values(case: str) -> None:
    ways: dict[str, Any] = {"id": "id", "after": ("after", "also"), "group": "group", "time": "at"}
    found = 0
    for seed in range(6):
        table = numbered(history(case, seed))
        made = add_causal_labels(table, **ways)
        rows: list[Any] = made.to_pylist()
        before = pasts(direct(rows, statuses(made), order_spec(**ways)))
        ids = {repr(rows[k]["id"] or 0): rows[k]["id"] for k in before}
        for name in sorted(ids):
            events = {k for k in before if rows[k]["id"] == ids[name]}
            want = compute_expected(before, events)
            found += sum(map(len, want))
            by_stamps = [ks(f(made, [ids[name]], id="id")) for f in (past, future)]
            assert by_stamps == list(want)
            assert [ks(f(table, [ids[name]], **ways)) for f in (past, future)] == list(want)
    assert found > 20


def small() -> pa.Table:
    rows: list[dict[str, Any]] = [
        {"id": "a", "after": []},
        {"id": "b", "after": ["a", "c"]},
        {"id": "c", "after": ["b"]},
        {"id": "d", "after": ["a"]},
    ]
    return add_causal_labels(pa.Table.from_pylist(rows), id="id", after="after")


@pytest.mark.parametrize("walk", [past, future])
def test_events_without_an_answer_are_refused(walk: Any) -> None:
    made = small()
    edges = {"id": "id", "after": "after"}
    plain = made.select(["id", "after"])
    for table, ways in ((made, {"id": "id"}), (plain, edges)):
        with pytest.raises(InputError, match="no row has the id x"):
            walk(table, ["a", "x"], **ways)
        with pytest.raises(InputError, match="event b has no position"):
            walk(table, ["a", "b"], **ways)
        with pytest.raises(InputError, match=r"events do not match column id \(string\)"):
            walk(table, [1], **ways)
        with pytest.raises(InputError, match="events contain null"):
            walk(table, [None], **ways)
        with pytest.raises(InputError, match="events must be a list"):
            walk(table, "a", **ways)
        assert walk(table, [], **ways).num_rows == 0
    with pytest.raises(InputError, match=r"2 of the events.*no position"):
        walk(made, made)
    with pytest.raises(InputError, match="name their column by id="):
        walk(made, ["a"])
    with pytest.raises(InputError, match=r"no column causal_label.*after="):
        walk(plain, ["a"], id="id")
    with pytest.raises(InputError, match="no column nowhere"):
        walk(made, ["a"], id="nowhere")
    with pytest.raises(InputError, match="expected labels of add_causal_labels"):
        walk(made, ["a"], id="id", causal_label="id")
    with pytest.raises(InputError, match="events must be ids"):
        walk(plain, plain, **edges)


@pytest.mark.parametrize("walk", [past, future])
def test_stamps_of_two_calls_are_refused(walk: Any) -> None:
    made = small()
    other = add_causal_labels(made.select(["id", "after"]).slice(0, 1), id="id", after="after")
    with pytest.raises(InputError, match="from different calls"):
        walk(made, other)
