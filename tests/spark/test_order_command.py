from __future__ import annotations

import argparse
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from antecede.cli.traces import order
from antecede.tables.trace.arrow import write_events
from antecede.tables.trace.schema import Event
from tests.tables.order.reference import random_rows


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    order.add_arguments(parser)
    return order.run(parser.parse_args([str(word) for word in words]))


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_both_engines_write_the_same(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: int
) -> None:
    events = [
        Event(
            run=None if runs == 1 else f"run {k}",
            id=row.id,
            member="m",
            parents=tuple(p for p in row.after if p is not None),
            arrival=row.time,
            text=str(row.after),
        )
        for k in range(runs)
        for row in random_rows(k, 120, backward=0.03)
    ]
    circle = (("x", "y"), ("y", "x"))
    events += [Event(run=events[0].run, id=a, member="m", parents=(b,)) for a, b in circle]
    random.Random(1).shuffle(events)
    write_events(events, tmp_path / "trace.parquet")
    for engine in ("local", "spark"):
        out = tmp_path / f"{engine}.parquet"
        run(tmp_path / "trace.parquet", "-o", out, "--engine", engine)
        assert f"engine      {engine} (as asked)" in capsys.readouterr().out
    for name in ("{}.parquet", "{}.quarantine.parquet"):
        local, spark_made = (
            pq.read_table(str(tmp_path / name.format(e))) for e in ("local", "spark")
        )
        assert local.num_rows > 0
        assert spark_made.schema.equals(local.schema)
        assert spark_made.equals(local)
