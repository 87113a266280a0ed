"""A sweep leaves out of a setting what that has no use for, and says so; never what none uses."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.lab.reproductions.sweeps.sweep import read_sweep
from tests.helpers.fixtures import Call, Capture

FILE = """
[topology]
kind = "mesh"
peers = 3
[protocol]
name = "linear"
options = { heartbeat_s = 0.5 }
[workload]
recent = 3
[run]
duration_s = 0.5
"""
ANSWERS = "workload.answers=0,0.5"
DELIVERY = "options.delivery=null,bound"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "run.toml"
    found.write_text(FILE)
    return found


@pytest.mark.slow
def test_what_one_setting_has_no_use_for_is_said_and_the_sweep_runs(
    path: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    call = ["sweep", str(path), "--over", DELIVERY, "--over", ANSWERS, "-o", str(out)]
    assert main([*call, "--jobs", "1"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    heartbeat = (
        "protocol.options.heartbeat_s of the file is left out with options.delivery=bound: "
        "no effect without delivery=null or retry_s"
    )
    recent = "workload.recent of the file is left out with workload.answers=0: "
    assert heartbeat in told
    assert recent in told
    page = (out / "index.html").read_text(encoding="utf-8")
    assert heartbeat in page
    with (out / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["options.delivery"] for row in rows] == ["null", "null", "bound", "bound"]
    waits = {row["options.delivery"]: float(row["wait_ms.mean"]) for row in rows}
    assert waits["null"] != waits["bound"]


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ([ANSWERS, "options.delivery=bound"], "heartbeat_s: no setting of this sweep has a use"),
        ([DELIVERY], "workload.recent: no setting of this sweep has a use"),
        (["protocol=bss,idr", ANSWERS], "heartbeat_s: no setting of this sweep has a use"),
        ([DELIVERY, "options.heartbeat_s=1,2", ANSWERS], "heartbeat_s has no effect without"),
        ([DELIVERY, "options.nosuch=1", ANSWERS], "linear has no such option"),
    ],
)
def test_what_no_setting_uses_is_refused_and_so_is_a_swept_value_without_effect(
    path: Path, over: list[str], said: str, refused: Call, tmp_path: Path
) -> None:
    given = [part for one in over for part in ("--over", one)]
    assert said in refused("sweep", str(path), *given, "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_where_is_told_by_the_keys_that_tell_it(path: Path) -> None:
    of_protocols = read_sweep(path, ["protocol=linear,bss,idr", "workload.answers=0.5"], [1])
    assert of_protocols.left_out == (
        "protocol.options.heartbeat_s of the file is left out with protocol=bss or idr: bss has no "
        "such option; idr has no such option",
    )
    path.write_text(FILE.replace("recent = 3", "") + "[clocks]\nresync_s = 3\n")
    odd = read_sweep(path, ["options.delivery=null,bound", "clocks.drift_ppm=0,9",
                            "clocks.accuracy_s=1"], [1])  # fmt: skip
    words = [one.partition(": ")[0] for one in odd.left_out]
    assert words == [
        "clocks.resync_s of the file is left out with clocks.drift_ppm=0",
        "protocol.options.heartbeat_s of the file is left out with options.delivery=bound",
    ]
