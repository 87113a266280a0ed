"""Causality source: named by every answer, required for answers about order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import antecede.tables.causality
from antecede.cli import main
from antecede.errors import InputError
from antecede.tables.audit import audit, audit_events
from antecede.tables.false_causality.measure import measure
from antecede.tables.trace import evidence
from antecede.tables.trace.arrow import read, to_batch
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from antecede.tables.view.render_model import picture
from tests.tables.trace.files import run_command, write_lines

Row = Mapping[str, Any]
TWO: Sequence[Row] = ({"id": "a", "who": "p"}, {"id": "b", "who": "q"})


def with_cells(**cells: Sequence[Any]) -> list[Row]:
    return [{**row, **{n: c[k] for n, c in cells.items()}} for k, row in enumerate(TWO)]


WITHOUT = {
    "no column": (list(TWO), "no column has causes, clocks or receipts"),
    "kinds of shop": (
        with_cells(kind=["click", "purchase"]),
        "column kind does not have send together with receive or deliver",
    ),
    "kinds that are numbers": (with_cells(kind=[1, 1]), "column kind does not have send"),
    "receipts alone": (with_cells(kind=[RECEIVE, DELIVER]), "column kind does not have send"),
    "receipts of others": (
        with_cells(kind=[SEND, RECEIVE]),
        "no receipt or delivery in column kind has the id of a send",
    ),
    "blank causes": (with_cells(caused_by=["", "  "]), "column caused_by has no cause"),
    "no causes in lists": (with_cells(causes=[[], [""]]), "column causes has no cause"),
    "selves": (with_cells(parent=["a", "b"]), "column parent names no other event of its run"),
    "words": (
        with_cells(cause=["timeout", "retry"]),
        "column cause names no other event of its run (example: 'timeout')",
    ),
    "several in one": (with_cells(after=[None, "a;b"]), "give --list-separator ';'"),
    "empty clocks": (with_cells(clock=[{}, {}], member=["p", "q"]), "no clock in column clock"),
    "clocks of nobody": (with_cells(clock=[{"x": 1}, {"x": 2}]), "no clock in column clock"),
    "null clocks": (with_cells(vc=[None, ""]), "column vc has no clock"),
    "numbers": (with_cells(member=["p", "p"], seq=[1, 2]), "no column has causes"),
}


@pytest.fixture(params=WITHOUT)
def without(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """Return a table without causality, and the reason in its error message."""
    rows, why = WITHOUT[request.param]
    path = write_lines(tmp_path / "t.jsonl", rows)
    return path, why


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "past", "b"),
        ("ask", "concurrent", "a", "--json"),
        ("ask", "before", "a", "b"),
        ("false-causality",),
        ("false-causality", "--json"),
        ("cut", "p=1", "--member", "who"),
        ("cut", "--possibly", "p == 1", "--member", "who"),
    ],
)
def test_no_answer_about_order_is_given_without_evidence(
    words: tuple[str, ...], without: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, why = without
    assert main([words[0], str(path), *words[1:]]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert "causality_source: none" in said.err
    assert why.removeprefix("column ") in said.err
    assert "columns are id, who" in said.err
    assert "--after COLUMN" in said.err


def test_what_rewrites_or_draws_a_trace_warns_without_evidence(
    without: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, why = without
    for words in (
        ["audit", str(path)],
        ["order", str(path), "-o", str(tmp_path / "o.jsonl")],
        ["view", str(path), "-o", str(tmp_path / "o.html")],
    ):
        if main(words) == 2:
            # Clocks are chosen and no row has a usable one, so no row is left.
            assert "clock" in why
            assert "quarantined" in capsys.readouterr().err
            continue
        said = capsys.readouterr()
        shown = " ".join((said.out + said.err).split())
        assert "causality_source: none" in shown
        assert why in shown
        assert "columns are id, who" in shown
        assert "--after COLUMN" in shown
    report = audit([path])
    assert report.causality_source == "none"
    assert main(["audit", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["causality_source"] == "none"
    assert told["details"]["columns"].startswith("id, who")
    assert why in told["details"]["why_no_causality"]
    assert picture(read([path]), title="t").meta["causality_source"] == "none"


CLOCKED = [
    {"id": "a", "member": "p", "clock": {"p": 1}, "kind": "click"},
    {"id": "b", "member": "q", "clock": {"q": 1}, "kind": "click"},
]
TALK = [
    {"id": "a", "member": "p", "kind": "send"},
    {"id": "a", "member": "q", "kind": "deliver"},
    {"id": "b", "member": "q", "kind": "send"},
]


@pytest.mark.parametrize(
    ("rows", "source"),
    [
        (with_cells(caused_by=["", "a"], kind=["click", "view"]), "causes"),
        (CLOCKED, "clocks"),
        (TALK, "receipts"),
    ],
)
def test_every_answer_names_the_source(
    rows: list[Row], source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "t.jsonl", rows)
    member = ["--member", "who"] if "who" in rows[0] else []
    first = "p=1"
    for words in (
        ["ask", str(path), "past", "b"],
        ["cut", str(path), first, *member],
        ["false-causality", str(path)],
        ["audit", str(path)],
    ):
        assert main([*words, "--json"]) in (0, 1)
        assert json.loads(capsys.readouterr().out)["causality_source"] == source
    assert f"causality_source: {source}" in run_command(capsys, "audit", str(path))


def test_order_does_not_claim_receipts_as_declared_causes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "t.jsonl", TALK)
    shown = run_command(capsys, "order", str(path), "-o", str(tmp_path / "o.jsonl"))
    assert "by declared causes" not in shown
    assert "causality_source: none" in shown
    assert "receipts and deliveries are not used here" in " ".join(shown.split())


def test_a_format_that_records_causes_is_evidence_of_roots(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "x", "startTimeUnixNano": "1"}
    scopes = [{"spans": [span, {**span, "spanId": "3" * 16}]}]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}))
    trace = read([path])
    assert trace.format == "spans"
    asked = antecede.tables.causality.Causality(trace)
    assert asked.source == "causes"
    assert asked.notes == ["no event declares a cause: all 2 are roots of the spans"]
    assert audit([path]).causality_source == "causes"


def test_a_named_column_of_clocks_is_not_hidden_by_guessed_causes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    rows: list[Row] = [
        {"id": "a", "member": "p", "parent": "ACME", "stamp": {"p": 1}},
        {"id": "b", "member": "q", "parent": "ACME", "stamp": {"p": 1, "q": 1}},
    ]
    write_lines(path, rows)
    assert main(["ask", str(path), "--clock", "stamp", "before", "a", "b"]) == 0
    assert "by vector clocks" in capsys.readouterr().out
    assert main(["ask", str(path), "before", "a", "b"]) == 2
    text = path.read_text().replace('"parent"', '"clock"').replace('"ACME"', '{"p": 1}')
    path.write_text(text.replace('"stamp": {"p": 1}', '"stamp": "b"', 1))
    assert main(["ask", str(path), "--after", "stamp", "before", "b", "a", "--json"]) == 2


def table(*rows: Event) -> pa.Table:
    return pa.Table.from_batches([to_batch(rows)])


def test_functions_refuse_and_report_as_commands_do() -> None:
    bare = pa.table({"id": ["a", "b"], "kind": ["click", "view"]})
    with pytest.raises(InputError, match=r"causality_source: none.*columns are id, kind.*--after"):
        antecede.tables.causality(bare)  # type: ignore[operator]
    assert antecede.tables.causality.Causality(bare, unproven=True).source == "none"
    with pytest.raises(InputError, match="causality_source: none"):
        measure(bare.append_column("causes", pa.array([[], []], pa.list_(pa.string()))))
    report = audit_events(bare)
    assert report.causality_source == "none"
    assert report.details["columns"] == "id, kind"
    assert "causality_source: none" in report.summary()


def test_causes_are_looked_for_in_their_own_run() -> None:
    rows = (Event(run="x", id="a"), Event(run="y", id="b", causes=("a",)))
    assert not evidence.has_causes(table(*rows))
    assert evidence.has_causes(table(*(row._replace(run="x") for row in rows)))


def test_receipts_are_looked_for_in_their_own_run() -> None:
    rows = (Event(run="x", id="a", kind=SEND), Event(id="a", kind=RECEIVE))
    assert not evidence.has_receipts(table(*rows))
    assert evidence.has_receipts(table(*(row._replace(run="x") for row in rows)))


def test_deliver_goes_by_bytes_and_refuses_a_log_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.parquet"
    assert main(["replay", str(log), "--example", "9", "--order", "ses", "--members", "a,b"]) == 0
    capsys.readouterr()
    assert main(["replay", str(log), "--order", "ses", "--members", "a,b"]) == 0
    assert "causality_source: bytes of messages, order ses" in capsys.readouterr().out
    rows = {"observer": ["a"], "time": [1.0], "kind": ["send"]}
    for wire in ({}, {"wire": pa.array([b""], pa.binary())}, {"wire": pa.nulls(1, pa.binary())}):
        pq.write_table(pa.table({**rows, **wire}), log)
        assert main(["replay", str(log), "--order", "ses", "--members", "a,b"]) == 2
        said = capsys.readouterr().err
        assert "causality_source: none" in said
        assert "columns are observer, time, kind" in said
        assert "--after COLUMN" in said
