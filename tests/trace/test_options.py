"""Options that a format does not know, and file names that are not Unicode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.errors import InputError
from antecede.trace import arrow
from antecede.trace.reader import ReadOptions

TABLE = "id,parents,time\na,,1\nb,a,2\n"


@pytest.mark.parametrize(
    ("name", "text", "options", "says"),
    [
        ("t.csv", TABLE, ReadOptions(regex="("), "is read as table, which has no use for regex"),
        ("v.log", 'A {"A":1}\nx\n', ReadOptions(columns={"id": ("x",)}), "no use for columns"),
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
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    assert main(["audit", str(path), "--regex", "x"]) == 2
    err = capsys.readouterr().err
    assert "has no use for regex" in err
    assert err.count("\n") == 1


def test_a_file_name_that_is_not_unicode_costs_no_row(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff.csv"))
    path.write_text(TABLE)
    read = arrow.read([path], "table")
    assert read.events.num_rows == 2
    assert read.quarantine.num_rows == 0
    assert str(read.events["source"][0]).endswith("t\\udcff.csv")
