"""What commands write, and what they say: nothing is lost, and an error is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from antecede.audit.engine import audit
from antecede.check.scenario import run_scenario
from antecede.check.scenario_parse import parse_scenario
from antecede.cli import main
from antecede.cli.deliver import option
from antecede.cli.explain import explain
from antecede.cli.output import check_free
from antecede.errors import InputError
from antecede.group import Group

TRACE = "id,after\nb,a\na,\nc,b,too many\n"
SCENARIO = "title t\nprotocol fifo\nmembers A B\nsend A m\nlose B m\ntick 0.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.csv").write_text(TRACE)
    (tmp_path / "x.scenario").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["audit", "t.csv", "--quarantine", "t.csv"], "t.csv"),
        (["audit", "t.csv", "--quarantine", "./t.csv", "--force"], "t.csv"),
        (["audit", "t.csv", "--quarantine", "other.csv"], "other.csv"),
        (["explain", "x.scenario", "--svg", "./x.scenario"], "x.scenario"),
        (["convert", "t.csv", "-o", "pipe", "--to", "jsonl", "--force"], "pipe"),
        (["order", "t.csv", "-o", "pipe", "--force"], "pipe"),
        (["deliver", "pipe", "--example", "3", "--force"], "pipe"),
    ],
)
def test_nothing_is_put_in_the_place_of_what_is_read_or_no_file(
    arguments: list[str], kept: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "other.csv").write_text("mine\n")
    before = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert kept in said.err
    assert said.out == ""
    assert (folder / "pipe").is_fifo()
    after = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.parametrize("order", ["nosuch", "htbc", "hierarchical"])
def test_an_order_that_cannot_be_recorded_is_refused_before_anybody_talks(
    order: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "-o", "r.parquet", "--order", order, "--seconds", "0.1"]) == 2
    err = capfd.readouterr().err
    assert err.startswith("antecede: ")
    assert err.count("\n") == 1
    assert not (folder / "r.parquet").exists()


def test_an_earlier_quarantine_is_replaced_when_asked(folder: Path) -> None:
    command = ["audit", "t.csv", "--quarantine", "bad.csv"]
    assert [main(command), main(command), main([*command, "--force"])] == [0, 2, 0]
    assert "too many" in (folder / "bad.csv").read_text()


def test_names_of_devices_are_refused_although_they_may_lead_to_files() -> None:
    for name in ("/dev/null", "/dev/stdout"):
        with pytest.raises(InputError, match="is no ordinary file"):
            check_free(Path(name), force=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit"], "antecede audit: the following arguments are required: PATH"),
        (["explain", "x", "--width", "wide"], "antecede explain: argument --width: invalid int"),
        (["sort"], "antecede: argument COMMAND: invalid choice: 'sort'"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert err.count("\n") == 1
    assert "--help lists the options" in err


def _run(arguments: list[str], out: int, **environment: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "antecede", *arguments],
        env={**os.environ, **environment},
        stdout=out,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["protocols", "bss"], ["protocols", "--json"]])
def test_a_full_disk_is_told_in_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        code, _, err = _run(arguments, full.fileno())
    assert code == 2
    assert err.startswith(b"antecede: ")
    assert err.count(b"\n") == 1


def test_characters_that_the_terminal_lacks_become_question_marks(folder: Path) -> None:
    code, out, err = _run(["explain", "x.scenario"], subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert (code, err) == (0, b"")
    assert b"A sends m to B." in out
    assert b"?" in out


def test_an_svg_is_xml_whatever_the_title_holds(folder: Path) -> None:
    (folder / "y.scenario").write_text(SCENARIO.replace("title t", "title <a> & \x07 \x1b[2J"))
    assert main(["explain", "y.scenario", "--svg", "y.svg"]) == 0
    assert "&lt;a&gt; &amp; ? ?[2J" in (folder / "y.svg").read_text()
    ElementTree.parse(folder / "y.svg")


def test_losses_and_time_are_told_in_words() -> None:
    told = list(explain(run_scenario(parse_scenario(SCENARIO, "x"))))
    assert "   2  m to B is lost on the way." in told
    assert "   3  0.5 s pass." in told


@pytest.mark.parametrize(
    ("written", "value"), [("true", True), ("false", False), ("none", None), ("False", False)]
)
def test_options_may_be_written_as_in_scenarios(written: str, value: object) -> None:
    assert option(f"as_published={written}") == ("as_published", value)


def test_an_option_that_a_protocol_lacks_is_named_in_a_sentence() -> None:
    with pytest.raises(Exception, match=r"order 'bss': Bss got an unexpected .* 'colour'"):
        Group("a", ["a", "b"], order="bss", colour=1)


def test_one_more_order_errs(folder: Path) -> None:
    (folder / "times.csv").write_text("id,after,time\nb,a,1\na,,2\n")
    assert "; 1 more order errs, see below" in audit(["times.csv"]).summary()
