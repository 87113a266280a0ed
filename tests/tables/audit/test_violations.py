"""Causal violations in audits: equal to the false-causality summary, or a reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given

from antecede.tables.audit import audit_events
from antecede.tables.audit.violations import NO_SENDS, list_findings, merge_violations
from antecede.tables.false_causality.row_order import (
    find_out_of_order_rows,
    merge_out_of_order_rows,
)
from antecede.tables.false_causality.violation_counts import Tally, count_violations
from antecede.tables.trace.arrow import write_events
from antecede.tables.trace.schema import SEND, Event
from tests.core.oracle.executions import executions
from tests.tables.conftest import Command
from tests.tables.events import moves, table_of

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


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace.parquet"


def test_audit_and_meter_count_the_same_early_deliveries_of_a_simulated_trace(
    file: Path, command: Command
) -> None:
    scenario = file.with_name("slow.toml")
    scenario.write_text(SLOW)
    assert command("simulate", scenario, "--trace", file).code == 0
    found = command("audit", file, "--json").json["details"]["violations"]
    meter = command("false-causality", file, "--json").json
    assert (found["counts"], found["checked"]) == (
        meter["violation_counts"],
        meter["violations_checked"],
    )
    assert found["deliveries"] == meter["deliveries"]
    assert found["counts"]["delivery"] > found["deliveries"] // 4
    assert found["first"] in [
        row | {"relation": name}
        for name, rows in meter["violations_by_relation"].items()
        for row in rows
    ]
    words = command("audit", file).words
    assert "none: no effect" not in words
    assert f"of {found['deliveries']} deliveries (by delivery, " in words
    assert "Effects sent before their cause" in words


@given(executions())
def test_the_count_is_the_meters(rows: list[Event]) -> None:
    events = table_of(rows)
    early = count_violations(events)
    found = audit_events(events).details.get("violations")
    if found is None:
        assert not early.checked
    else:
        assert found["deliveries"] == early.checked
        assert found["counts"] == (early.counts if early.checked else {})
        assert (found["not_counted"] is None) == bool(early.checked)


CAUSE_LATE = moves("P!a Q.a Q!b<a R.b R.a")
UNCOMPARED = "deliveries not compared with causes: "


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
            "in the file order of each member's rows (1 message not received by every member, and "
            "a cause that was lost on its way is not counted as missing: ",
        ),
        (
            moves("P!a Q.a Q!b<a R.a R.b"),
            "none: no effect is sent before its cause in file order; no times to check, "
            "and none of 3 deliveries came before a cause, by delivery and by declared causes, "
            "in the file order of each member's rows",
        ),
        (  # member after member, as traces of live peers are read
            moves("Q.a Q!b<a R.a R.b P!a"),
            "none: none of 3 deliveries came before a cause, by delivery and by declared causes, "
            "in the file order of each member's rows; 1 (100.0%) of the effects precede their "
            "cause in file order, with each member's rows together",
        ),
        (
            moves("P!a Q.a Q!b<a R.b R?a"),
            "1 (50.0%) of 2 deliveries (by delivery, 1 by receipt, 1 by declared causes) came "
            "before a cause; the first: b at R, whose cause a is missing",
        ),
        (
            moves("P!a Q?a Q!b<a R?b R?a"),
            "1 (33.3%) of 3 receipts (by receipt, 1 by declared causes) came before a cause; the "
            "first: b at R",
        ),
        (moves("Q.a R.b R.a"), f"3 {UNCOMPARED}{NO_SENDS}"),
        (moves("P.b P!a Q.a Q!b"), f"2 {UNCOMPARED}receipts precede their sends in a cycle"),
    ],
)
def test_what_is_said_of_deliveries(
    rows: list[Event], words: str, file: Path, command: Command
) -> None:
    write_events(rows, file)
    assert words in command("audit", file).words


def test_parts_add_up_to_the_whole() -> None:
    runs = [
        [row._replace(run=str(k)) for row in rows]
        for k, rows in enumerate((CAUSE_LATE, CAUSE_LATE[:4], [Event(kind=SEND, id="x")]))
    ]
    whole = table_of([row for run in runs for row in run])
    of_run = whole["run"].to_pylist()
    parts = [
        audit_events(whole.filter(pa.array([name == str(k) for name in of_run]))).details
        for k in range(3)
    ]
    assert "violations" not in parts[2]
    merged = merge_violations(part["violations"] for part in parts[:2])
    assert merged == audit_events(whole).details["violations"]
    assert merge_violations([]) is None


RECEIPTS_ALONE = moves("P!z Q?z", run="q")
EARLY_BY_RECEIPT = moves("P!a Q?a Q!b R?b R.b R?a R.a", run="r")


@pytest.mark.parametrize("rows", [RECEIPTS_ALONE + EARLY_BY_RECEIPT, EARLY_BY_RECEIPT])
def test_no_sum_is_over_two_ways_of_telling_causes(rows: list[Event]) -> None:
    """Defect F2: a run of receipts hid a violation by receipt in the other run."""
    found = count_violations(table_of(rows))
    receipts = len(rows) > len(EARLY_BY_RECEIPT)
    assert found.tallies == {
        "delivery": Tally(0, deliveries=2, receipts=0, runs=1),
        "receipt": Tally(1, deliveries=2, receipts=receipts, runs=1 + receipts),
    }
    by_receipt = count_violations(table_of(rows), "receipt")
    assert found.tallies["receipt"] == by_receipt.tallies["receipt"]


CIRCLE = moves("P!a<b P!b<a Q.a")


@pytest.mark.parametrize(
    ("rows", "audit", "meter"),
    [
        (
            [*RECEIPTS_ALONE, *EARLY_BY_RECEIPT],
            ["1 (33.3%) of 2 deliveries and 1 receipt (by receipt, 0 of 2 deliveries by del"],
            [
                "violations 0 of 2 deliveries came before a cause, by delivery in 1 of 2 runs",
                "1 (33.3%) of 2 deliveries and 1 receipt came before a cause, by receipt",
                "b at R of r: its cause a came later",
            ],
        ),
        (  # Defect A1: b declares a, which its sender never had delivered; R has b before a.
            [CAUSE_LATE[0], *CAUSE_LATE[2:]],
            ["1 (50.0%) of 2 deliveries (by declared causes, 0 by delivery) came before"],
            [
                "0 of 2 deliveries came before a cause, by delivery",
                "1 (50.0%) of 2 deliveries came before a cause, by declared causes",
                "b at R: its cause a came later",
            ],
        ),
        (
            CIRCLE,
            ["not compared with causes: by declared causes: "],
            ["violations by declared causes are not counted: "],
        ),
        (
            [*EARLY_BY_RECEIPT, *moves("R.x", run="s")],
            [f"1 delivery not compared with causes: {NO_SENDS}"],
            ["unchecked 1 delivery: no row of kind send in 1 run"],
        ),
    ],
)
def test_audit_and_meter_say_what_each_figure_is_of(
    rows: list[Event], audit: list[str], meter: list[str], file: Path, command: Command
) -> None:
    write_events(rows, file)
    for name, said in (("audit", audit), ("false-causality", meter)):
        words = command(name, file).words
        assert all(one in words for one in said), words


def test_ways_that_cannot_be_followed() -> None:
    found = count_violations(table_of(CIRCLE))
    assert found.counts == {"delivery": 0}
    assert set(found.not_counted) == {"reply"}
    found = count_violations(table_of(EARLY_BY_RECEIPT), "reply")
    assert found.not_counted == {"reply": "no message declares a cause"}
    assert "reply" not in found.tallies


def test_an_event_that_names_itself_keeps_its_other_causes() -> None:
    rows = moves("P!a Q!b<a,b R.b R.a")
    assert count_violations(table_of(rows)).counts == {"delivery": 0, "reply": 1}


def add_arrivals(rows: Sequence[Event]) -> list[Event]:
    return [row._replace(arrival=10**9 * (k + 1)) for k, row in enumerate(rows)]


def test_rows_that_contradict_their_own_times_are_said(tmp_path: Path, command: Command) -> None:
    """Defect A2: the reversed rows have no violation, and no finding said why."""
    path = tmp_path / "backward.csv"
    lines = [f"{row.kind},{row.id},{row.member},{k}" for k, row in enumerate(CAUSE_LATE, start=1)]
    path.write_text("\n".join(["kind,id,member,arrival", *reversed(lines)]))
    words = command("audit", path).words
    assert "2 rows with an earlier arrival than the previous row of the same mem" in words
    assert f"the first is {path}, line 3, b at R" in words
    assert "a member's rows are taken in file order, never by their times" in words
    assert (
        command("false-causality", path, "--json").json["out_of_order_rows"]["arrival"]["rows"] == 2
    )
    assert "row order 2 rows with" in command("false-causality", path).words


def test_rows_in_the_order_of_their_times_contradict_nothing() -> None:
    rows = add_arrivals(CAUSE_LATE)
    assert find_out_of_order_rows(table_of(rows)) == {}
    apart = [*rows, rows[0]._replace(run="other"), rows[1]._replace(member="S")]
    assert find_out_of_order_rows(table_of(apart)) == {}
    again = [*rows, rows[2]._replace(arrival=None), rows[2]]  # Q's third row, and later its second
    assert find_out_of_order_rows(table_of([*again, rows[1]]))["arrival"]["rows"] == 1
    assert (
        find_out_of_order_rows(table_of([row._replace(kind="event") for row in reversed(rows)]))
        == {}
    )


def test_rows_that_step_back_add_up_over_runs() -> None:
    back = add_arrivals(CAUSE_LATE)[::-1]
    whole = table_of([row._replace(run=run) for run in "xy" for row in back])
    assert find_out_of_order_rows(whole)["arrival"]["rows"] == 4
    parts = [whole.slice(0, 5), whole.slice(5)]
    assert merge_out_of_order_rows(map(find_out_of_order_rows, parts)) == find_out_of_order_rows(
        whole
    )


def test_an_order_by_replies_is_not_blamed_for_what_it_does_not_promise() -> None:
    """b delivers the second message of a before the first, which does not answer it."""
    told = audit_events(table_of(moves("a!1 a!2 c.1 c!4<1 b.2 b.1 b.4"))).details["violations"]
    assert told["counts"] == {"delivery": 1, "reply": 0}
    [what] = [what for what, _ in list_findings(told)]
    assert "came before a cause" in what
    assert "all of 4 deliveries came after every cause that they declare" in what
    assert 'order "reply"' in what
    told = audit_events(table_of(moves("a!1 a!2 c.1 c!4<1 b.4 b.2 b.1"))).details["violations"]
    assert told["counts"]["reply"] == 1
    [what] = [what for what, _ in list_findings(told)]
    assert "declare" not in what.replace("by declared causes", "")
