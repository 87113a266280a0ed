"""Times in a user's table: reports of the guessed unit and of unreadable times."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from antecede.formatting import duration
from antecede.tables.trace.arrow import read
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.time_text import notes
from antecede.tables.trace.user_tables.writing import write_table
from tests.tables.trace.files import run_command, write_file

ROWS = "id,after,member,time\na,,p,1000\nb,a,q,990\nc,b,q,995\n"
GUESS = "given as numbers, read as s: guessed by their size; --time-unit sets it"
UNREADABLE = "1 time not readable"


@pytest.mark.parametrize("garbage", ["", "99999999999999999999", "-1e19", "nan", "inf", "soon"])
def test_a_refused_time_does_not_choose_the_unit(garbage: str, tmp_path: Path) -> None:
    """Defect A3: one number outside all units turned all seconds into nanoseconds."""
    path = write_file(tmp_path, ROWS + f"d,c,q,{garbage}\n", "times.csv")
    trace = read([path])
    assert trace.events["send_time"].to_pylist() == [k * 10**9 for k in (1000, 990, 995)] + [None]
    assert trace.details.get("unreadable_times", 0) == bool(garbage)
    assert trace.details["guessed_time_unit"] == "s"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("audit", []),
        ("false-causality", []),
        ("order", ["-o", "out.csv"]),
        ("convert", ["-o", "out.csv"]),
        ("convert", ["-o", "out.log"]),
    ],
)
def test_every_command_says_the_guess_and_the_times_it_cannot_read(
    command: str,
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Defects A3 and B4: only the audit counted them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("bad.csv").write_text(ROWS + "d,c,q,99999999999999999999\n")
    said = run_command(capsys, command, "bad.csv", *options)
    assert GUESS in said
    assert UNREADABLE in said


def test_a_unit_that_is_said_or_not_needed_is_no_guess(tmp_path: Path) -> None:
    path = write_file(tmp_path, ROWS, "times.csv")
    assert "guessed_time_unit" not in read([path], options=ReadOptions(time_unit="ms")).details
    path.write_text("id,after,time\na,,2026-01-01T00:00:00\n")
    assert "guessed_time_unit" not in read([path]).details


def test_files_of_different_units_name_both(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("s.csv", "ms.csv", "again.csv"))
    first.write_text("id,after,time\na,,1700000000\n")
    second.write_text("id,after,time\nb,a,1700000000000\n")
    third.write_text("id,after,time\nc,a,1700000001\n")
    assert read([first, second]).details["guessed_time_unit"] == "s; ms"
    assert read([first, second, third]).details["guessed_time_unit"] == "s; ms"


def test_a_log_names_the_units_that_its_numbers_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "(?<time>\\S+) (?<host>\\S+) (?<clock>{.*}) (?<event>.*)\n\n"
        '1700000000 a {"a":1} x\n1700000000000 b {"b":1} y\n2026-01-01T00:00:00 c {"c":1} z\n'
    )
    details = read([path], "shiviz").details
    assert details["guessed_time_unit"] == "s and ms"


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0"), (10e-6, "10 ns"), (1e-6, "1.0 ns"), (0.001, "1.0 µs"), (0.01, "10 µs")],
)
def test_a_short_duration_is_no_zero(milliseconds: float, words: str) -> None:
    assert duration(milliseconds) == words


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    ("times", "unit", "like"),
    [
        ([1_700_000_000, 1_700_000_001_000], "ms", {"s": 1}),
        ([1_700_000_000_000, 1_700_000_001, 1_700_000_002], "ms", {"s": 2}),
        ([1_700_000_000_000_000, 1_700_000_001_000, 1_700_000_002], "us", {"s": 1, "ms": 1}),
        ([10**9 * 1_700_000_000, 1_700_000_001_000_000], "ns", {"us": 1}),
        ([1_700_000_000, 1_700_000_001], "s", {}),
        ([5, 86_400_000], "s", {}),
        ([0, 1_700_000_000_000], "ms", {}),
    ],
)
def test_times_of_two_units_in_a_table_are_counted_and_said(
    format: str, times: list[int], unit: str, like: dict[str, int], tmp_path: Path
) -> None:
    ids = [f"e{k}" for k in range(len(times))]
    table = pa.table({"id": ids, "after": [None, *ids[:-1]], "time": times})
    write_table(table, tmp_path / f"t.{format}", format)
    details = read(tmp_path / f"t.{format}").details
    found = {one: details[f"times_like_{one}"] for one in like}
    assert found == like
    assert details.get("time_unit_read") == (unit if like else None)
    said = [note for note in notes(details) if "but other times" in note]
    assert len(said) == len(like)
    for one in like:
        finding = f"in {one} by their size, but other times are in {unit}"
        assert any(finding in note for note in said)
