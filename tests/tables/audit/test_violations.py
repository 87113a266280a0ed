"""Deliveries before a cause in audits: the meter's count, and a word where there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given

from antecede.cli import main
from antecede.tables.audit import audit_events
from antecede.tables.audit.violations import NOTHING_SENT, findings, merge_violations
from antecede.tables.false_causality.row_order import merged as merged_steps
from antecede.tables.false_causality.row_order import steps_back
from antecede.tables.false_causality.violation_counts import Tally, early_deliveries
from antecede.tables.trace.arrow import to_batch, write_events
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.core.oracle.executions import executions

SLOW = """
[topology]
kind = "mesh"
peers = 3
[protocol]
name = "unordered"
[links]
delay = "1-3000 ms"
[run]
duration_s = 1
"""


def table(events: Sequence[Event]) -> pa.Table:
    placed = [event._replace(file_order=k) for k, event in enumerate(events)]
    return pa.Table.from_batches([to_batch(placed)])


def said(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints, in one line: however wide the terminal."""
    assert main([words[0], str(path), *words[1:]]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_audit_and_meter_count_the_same_early_deliveries_of_a_simulated_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slow.toml").write_text(SLOW)
    trace = tmp_path / "slow.parquet"
    assert main(["simulate", str(tmp_path / "slow.toml"), "--trace", str(trace)]) == 0
    capsys.readouterr()
    found = json.loads(said(trace, capsys, "audit", "--json"))["details"]["early"]
    meter = json.loads(said(trace, capsys, "meter", "--json"))
    assert found["by"] == meter["early_by"]
    assert found["count"] == meter["deliveries"]
    assert found["by"]["delivery"] > found["count"] // 4
    first = dict(found["first"])
    assert first in [
        row | {"relation": name} for name, rows in meter["early_rows"].items() for row in rows
    ]
    assert found["of"] == meter["early_of"]
    words = said(trace, capsys, "audit")
    assert "none: no effect" not in words
    assert f"of {found['count']} deliveries (by delivery, " in words
    assert "Effects sent before their cause" in words


@given(executions())
def test_the_count_is_the_meters(rows: list[Event]) -> None:
    events = table(rows)
    early = early_deliveries(events)
    found = audit_events(events).details.get("early")
    if found is None:
        assert not early.deliveries
    else:
        assert found["count"] == early.deliveries
        assert found["by"] == (early.by if early.deliveries else {})
        assert (found["not_counted"] is None) == bool(early.deliveries)


CAUSE_LATE = [
    Event(kind=SEND, id="a", member="P"),
    Event(kind=DELIVER, id="a", member="Q"),
    Event(kind=SEND, id="b", member="Q", parents=("a",)),
    Event(kind=DELIVER, id="b", member="R"),
    Event(kind=DELIVER, id="a", member="R"),
]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            CAUSE_LATE,
            "1 (33.3%) of 3 deliveries (by delivery, 1 by declared causes) came before a cause; "
            "the first: b at R, whose cause a came later",
        ),
        (
            CAUSE_LATE[:4],
            "and none of 2 deliveries came before a cause, by delivery and by declared causes, "
            "the rows of each member as listed (1 message did not come to every member, and a "
            "cause that was lost on its way is not missed: ",
        ),
        (
            [*CAUSE_LATE[:3], CAUSE_LATE[4], CAUSE_LATE[3]],
            "none: no effect is sent before its cause as the file lists them; no times to check, "
            "and none of 3 deliveries came before a cause, by delivery and by declared causes, "
            "the rows of each member as listed",
        ),
        (  # member after member, as traces of live peers are read
            [*CAUSE_LATE[1:3], CAUSE_LATE[4], CAUSE_LATE[3], CAUSE_LATE[0]],
            "none: none of 3 deliveries came before a cause, by delivery and by declared causes, "
            "the rows of each member as listed; 1 (100.0%) of the effects stand before their cause "
            "as the file lists them, where members' rows stand apart",
        ),
        (
            [*CAUSE_LATE[:4], Event(kind=RECEIVE, id="a", member="R")],
            "1 (50.0%) of 2 deliveries (by delivery, 1 by receipt, 1 by declared causes) came "
            "before a cause; the first: b at R, whose cause a never came",
        ),
        (
            [row._replace(kind=RECEIVE) if row.kind == DELIVER else row for row in CAUSE_LATE],
            "1 (33.3%) of 3 receipts (by receipt, 1 by declared causes) came before a cause; the "
            "first: b at R",
        ),
        (
            [row for row in CAUSE_LATE if row.kind == DELIVER],
            f"3 deliveries not compared with causes: {NOTHING_SENT}",
        ),
        (
            [
                Event(kind=DELIVER, id="b", member="P"),
                Event(kind=SEND, id="a", member="P"),
                Event(kind=DELIVER, id="a", member="Q"),
                Event(kind=SEND, id="b", member="Q"),
            ],
            "2 deliveries not compared with causes: receipts come before their sends in a circle",
        ),
    ],
)
def test_what_is_said_of_deliveries(
    rows: list[Event], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.parquet"
    write_events(rows, path)
    assert words in said(path, capsys, "audit")


def test_parts_add_up_to_the_whole() -> None:
    runs = [
        [row._replace(run=str(k)) for row in rows]
        for k, rows in enumerate((CAUSE_LATE, CAUSE_LATE[:4], [Event(kind=SEND, id="x")]))
    ]
    rows = [row for run in runs for row in run]
    whole = table(rows)
    of_run = whole["run"].to_pylist()
    parts = [
        audit_events(whole.filter(pa.array([name == str(k) for name in of_run]))).details
        for k in range(3)
    ]
    assert "early" not in parts[2]
    assert (
        merge_violations(part["early"] for part in parts[:2])
        == audit_events(whole).details["early"]
    )
    assert merge_violations([]) is None


RECEIPTS_ALONE = [
    Event(run="q", kind=SEND, id="z", member="P"),
    Event(run="q", kind=RECEIVE, id="z", member="Q"),
]
EARLY_BY_RECEIPT = [
    Event(run="r", kind=kind, id=name, member=member)
    for kind, name, member in (
        (SEND, "a", "P"),
        (RECEIVE, "a", "Q"),
        (SEND, "b", "Q"),
        (RECEIVE, "b", "R"),
        (DELIVER, "b", "R"),
        (RECEIVE, "a", "R"),
        (DELIVER, "a", "R"),
    )
]


@pytest.mark.parametrize("rows", [RECEIPTS_ALONE + EARLY_BY_RECEIPT, EARLY_BY_RECEIPT])
def test_no_sum_is_over_two_ways_of_telling_causes(rows: list[Event]) -> None:
    """Defect F2: a run of receipts in front hid that b was early by receipt in the other run."""
    found = early_deliveries(table(rows))
    receipts = len(rows) > len(EARLY_BY_RECEIPT)
    assert found.tallies == {
        "delivery": Tally(0, deliveries=2, receipts=0, runs=1),
        "receipt": Tally(1, deliveries=2, receipts=receipts, runs=1 + receipts),
    }
    assert found.tallies["receipt"] == early_deliveries(table(rows), "receipt").tallies["receipt"]


def test_a_mixed_trace_says_what_each_figure_is_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mixed.parquet"
    write_events([*RECEIPTS_ALONE, *EARLY_BY_RECEIPT], path)
    words = said(path, capsys, "meter")
    assert "early 0 of 2 deliveries came before a cause, by delivery in 1 of 2 runs" in words
    assert "1 (33.3%) of 2 deliveries and 1 receipt came before a cause, by receipt" in words
    assert "b at R of r: its cause a came later" in words
    assert "3 deliveries" not in words
    words = said(path, capsys, "audit")
    assert "1 (33.3%) of 2 deliveries and 1 receipt (by receipt, 0 of 2 deliveries by del" in words


def test_declared_causes_count_beside_deliveries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Defect A1: b declares a, which its sender never had delivered; R has b before a."""
    rows = [CAUSE_LATE[0], *CAUSE_LATE[2:]]
    path = tmp_path / "declared.parquet"
    write_events(rows, path)
    words = said(path, capsys, "audit")
    assert "none" not in words
    assert "1 (50.0%) of 2 deliveries (by declared causes, 0 by delivery) came before" in words
    words = said(path, capsys, "meter")
    assert "0 of 2 deliveries came before a cause, by delivery" in words
    assert "1 (50.0%) of 2 deliveries came before a cause, by declared causes" in words
    assert "b at R: its cause a came later" in words


def test_causes_that_cannot_be_followed_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = [
        Event(kind=SEND, id="a", member="P", parents=("b",)),
        Event(kind=SEND, id="b", member="P", parents=("a",)),
        Event(kind=DELIVER, id="a", member="Q"),
    ]
    path = tmp_path / "circle.parquet"
    write_events(circle, path)
    found = early_deliveries(table(circle))
    assert found.by == {"delivery": 0}
    assert set(found.not_counted) == {"reply"}
    assert "came before a cause by declared causes is not counted: " in said(path, capsys, "meter")
    assert "not compared with causes: by declared causes: " in said(path, capsys, "audit")


def test_deliveries_of_a_run_without_sends_are_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*EARLY_BY_RECEIPT, Event(run="s", kind=DELIVER, id="x", member="R")]
    path = tmp_path / "unsent.parquet"
    write_events(rows, path)
    assert f"1 delivery not compared with causes: {NOTHING_SENT}" in said(path, capsys, "audit")
    assert "uncompared 1 delivery: in 1 run no row tells of a sending" in said(
        path, capsys, "meter"
    )


def test_an_event_that_names_itself_keeps_its_other_causes() -> None:
    rows = [CAUSE_LATE[0], CAUSE_LATE[2]._replace(parents=("a", "b")), *CAUSE_LATE[3:]]
    assert early_deliveries(table(rows)).by == {"delivery": 0, "reply": 1}


def test_a_relation_that_nothing_tells_of_is_said() -> None:
    found = early_deliveries(table(EARLY_BY_RECEIPT), "reply")
    assert found.not_counted == {"reply": "no message declares a cause"}
    assert "reply" not in found.tallies


def timed(rows: Sequence[Event]) -> list[Event]:
    return [row._replace(arrival=10**9 * (k + 1)) for k, row in enumerate(rows)]


def test_rows_that_contradict_their_own_times_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Defect A2: the same rows listed backward have no early delivery, and nothing said why."""
    path = tmp_path / "backward.csv"
    lines = [f"{row.kind},{row.id},{row.member},{k}" for k, row in enumerate(CAUSE_LATE, start=1)]
    path.write_text("\n".join(["kind,id,member,arrival", *reversed(lines)]))
    place = f"the first is {path}, line 3, b at R"
    words = said(path, capsys, "audit")
    assert "2 rows with an earlier arrival than the row of the same member listed b" in words
    assert place in words
    assert "a member's rows go as listed, never by their times" in words
    found = json.loads(said(path, capsys, "meter", "--json"))
    assert found["listed_back"]["arrival"]["rows"] == 2
    assert "listed 2 rows with" in said(path, capsys, "meter")


def test_rows_in_the_order_of_their_times_contradict_nothing() -> None:
    rows = timed(CAUSE_LATE)
    assert steps_back(table(rows)) == {}
    apart = [*rows, rows[0]._replace(run="other"), rows[1]._replace(member="S")]
    assert steps_back(table(apart)) == {}
    again = [*rows, rows[2]._replace(arrival=None), rows[2]]  # Q's third row, and later its second
    assert steps_back(table([*again, rows[1]]))["arrival"]["rows"] == 1
    assert steps_back(table([row._replace(kind="event") for row in reversed(rows)])) == {}


def test_rows_that_step_back_add_up_over_runs() -> None:
    back = timed(CAUSE_LATE)[::-1]
    runs = [[row._replace(run=str(k)) for row in back] for k in range(2)]
    placed = [
        event._replace(file_order=k) for k, event in enumerate(row for run in runs for row in run)
    ]
    whole = pa.Table.from_batches([to_batch(placed)])
    assert steps_back(whole)["arrival"]["rows"] == 4
    parts = [whole.slice(0, 5), whole.slice(5)]
    assert merged_steps(map(steps_back, parts)) == steps_back(whole)


def row(kind: str, id: str, member: str, *parents: str) -> Event:
    return Event(kind=kind, id=id, member=member, parents=parents)


def replies(*, early_answer: bool = False) -> pa.Table:
    """Bob delivers what alice said second before what she said first, which does not answer it."""
    answer = row(SEND, "4", "carol", "1")
    rows = [
        *(row(SEND, "1", "alice"), row(SEND, "2", "alice")),
        *(row(DELIVER, "1", "carol"), answer),
        *([row(DELIVER, "4", "bob")] if early_answer else []),
        *(row(DELIVER, "2", "bob"), row(DELIVER, "1", "bob")),
        *([] if early_answer else [row(DELIVER, "4", "bob")]),
    ]
    return table(rows)


def test_an_order_by_replies_is_not_blamed_for_what_it_does_not_promise() -> None:
    report = audit_events(replies())
    told = report.details["early"]
    assert told["by"] == {"delivery": 1, "reply": 0}
    [what] = [what for what, _ in findings(told)]
    assert "came before a cause" in what
    assert "all of 4 deliveries came after every cause that they declare" in what
    assert 'order "reply"' in what
    told = audit_events(replies(early_answer=True)).details["early"]
    assert told["by"]["reply"] == 1
    [what] = [what for what, _ in findings(told)]
    assert "declare" not in what.replace("by declared causes", "")
