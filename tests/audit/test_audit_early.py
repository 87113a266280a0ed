"""Deliveries before a cause in audits: the meter's count, and a word where there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given

from antecede.audit import audit_events
from antecede.audit.early import NOTHING_SENT, merged
from antecede.cli import main
from antecede.meter.early import early_deliveries
from antecede.trace.arrow import to_batch, write_events
from antecede.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.oracle.executions import executions

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
    assert main([words[0], str(path), *words[1:]]) == 0
    return capsys.readouterr().out


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
    assert found["first"] in meter["early"]
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
            "1 (33.3%) of 3 deliveries (by delivery) came before a cause; the first: b at R, "
            "whose cause a came later",
        ),
        (
            CAUSE_LATE[:4],
            "and none of 2 deliveries came before a cause, by delivery (1 message did not come to "
            "every member, and a cause that was lost on its way is not missed: ",
        ),
        (
            [*CAUSE_LATE[:3], CAUSE_LATE[4], CAUSE_LATE[3]],
            "none: no effect is sent before its cause as the file lists them; no times to check, "
            "and none of 3 deliveries came before a cause, by delivery",
        ),
        (
            [*CAUSE_LATE[:4], Event(kind=RECEIVE, id="a", member="R")],
            "1 (50.0%) of 2 deliveries (by delivery, 1 by receipt) came before a cause; the first: "
            "b at R, whose cause a never came",
        ),
        (
            [row._replace(kind=RECEIVE) if row.kind == DELIVER else row for row in CAUSE_LATE],
            "1 (33.3%) of 3 receipts (by receipt) came before a cause; the first: b at R",
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
    assert merged(part["early"] for part in parts[:2]) == audit_events(whole).details["early"]
    assert merged([]) is None
