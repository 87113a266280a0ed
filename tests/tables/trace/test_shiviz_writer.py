"""Logs for ShiViz: reading them again gives the same counts for any names and texts."""

from __future__ import annotations

import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.cli import main
from antecede.tables.audit import audit, audit_events
from antecede.tables.trace.arrow import read, write_events
from antecede.tables.trace.formats.shiviz_dialects import compile_expression
from antecede.tables.trace.formats.shiviz_writer import ShivizEvent, write_log, write_log_file
from antecede.tables.trace.schema import Event
from tests.tables.trace.files import run_command, write_file

LOGS = (
    "RpcClientServer", "chord", "ewd998", "facebook", "facebook-multiple", "multiple-comparison",
    "reliable-broadcast", "shiviz_all_services", "simple-reliable-broadcast", "simpledb",
    "tsviz_fslock_24t_4sp", "tsviz_shared_var_4_threads", "voldemort",
    "voldemort-simple-threadnames",
)  # fmt: skip
OF_THE_FILE = (
    *("regex", "unmatched_lines", "rows", "quarantined", "quarantine"),
    *("time_group", "unreadable_times", "further_groups"),
)
"""Details of the file, not of the execution."""


def counts(path: Path) -> dict[str, Any]:
    found = audit([path]).to_dict()
    for name in OF_THE_FILE:
        found["details"].pop(name, None)
    for name in ("clock_skew", "guessed_time_unit"):  # a log for ShiViz holds no times
        found["details"].pop(name, None)
    for name in ("inversions", "max_inversions", "worst_inversions", "compared_edges"):
        of = found if name in found else found["details"]
        of[name] = {order: count for order, count in of[name].items() if order == "file_order"}
    for defect in found["clock_inconsistencies"]:
        del defect["source"], defect["line"]
    return found


def shiviz_finds(log: str) -> list[tuple[str, str, str, str]]:
    """Read a log as ShiViz does (js/shiviz.js, js/model/parser.js): (execution, host, ...)."""
    first, second, body = log.split("\n", 2)
    event = compile_expression(f"^{first}$").pattern
    delimiter = compile_expression(f"^{second.strip()}$", ()).pattern if second.strip() else None
    parts = [("", body.strip())]
    if delimiter:
        labels = ["", *(match["trace"] for match in delimiter.finditer(body.strip()))]
        plain = re.compile(delimiter.pattern.replace("(?P<trace>", "(?:"), re.MULTILINE)
        parts = [
            (label, part)
            for label, part in zip(labels, plain.split(body.strip()), strict=True)
            if part.strip()
        ]
        assert len({label for label, _ in parts}) == len(parts), "executions need different names"
    return [
        (label, match["host"], match["clock"], match["event"])
        for label, part in parts
        for match in event.finditer(part)
    ]


# --- real logs -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_comes_back_with_the_same_counts(
    name: str, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = shared_data / f"shiviz/{name}.log"
    out = tmp_path / "out.log"
    assert main(["convert", str(log), "-o", str(out)]) == 0
    assert counts(out) == counts(log)
    before, after = read([log]).events, read([out]).events
    for column in ("run", "id", "member", "seq", "text", "clock_members", "clock_counts"):
        assert after[column].to_pylist() == before[column].to_pylist(), column
    assert len(shiviz_finds(out.read_text())) == len(before)
    capsys.readouterr()


# --- any names and texts -------------------------------------------------------------------

