"""Which engine a command takes: by memory, and never one that cannot do it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from antecede.cli import engines
from antecede.cli.engines import LOCAL, SPARK, choose_engine, estimate_bytes
from antecede.errors import InputError
from antecede.tables.trace.reader import ReadOptions

GIGABYTE = 1 << 30


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [f"e{k}" for k in range(100_000)]}), path)
    return str(path)


def chosen(
    path: str, monkeypatch: pytest.MonkeyPatch, free: int | None, **given: str | None
) -> engines.Engine:
    monkeypatch.setattr(engines, "free_bytes", lambda: free)
    args = argparse.Namespace(**{"engine": "auto", "master": None, "given": given, **given})
    return choose_engine(args, [path], None, ReadOptions())


def test_memory_decides(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = estimate_bytes([table])
    assert needed is not None
    assert needed > 1_000_000
    assert chosen(table, monkeypatch, 2 * needed).name == LOCAL
    assert chosen(table, monkeypatch, needed).name == SPARK
    assert chosen(table, monkeypatch, None).name == LOCAL


def test_what_spark_cannot_do_stays_here_and_says_so(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.txt"
    log.write_text('a {"a": 1}\nhello\n')
    engine = chosen(str(log), monkeypatch, 10)
    assert engine.name == LOCAL
    assert "not on Spark: it reads tables only" in engine.why
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    engine = chosen(table, monkeypatch, 10)
    assert (engine.name, "pyspark is not installed" in engine.why) == (LOCAL, True)


def test_a_master_is_for_spark(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(table, monkeypatch, GIGABYTE, master="local[2]").name == SPARK
    with pytest.raises(InputError, match="--engine local runs in this process"):
        chosen(table, monkeypatch, GIGABYTE, engine="local", master="--master")


def test_a_repository_needs_memory_for_its_commits_alone(tmp_path: Path) -> None:
    """Findings T18: all files below it were summed, a sparse one of gigabytes among them."""
    folder = tmp_path / "repository"
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@x.invalid"]
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for number in range(3):
        words = ["commit", "-q", "--allow-empty", "-m", str(number)]
        subprocess.run([*git, *words], check=True)
    with (folder / "large.bin").open("wb") as file:
        file.truncate(6 * GIGABYTE)
    assert estimate_bytes([str(folder)]) == 3 * engines.A_COMMIT
    (folder / ".git" / "HEAD").write_text("damaged")
    assert estimate_bytes([str(folder)]) is None


def test_a_folder_needs_memory_for_the_files_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,after\na,\n")
    alone = estimate_bytes([str(tmp_path)])
    for hidden in (".venv", "_temporary"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "lib.csv").write_text("x" * 100_000)
    assert estimate_bytes([str(tmp_path)]) == alone == estimate_bytes([str(tmp_path / "*.csv")])
    assert estimate_bytes([str(tmp_path / "nothing")]) is None
    os.mkfifo(tmp_path / "pipe")
    assert estimate_bytes([str(tmp_path / "pipe")]) == 0
