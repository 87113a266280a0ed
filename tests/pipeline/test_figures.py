"""Drawings and texts of the page, from synthetic rows."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antecede.tables.order.baselines import BaselineOutcome
from pipeline.figures import count_open_spans, read_commit_times, simulate_baselines
from pipeline.page import describe_watermarks

TIMES = st.integers(0, 30).map(float)


@given(st.lists(st.tuples(TIMES, TIMES), max_size=20))
def test_steps_count_what_is_open(spans: list[tuple[float, float]]) -> None:
    times, counts = count_open_spans(spans, 0.0)
    assert times == sorted(times)
    for time, count in zip(times, counts, strict=True):
        assert count == sum(start <= time * 1000 < end for start, end in spans)
    if counts:
        assert counts[-1] == 0


def row(name: str, causes: list[str], came_ms: int, sent_ms: int, position: int) -> dict[str, Any]:
    begin = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
    return {
        "message_id": name,
        "causes": causes,
        "customer": "c",
        "position": position,
        "arrived": begin + dt.timedelta(milliseconds=came_ms),
        "sent_ns": sent_ms * 1_000_000,
        "waited_ms": 0.0,
    }


def test_outcomes_of_one_inversion() -> None:
    rows = [row("b", ["a"], 0, 100, 1), row("a", [], 900, 110, 0), row("z", [], 9_000, 9_000, 2)]
    found = {outcome.scheme: outcome for outcome in simulate_baselines(rows)}
    assert found["as they come"].inverted == 1
    assert found["sort by timestamp"].inverted == 1
    assert found["causal release"][1:5] == (3, 0, 0, 0)
    swapped = [{**rows[0], "position": 0}, {**rows[1], "position": 1}, rows[2]]
    assert simulate_baselines(swapped)[-1].inverted == 1


def test_the_sentence_on_watermarks_follows_the_figures() -> None:
    ours = BaselineOutcome("causal release", 4, 0, 0, 0, (0.0, 0.0, 5.0, 9.0))
    by_time = BaselineOutcome("sort by timestamp", 4, 0, 2, 0, ())
    bad = BaselineOutcome("watermark 1.0 s", 4, 1, 1, 0, (1.0, 1.0, 1.0))
    good = BaselineOutcome("watermark 5.0 s", 4, 0, 0, 0, (50.0,) * 4)
    said = describe_watermarks([by_time, bad, good, ours])
    assert "shortest watermark here that drops and inverts nothing is 5.0 s" in said
    assert "puts 2 effects before a cause" in said
    assert said.endswith("for what they drop or invert: watermark 1.0 s.")
    said = describe_watermarks([by_time._replace(inverted=0), bad, ours])
    assert "No watermark here drops and inverts nothing: watermark 1.0 s dropped 1" in said
    assert "clocks differ" not in said
    said = describe_watermarks([by_time, good._replace(waits_ms=(1.0,) * 4), ours])
    assert said.endswith("and nothing dropped or inverted: watermark 5.0 s.")


def test_commit_times_are_read_from_either_log(tmp_path: Path) -> None:
    delta = tmp_path / "delta" / "_delta_log"
    delta.mkdir(parents=True)
    lines = [{"commitInfo": {"timestamp": 7}}, {"add": {"path": "a.parquet"}}, {"txn": {}}]
    (delta / "00.json").write_text("\n".join(map(json.dumps, lines)))
    assert read_commit_times(tmp_path / "delta", "delta") == {"a.parquet": 7.0}
    log = tmp_path / "files" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "0").write_text('v1\n{"path": "file:///x/b.parquet"}')
    (log / "1.compact").write_text('v1\n{"path": "file:///x/b.parquet"}\n{"path": "/x/c.parquet"}')
    os.utime(log / "0", (1, 1))
    os.utime(log / "1.compact", (2, 2))
    assert read_commit_times(tmp_path / "files", "parquet") == {
        "b.parquet": 1000.0,
        "c.parquet": 2000.0,
    }
