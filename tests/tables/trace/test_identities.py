"""Ids, causes and blanks: one definition in all local readers and engines."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.tables.audit.engine import audit_events
from antecede.tables.causality import past
from antecede.tables.causality.queries import Causality
from antecede.tables.false_causality.trace import runs_of
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from antecede.tables.trace import identities
from antecede.tables.trace.arrow import read
from antecede.tables.trace.rows import conform, distinct
from tests.tables.trace.files import write_lines

pa: Any = pyarrow
WHITE = ["", " ", "\t", "\xa0", "\u2003", "\r\n", " \u3000 ", "\x1f"]
ODD = [*WHITE, None, "a", " a", "a ", "7", "007", "7.0", "1e3", "nan", "\u200b"]
FLOATS = [
    *(0.0, -0.0, 1.0, 7.0, 2.0**53 - 1, 2.0**53, 1e300, 0.5, math.nan, math.inf, -math.inf, None),
]
SPEC = OrderSpec(id="id", after=("after",))


def names(values: list[Any] | None) -> list[str]:
    """Return the declared causes in a text cell (reference)."""
    kept = [value for value in values or [] if value is not None and value.strip()]
    return list(dict.fromkeys(kept))


def draw_rows(drawn: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Draw rows whose valid ids are distinct."""
    seen: set[Any] = set()
    rows = []
    for one, causes in drawn:
        if one is not None and one.strip() and one in seen:
            continue
        seen.add(one)
        rows.append(
            {"id": one, "after": None if causes is None else [c for c in causes if c != one]}
        )
    return rows


ROWS = st.lists(
    st.tuples(st.sampled_from(ODD), st.none() | st.lists(st.sampled_from(ODD), max_size=4)),
    min_size=1,
    max_size=12,
).map(draw_rows)


def read_expected(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {row["id"]: names(row["after"]) for row in rows if (row["id"] or "").strip()}


def make_table(rows: list[dict[str, Any]], after: str = "after") -> Any:
    kinds = {"id": pa.string(), after: pa.list_(pa.string())}
    columns = {"id": [row["id"] for row in rows], after: [row["after"] for row in rows]}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})


@given(ROWS)
def test_order_table_follows_the_definition(rows: list[dict[str, Any]]) -> None:
    made = order_table(make_table(rows), SPEC).to_pylist()
    want = read_expected(rows)
    assert [row["antecede_status"] == "null_key" for row in made] == [
        row["id"] not in want for row in made
    ]
    for row in made:
        if row["id"] in want and row["antecede_status"] != "cycle":
            lost = [name for name in want[row["id"]] if name not in want]
            there = {one["id"] for one in made if one["antecede_status"] == "cycle"}
            assert set(lost) <= set(row["missing_causes"]) <= {*lost, *there}


@given(ROWS)
def test_tables_in_the_schema_follow_the_definition(rows: list[dict[str, Any]]) -> None:
    chosen = distinct(conform(make_table(rows, "causes")), by_clock=False)
    found = zip(*(chosen.events[name].to_pylist() for name in ("id", "causes")), strict=True)
    assert {name: parents or [] for name, parents in found} == read_expected(rows)
    assert len(chosen.quarantine) == len(rows) - len(read_expected(rows))
    assert set(chosen.quarantine["reason"].to_pylist()) <= {"no id"}
    report = audit_events(make_table(rows, "causes"))
    blanks = sum(
        1
        for row in rows
        if row["id"] in read_expected(rows)
        for cause in row["after"] or []
        if cause is None or not cause.strip()
    )
    assert report.details["blank_causes"] == blanks
    assert report.details["quarantined"] >= len(rows) - len(read_expected(rows))


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@given(rows=ROWS)
def test_readers_follow_the_definition(
    rows: list[dict[str, Any]], format: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"identities.{format}"
    rows = [*rows, {"id": "last", "after": None}]
    if format == "jsonl":
        write_lines(path, rows)
    else:
        pyarrow.parquet.write_table(make_table(rows), path)
    trace = read([path])
    found = zip(*(trace.events[name].to_pylist() for name in ("id", "causes")), strict=True)
    assert dict(found) == read_expected(rows)
    assert len(trace.quarantine) == len(rows) - len(read_expected(rows))


def test_cells_of_csv_follow_the_definition(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    cells = [(f"e{k}", white) for k, white in enumerate(WHITE)] + [(white, "e0") for white in WHITE]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "after"), *cells])
    trace = read([path])
    assert trace.events["causes"].to_pylist() == [[]] * len(WHITE)
    assert len(trace.quarantine) == len(WHITE)


@pytest.mark.parametrize("white", [*WHITE, None])
def test_no_cause_is_waited_for_that_is_blank(white: str | None) -> None:
    """Findings T2: a blank cause counted as missing."""
    table = pa.table({"id": ["a", "b"], "after": pa.array([white, "a"], pa.string())})
    assert order_table(table, SPEC)["antecede_status"].to_pylist() == ["ordered", "ordered"]
    lists = pa.table({"id": ["a", "b"], "after": pa.array([[white, white], ["a", white]])})
    lists = lists.cast(pa.schema({"id": pa.string(), "after": pa.list_(pa.string())}))
    made = order_table(lists, SPEC)
    assert made["antecede_status"].to_pylist() == ["ordered", "ordered"]
    assert made["missing_causes"].to_pylist() == [[], []]
    assert past(lists, ["b"], id="id", after="after")["id"].to_pylist() == ["a"]
    schema = pa.table({"id": lists["id"], "causes": lists["after"]})
    assert Causality(schema).past("b")["id"].to_pylist() == ["a"]
    (run,) = runs_of(schema)
    assert run.absent.num_rows == 0
    assert run.causes.blank == 3


