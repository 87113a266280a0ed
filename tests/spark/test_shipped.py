"""Cluster of several JVMs whose Python lacks antecede, which is shipped."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from antecede.tables.order.replay.table import deliver_table
from antecede.tables.order.table import order_table
from tests.spark.parts import write_parts
from tests.spark.shipped_child import DELIVER, SPEC
from tests.spark.standalone import copy_package, run_cluster
from tests.spark.test_stream import check_as_batch, make_history, split_rows
from tests.tables.order.logs import ended, many_groups

DEADLINE_S = 900


def bare_python(folder: Path) -> Path:
    """Create an environment with everything but antecede; return its Python."""
    made = folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    python = made / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    said = subprocess.run([python, "-I", "-c", ask], check=True, capture_output=True, text=True)
    site = Path(said.stdout.strip())
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        own = "antecede" in entry.name or entry.suffix == ".pth"  # .pth: an editable install
        if not own and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    return python


@pytest.mark.soak
def test_order_and_deliver_on_workers_that_get_antecede_by_the_session(tmp_path: Path) -> None:
    table, log = make_history(200, seed=12), ended(many_groups(DELIVER, lost=0.02))
    for name, parts in (("in", split_rows(table, 3)), ("logs", [log])):
        write_parts(tmp_path / name, parts)
    copy, shipped = copy_package(tmp_path)
    python = bare_python(tmp_path)
    child = Path(__file__).with_name("shipped_child.py")
    with run_cluster(tmp_path) as made, (tmp_path / "log").open("wb") as told:
        done = subprocess.run(
            [sys.executable, child, tmp_path, made.master, python, shipped],
            env={**os.environ, "PYTHONPATH": str(copy)},
            cwd=copy,
            stdout=told,
            stderr=told,
            timeout=DEADLINE_S,
        )
    assert done.returncode == 0, (tmp_path / "log").read_text(errors="replace")[-6000:]
    assert set((tmp_path / "said").read_text().splitlines()) == {"No module named 'antecede'"}

    want = order_table(table, SPEC)
    batch = pq.read_table(tmp_path / "batch.parquet")
    assert sorted(map(repr, batch.to_pylist())) == sorted(map(repr, want.to_pylist()))
    check_as_batch(pq.read_table(tmp_path / "stream.parquet"), table, SPEC)
    delivered = pq.read_table(tmp_path / "deliver.parquet").to_pylist()
    assert sorted(map(repr, delivered)) == sorted(
        map(repr, deliver_table(log, DELIVER).to_pylist())
    )
