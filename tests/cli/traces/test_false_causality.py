"""`antecede false-causality`: text, JSON, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.tables.trace.arrow import write_events
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.helpers.fixtures import Call, Capture, Patch
from tests.tables.false_causality.runs import ALIKE, SECOND_NS, random_run

PROMISED = ["--accuracy", "1", "--min-delay", "1", "--max-delay", "4"]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """P asks, Q answers; R delivers the answer first. S sends something else."""
    words = (
        ("P", SEND, "ask", 0),
        ("S", SEND, "other", 1),
        ("Q", DELIVER, "ask", None),
        ("Q", SEND, "answer", 2),
        ("R", DELIVER, "answer", None),
        ("R", DELIVER, "other", None),
        ("R", DELIVER, "ask", None),
    )
    rows = [
        Event(
            kind=kind,
            id=name,
            member=member,
            send_time=None if second is None else second * SECOND_NS,
        )
        for member, kind, name, second in words
    ]
    path = tmp_path / "trace.parquet"
    write_events(rows, path)
    return str(path)


def test_a_table_of_rules_and_the_early_deliveries(
    trace: str, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["false-causality", trace, "--observers", "R"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 observer, 3 messages received; causality: delivery",
        "                                                      each:",
        "  rule              ordered  causal  false  missed  ordered  false  missed",
        "  linear                  2       1      1       0      0.7   0.33    0.00",
        "  linear:published        0       1      0       1      0.0   0.00    0.33",
        "  arrival                 3       1      3       1      1.0   1.00    0.33",
        "  timestamp               3       1      2       0      1.0   0.67    0.00",
        "violations  1 (25.0%) of 4 deliveries came before a cause, by delivery",
        "            answer at R: its cause ask came later",
        "partial     1 message not received by every receiving member; the trace has no",
        "            addressees, so a cause that was lost on its way is not counted as",
        "            missing (--broadcast: all messages are for all)",
        "skipped     physical, physical:published, linear-physical,",
        "            linear-physical:published: no bounds of clocks and delays",
        "skipped     tv, tv-lt, tv-lt:published, tv-pt, tv-pt:published, htbc,",
        "            htbc:published, tv-vt: messages have no topics, or more than 64",
    ]


def test_each_observer_has_a_table(trace: str, said: Call) -> None:
    text = said("false-causality", trace, "--per-observer", "--rules", "arrival")
    assert "2 observers, 4 messages received" in text
    assert "\nQ: 1 message\n" in text
    assert "\nR: 3 messages\n" in text
    assert "skipped" not in text


def test_json_has_everything(tmp_path: Path, said: Call) -> None:
    run = random_run(1, ALIKE, deliver=True)
    path = tmp_path / "trace.parquet"
    write_events([*run.rows, Event(kind=RECEIVE, id="ghost", member="P")], path)
    asked = ["--rules", "htbc,arrival", "--truth", "topic-causal", "--subscribe", "P=x"]
    found = json.loads(said("false-causality", str(path), *PROMISED, *asked, "--json"))
    assert found["relations"] == ["delivery"]
    assert {row["rule"] for row in found["counts"]} == {"htbc", "arrival"}
    assert {row["truth"] for row in found["counts"]} == {"topic-causal"}
    assert found["excluded_rows"] == {"received or delivered, never sent": 1}
    assert found["skipped_rules"] == {}
    delivered = {(row.member, row.id) for row in run.rows if row.kind == DELIVER}
    assert found["deliveries"] == len(delivered)
    assert {row["cause_order"] is None for row in found["violations"]} == {True, False}


def test_early_deliveries_are_counted_by_both_causalities(tmp_path: Path, said: Call) -> None:
    rows = [
        Event(kind=kind, id=name, member=member)
        for member, kind, name in (
            ("P", SEND, "ask"),
            ("Q", RECEIVE, "ask"),
            ("Q", SEND, "answer"),
            ("Q", DELIVER, "ask"),
            ("R", RECEIVE, "answer"),
            ("R", DELIVER, "answer"),
            ("R", RECEIVE, "ask"),
            ("R", DELIVER, "ask"),
            ("P", RECEIVE, "answer"),
            ("P", DELIVER, "answer"),
        )
    ]
    path = tmp_path / "trace.parquet"
    write_events(rows, path)
    text = said("false-causality", str(path))
    assert "violations  0 of 4 deliveries came before a cause, by delivery" in text
    assert "            1 (25.0%) of 4 deliveries came before a cause, by receipt" in text
    assert "partial" not in text  # everything came to everybody
    found = json.loads(said("false-causality", str(path), "--json", "--relation", "receipt"))
    assert found["violation_counts"] == {"receipt": 1, "delivery": 0}


def test_witnesses_are_as_many_as_asked(trace: str, said: Call) -> None:
    text = said("false-causality", trace, "--witnesses", "0")
    assert "came before a cause" in text
    assert "its cause" not in text


def test_long_remarks_are_wrapped_under_their_label(
    trace: str, said: Call, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = said("false-causality", trace).splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("skipped     tv"))
    assert lines[first + 1].startswith(" " * 12)
    assert max(len(line) for line in lines[first:]) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--accuracy", "1"], "--accuracy and --min-delay need --max-delay"),
        (["--max-delay", "-1"], "--accuracy, --min-delay, --max-delay: bounds: channel delays"),
        (["--rules", " , "], "--rules ' , ': no name; omit it for all"),
        (["--observers", ""], "--observers '': no name"),
        (["--subscribe", "Z=news"], "--subscribe: unknown member 'Z'; the trace has"),
        (["--subscribe", "R=news"], "--subscribe: unknown topic 'news'; the trace has none"),
        (["--truth", "topic-causal"], "--truth topic-causal: no message of the trace has a"),
        (["--subscribe", "P"], "expected MEMBER=TOPIC,TOPIC"),
        (["--relation", "receipt", "--rules", "tv"], "messages have no topics"),
        (["--relation", "reply", "--rules", "tv"], "topic vectors need receipts"),
    ],
)
def test_what_cannot_be_done_is_said(
    options: list[str], message: str, trace: str, refused: Call
) -> None:
    assert message in refused("false-causality", trace, *options)


def test_an_unknown_member_is_refused_in_a_trace_with_empty_members(
    tmp_path: Path, refused: Call
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,member,after\na,P,\nb,,a\nc,Q,b\n")
    error = refused("false-causality", str(path), "--subscribe", "X=y")
    assert "--subscribe: unknown member 'X'; the trace has P, Q" in error


def test_causes_that_are_nowhere_are_counted_and_named(
    tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "t.csv"
    path.write_text("id,after\na,gone\nb,gone\nc,lost\nd,a\n")
    assert main(["false-causality", str(path)]) == 0
    said = (
        "3 references to causes without a counted row: a names gone, b names gone, c names lost\n"
    )
    assert f"missing     {said}" in capsys.readouterr().out
    assert main(["false-causality", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing_causes"] == [
        {"run": None, "message": "a", "cause": "gone"},
        {"run": None, "message": "b", "cause": "gone"},
        {"run": None, "message": "c", "cause": "lost"},
    ]
    path.write_text("id,after\na,\nb,a\n" + "".join(f"m{k},x{k}\n" for k in range(7)))
    assert main(["false-causality", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "m4 names x4 and 2 more, see antecede audit --list-missing" in shown
    path.write_text("id,after\na,\nb,a\n")
    assert main(["false-causality", str(path)]) == 0
    assert "missing" not in capsys.readouterr().out


def test_messages_that_came_and_were_never_sent_are_named(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "id,sender,kind\nm,a,send\nm,b,receive\nghost,b,receive\nwhat,a,receive\nghost,a,receive\n"
    )
    assert main(["false-causality", str(path)]) == 0
    said = "excluded    3 rows: received or delivered, never sent (ghost, what)"
    assert said in capsys.readouterr().out
