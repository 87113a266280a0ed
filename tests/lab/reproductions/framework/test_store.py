"""Results appear whole, are kept by what made them, and survive whatever happens to the writer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.errors import InputError
from antecede.lab.reproductions.framework import store as store_module
from antecede.lab.reproductions.framework.execute import execute_run
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.store import SCHEMA, Store, open_store
from tests.lab.reproductions import toy

RUNS = toy.sums()


def append(store: Store, *runs: Run) -> None:
    made: Any = [execute_run(run, toy.execute) for run in runs]
    store.append(pa.Table.from_batches(made), {run.key: run for run in runs})


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def keys(store: Store) -> list[str]:
    return [run.key for run in store.find_done(RUNS)]


def test_what_was_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, RUNS[0], RUNS[3])
        append(store, RUNS[1])
        before = store.collect_rows(RUNS)
    with open_store(tmp_path, "c") as store:
        assert keys(store) == [run.key for run in (RUNS[0], RUNS[1], RUNS[3])]
        assert store.collect_rows(RUNS).equals(before)
        append(store, RUNS[2])  # does not overwrite a file that is there
    with open_store(tmp_path, "c") as store:
        assert len(keys(store)) == 4


def test_a_finished_study_is_one_file_in_the_order_of_its_runs(tmp_path: Path) -> None:
    with open_store(tmp_path, "c") as store:
        for run in reversed(RUNS):
            append(store, run)
        store.finish(RUNS)
    assert names(tmp_path) == [".lock", "results/results.parquet"]
    table: Any = pq.read_table(tmp_path / "results" / "results.parquet")
    assert table.schema.equals(SCHEMA)
    assert list(dict.fromkeys(table["run"].to_pylist())) == [run.key for run in RUNS]
    first = table.to_pylist()[0]
    assert json.loads(first["task"]) == RUNS[0].task
    assert (first["kind"], first["seed"]) == ("sum", 1)


def test_other_grids_are_kept_aside_and_found_again(tmp_path: Path) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, *RUNS)
        store.finish(RUNS[:2])
    assert names(tmp_path) == [".lock", "earlier/earlier.parquet", "results/results.parquet"]
    table: Any = pq.read_table(tmp_path / "results" / "results.parquet")
    assert table["run"].unique().to_pylist() == [run.key for run in RUNS[:2]]
    with open_store(tmp_path, "c") as store:
        assert keys(store) == [run.key for run in RUNS]
        store.finish(RUNS)
    assert names(tmp_path) == [".lock", "results/results.parquet"]


def test_a_run_under_another_key_is_the_same_run(tmp_path: Path) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, RUNS[0])
        renamed = RUNS[0]._replace(key="new")
        assert store.find_done([renamed]) == [renamed]
        assert set(store.collect_rows([renamed]).column("run").to_pylist()) == {"new"}


def test_results_of_other_code_are_not_taken(tmp_path: Path) -> None:
    with open_store(tmp_path, "old") as store:
        append(store, RUNS[0], RUNS[1])
    with open_store(tmp_path, "new") as store:
        assert keys(store) == []
        assert store.stale == {RUNS[0].digest(), RUNS[1].digest()}
        append(store, RUNS[1])
    with open_store(tmp_path, "new", any_code=True) as store:
        assert len(keys(store)) == 2
    with open_store(tmp_path, "new") as store:
        assert keys(store) == [RUNS[1].key]
        assert store.stale == {RUNS[0].digest()}
        store.finish(RUNS)
    with open_store(tmp_path, "new") as store:
        assert store.stale == set()


def test_a_kill_while_a_part_is_written_leaves_the_parts_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(table: Any, file: Any, compression: str) -> None:
        file.write(b"PAR1 and no more")
        raise KeyboardInterrupt

    with open_store(tmp_path, "c") as store:
        append(store, RUNS[0])
        with monkeypatch.context() as patched:
            patched.setattr(store_module.pq, "write_table", torn)
            with pytest.raises(KeyboardInterrupt):
                append(store, RUNS[1])
    assert any(name.endswith(".draft") for name in names(tmp_path))
    with open_store(tmp_path, "c") as store:
        assert keys(store) == [RUNS[0].key]
        assert store.unreadable == []
    assert names(tmp_path) == [".lock", "results/part-000000.parquet"]


@pytest.mark.parametrize("writes", [0, 1])
def test_a_kill_while_the_study_is_finished_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, *RUNS)
        whole = store.collect_rows(RUNS)
        real, left = store_module._write_file, iter(range(writes))

        def write(table: Any, path: Path) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            real(table, path)

        with monkeypatch.context() as patched:
            patched.setattr(store_module, "_write_file", write)
            with pytest.raises(KeyboardInterrupt):
                store.finish(RUNS[:2])
    with open_store(tmp_path, "c") as store:
        assert store.collect_rows(RUNS).equals(whole)


@pytest.mark.parametrize("content", [b"", b"PAR1 torn", None])
def test_a_file_that_cannot_be_read_is_set_aside_and_the_others_count(
    tmp_path: Path, content: bytes | None
) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, RUNS[0])
    bad = tmp_path / "results" / "part-000007.parquet"
    if content is None:
        pq.write_table(pa.table({"other": [1]}), bad)
    else:
        bad.write_bytes(content)
    with open_store(tmp_path, "c") as store:
        assert keys(store) == [RUNS[0].key]
        assert store.unreadable == [bad.with_name("part-000007.parquet.unreadable")]
    assert not bad.exists()


def test_a_file_whose_inside_was_damaged_is_set_aside(tmp_path: Path) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, *RUNS)
        append(store, RUNS[0])
    bad = tmp_path / "results" / "part-000000.parquet"
    content = bytearray(bad.read_bytes())
    content[4:200] = bytes(196)
    bad.write_bytes(content)
    with open_store(tmp_path, "c") as store:
        assert store.unreadable == [bad.with_name(f"{bad.name}.unreadable")]
        assert keys(store) == [RUNS[0].key]


def test_fresh_forgets_everything(tmp_path: Path) -> None:
    with open_store(tmp_path, "c") as store:
        append(store, *RUNS)
        store.finish(RUNS[:2])
    (tmp_path / "notes.txt").write_text("mine")
    with open_store(tmp_path, "c", fresh=True) as store:
        assert keys(store) == []
    assert names(tmp_path) == [".lock", "notes.txt"]


@pytest.mark.slow
def test_one_writer_at_a_time(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from antecede.lab.reproductions.framework.store import open_store\n"
        "with open_store(Path(sys.argv[1]), 'c'): pass"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with open_store(tmp_path, "c"):
        other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "another command is writing here" in other.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match=r"file: cannot write results here"),
        open_store(tmp_path / "file", "c"),
    ):
        pass
