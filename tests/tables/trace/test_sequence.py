"""`--by seq`: program order by sequence numbers, with gaps, repeats and numbers out of order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.cli import main
from antecede.errors import InputError
from antecede.tables.audit import audit
from antecede.tables.causality import Causality
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from antecede.tables.order.trace_order import order_trace, prepare
from antecede.tables.trace.arrow import QUARANTINE_SCHEMA, Trace, to_batch
from antecede.tables.trace.schema import Event
from antecede.tables.trace.sequence import by_sequence
from antecede.tables.view.render_model import picture
from tests.tables.trace.files import run_command, write_file, write_lines

ROWS: list[dict[str, Any]] = [
    {"event": "p2", "host": "p", "n": 2},
    {"event": "p1", "host": "p", "n": 1},
    {"event": "q1", "host": "q", "n": 1},
    {"event": "p5", "host": "p", "n": 5},
    {"event": "p5again", "host": "p", "n": 5},
    {"event": "nobody", "host": None, "n": 1},
    {"event": "negative", "host": "q", "n": -1},
]
COLUMNS = ["--id", "event", "--member", "host", "--seq", "n"]


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    write_lines(path, ROWS)
    return path


def test_order_goes_by_numbers_as_the_function_does(
    numbered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o.jsonl"
    said = run_command(capsys, "order", str(numbered), "-o", str(out), "--by", "seq", *COLUMNS)
    assert "by each member's sequence numbers (causality_source: member sequence)" in said
    assert "missing     1 gap in the sequence numbers of members" in said
    assert "numbers     1 sequence number after a higher one" in said
    for reason in ("another event of the member has this number", "no member or no number"):
        assert f"1 {reason}" in said
    assert "1 a negative number" in said
    found = {row["event"]: row for row in map(json.loads, out.read_text().splitlines())}
    table = pa.Table.from_pylist([{**row, "at": k} for k, row in enumerate(ROWS)])
    content = ("event", "host", "n")
    spec = OrderSpec(sender="host", seq="n", time="at", content=content)
    for row in order_table(table, spec).to_pylist():
        if row["position"] is None:
            assert row["event"] not in found
            continue
        mine = found[row["event"]]
        for name in ("position", "waited_for", "missing_causes", "antecede_status"):
            assert mine[name] == row[name]
    assert found["p5"]["missing_causes"] == ["p:4"]
    assert found["p2"]["waited_for"] == ["p:1"]


def test_audit_counts_gaps_repeats_and_steps_back(
    numbered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = run_command(capsys, "audit", str(numbered), "--by", "seq", *COLUMNS)
    assert "causality_source: member sequence" in said
    assert "1 gap in the numbers of members: 2 numbers missing" in said
    assert "1 event with the number of another event of the member" in said
    assert "1 number out of order, after a higher one of its member" in said
    assert main(["audit", str(numbered), "--by", "seq", "--json", *COLUMNS]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["causality_source"] == "member sequence"
    assert (told["messages"], told["edges"], told["ordered_pairs"]) == (4, 2, 3)
    assert told["details"]["quarantine"] == {
        "a negative number": 1,
        "another event of the member has this number": 1,
        "no member or no number": 1,
    }
    counts = ("number_gaps", "missing_numbers", "repeated_numbers", "out_of_order_numbers")
    assert [told["details"][name] for name in counts] == [1, 2, 1, 1]


def test_view_draws_the_sequence(
    numbered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "t.html"
    assert main(["view", str(numbered), "--causality", "seq", "-o", str(page), *COLUMNS]) == 0
    assert "causality_source: none" not in capsys.readouterr().err
    rows = [Event(id=f"e{n}", member="p", seq=n) for n in (1, 2, 4)]
    trace = by_sequence(make_trace(rows))
    meta = picture(trace, title="t", by="causes").meta
    assert meta["causality_source"] == "member sequence"
    assert any("1 gap" in one["what"] for one in meta["findings"])
    assert Causality(trace, by="causes").precedes("e1", "e4")


def test_without_numbers_the_options_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, '{"id": "a", "member": "p"}\n{"id": "b", "seq": 1}\n', "t.jsonl")
    out = ["-o", str(tmp_path / "o.jsonl")]
    by = ["--by", "seq"]
    view = ["view", "-o", str(tmp_path / "o.html"), "--causality", "seq"]
    for words in (["audit", *by], ["order", *out, *by], view):
        assert main([words[0], str(path), *words[1:]]) == 2
        assert "give --member COLUMN and --seq COLUMN" in capsys.readouterr().err
    with pytest.raises(InputError, match="expected 'seq', or None"):
        audit([path], by="clocks")


def test_an_order_without_causes_names_the_numbers_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, "member,seq\np,1\nq,1\np,2\n", "t.csv")
    assert main(["order", str(path), "-o", str(tmp_path / "o.csv")]) == 0
    assert "--by seq orders by each member's sequence numbers" in capsys.readouterr().out


def make_trace(rows: list[Event]) -> Trace:
    rows = [row._replace(file_order=k) for k, row in enumerate(rows)]
    return Trace(pa.Table.from_batches([to_batch(rows)]), QUARANTINE_SCHEMA.empty_table(), "table")


EVENTS = st.lists(
    st.tuples(
        st.sampled_from([None, "x", "y"]),
        st.sampled_from([None, "p", "q"]),
        st.none() | st.integers(-1, 6) | st.just(2**63 - 1),
    ).map(lambda one: Event(run=one[0], member=one[1], seq=one[2])),
    min_size=1,
    max_size=9,
)


@given(EVENTS)
def test_causes_made_of_numbers_order_as_the_engine_of_numbers_does(rows: list[Event]) -> None:
    trace = make_trace([row._replace(id=f"e{k}") for k, row in enumerate(rows)])
    if not any(row.member and row.seq is not None and row.seq >= 0 for row in rows):
        with pytest.raises(InputError, match="no event has a member and a number"):
            by_sequence(trace)
        return
    by_numbers = order_trace(prepare(trace, "seq"))
    made = by_sequence(trace)
    by_causes = order_trace(prepare(made))
    columns = ["run", "id", "position", "missing_causes", "antecede_status", "waited_ms"]
    assert (
        by_numbers.events.select(columns).to_pylist()
        == by_causes.events.select(columns).to_pylist()
    )
    aside: list[Any] = by_numbers.quarantine["id"].to_pylist()
    theirs: list[Any] = by_causes.quarantine["id"].to_pylist()
    assert sorted(aside) == sorted(theirs)
