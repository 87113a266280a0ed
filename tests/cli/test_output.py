"""What commands write, and what they say: nothing is lost, and an error is one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from antecede.cli import main
from antecede.cli.files.output import check_free
from antecede.cli.protocols.draw import explain
from antecede.cli.traces.replay import parse_option
from antecede.core.group.group import Group
from antecede.errors import InputError
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.tables.audit.engine import audit
from tests.helpers.fixtures import Call, Capture, Patch

TRACE = "id,after\nb,a\na,\nc,b,too many\n"
SCENARIO = "title t\nprotocol fifo\nmembers A B\nsend A m\nlose B m\ntick 0.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    (tmp_path / "t.csv").write_text(TRACE)
    (tmp_path / "x.scenario").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["audit", "t.csv", "--quarantine", "other.csv"], "other.csv"),
        (["draw", "x.scenario", "--output-svg", "./x.scenario"], "x.scenario"),
        (["convert", "t.csv", "-o", "pipe", "--to", "jsonl", "--force"], "pipe"),
        (["order", "t.csv", "-o", "pipe", "--force"], "pipe"),
        (["replay", "pipe", "--example", "3", "--force"], "pipe"),
    ],
)
def test_nothing_is_put_in_the_place_of_what_is_read_or_no_file(
    arguments: list[str], kept: str, folder: Path, capsys: Capture
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


WRITERS = [
    ["order", "{read}", "-o", "{out}", "--force"],
    ["convert", "{read}", "-o", "{out}", "--force"],
    ["audit", "{read}", "--quarantine", "{out}", "--force"],
]


@pytest.mark.parametrize("command", WRITERS, ids=lambda command: str(command[0]))
@pytest.mark.parametrize("name", ["same", "dotted", "link", "hard", "linked_folder", "to_link"])
def test_no_command_writes_what_it_reads_by_whatever_name(
    command: list[str], name: str, folder: Path, refused: Call
) -> None:
    read, out = "t.csv", {"same": "t.csv", "dotted": "./sub/../t.csv"}.get(name, "x.csv")
    (folder / "sub").mkdir()
    if name == "link":
        (folder / out).symlink_to("t.csv")
    elif name == "hard":
        os.link(folder / "t.csv", folder / out)
    elif name == "linked_folder":
        (folder / "way").symlink_to(folder, target_is_directory=True)
        out = "way/t.csv"
    elif name == "to_link":
        (folder / "x.csv").symlink_to("t.csv")
        read, out = "x.csv", "t.csv"
    assert "is input of this command" in refused(
        *(word.format(read=read, out=out) for word in command)
    )
    assert (folder / "t.csv").read_text() == TRACE
    assert sorted(path.name for path in folder.glob(".*")) == []


@pytest.mark.parametrize("command", WRITERS, ids=lambda command: str(command[0]))
def test_no_command_writes_into_the_folder_that_it_reads(
    command: list[str], folder: Path, refused: Call
) -> None:
    parts = folder / "parts"
    parts.mkdir()
    assert main(["convert", "t.csv", "-o", "parts/a.parquet"]) == 0
    os.link(parts / "a.parquet", folder / "b.parquet")
    before = (parts / "a.parquet").read_bytes()
    for out in ("parts/a.parquet", "parts/new.parquet", "b.parquet"):
        assert "which this command reads" in refused(
            *(word.format(read="parts", out=out) for word in command)
        )
    assert [path.name for path in parts.iterdir()] == ["a.parquet"]
    assert (parts / "a.parquet").read_bytes() == before


def test_deliver_does_not_write_what_it_reads(folder: Path, refused: Call) -> None:
    assert main(["replay", "log.parquet", "--example", "5"]) == 0
    before = (folder / "log.parquet").read_bytes()
    call = ("replay", "log.parquet", "-o", "./log.parquet", "--force")
    assert "is input of this command" in refused(*call)
    assert (folder / "log.parquet").read_bytes() == before
    assert main(["replay", "log.parquet", "-o", "out.csv"]) == 0
    assert (folder / "out.csv").read_text().startswith('"')
    assert main(["replay", "log.csv", "--example", "5"]) == 2


def test_a_link_that_leads_nowhere_is_not_replaced_unasked(folder: Path) -> None:
    (folder / "x.csv").symlink_to("nowhere")
    assert main(["order", "t.csv", "-o", "x.csv"]) == 2
    assert (folder / "x.csv").is_symlink()


@pytest.mark.parametrize("command", ["order", "convert"])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interruption_or_a_full_disk_leaves_all_as_it_was(
    command: str,
    ending: str,
    error: BaseException,
    folder: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    (folder / f"out.{ending}").write_text("mine")

    def fails(_: object) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fails)
    code = main([command, "t.csv", "-o", f"out.{ending}", "--force"])
    assert code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert (folder / f"out.{ending}").read_text() == "mine"
    names = [f"out.{ending}", "t.csv", "x.scenario"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert capsys.readouterr().err.count("\n") == 1


def test_converting_keeps_the_columns_of_a_table(folder: Path, said: Call) -> None:
    (folder / "own.jsonl").write_text('{"id": 1, "kind": "in", "price": 2.5}\n')
    text = said("convert", "own.jsonl", "-o", "out.jsonl")
    assert "further columns: own_id, own_kind, price" in text
    row = json.loads((folder / "out.jsonl").read_text())
    names = ("id", "kind", "own_id", "own_kind", "price")
    assert [row[name] for name in names] == ["1", "event", 1, "in", 2.5]
    assert "columns: own_id, own_kind, price\n" in said("convert", "out.jsonl", "-o", "again.csv")


@pytest.mark.slow
def test_columns_that_change_their_type_on_the_way_are_kept(folder: Path) -> None:
    rows = [{"id": k, "note": k if k < 70_000 else "x"} for k in range(70_001)]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["convert", "own.jsonl", "-o", "out.parquet"]) == 0
    table = pq.read_table(str(folder / "out.parquet"))
    assert table.num_rows == 70_001
    assert table["note"].to_pylist()[-2:] == ["69999", "x"]


@pytest.mark.parametrize("order", ["nosuch", "physical", "hierarchical"])
def test_an_order_that_cannot_be_recorded_is_refused_before_anybody_talks(
    order: str, folder: Path, refused: Call
) -> None:
    err = refused("record", "-o", "r.parquet", "--order", order, "--seconds", "0.1")
    assert err.startswith("antecede: ")
    assert err.count("\n") == 1
    assert not (folder / "r.parquet").exists()


def test_an_earlier_quarantine_is_replaced_when_asked(folder: Path) -> None:
    command = ["audit", "t.csv", "--quarantine", "bad.csv"]
    assert [main(command), main(command), main([*command, "--force"])] == [0, 2, 0]
    assert "too many" in (folder / "bad.csv").read_text()


def test_names_of_devices_are_refused_although_they_may_lead_to_files() -> None:
    for name in ("/dev/null", "/dev/stdout"):
        with pytest.raises(InputError, match="is not a regular file"):
            check_free(Path(name), force=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit"], "antecede audit: the following arguments are required: PATH"),
        (["draw", "x", "--width", "wide"], "antecede draw: argument --width: invalid int"),
        (["sort"], "antecede: argument COMMAND: invalid choice: 'sort'"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line(
    arguments: list[str], said: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert err.count("\n") == 1
    assert "--help lists the " in err
    assert "compile" not in err


def _run(words: str, out: int, **environment: str) -> tuple[int, bytes, bytes]:
    command = [sys.executable, "-m", "antecede", *words.split()]
    environ = {**os.environ, **environment}
    done = subprocess.run(
        command, env=environ, stdout=out, stderr=subprocess.PIPE, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["protocols bss", "protocols --json"])
def test_a_full_disk_is_told_in_one_line(words: str) -> None:
    with open("/dev/full", "wb") as full:
        code, _, err = _run(words, full.fileno())
    assert code == 2
    assert err.startswith(b"antecede: ")
    assert err.count(b"\n") == 1


def test_characters_that_the_terminal_lacks_become_question_marks(folder: Path) -> None:
    code, out, err = _run("draw x.scenario", subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert (code, err) == (0, b"")
    assert b"A sends m to B." in out
    assert b"?" in out


def test_an_svg_is_xml_whatever_the_title_holds(folder: Path) -> None:
    (folder / "y.scenario").write_text(SCENARIO.replace("title t", "title <a> & \x07 \x1b[2J"))
    assert main(["draw", "y.scenario", "--output-svg", "y.svg"]) == 0
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
    assert parse_option(f"as_published={written}") == ("as_published", value)


def test_an_option_that_a_protocol_lacks_is_named_in_a_sentence() -> None:
    with pytest.raises(Exception, match=r"order 'bss' has no option 'colour'; choose from"):
        Group("a", ["a", "b"], order="bss", colour=1)


def test_one_more_order_errs(folder: Path) -> None:
    (folder / "times.csv").write_text("id,after,time\nb,a,1\na,,2\n")
    found = audit(["times.csv"]).summary()
    assert '; also in file order (table "Effects before their cause")' in found
    assert "\nEffects before their cause  " in found


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("order no-such-trace -o s", "is a folder"),
        ("order no-such-trace -o absent/out.parquet", "does not exist"),
        ("order no-such-trace -o out.xlsx", "out.xlsx: unknown file ending"),
        ("check bss --variant as-published --output-scenario gone/x.scenario", "does not exist"),
        ("check bss --variant as-published --output-svg s", "is a folder"),
        ("check bss --variant as-published --output-scenario /dev/null", "not a regular file"),
        ("check own.py:Own --output-scenario own.py", "is input of this command"),
        (
            "check bss --variant as-published --output-scenario x --output-svg ./x",
            "is the name of two output files",
        ),
        (
            "simulate mesh.toml --trace x.csv --output-plot ./x.csv",
            "is the name of two output files",
        ),
        ("reproduce topics --quick --engine local -o t.csv", "is not a folder"),
        ("reproduce topics --quick --engine local -o t.csv/x", "t.csv is a file"),
        (
            "reproduce semantic --quick --engine local --traces s/index.html -o s",
            "is input of this",
        ),
        ("reproduce all --quick --engine local -o t.csv", "t.csv"),
        ("reproduce topics --quick --engine local -o odd", "is not a regular file"),
        ("sweep s/index.html --over members=2,3 -o s", "is input of this command"),
        ("sweep mesh.toml --over members=2,3 -o t.csv", "is not a folder"),
        ("demo --engine local -o t.csv", "is not a folder"),
        ("demo --engine local --trace s/index.html -o s", "is input of this command"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_work(
    call: str, says: str, folder: Path, capsys: Capture
) -> None:
    mesh = '[topology]\nkind="mesh"\npeers=3\n[run]\nduration_s=0.2\n'
    (folder / "mesh.toml").write_text(mesh)
    (folder / "own.py").write_text("from antecede.core.protocols.basic.fifo import Fifo as Own\n")
    (folder / "s").mkdir()
    (folder / "s" / "index.html").write_text(mesh)
    (folder / "odd").mkdir()
    os.mkfifo(folder / "odd" / "index.html")
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    assert main(call.split()) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert not said.out
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_who_is_asked_to_end_while_it_writes_leaves_no_draft(
    how: signal.Signals, code: int, tmp_path: Path
) -> None:
    trace, out = tmp_path / "t.csv", tmp_path / "out.jsonl"
    trace.write_text("id,after\n" + "".join(f"{k},{k - 1}\n" for k in range(1, 500_000)))
    out.write_text("mine\n")
    words = ["convert", str(trace), "-o", str(out), "--to", "jsonl", "--force"]
    child = subprocess.Popen([sys.executable, "-m", "antecede", *words], stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while not [*tmp_path.glob(".out*")] and time.monotonic() < end and child.poll() is None:
        time.sleep(0.02)
    assert [*tmp_path.glob(".out*")]
    child.send_signal(how)
    said = child.communicate(timeout=60)[1].decode()
    assert child.returncode == code
    assert said.splitlines()[-1] in ("antecede: terminated", "antecede: interrupted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "t.csv"]
    assert out.read_text() == "mine\n"


@pytest.mark.parametrize(
    "words",
    [
        "draw x.scenario --output-svg out.svg",
        "check bss --variant as-published --output-scenario out",
        "check bss --variant as-published --output-svg out.svg",
    ],
)
def test_an_existing_drawing_or_counterexample_is_kept_unless_forced(
    words: str, folder: Path, refused: Call
) -> None:
    out = folder / words.split()[-1]
    out.write_text("mine\n")
    assert f"{out.name}: exists; name another file or give --force" in refused(*words.split())
    assert out.read_text() == "mine\n"
    assert main([*words.split(), "--force"]) in (0, 1)
    assert out.read_text() != "mine\n"


@pytest.mark.parametrize(
    "words",
    [
        "draw x.scenario --output-svg x.txt",
        "draw x.scenario --output-png x.txt",
        "check bss --variant as-published --output-svg x.txt",
        "check --snapshots lai-yang --output-svg x.txt",
    ],
)
def test_an_image_with_another_ending_is_refused(words: str, folder: Path, refused: Call) -> None:
    option = words.split()[-2]
    expected = f"x.txt: {option}: expected a file name that ends in .{option[-3:]}"
    assert expected in refused(*words.split())
    assert not (folder / "x.txt").exists()
