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

from antecede.cli import main
from antecede.errors import InputError
from antecede.lab.report.model import Section
from antecede.lab.reproductions.framework.code_digest import code_digest, modules_of
from antecede.lab.reproductions.framework.execute import outcome, run_locally
from antecede.lab.reproductions.framework.local_runner import Processes
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.store import opened
from antecede.lab.reproductions.framework.summary import read_summary
from antecede.lab.reproductions.sweeps.findings import interval
from antecede.lab.reproductions.sweeps.sweep import axis, read_sweep, sweep_study
from tests.helpers.fixtures import Capture, Patch
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
OWN = """
from antecede.core.protocols.vector.bss import Bss


class Mine(Bss):
    '''BSS under another name.'''
"""


def scenario(folder: Path, protocol: str = "bss") -> Path:
    path = folder / "run.toml"
    path.write_text(FILE.format(protocol=protocol))
    return path


def sweep(path: Path, folder: Path, *more: str) -> int:
    return main(["sweep", str(path), "-o", str(folder), "--jobs", "1", *more])


@pytest.fixture(autouse=True)
def in_process(monkeypatch: Patch) -> None:
    """Carry runs out here: starting workers takes longer than all runs of these tests."""
    monkeypatch.setattr(Processes, "__call__", lambda _, study, runs: run_locally(study, runs))


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
    assert axis(text) == (key, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("members", "write KEY=VALUES"),
        ("members=", "write KEY=VALUES"),
        ("members=9..5", "write the smaller number first"),
        ("members=5,5", "5 stands there twice"),
        ("members=1..5,3", "3 stands there twice"),
        ("members=1..9999999", "more than 100,000 values"),
    ],
)
def test_what_is_no_axis(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        axis(text)


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
    tmp_path: Path, capsys: Capture, over: Sequence[str], message: str
) -> None:
    given = [part for text in over for part in ("--over", text)]
    assert sweep(scenario(tmp_path), tmp_path / "out", *given) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_table_csv_and_page(tmp_path: Path, capsys: Capture) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    over = ["--over", "protocol=bss,unordered", "--over", "members=3,6", "--seeds", "3"]
    assert sweep(path, folder, *over) == 0
    out = capsys.readouterr().out
    assert "runs        12 in " in out
    rows = list(csv.DictReader((folder / "sweep.csv").read_text().splitlines()))
    assert [(row["protocol"], row["members"], row["seeds"]) for row in rows] == [
        (protocol, members, "3") for protocol in ("bss", "unordered") for members in ("3", "6")
    ]
    for row in rows:
        if row["protocol"] == "bss":
            assert float(row["peer.overhead_bytes"]) == 4 * int(row["members"])
            assert float(row["early.by_delivery"]) == 0
            low, mean, high = (float(row[f"wait_ms.mean{end}"]) for end in (".low", "", ".high"))
            assert low < mean < high
    assert float(rows[3]["early.by_delivery"]) > 0 == float(rows[3]["violations"])
    found = read_summary(folder / "summary.json")
    assert "sweep.csv" in out
    assert [len(section.table) for section in found.sections] == [4, 0]
    plots = {plot.key for section in found.sections for plot in section.plots}
    assert {"sweep-overhead", "sweep-wait", "sweep-early-delivery"} <= plots
    for key in plots:
        assert (folder / "figures" / f"{key}.svg").is_file()
        assert (folder / "figures" / f"{key}.png").is_file()
    assert (
        "antecede sweep run.toml --over &#39;protocol=bss,unordered&#39;"
        in (folder / "index.html").read_text()
    )
    table(found.sections[0])


def table(section: Section) -> None:
    """What comes too early stands beside what is held back."""
    heads = " ".join(section.columns)
    assert heads.index("wait") < heads.index("before a cause") < heads.index("own promise")