awkward = st.sampled_from(
    ["a", "a b", "a_b", "", " ", "{", '{"a":1}', 'q"', "=== x ===", "x\ny", "é\u2028", "\\",
     "\ufeff",     "(?<host>", "a\r\nb", "__proto__", "\x85", "\t"]
)  # fmt: skip
names = awkward | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(
    st.lists(
        st.tuples(st.none() | names, st.lists(st.tuples(names, names), min_size=1, max_size=4)),
        min_size=1,
        max_size=3,
        unique_by=lambda run: run[0],
    ),
    st.booleans(),
)
def test_any_names_and_texts(
    runs: list[tuple[str | None, list[tuple[str, str]]]], several: bool
) -> None:
    runs = runs if several else runs[:1]
    entries = []
    for run, events in runs:
        clock: dict[str, int] = {}
        for host, text in events:
            clock = {**clock, host: clock.get(host, 0) + 1}
            entries.append(ShivizEvent(run, host, clock, text))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.log"
        assert write_log_file(entries, path, several) == len(entries)
        trace = read([path])
        log = path.read_text(encoding="utf-8")
    back = trace.events.to_pylist()
    assert trace.quarantine.num_rows == 0
    assert len(back) == len(entries)
    for one, row in zip(entries, back, strict=True):
        assert sorted(row["clock_counts"]) == sorted(one.clock.values())
        assert row["seq"] == one.clock[one.host]
        assert one.text.strip() in row["text"] or not one.text.isprintable() or not one.text.strip()
    for was, told in (("host", "member"), ("run", "run")):
        pairs = {(getattr(one, was), row[told]) for one, row in zip(entries, back, strict=True)}
        if several or was == "host":
            assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    found = shiviz_finds(log)
    assert [(host, json.loads(clock)) for _, host, clock, _ in found] == [
        (row["member"], dict(zip(row["clock_members"], row["clock_counts"], strict=True)))
        for row in back
    ]


def test_only_entries_above_zero_are_written() -> None:
    out = io.StringIO()
    clock = {f"h{k}": 0 for k in range(1000)} | {"a": 1}
    write_log([ShivizEvent(None, "a", clock, "begins")], out, False)
    assert out.getvalue() == '(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\na {"a":1}\nbegins\n'


# --- the command ---------------------------------------------------------------------------


def events() -> list[Event]:
    return [
        Event(id="1", member="a", text="ask", send_time=5),
        Event(id="2", member="b", causes=("1", "9"), send_time=3),
        Event(id="3", member="a", causes=("2",), send_time=7),
        Event(id="3", member="a", causes=("2",), send_time=8),
    ]


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".ndjson"])
def test_parquet_and_json_lines_come_back_as_they_were(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, out = tmp_path / "first.parquet", tmp_path / f"out{ending}"
    write_events(events(), first)
    assert main(["convert", str(first), "-o", str(out)]) == 0
    assert "4 events in the event schema" in capsys.readouterr().out
    before, after = read([first]).events, read([out]).events
    own = ["source", "line"]
    assert after.drop_columns(own).equals(before.drop_columns(own))


def test_a_trace_of_spans_survives_parquet(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "traces/skew.json"
    out = tmp_path / "t.parquet"
    assert main(["convert", str(path), "-o", str(out)]) == 0
    again = audit_events(read([out]).events, "spans")
    assert again.details["clock_skew"] == audit([path]).details["clock_skew"]


def test_causes_become_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, out = tmp_path / "first.parquet", tmp_path / "out"
    write_events(events(), first)
    assert main(["convert", str(first), "-o", str(out), "--to", "shiviz"]) == 0
    assert capsys.readouterr().out == (
        f"3 events as a log for ShiViz -> {out}\n"
        "  times are excluded: a log contains hosts, clocks and texts\n"
        "  vector clocks are computed from causes and the order of each member's events\n"
        "  excluded: 1 x a later row of an id\n"
    )
    assert shiviz_finds(out.read_text()) == [
        ("", "a", '{"a":1}', "ask"),
        ("", "b", '{"a":1,"b":1}', "2"),
        ("", "a", '{"a":2,"b":1}', "3"),
    ]


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = tmp_path / "first.parquet"
    write_events(events(), first)
    for out, why in (
        (first, "is input of this command"),
        (tmp_path, "is a folder"),
        (tmp_path / "none/x.log", "does not exist"),
        (tmp_path / "x.txt", "unknown ending"),
        (tmp_path / "x.log", "no such file"),
    ):
        source = tmp_path / "absent" if why == "no such file" else first
        assert main(["convert", str(source), "-o", str(out)]) == 2
        assert why in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["first.parquet"]
    assert main(["convert", str(first), "-o", str(tmp_path / "x.log")]) == 0
    assert main(["convert", str(first), "-o", str(tmp_path / "x.log"), "--force"]) == 0


def test_bad_records_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_file(tmp_path, '{"id":"1"}\n{"id":\n{"id":null}\n', "t.jsonl")
    for out in ("o.parquet", "o.log"):
        said = run_command(capsys, "convert", str(source), "-o", str(tmp_path / out))
        assert "quarantined: 1 x invalid JSON" in said
        assert "quarantined: 1 x no id" in said
