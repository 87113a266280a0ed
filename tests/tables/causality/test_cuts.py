"""Cuts and recovery lines against the oracle, and against every choice of checkpoints."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest

from antecede.core.oracle.cuts import Cuts
from antecede.errors import InputError
from antecede.tables.causality import check_cut, recovery_line, summarize_cut
from antecede.tables.trace.schema import Event
from tests.tables.causality.naive import Row, direct, log, pasts
from tests.tables.causality.test_labels import table_of

DECLARED: dict[str, Any] = {"process": "member", "at": "seq", "id": "id", "after": "after"}
CLOCKS = pa.map_(pa.string(), pa.int64())
CLOCK: dict[str, Any] = {"at": "seq", "clock": "clock", "member": "member"}


def one_run(seed: int, lost: float = 0.0) -> list[Row]:
    return [row for row in log(seed, 50, lost=lost) if row["run"] == "r"]


def oracle_of(rows: list[Row]) -> Cuts:
    events = []
    for row in sorted(rows, key=lambda row: row["seq"]):
        names, counts = zip(*row["clock"].items(), strict=True)
        events.append(
            Event(
                id=row["id"],
                kind="local",
                member=row["member"],
                clock_members=tuple(names),
                clock_counts=tuple(counts),
            )
        )
    return Cuts(events)


def positions_of(rng: random.Random, rows: list[Row]) -> dict[str, int]:
    """Return positions in the middle, so that both kinds of cuts occur."""
    lengths = {row["member"]: 0 for row in rows}
    for row in rows:
        lengths[row["member"]] = max(lengths[row["member"]], row["seq"])
    return {m: rng.randrange(n // 2, n + 1) for m, n in lengths.items() if rng.random() < 0.9}


@pytest.mark.parametrize("ways", [DECLARED, CLOCK])
def test_cuts_are_those_of_the_oracle(ways: dict[str, Any]) -> None:
    verdicts: list[bool] = []
    for seed in range(60):
        rows, rng = one_run(seed), random.Random(seed)
        positions, oracle = positions_of(rng, rows), oracle_of(rows)
        if seed % 3 == 0:  # few cuts at random are consistent
            positions = oracle.greatest_consistent(positions)
        made = check_cut(table_of(rows), positions, **ways)
        told = summarize_cut(made).to_pylist()[0]
        assert told["consistent"] == oracle.consistent(positions)
        assert told["inside"] + told["outside"] == len(rows)
        verdicts.append(told["consistent"])
    assert 10 < sum(verdicts) < 50


def test_edges_across_a_cut_by_hand() -> None:
    for seed in range(10):
        rows = one_run(seed, lost=0.15)
        positions = positions_of(random.Random(seed), rows)
        for row in rows[:2]:
            row["member"] = None  # on no side
        made = check_cut(table_of(rows), positions, **DECLARED).to_pylist()
        side: dict[str, bool | None] = {
            row["id"]: None
            if row["member"] is None
            else row["seq"] <= positions.get(row["member"], 0)
            for row in rows
        }
        who = {row["id"]: row["member"] for row in rows}
        for row in made:
            causes = row["after"]
            inside = side[row["id"]]
            assert row["inside"] == inside
            outside = [c for c in causes if side.get(c) is False and inside]
            unknown = [c for c in causes if side.get(c) is None and inside]
            other = [c for c in causes if side.get(c) and who[c] != row["member"]]
            assert row["outside_causes"] == outside
            assert row["unknown_causes"] == unknown
            assert row["in_transit"] == (other if inside is False else [])


def test_clocks_show_what_no_other_cause_implies() -> None:
    rows: list[dict[str, Any]] = [
        {"m": "a", "n": 1, "v": [("a", 1)]},
        {"m": "b", "n": 1, "v": [("a", 1), ("b", 1)]},
        {"m": "c", "n": 1, "v": [("a", 1), ("b", 1), ("c", 1)]},
    ]
    fields: dict[str, Any] = {"m": pa.string(), "n": pa.int32(), "v": CLOCKS}
    table = pa.Table.from_pylist(rows, pa.schema(fields))
    made = check_cut(table, {"a": 1, "b": 1}, at="n", clock="v", member="m")
    assert made["in_transit"].to_pylist() == [[], [], ["b:1"]]


def test_a_cause_that_is_nowhere_leaves_the_verdict_open() -> None:
    rows: list[dict[str, Any]] = [{"id": "b", "after": ["a"], "p": "x", "n": 1}]
    rows.append({"id": "d", "after": ["b"], "p": "x", "n": 2})
    table = pa.Table.from_pylist(rows)
    ways: dict[str, Any] = {"process": "p", "at": "n", "id": "id", "after": "after"}
    told = summarize_cut(check_cut(table, {"x": 1}, **ways)).to_pylist()[0]
    assert (told["consistent"], told["unknown"]) == (None, 1)
    assert summarize_cut(check_cut(table, {}, **ways)).to_pylist()[0]["consistent"] is True
    assert summarize_cut(check_cut(table.slice(2), {}, **ways)).to_pylist()[0]["consistent"] is True


def latest(rows: list[Row], marks: dict[str, list[int]]) -> dict[str, int]:
    """Return the greatest consistent choice of checkpoints; 0: the beginning."""
    table = table_of(rows).to_pylist()
    names: Any = type("Spec", (), {"id": "id", "after": ("after",), "group": None, "clock": None})
    before = pasts(direct(table, ["ordered"] * len(table), names))
    best: dict[str, int] = {}
    for choice in itertools.product(*([0, *marks.get(m, [])] for m in "abcd")):
        line = dict(zip("abcd", choice, strict=True))
        inside = {k for k, row in enumerate(table) if row["seq"] <= line[row["member"]]}
        if all(before[k] <= inside for k in inside) and sum(choice) >= sum(best.values()):
            best = line
    return best


@pytest.mark.parametrize("ways", [DECLARED, CLOCK])
def test_recovery_lines_are_the_latest_of_all(ways: dict[str, Any]) -> None:
    fell = 0
    for seed in range(25):
        rng, rows = random.Random(seed), one_run(seed)
        saved = [rng.random() < 0.35 for _ in rows]
        marks: dict[str, list[int]] = {}
        for row, mark in zip(rows, saved, strict=True):
            if mark:
                marks.setdefault(row["member"], []).append(row["seq"])
        table = table_of(rows).append_column("saved", pa.array(saved))
        made = recovery_line(table, "saved", **ways).to_pylist()
        best = latest(rows, marks)
        assert {row["member"]: row["line"] or 0 for row in made} == {
            m: best[m] for m in {row["member"] for row in rows}
        }
        for row in made:
            own = [one for one in rows if one["member"] == row["member"]]
            line = best[row["member"]]
            assert row["kept"] == sum(one["seq"] <= line for one in own)
            assert row["undone"] == len(own) - row["kept"]
            assert row["discarded"] == sum(n > line for n in marks.get(row["member"], []))
            fell += row["discarded"]
    assert fell > 20


def test_groups_are_apart() -> None:
    rows = log(4, 60)
    table = table_of(rows).append_column("saved", pa.array([row["seq"] % 3 == 0 for row in rows]))
    made = recovery_line(table, "saved", **DECLARED, group="run").to_pylist()
    for run in "rs":
        some = [row for row in rows if row["run"] == run]
        marks: dict[str, list[int]] = {}
        for row in some:
            if row["seq"] % 3 == 0:
                marks.setdefault(row["member"], []).append(row["seq"])
        best = latest(some, marks)
        told = {row["member"]: row["line"] or 0 for row in made if row["run"] == run}
        assert told == {m: best[m] for m in told}
    judged = summarize_cut(
        check_cut(table, {"a": 3}, **DECLARED, group="run"), group="run"
    ).to_pylist()
    assert {row["run"] for row in judged} == {"r", "s"}


def test_refusals() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "after": [], "p": "x", "n": 1},
        {"id": "b", "after": [], "p": None, "n": 2},
    ]
    table = pa.Table.from_pylist(rows).append_column("saved", pa.array([True, False]))
    ways: dict[str, Any] = {"process": "p", "at": "n", "id": "id", "after": "after"}
    for positions, said in (
        ({"y": 1}, "unknown process y"),
        ({"x": "one"}, r"positions must map p \(string\) to n \(int64\)"),
        ({"x": None}, "positions contain null"),
        ([("x", 1)], "a dict"),
    ):
        with pytest.raises(InputError, match=said):
            check_cut(table, positions, **ways)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="process= must name a column"):
        check_cut(table, {}, at="n", id="id", after="after")
    with pytest.raises(InputError, match="no column m"):
        check_cut(table, {}, **{**ways, "at": "m"})
    with pytest.raises(InputError, match="1 events have no p"):
        recovery_line(table, "saved", **ways)
    with pytest.raises(InputError, match="column n must be boolean"):
        recovery_line(table, "n", **ways)


@pytest.mark.parametrize("name", ["consistent", "violations"])
def test_a_group_called_as_a_column_of_the_verdict_is_refused(name: str) -> None:
    log = pa.table({"id": ["s", "r"], "after": [None, "s"], "host": ["a", "b"], "n": [1, 1]})
    made = check_cut(log, {"b": 1}, process="host", at="n", id="id", after="after")
    with pytest.raises(InputError, match=f"group='{name}': the verdict adds a column"):
        summarize_cut(made, group=name)
