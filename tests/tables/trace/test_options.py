"""Options that a format does not know, and file names that are not Unicode."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.cli import main
from antecede.errors import FormatError, InputError
from antecede.tables.audit import audit_events
from antecede.tables.false_causality import runs_of
from antecede.tables.trace import Event, arrow, conform
from antecede.tables.trace.arrow import to_batch
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.text import find_encoding_defect
from tests.tables.trace.files import join_lines, run_command, write_file

TABLE = "id,causes,time\na,,1\nb,a,2\n"


@pytest.mark.parametrize(
    ("name", "text", "options", "says"),
    [
        ("t.csv", TABLE, ReadOptions(regex="("), "format table does not use --regex"),
        (
            *("v.log", 'A {"A":1}\nx\n'),
            ReadOptions(columns={"causes": ("x",), "send_time": ("y",)}),
            "format shiviz does not use --after, --time; omit them",
        ),
        (
            *("v.log", 'A {"A":1}\nx\n'),
            ReadOptions(columns={"run": ("x",)}, needs_run=True),
            "format shiviz does not use --group; omit it",
        ),
        ("s.jsonl", '{"id": "1", "seq": 0, "date": 1}\n', ReadOptions(separator=","), "separator"),
    ],
)
def test_an_option_of_another_format_is_refused(
    tmp_path: Path, name: str, text: str, options: ReadOptions, says: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    format = {"t.csv": "table", "v.log": "shiviz", "s.jsonl": "mail"}[name]
    with pytest.raises(InputError, match=says):
        arrow.read([path], format, options)
    with pytest.raises(InputError, match=says):
        arrow.read_batches([path], format, options)


def test_the_command_line_tells_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, TABLE, "t.csv")
    assert main(["audit", str(path), "--run-delimiter", "x"]) == 2
    err = capsys.readouterr().err
    assert "does not use --run-delimiter" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--after", "no"), "t.csv: --after: no column 'no'; columns are"),
        (("--time", "no"), "t.csv: --time: no column 'no'; columns are"),
        (("--group", "no"), "t.csv: --group: no column 'no'; columns are"),
        (("--format", "shiviz", "--regex", "("), "t.csv: --regex: invalid regular expression"),
        (("--format", "shiviz", "--regex", "x"), "t.csv: --regex: the expression 'x' lacks"),
        (
            ("--regex", "(?<host>a)(?<clock>b)(?<event>c)", "--run-delimiter", "("),
            "t.csv: --run-delimiter: invalid regular expression",
        ),
    ],
)
def test_errors_name_the_file_and_the_option(
    words: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, TABLE, "t.csv")
    assert main(["audit", str(path), *words]) == 2
    assert says in capsys.readouterr().err


def test_bad_records_have_the_line_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write_file(tmp_path, '{"id": "a"}\n{"id": b}\n', "t.jsonl"), tmp_path / "q.csv"
    assert main(["audit", str(path), "--quarantine", str(out)]) == 0
    assert f'"{path}",2,,"invalid JSON: Expecting value at column 8"' in out.read_text()
    path, out = write_file(tmp_path, "id,after\na,\nb\n", "u.csv"), tmp_path / "r.csv"
    assert main(["audit", str(path), "--quarantine", str(out)]) == 0
    assert '"1 cell, but the first line has 2 columns"' in out.read_text()


def test_a_file_name_that_is_not_unicode_costs_no_row(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff.csv"))
    path.write_text(TABLE)
    read = arrow.read([path], "table")
    assert read.events.num_rows == 2
    assert read.quarantine.num_rows == 0
    assert str(read.events["source"][0]).endswith("t\\udcff.csv")


def test_columns_that_begin_late_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    roots = [f'{{"id": "r{k}"}}' for k in range(1_500)]
    late = '{"id": "c", "member": "m", "causes": ["r7"], "time": 1700000000}'
    path.write_text("\n".join([*roots, late, '{"id": "d"}']), encoding="utf-8")
    trace = arrow.read([path])
    row = trace.events.slice(1_500, 1).to_pylist()[0]
    assert (row["member"], row["causes"]) == ("m", ["r7"])
    assert row["send_time"] == 1_700_000_000 * 10**9
    assert "causes in " in str(trace.details["candidate_columns"])


@pytest.mark.parametrize("column", ["causes", "cause", "parents"])
def test_the_field_s_own_word_is_a_column_of_causes(tmp_path: Path, column: str) -> None:
    path = write_file(tmp_path, f"id,{column}\na,\nb,a\n", "t.csv")
    trace = arrow.read([path])
    assert trace.events["causes"].to_pylist() == [[], ["a"]]
    assert "causes in " in str(trace.details["candidate_columns"])


def test_a_table_in_the_schema_with_parents_instead_of_causes_is_refused(tmp_path: Path) -> None:
    rows = [Event(id=f"e{k}", send_time=k, causes=(f"e{k - 1}",) if k else ()) for k in range(3)]
    events = pa.Table.from_batches([to_batch(rows)])
    old = events.rename_columns([{"causes": "parents"}.get(n, n) for n in events.column_names])
    path = tmp_path / "old.parquet"
    pq.write_table(old, path)
    message = "column parents: the event schema names it causes; rename it to causes, or "
    with pytest.raises(FormatError, match=f"{message}give --after parents"):
        arrow.read([path])
    trace = arrow.read([path], options=ReadOptions(columns={"causes": ("parents",)}))
    assert trace.events.select(["causes", "send_time"]) == events.select(["causes", "send_time"])
    for call in (conform, audit_events, lambda table: list(runs_of(table))):
        with pytest.raises(InputError, match=f"{message}drop it"):
            call(old)


def test_columns_told_by_their_usual_names_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, "msg_id,caused_by,ts,sent_at\na,,2,20\nb,a,3,1\n", "t.csv")
    taken = "id is msg_id, causes is caused_by, send_time is sent_at"
    assert arrow.read([path]).details["guessed_columns"] == taken
    for words in (["audit"], ["false-causality"], ["order", "-o", str(tmp_path / "o.csv")]):
        assert f"{taken}: guessed by name" in join_lines(run_command(capsys, *words, str(path)))
    named = ReadOptions(columns={"id": ("msg_id",), "causes": ("caused_by",)})
    assert arrow.read([path], options=named).details["guessed_columns"] == "send_time is sent_at"
    path.write_text("ID,causes\na,\n", encoding="utf-8")
    assert "guessed_columns" not in arrow.read([path]).details


def test_json_lines_in_another_encoding_are_named_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes('{"id": "a"}\n{"id": "é"}\n'.encode("latin-1"))
    assert find_encoding_defect(path.read_bytes()).startswith("line 2 has the byte 0xe9, which is")
    path.write_bytes('{"id": "é"}\n{"id": "b"}\n'.encode("latin-1"))
    assert main(["audit", str(path)]) == 2
    said = capsys.readouterr().err
    assert "t.jsonl: line 1 has the byte 0xe9, which is not UTF-8; convert the file first" in said
    assert find_encoding_defect("é".encode()[:1]) == ""  # cut within a character
