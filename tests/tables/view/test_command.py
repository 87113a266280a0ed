"""`antecede view` on the command line: output, browser, server, errors."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antecede.core.diagram_model import SEND
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.diagram.scenario_diagram import from_run
from antecede.tables.view.diagrams import trace_of
from antecede.tables.view.render_model import picture
from antecede.tables.view.tiles import ABOUT
from tests.conftest import ROOT
from tests.tables.conftest import Command
from tests.tables.view.made import drawn, make_held_trace
from tests.tables.view.unpacked import unpacked

LOG = """alice {"alice": 1}
asks
bob {"bob": 1, "alice": 1}
hears
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.parquet"
    pq.write_table(make_held_trace().events, path)
    return path


def test_a_page_is_written_whole(file: Path, command: Command) -> None:
    out = file.parent / "page.html"
    assert "12 events" in command("view", file, "-o", out, "--focus", "b@cyd").out
    assert out.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert "exists" in command("view", file, "-o", out).refused
    assert command("view", file, "-o", out, "--force").code == 0


def test_without_out_a_browser_opens_a_file_of_ones_own(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    asked: list[str] = []

    def opens(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", opens)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Path(command("view", file).out.partition("\n")[0].rpartition("-> ")[2])
    assert asked == [made.as_uri()]
    assert made.parent.stat().st_mode & 0o077 == 0
    assert command("view", file, "--no-browser").code == 0
    assert len(asked) == 1


def test_a_vector_clock_log_by_its_expression(tmp_path: Path, command: Command) -> None:
    log = tmp_path / "a.log"
    log.write_text(LOG)
    regex = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
    assert command("view", log, "--regex", regex, "-o", tmp_path / "a.html").code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nowhere.parquet", "no such file"),
        ("{file} -o x.txt", "ends in .html"),
        ("{file} -o x.html --serve", "--serve"),
        ("{file} --force", "--force"),
        ("{file} --max-events 0", "--max-events 0"),
        ("{file} --port 70000", "--port 70000"),
        ("{file} --run-id r", "--run-id"),
        ("{file} --focus nothing -o x.html", "no event has the id nothing"),
        ("{file} --causality clocks -o x.html", "--causality clocks: the trace has"),
        ("{file} --engine spark", "--tiles DIR"),
        ("{file} --tiles d -o x.html", "--output"),
        ("{file} --max-events 5 -o x.html", "more than a page can have (5)"),
        ("{empty}", "the file is empty"),
    ],
)
def test_what_is_refused(
    file: Path, line: str, said: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    Path("empty.csv").write_text("")
    found = command("view", *line.format(file=file, empty="empty.csv").split())
    assert found.code == 2
    assert said in found.err
    assert not Path("x.html").exists()


def serve_command(*words: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "antecede", "view", *words, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)
    assert found, (line, process.poll())
    return process, found[0]


def _ended(process: subprocess.Popen[str]) -> int:
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    return process.returncode


@pytest.mark.slow
def test_pieces_are_cut_and_served(tmp_path: Path, command: Command) -> None:
    file, cut = tmp_path / "trace.parquet", tmp_path / "cut"
    pq.write_table(drawn(2, events=500).events, file)
    assert f"antecede view {cut}" in command("view", file, "--tiles", cut).out
    assert (cut / ABOUT).is_file()
    assert "--causality" in command("view", cut, "--causality", "events", "--no-browser").refused
    for words in ([str(cut)], [str(file), "--serve"], [str(file), "--follow"]):
        process, url = serve_command(*words)
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert b"data-source" in answer.read()
            with urllib.request.urlopen(url + "data", timeout=20) as answer:
                assert answer.status == 200
        finally:
            assert _ended(process) == 0


# -- pages of other commands ----------------------------------------------------------------------


def _data(file: Path) -> dict[str, Any]:
    found = re.search(r'id="data">([^<]*)<', file.read_text(encoding="utf-8"))
    assert found is not None
    return unpacked(zlib.decompress(base64.b64decode(found[1])))[0]


def test_an_audit_writes_its_page(file: Path, command: Command) -> None:
    out = file.parent / "audit.html"
    assert f"Page: {out}" in command("audit", file, "--output-html", out).out
    assert _data(out)["events"] == 12
    assert command("audit", file, "--output-html", out).code == 2
    assert "ends in .html" in command("audit", file, "--output-html", "x.txt").refused


def test_the_page_of_an_audit_has_the_extra_columns(tmp_path: Path, command: Command) -> None:
    path, out = tmp_path / "rows.csv", tmp_path / "audit.html"
    path.write_text("id,who,time,after,level\na,p,1,,INFO\nb,q,2,a,ERROR\n")
    assert command("audit", path, "--member", "who", "--output-html", out).code == 0
    meta = _data(out)
    assert meta["own"] == ["level"]
    assert meta["findings"][0]["what"] == "1 error (column level); the first is b at q"


ROWS = """id,member,time,after
a,m,2024-01-01T00:00:00Z,
b,m,2024-01-01T00:00:01Z,a
b,m,2024-01-01T00:00:01Z,a
b,n,2024-01-01T00:00:01Z,zz
c,n,soon,b
,n,2024-01-01T00:00:04Z,b
d,n,,c
"""


def test_page_and_pieces_count_the_events_that_an_audit_counts(
    tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    assert command("audit", path, "--json").json["messages"] == 4
    of_page = command("view", path, "-o", tmp_path / "page.html").out
    of_pieces = command("view", path, "--tiles", tmp_path / "cut").out
    assert of_page.startswith("4 events, ")
    assert of_pieces.startswith("2 events -> ")
    assert "2 rows without a time: not in the picture" in of_pieces
    assert len(pq.read_table(tmp_path / "cut" / "events")) == 2
    for said in (of_page, of_pieces):
        assert "2 bad rows quarantined: 1 x an earlier row of this id differs in member" in said
        assert "2 later rows of an id already seen" in said
        assert "1 time not readable" in said


def test_names_in_findings_move_no_cursor(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"id": "a\x1b[2J", "member": "m", "time": 5, "after": ["b"]}, {"id": "b", "time": 9}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for words in (["audit", path], ["view", path, "-o", tmp_path / "p.html"]):
        said = command(*words).out
        assert r"a\x1b[2J" in said
        assert "\x1b" not in said


@pytest.mark.parametrize("by", ["clocks", "events"])
@pytest.mark.parametrize("where", [["-o", "page.html"], ["--tiles", "cut"]])
def test_a_way_that_the_trace_does_not_support_is_refused(
    by: str, where: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)
    code, _, said = command("view", "rows.csv", "--causality", by, *where)
    assert code == 2
    assert f"--causality {by}: the trace has no such data (causality_source: causes)" in said
    assert "no data on causality" not in said
    assert not Path(where[1]).exists()


def test_a_counterexample_as_a_page(tmp_path: Path, command: Command) -> None:
    out = tmp_path / "ce.html"
    found = command("check", "bss", "--variant", "as-published", "--output-html", out)
    assert found.code == 1
    assert str(out) in found.err
    meta = _data(out)
    assert "delivered before a message of its causal past (a1)" in meta["findings"][0]["what"]
    assert len(meta["findings"][0]["rows"]) == 1
    assert command("check", "bss", "--output-html", "x.svg").code == 2
    assert "omit --output-html" in command("check", "--all", "--output-html", "x.html").refused


@pytest.mark.slow
def test_every_scenario_becomes_a_trace() -> None:
    for path in sorted((ROOT / "scenarios").glob("*.scenario")):
        diagram = from_run(run_scenario(load_scenario(path)))
        trace = trace_of(diagram)
        kinds = trace.events["kind"].to_pylist()
        assert kinds.count("send") >= len([mark for mark in diagram.marks if mark.kind == SEND])
        meta = picture(trace, title=path.name).meta
        assert not any("without a send row" in one["what"] for one in meta["findings"]), path


def test_a_simulated_trace_says_how_to_look_at_it(tmp_path: Path, command: Command) -> None:
    scenario, out = tmp_path / "mesh.toml", tmp_path / "run.parquet"
    scenario.write_text('[topology]\nkind="mesh"\npeers=3\n[run]\nduration_s=0.3\n')
    assert f"antecede view {out}" in command("simulate", scenario, "--trace", out).out
    assert command("view", out, "-o", tmp_path / "run.html").code == 0


def test_options_without_effect_on_tiles_are_refused(
    file: Path, tmp_path: Path, command: Command
) -> None:
    cut = tmp_path / "cut"
    assert command("view", file, "--tiles", cut).code == 0
    for words in (
        ["--causality", "events"],
        ["--format", "table"],
        ["--id", "id"],
        ["--max-events", "9"],
        ["--follow"],
        ["-o", tmp_path / "page.html"],
        ["--tiles", tmp_path / "d"],
        ["--tiles", tmp_path / "d", "--engine", "spark"],
    ):
        said = command("view", cut, *words).refused
        assert "contains tiles of a trace: omit" in said
        assert str(words[0]) in said or "--output" in said


def test_spark_refuses_a_path_that_does_not_exist(tmp_path: Path, command: Command) -> None:
    words = ["--tiles", tmp_path / "cut", "--engine", "spark"]
    said = command("view", tmp_path / "nowhere.parquet", *words).refused
    assert "nowhere.parquet: no such file or folder" in said


def test_spark_refuses_options_that_it_would_not_look_at(command: Command) -> None:
    for option in ("--id=k", "--after=c", "--causality=causes", "--time-unit=s", "--run=r"):
        found = command("view", "t.parquet", "--tiles", "cut", "--engine", "spark", option)
        assert found.code == 2
        assert f"omit {option.partition('=')[0]}" in found.err
