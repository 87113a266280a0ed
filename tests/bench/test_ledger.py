"""Ledger of benchmarks: ratios in turns, compared with earlier ones of the same processor."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import ledger, operations, replay_rate
from bench.ledger import Comparison, LedgerEntry, Work

ENTRY = LedgerEntry("a / b", 2.0, 1.9, 2.1, "c0ffee", "2026-11-28", 2, "a model", 0.1, "3.11.7")


def make_fixed(*seconds: float, units: float = 1.0) -> Comparison:
    """Return an operation whose runs take these times, with a reference of one second."""
    left = iter(seconds)
    return Comparison(
        "a / b", lambda: Work(units, next(left)), lambda: Work(1.0, 1.0), rounds=len(seconds) - 1
    )


def test_a_ratio_is_the_median_of_rounds_after_one_that_does_not_count() -> None:
    found = ledger.measure(make_fixed(99.0, 2.0, 3.0, 8.0))
    assert (found.ratio, found.least, found.most) == (3.0, 2.0, 8.0)
    assert ledger.measure(make_fixed(1.0, 3.0, units=1000.0)).ratio == 0.003
    assert found.commit.rstrip("+").isalnum()
    assert found.cpu


def test_both_run_in_turns() -> None:
    ran = []

    def run(name: str) -> Work:
        ran.append(name)
        return Work(1.0, 1.0)

    Comparison("x", lambda: run("ours"), lambda: run("theirs"), rounds=2).measure_ratios()
    assert ran == ["theirs", "ours"] * 3


def test_rows_are_appended_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ledger.jsonl"
    assert ledger.read(path) == []
    found = ledger.run([make_fixed(1.0, 2.0)], path)
    assert ledger.read(path) == found
    ledger.run([make_fixed(1.0, 4.0)], path)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split() == ["a", "/", "b", "4", "4", "to", "4", "2", "2", "LOSS", "100%"]
    assert [entry.ratio for entry in ledger.read(path)] == [2.0, 4.0]
    path.write_text(path.read_text() + '{"name": "x"}\n')
    with pytest.raises(ValueError, match=r"ledger\.jsonl, line 3: "):
        ledger.read(path)


def test_ratios_stand_beside_those_of_the_same_processor() -> None:
    earlier = [
        ENTRY._replace(ratio=1.0, cpu="another"),
        ENTRY._replace(ratio=1.95),
        ENTRY._replace(ratio=2.5),
        ENTRY._replace(ratio=0.5, name="c / d"),
        ENTRY._replace(ratio=0.5, cores=64),
    ]
    assert ledger.format_row(ENTRY, earlier) == ("a / b", "2", "1.9 to 2.1", "2.5", "1.95", "")
    assert ledger.format_row(ENTRY._replace(ratio=2.2), earlier)[-1] == "LOSS 13%"
    assert ledger.format_row(ENTRY, []) == ("a / b", "2", "1.9 to 2.1", "-", "-", "")


def test_processor_time_is_that_of_all_descendants() -> None:
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    before = ledger.read_cpu_s()
    child = subprocess.Popen([sys.executable, "-c", f"{burn}\ninput()"], stdin=subprocess.PIPE)
    end = time.monotonic() + 20
    while ledger.read_cpu_s() - before < 0.3 and time.monotonic() < end:
        time.sleep(0.05)
    assert ledger.read_cpu_s() - before >= 0.3
    child.communicate(b"\n")
    assert ledger.read_cpu_s() - before >= 0.3


def test_the_command_chooses_operations(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [make_fixed(1.0, 2.0), make_fixed(1.0, 3.0)._replace(name="other")]
    monkeypatch.setattr(operations, "make_comparisons", lambda: iter(named))
    bench.main(["--only", "other", "--keep"])
    assert capsys.readouterr().out.splitlines()[0].startswith("other: 3 (")
    with pytest.raises(SystemExit):
        bench.main(["--only", "nothing", "--keep"])
    assert "no operation name contains 'nothing'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_operations_of_tables_and_groups_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "ROWS", 600)
    monkeypatch.setattr(replay_rate, "GROUPS", 1)
    monkeypatch.setattr(operations, "MEASURED_S", 0.01)
    names = []
    for comparison in operations.compare_tables():
        assert comparison._replace(rounds=1).measure_ratios()[0] > 0
        names.append(comparison.name)
    assert len(set(names)) == len(names) == 6
