"""Arguments among options, and the hints for logs, clocks and marks that are written otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.tables.trace.formats.shiviz_dialects import parse_clock
from tests.helpers.fixtures import Call, Capture

LOG = "p [p:1] starts\nq [p:1, q:1] hears\np [p:2] snapshot 1 of three\n"
REGEX = r"(?<host>\w+) \[(?<clock>.*)\] (?<event>.*)"


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "x.log"
    path.write_text(LOG)
    return str(path)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ask", "LOG", "--regex", REGEX, "before", "p:1", "q:1"], 0),
        (["ask", "--regex", REGEX, "LOG", "before", "p:1", "q:1"], 0),
        (["ask", "LOG", "before", "--regex", REGEX, "p:1", "--json", "q:1"], 0),
        (["cut", "LOG", "--regex", REGEX, "p=1"], 0),
        (["cut", "LOG", "p=1", "--regex", REGEX, "q=1"], 0),
        (["cut", "--regex", REGEX, "LOG", "q=1", "--json"], 1),
        (["audit", "--regex", REGEX, "LOG", "--json"], 0),
    ],
)
def test_arguments_may_stand_among_options(
    words: list[str], code: int, log: str, capsys: Capture
) -> None:
    assert main([log if word == "LOG" else word for word in words]) == code


def test_a_log_is_pointed_to_the_expression(log: str, refused: Call) -> None:
    for words in (["ask", log, "past", "p:1"], ["audit", log], ["cut", log, "p=1"]):
        said = refused(*words)
        assert "--regex" in said
        assert "host, clock and event" in said


@pytest.mark.parametrize(
    "written",
    [
        *("gateway:1,auth:2", "gateway:1, auth:2", "{gateway:1, auth:2}", "[gateway:1,auth:2]"),
        *(
            "gateway=1;auth=2",
            "gateway=1 auth=2",
            "{'gateway': 1, 'auth': 2}",
            "<gateway:1,auth:2>",
        ),
        *('{"gateway": 1, "auth": 2}', '{\\"gateway\\": 1, \\"auth\\": 2}', "gateway:1,auth:2,x:0"),
    ],
)
def test_clocks_as_pairs_are_read(written: str) -> None:
    assert parse_clock(written) == {"gateway": 1, "auth": 2}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("gateway", "invalid clock"),
        ("gateway:one", 'expected {"member": 1} or member:1,other:2'),
        ("gateway:1,", "invalid clock"),
        ("gateway:1,gateway:2", "has two entries of 'gateway'"),
        ("gateway:99999999999999999999", "exceeds 64 bits"),
        ("gateway:1.5", "invalid clock"),
    ],
)
def test_other_clocks_are_refused_with_what_can_be_written(written: str, said: str) -> None:
    assert said in str(parse_clock(written))


def test_a_member_s_name_may_hold_a_colon_or_an_escape() -> None:
    assert parse_clock("gw:8080:3,auth:2") == {"gw:8080": 3, "auth": 2}
    assert parse_clock('{"\\u0061": 1}') == {"a": 1}


def test_tables_have_clocks_as_pairs(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "t.csv"
    path.write_text('id,member,clock\na,gw,gw:1\nb,auth,"gw:1,auth:1"\n')
    assert main(["ask", str(path), "before", "a", "b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["causality_source"] == "clocks"


def test_a_mark_may_be_part_of_what_an_event_says(log: str, capsys: Capture) -> None:
    assert main(["cut", log, "--regex", REGEX, "--marker", "snapshot 1"]) == 0
    said = capsys.readouterr().out
    assert "p=2" in said
    assert "no event has exactly the text 'snapshot 1'" in said
    assert main(["cut", log, "--regex", REGEX, "--marker", "starts"]) == 0
    said = capsys.readouterr().out
    assert "p=1" in said
    assert "exactly" not in said
    assert main(["cut", log, "--regex", REGEX, "--marker", "nothing"]) == 2
    assert "no event contains the text 'nothing'" in capsys.readouterr().err
