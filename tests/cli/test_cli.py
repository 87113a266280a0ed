"""The command line: exit codes, help, errors without a traceback."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from antecede import __version__
from antecede.cli import COMMANDS, main
from antecede.errors import MissingExtraError
from tests.helpers.fixtures import Call, Capture, Patch

SRC = Path(__file__).resolve().parents[2] / "src"


def test_help_lists_every_command(said: Call) -> None:
    out = said()
    assert all(f"\n  {name} " in out for name in COMMANDS if name != "compile")
    assert "compile" not in out
    assert max(len(command.help) for command in COMMANDS.values()) < 60


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert COMMANDS[name].help[1:] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("explain x", "explain is now draw"),
        ("snapshot lai-yang", "snapshot is now check --snapshots"),
        ("view x --around 3", "--around is now --focus"),
        ("check bss --thorough", "--thorough is now --size large"),
        ("ask x past y --most=3", "--most is now --limit;"),
        ("view x --most=3", "--most is now --max-events;"),
    ],
)
def test_errors_for_old_names_contain_the_new_ones(call: str, hint: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(call.split())
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    ["protocols --around 3", "audit x --most=3", "check bss --size status", "audit x --study"],
)
def test_errors_have_no_hint_that_the_command_cannot_follow(call: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(call.split())
    assert "is now" not in capsys.readouterr().err


def test_version(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"antecede {__version__}\n"


def test_the_core_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from antecede import Group\n"
        "from antecede.cli import main\n"
        "from antecede.core.propagation import ContextPropagator\n"
        "import antecede.lab.diagram.trace_window, antecede.lab.play.server\n"
        "Group('a').send(b'x')\n"
        "ContextPropagator('s').make_headers()\n"
        "assert main(['check', 'fifo', '--members', '2', '--messages', '2']) == 0\n"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(SRC)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "PASS" in done.stdout


@pytest.mark.slow
def test_compile_fills_an_empty_cache(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antecede", "compile", "order"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"cached in {tmp_path}" in done.stdout
    compiled = {path.name.split(".")[0] for path in tmp_path.rglob("*.nbc")}
    assert "topological" in compiled
    assert not {"clocks", "graph", "pairs", "mesh", "hierarchy"} & compiled


def test_compile_of_a_part_that_is_not_there(refused: Call) -> None:
    assert "unknown part sream; choose from order, stream, audit" in refused(
        "compile", "demo", "sream"
    )


def test_compile_leaves_no_part_out() -> None:
    from antecede.cli import compile as command

    parts = {job for jobs in command.PARTS.values() for job in jobs}
    assert {id(job) for job in command._jobs([])} == {id(job) for job in parts}
    assert [job() for job in command._jobs(["order"])] == [None] * 3


def test_a_missing_extra_is_named(monkeypatch: Patch, capsys: Capture, refused: Call) -> None:
    real = importlib.import_module

    def without_pyarrow(name: str) -> object:
        if name == COMMANDS["audit"].module:
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without_pyarrow)
    assert "pip install 'antecede[trace]'" in refused("audit", "x")
    with pytest.raises(SystemExit) as ended:
        main(["audit", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    assert COMMANDS["audit"].help[1:] in said
    assert "pip install 'antecede[trace]'. This help lists the options once" in said
    with pytest.raises(MissingExtraError, match=r"pip install 'antecede\[trace\]'"):
        raise MissingExtraError("antecede audit", "trace")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("command", ["record", "demo"])
def test_an_impossible_time_to_talk(
    command: str, seconds: str, tmp_path: Path, refused: Call
) -> None:
    extra = ["--engine", "local"] if command == "demo" else []
    out = "out" if command == "demo" else "out.parquet"
    assert "expected a finite number above 0" in refused(
        command, "-o", str(tmp_path / out), f"--seconds={seconds}", *extra
    )


def test_where_no_recording_can_be_written_nobody_talks(
    tmp_path: Path, refused: Call, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(
        "antecede.cli.experiments.record.record", lambda *_, **__: pytest.fail("they talked")
    )
    assert "the folder does not exist" in refused(
        "record", "-o", str(tmp_path / "absent" / "r.parquet")
    )


def test_a_protocol_file_that_exits(tmp_path: Path, refused: Call) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import sys\nsys.exit(3)\n")
    assert f"{path}:2: does not run: SystemExit: 3" in refused("check", f"{path}:Mine")
