"""`antecede sweep`: a scenario file over a grid of its keys."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.lab.reproductions.framework.code_digest import code_digest, collect_modules
from antecede.lab.reproductions.framework.execute import execute_run, run_locally
from antecede.lab.reproductions.framework.local_runner import Processes
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.store import open_store
from antecede.lab.reproductions.framework.summary import read_summary
from antecede.lab.reproductions.sweeps.findings import compute_interval
from antecede.lab.reproductions.sweeps.sweep import parse_axis, read_sweep, sweep_study
from tests.helpers.fixtures import Call, Patch
from tests.lab.reproductions import toy

FILE = """
[topology]
kind = "mesh"
peers = 4
[protocol]
name = "{protocol}"
[links]
delay = "50-250 ms"
[run]
duration_s = 1
warm_s = 0.2
"""
IDLE = """
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
REPLIES, DELIVERY = "workload.reply_fraction=0,0.5", "options.delivery=null,bound"
OWN = """
from antecede.core.protocols.vector.bss import Bss


class Mine(Bss):
    '''BSS under another name.'''
"""


def scenario(folder: Path, protocol: str = "bss") -> Path:
    path = folder / "run.toml"
    path.write_text(FILE.format(protocol=protocol))
    return path


def call(path: Path, folder: Path, *over: str, more: str = "") -> list[str]:
    """Return the words of a sweep."""
    given = [part for text in over for part in ("--over", text)]
    return ["sweep", str(path), "-o", str(folder), "--jobs", "1", *given, *more.split()]


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "sweep.csv").read_text().splitlines()))


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carry runs out here: starting workers takes longer than all runs of these tests."""
    monkeypatch.setattr(Processes, "__call__", lambda _, study, runs: run_locally(study, runs))


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """A scenario file with keys that some settings do not use."""
    path = tmp_path / "idle.toml"
    path.write_text(IDLE)
    return path


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("options.r=5..8", "options.r", (5, 6, 7, 8)),
        ("options.r=5..30..10", "options.r", (5, 15, 25)),
        ("members=10,30", "members", (10, 30)),
        ("links.loss=0,0.01", "links.loss", (0, 0.01)),
        ("links.delay=0-50 ms,50-250 ms", "links.delay", ("0-50 ms", "50-250 ms")),
        ("topology.groups=[5, 5],[10]", "topology.groups", ([5, 5], [10])),
        ("protocol=bss,sb/several", "protocol", ("bss", "sb/several")),
        ("options.heartbeat_s=none,0.5", "options.heartbeat_s", (None, 0.5)),
        ("links.fifo=true,false", "links.fifo", (True, False)),
        ("x=-2..0", "x", (-2, -1, 0)),
    ],
)
def test_an_axis(text: str, key: str, values: Sequence[Any]) -> None:
    assert parse_axis(text) == (key, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("members", "expected KEY=VALUES"),
        ("members=", "expected KEY=VALUES"),
        ("members=9..5", "write the smaller number first"),
        ("members=5,5", "duplicate value 5"),
        ("members=1..5,3", "duplicate value 3"),
        ("members=1..9999999", "more than 100,000 values"),
    ],
)
def test_what_is_no_axis(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_axis(text)


@pytest.mark.parametrize(
    ("over", "message"),
    [
        (["members=4", "members=5"], "--over members: given twice"),
        (["membrs=4"], "membrs"),
        (["members=4,0"], "(with members=0)"),
        (["options.nosuch=1"], "nosuch"),
        (["protocol=bss,nosuch"], "nosuch"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(
    tmp_path: Path, refused: Call, over: Sequence[str], message: str
) -> None:
    assert message in refused(*call(scenario(tmp_path), tmp_path / "out", *over))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("over", "message"),
    [
        (
            [REPLIES, "options.delivery=bound"],
            "heartbeat_s: no effect in any setting of this sweep",
        ),
        ([DELIVERY], "workload.recent: no effect in any setting of this sweep"),
        (["protocol=bss,idr", REPLIES], "heartbeat_s: no effect in any setting of this sweep"),
        ([DELIVERY, "options.heartbeat_s=1,2", REPLIES], "heartbeat_s has no effect without"),
        ([DELIVERY, "options.nosuch=1", REPLIES], "unknown option of linear"),
    ],
)
def test_what_no_setting_uses_is_refused_and_so_is_a_swept_value_without_effect(
    idle: Path, tmp_path: Path, refused: Call, over: list[str], message: str
) -> None:
    assert message in refused(*call(idle, tmp_path / "out", *over))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_what_one_setting_has_no_use_for_is_said_and_the_sweep_runs(
    idle: Path, tmp_path: Path, said: Call
) -> None:
    out = tmp_path / "out"
    told = " ".join(said(*call(idle, out, DELIVERY, REPLIES)).split())
    heartbeat = (
        "protocol.options.heartbeat_s of the file is not used with options.delivery=bound: "
        "no effect without delivery=null or retry_s"
    )
    assert heartbeat in told
    assert "workload.recent of the file is not used with workload.reply_fraction=0: " in told
    assert heartbeat in (out / "index.html").read_text(encoding="utf-8")
    rows = rows_of(out)
    assert [row["options.delivery"] for row in rows] == ["null", "null", "bound", "bound"]
    waits = {row["options.delivery"]: float(row["wait_ms.mean"]) for row in rows}
    assert waits["null"] != waits["bound"]


def test_where_a_key_is_left_out_is_told_by_the_keys_that_tell_it(idle: Path) -> None:
    of_protocols = read_sweep(idle, ["protocol=linear,bss,idr", "workload.reply_fraction=0.5"], [1])
    assert of_protocols.left_out == (
        "protocol.options.heartbeat_s of the file is not used with protocol=bss or idr: unknown "
        "option of bss; unknown option of idr",
    )
    idle.write_text(IDLE.replace("recent = 3", "") + "[clocks]\nresync_s = 3\n")
    odd = read_sweep(idle, [DELIVERY, "clocks.drift_ppm=0,9", "clocks.accuracy_s=1"], [1])
    assert [one.partition(": ")[0] for one in odd.left_out] == [
        "clocks.resync_s of the file is not used with clocks.drift_ppm=0",
        "protocol.options.heartbeat_s of the file is not used with options.delivery=bound",
    ]


@pytest.mark.slow
def test_table_csv_and_page(tmp_path: Path, said: Call) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    out = said(*call(path, folder, "protocol=bss,unordered", "members=3,6", more="--seeds 3"))
    assert "runs        12 in " in out
    assert "sweep.csv" in out
    rows = rows_of(folder)
    assert [(row["protocol"], row["members"], row["seeds"]) for row in rows] == [
        (protocol, members, "3") for protocol in ("bss", "unordered") for members in ("3", "6")
    ]
    for row in rows[:2]:
        assert float(row["peer.control_bytes"]) == 4 * int(row["members"])
        assert float(row["violations.by_delivery"]) == 0
        low, mean, high = (float(row[f"wait_ms.mean{end}"]) for end in (".low", "", ".high"))
        assert low < mean < high
    assert float(rows[3]["violations.by_delivery"]) > 0 == float(rows[3]["promise_violations"])
    sections = read_summary(folder / "summary.json").sections
    assert [len(section.table) for section in sections] == [4, 0]
    plots = {plot.key for section in sections for plot in section.plots}
    assert {"sweep-overhead", "sweep-wait", "sweep-violations-by-delivery"} <= plots
    files = {path.name for path in (folder / "figures").iterdir()}
    assert files == {f"{key}.{ending}" for key in plots for ending in ("svg", "png")}
    page = (folder / "index.html").read_text()
    assert "antecede sweep run.toml --over &#39;protocol=bss,unordered&#39;" in page
    heads = " ".join(sections[0].columns)  # what comes too early stands beside what is held back
    assert heads.index("wait") < heads.index("violations (by") < heads.index("promise violations")


@pytest.mark.slow
def test_what_is_there_is_not_run_again(tmp_path: Path, said: Call) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    said(*call(path, folder, "members=3,4"))
    out = said(*call(path, folder, "members=3..5"))
    assert "runs        1 in " in out
    assert ", 2 from the cache" in out
    path.write_text(path.read_text().replace("50-250", "50-200"))
    assert "runs        3 in " in said(*call(path, folder, "members=3..5"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("over", "seeds", "message"),
    [
        ("members=5,6", "2", "with members=3 seed 1 and 3 more runs that this one does not have"),
        ("members=3", "2", "with members=4 seed 1 and 1 more run that"),
        ("members=3,4", "1", "with members=3 seed 2 and 1 more run that"),
        ("protocol=bss,idr", "2", "with members=3 seed 1"),
    ],
)
def test_another_grid_does_not_replace_table_and_page(
    tmp_path: Path, said: Call, refused: Call, over: str, seeds: str, message: str
) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    said(*call(path, folder, "members=3,4", more="--seeds 2"))
    names = ("sweep.csv", "index.html", "summary.json")
    before = [(folder / name).read_bytes() for name in names]
    told = refused(*call(path, folder, over, more=f"--seeds {seeds}"))
    assert message in told
    assert "name another folder or use --force" in told
    assert [(folder / name).read_bytes() for name in names] == before
    said(*call(path, folder, "members=4,3", more="--seeds 3"))  # nothing is lost
    said(*call(path, folder, over, more=f"--seeds {seeds} --force"))
    assert (folder / "sweep.csv").read_bytes() != before[0]


def test_another_file_does_not_replace_table_and_page(
    tmp_path: Path, said: Call, refused: Call
) -> None:
    path, folder, own = scenario(tmp_path), tmp_path / "out", tmp_path / "own"
    other = tmp_path / "other.toml"
    other.write_text(path.read_text())
    said(*call(path, folder, "members=3"))
    told = refused(*call(other, folder, "members=3"))
    assert "made from configuration file run.toml" in told
    said(*call(other, folder, "members=3", more="--no-cache"))
    own.mkdir()
    (own / "sweep.csv").write_text("mine")
    refused(*call(path, own, "members=3"))
    assert (own / "sweep.csv").read_text() == "mine"


@pytest.mark.slow
def test_results_of_ones_own_protocol_go_stale_when_its_file_changes(
    tmp_path: Path, said: Call
) -> None:
    own = tmp_path / "mine.py"
    path, folder = scenario(tmp_path, "mine.py:Mine"), tmp_path / "out"
    for text, runs in ((OWN, 2), (OWN, 0), (OWN + "    x = 1\n", 2)):
        own.write_text(text)
        assert f"runs        {runs} in " in said(*call(path, folder, "members=3,4"))
    assert str(tmp_path) not in (folder / "index.html").read_text()


def test_a_file_that_changes_under_way_fails_its_runs(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(OWN)
    study = sweep_study(read_sweep(scenario(tmp_path, "mine.py:Mine"), ["members=3"], [1]))
    (run,) = study.runs(False)
    own.write_text(OWN + "    x = 1\n")
    reason: Any = execute_run(run, study.execute).column("reason")
    assert "has changed since the runs were listed" in reason[0].as_py()


def test_an_interval_is_students() -> None:
    assert list(compute_interval([0.0, 1.0, 2.0]) or ()) == pytest.approx([1.0, 4.303 / 3**0.5])
    assert compute_interval([5.0]) == (5.0, None)
    assert compute_interval([]) is None


def test_an_interval_in_the_table_ends_at_0(tmp_path: Path, said: Call) -> None:
    folder = tmp_path / "out"
    said(*call(scenario(tmp_path), folder, "members=3", more="--seeds 2"))
    (row,) = rows_of(folder)
    cut = []
    for low in (name for name in row if name.endswith(".low") and row[name]):
        name = low.removesuffix(".low")
        mean, high = float(row[name]), float(row[f"{name}.high"])
        assert 0 <= float(row[low]) <= mean <= high, name
        cut += [name] if 2 * mean < high else []
        assert float(row[low]) == pytest.approx(max(0, 2 * mean - high), abs=1e-9 * high), name
    assert cut  # else this shows nothing


@pytest.mark.slow
def test_processes_report_the_run_whose_worker_dies(monkeypatch: Patch) -> None:
    monkeypatch.undo()
    runs = [*toy.sums(steps=[10], seeds=[1, 2]), Run("dies", 3, 9.0, "die")]
    found = [
        row
        for table in Processes(2)(toy.STUDY, runs)
        for row in zip(table["run"].to_pylist(), table["reason"].to_pylist(), strict=True)
    ]
    assert {key for key, reason in found if reason is None} == {run.key for run in runs[:2]}
    assert [(key, reason) for key, reason in found if reason] == [
        ("dies", "the worker died twice (out of memory, or killed)")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_it_goes_on_where_it_was_stopped(tmp_path: Path, how: signal.Signals) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "antecede", "sweep", str(path), "-o", str(folder)]
    command += ["--over", "members=3..60", "--seeds", "20", "--jobs", "1"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while len(list(folder.glob("results/part-*.parquet"))) < 3:
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    child.send_signal(how)
    _, said = child.communicate(timeout=60)
    assert child.returncode == (-how if how == signal.SIGKILL else 130)
    if how == signal.SIGINT:
        assert "the same command continues" in said
        assert "Traceback" not in said
    study = sweep_study(read_sweep(path, ["members=3..60"], range(1, 21)))
    with open_store(folder, code_digest(collect_modules(study))) as store:
        assert 3 <= len(store.find_done(study.runs(False))) < 58 * 20
        assert not store.unreadable
