"""`antecede play`: what it begins with, how it ends, and what it refuses before it begins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.play.runner import own_name
from antecede.lab.play.server import Opened
from tests.helpers.fixtures import Call

ROOT = Path(__file__).parents[3]
SCENARIO = ROOT / "scenarios" / "bss-overtaking.scenario"
PROGRAM = "import sys; from antecede.cli import main; sys.exit(main())"


@pytest.mark.slow
def test_it_prints_its_address_answers_and_ends_by_ctrl_c() -> None:
    command = [sys.executable, "-c", PROGRAM, "play", str(SCENARIO), "--protocol", "none,ses"]
    with subprocess.Popen(
        [*command, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ) as running:
        try:
            assert running.stdout is not None
            said = running.stdout.readline()
            address = said.split()[2]
            assert said == f"Playground at {address} (Ctrl-C ends it)\n"
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{address}start", timeout=60) as answer:
                told = json.load(answer)
            assert told["text"] == SCENARIO.read_text("utf-8")
            assert told["protocols"] == ["unordered", "ses"]
            search = json.dumps(
                {"protocol": "matrix", "members": 4, "messages": 8, "thorough": True}
            ).encode()
            headers = {"Content-Type": "application/json"}
            asked = urllib.request.Request(f"{address}search", search, headers)
            with urllib.request.urlopen(asked, timeout=60) as answer:
                job = json.load(answer)["job"]
            states = 0
            while not states:  # it has begun: a signal would be seen
                time.sleep(0.05)
                with urllib.request.urlopen(f"{address}progress?job={job}", timeout=60) as answer:
                    told = json.load(answer)
                    assert not told["done"]
                    states = told["states"]
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does it: to the search, too
            _, complained = running.communicate(timeout=60)
        finally:
            running.kill()
        assert complained == "antecede: server stopped\n"
        assert running.returncode == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read masks in")
def test_already_the_first_process_never_sees_ctrl_c() -> None:
    program = (
        "from multiprocessing.connection import Connection\n"
        "from pathlib import Path\n"
        "from antecede.lab.play.sandbox_process import Worker\n"
        "worker = Worker(Connection.recv)  # waits for a message that never comes\n"
        "print(Path(f'/proc/{worker.process.pid}/status').read_text())\n"
        "worker.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    (blocked,) = (one for one in done.stdout.splitlines() if one.startswith("SigBlk:"))
    assert int(blocked.split()[1], 16) & 1 << (signal.SIGINT - 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port", "70000"], "--port 70000: expected 0 (any free port) to 65535"),
        (["--protocol", " , "], "--protocol: expected NAME,..."),
        (["--protocol", "bss loud=1"], "options are: differences"),
        (["nowhere.scenario"], "nowhere.scenario: cannot be read"),
        (["--exercise", "none"], "unknown exercise 'none'; choose from"),
        ([str(SCENARIO), "--exercise", "bss-example"], "omit SCENARIO"),
    ],
)
def test_what_cannot_be_is_refused_before_it_begins(
    words: list[str], says: str, refused: Call
) -> None:
    assert says in refused("play", *words, "--no-browser")


def test_a_file_that_is_no_script_is_refused(tmp_path: Path, refused: Call) -> None:
    file = tmp_path / "x.scenario"
    file.write_text("dance\n", encoding="utf-8")
    assert "x.scenario:1: unknown command 'dance'" in refused("play", str(file), "--no-browser")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "scenarios").glob("*.scenario")), ids=lambda path: path.stem
)
def test_it_begins_with_every_scenario(path: Path) -> None:
    opened = Opened(path.read_text("utf-8"), path)
    opened.try_protocols()
    assert opened.protocols == [own_name(load_scenario(path).setup)]


def test_it_needs_no_more_than_python() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from antecede.lab.play.server import Bench, Opened;"
        "from antecede.cli.protocols.play import run;"
        "site = Bench(Opened());"
        "told = site.post('run', b'{\"text\": \"protocol bss\\\\nmembers A B\\\\nsend A m\"}');"
        "print(told.status, site.get('start', {}).status, site.get('', {}).status,"
        "'numpy' in sys.modules, 'pyarrow' in sys.modules)"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(ROOT / "src")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout == "200 200 200 False False\n"