def test_blank_members_and_senders_are_none() -> None:
    numbered = pa.table({"who": ["a", " ", "\xa0"], "n": [1, 1, 1]})
    made = order_table(numbered, OrderSpec(sender="who", seq="n"))
    assert made["antecede_status"].to_pylist() == ["ordered", "null_key", "null_key"]
    clocks = pa.array([[("a", 1)], [("a", 1), (" ", 1)]], pa.map_(pa.string(), pa.int64()))
    made = order_table(
        pa.table({"who": ["a", "b"], "v": clocks}), OrderSpec(clock="v", member="who")
    )
    assert made["antecede_status"].to_pylist() == ["ordered", "bad_clock"]


def test_a_clock_that_counts_for_no_member_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [
        {"id": "a", "member": "p", "clock": {"p": 1}},
        {"id": "b", "member": "p", "clock": {"p": 2, " ": 1}},
    ]
    write_lines(path, rows)
    trace = read([path])
    assert trace.events["id"].to_pylist() == ["a"]
    assert "a blank member" in str(trace.quarantine["reason"][0])


@pytest.mark.parametrize("form", ["array", "list"])
@given(values=st.lists(st.sampled_from(FLOATS), max_size=8))
def test_columns_of_floats_are_read_as_single_values_are(values: list[Any], form: str) -> None:
    array = pa.array(values, pa.float64())
    assert identities.ids_of(array).to_pylist() == [identities.name_of(one) for one in values]
    want = [
        None
        if identities.is_blank(one)
        else identities.name_of(one) or identities.unreadable_name(one)
        for one in values
    ]
    if form == "array":
        assert identities.column_to_causes(array).to_pylist() == want
        return
    table = pa.table({"id": ["x"], "causes": pa.array([values], pa.list_(pa.float64()))})
    assert conform(table)["causes"].to_pylist() == [want]


@given(values=st.lists(st.sampled_from(ODD), max_size=8))
def test_columns_of_text_are_read_as_single_values_are(values: list[Any]) -> None:
    array = pa.array(values, pa.string())
    assert identities.ids_of(array).to_pylist() == [identities.name_of(one) for one in values]
    blank = [identities.is_blank(one) for one in values]
    assert [one is None for one in identities.column_to_causes(array).to_pylist()] == blank


def test_white_space_is_what_python_and_arrow_take_for_it() -> None:
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    white = [char for char in everything if not char.strip()]
    assert sorted(white) == sorted(identities.BLANKS)
    blank = identities.are_blank(pa.array(everything)).to_pylist()
    assert [char for char, is_blank in zip(everything, blank, strict=True) if is_blank] == white


def test_floats_that_are_no_ids_keep_the_row_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"id": pa.array([1, 2, 3, 4]), "after": pa.array([None, 1.0, 0.5, math.nan])}
    pyarrow.parquet.write_table(pa.table(columns), path)
    local = order_table(pa.table(columns), SPEC)
    assert local["missing_causes"].to_pylist() == [[], [], ["0.5 (not an id)"], []]
    assert local["position"].to_pylist() == [0, 3, 1, 2]
    trace = read([path])
    assert trace.events["causes"].to_pylist() == [[], ["1"], ["0.5 (not an id)"], []]
    assert trace.details["unreadable_causes"] == 1


def test_ids_of_floats_are_the_whole_numbers(tmp_path: Path) -> None:
    ids = [1.0, 2.0, 2.5, 2.0**53, math.nan, math.inf, None]
    causes = pa.array([[], ["1"], [], [], [], [], ["1.0"]])
    table = pa.table({"id": pa.array(ids), "after": causes})
    made = order_table(table, SPEC)
    assert made["antecede_status"].to_pylist() == ["ordered"] * 2 + ["null_key"] * 5
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table, path)
    trace = read([path])
    assert trace.events["id"].to_pylist() == ["1", "2"]
    assert len(trace.quarantine) == 5


def test_texts_are_compared_as_they_stand() -> None:
    table = pa.table({"id": ["007", "b", "c"], "after": ["c", "7", " 007"]})
    made = order_table(table, SPEC)
    assert made["missing_causes"].to_pylist() == [[], ["7"], [" 007"]]


def test_blank_times_are_no_times_and_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    times = ["", " ", "\xa0", None, "yesterday", "2024-01-01T00:00:00Z"]
    path.write_text(
        "".join(json.dumps({"id": f"e{k}", "time": t}) + "\n" for k, t in enumerate(times))
    )
    trace = read([path])
    assert trace.details["unreadable_times"] == 1
    assert trace.events["send_time"].null_count == 5