@pytest.mark.slow
def test_what_is_there_is_not_run_again(tmp_path: Path, capsys: Capture) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    assert sweep(path, folder, "--over", "members=3,4") == 0
    capsys.readouterr()
    assert sweep(path, folder, "--over", "members=3..5") == 0
    assert "runs        1 in " in (out := capsys.readouterr().out)
    assert ", 2 were there before" in out
    path.write_text(path.read_text().replace("50-250", "50-200"))
    assert sweep(path, folder, "--over", "members=3..5") == 0
    assert "runs        3 in " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("over", "seeds", "said"),
    [
        ("members=5,6", "2", "with members=3 seed 1 and 3 more runs that this one does not have"),
        ("members=3", "2", "with members=4 seed 1 and 1 more run that"),
        ("members=3,4", "1", "with members=3 seed 2 and 1 more run that"),
        ("protocol=bss,idr", "2", "with members=3 seed 1"),
    ],
)
def test_another_grid_does_not_replace_table_and_page(
    tmp_path: Path, capsys: Capture, over: str, seeds: str, said: str
) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    assert sweep(path, folder, "--over", "members=3,4", "--seeds", "2") == 0
    names = ("sweep.csv", "index.html", "summary.json")
    before = [(folder / name).read_bytes() for name in names]
    assert sweep(path, folder, "--over", over, "--seeds", seeds) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "name another folder or give --force" in told
    assert [(folder / name).read_bytes() for name in names] == before
    assert sweep(path, folder, "--over", "members=4,3", "--seeds", "3") == 0  # nothing is lost
    assert sweep(path, folder, "--over", over, "--seeds", seeds, "--force") == 0
    assert (folder / "sweep.csv").read_bytes() != before[0]


def test_another_file_does_not_replace_table_and_page(tmp_path: Path, capsys: Capture) -> None:
    path, folder = scenario(tmp_path), tmp_path / "out"
    other = tmp_path / "other.toml"
    other.write_text(path.read_text())
    assert sweep(path, folder, "--over", "members=3") == 0
    assert sweep(other, folder, "--over", "members=3") == 2
    assert "it was made from scenario file run.toml" in capsys.readouterr().err
    assert sweep(other, folder, "--over", "members=3", "--fresh") == 0
    own = tmp_path / "own"
    own.mkdir()
    (own / "sweep.csv").write_text("mine")
    assert sweep(path, own, "--over", "members=3") == 2
    assert (own / "sweep.csv").read_text() == "mine"


@pytest.mark.slow
def test_a_protocol_of_ones_own_and_its_changes(tmp_path: Path, capsys: Capture) -> None:
    """Results of one's own file go stale when it changes, and only then."""
    own = tmp_path / "mine.py"
    own.write_text(OWN)
    path, folder = scenario(tmp_path, "mine.py:Mine"), tmp_path / "out"
    for edit, runs in ((None, 2), (None, 0), ("    x = 1\n", 2)):
        if edit:
            own.write_text(OWN + edit)
        assert sweep(path, folder, "--over", "members=3,4") == 0
        assert f"runs        {runs} in " in capsys.readouterr().out
    assert str(tmp_path) not in (folder / "index.html").read_text()


def test_a_file_that_changes_under_way_fails_its_runs(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(OWN)
    study = sweep_study(read_sweep(scenario(tmp_path, "mine.py:Mine"), ["members=3"], [1]))
    (run,) = study.runs(False)
    own.write_text(OWN + "    x = 1\n")
    reason: Any = outcome(run, study.execute).column("reason")
    assert "has changed since the runs were listed" in reason[0].as_py()


def test_an_interval_is_students() -> None:
    assert list(interval([0.0, 1.0, 2.0]) or ()) == pytest.approx([1.0, 4.303 / 3**0.5])
    assert interval([5.0]) == (5.0, None)
    assert interval([]) is None


def test_an_interval_in_the_table_ends_at_0(tmp_path: Path) -> None:
    """Waits of two short runs differ so much that mean less half of the interval is below 0."""
    path, folder = scenario(tmp_path), tmp_path / "out"
    assert sweep(path, folder, "--over", "members=3", "--seeds", "2") == 0
    (row,) = csv.DictReader((folder / "sweep.csv").read_text().splitlines())
    lows = [name for name in row if name.endswith(".low") and row[name]]
    cut = []
    for low in lows:
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
        assert "the same command goes on from there" in said
        assert "Traceback" not in said
    study = sweep_study(read_sweep(path, ["members=3..60"], range(1, 21)))
    with opened(folder, code_digest(modules_of(study))) as store:
        assert 3 <= len(store.done(study.runs(False))) < 58 * 20
        assert not store.unreadable
