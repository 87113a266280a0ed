"""Tiles written by Spark equal those of one process."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.errors import InputError
from antecede.spark.tiles import write_tiles as write_on_spark
from antecede.tables.view.tiles import ABOUT, Tiles, write_tiles
from tests.tables.view.made import declared, drawn, trace_of
from tests.tables.view.unpacked import unpacked

FIND = '[{"field": "own.0", "word": "closed"}]'
"""A search for status:closed, as the page sends it."""


@pytest.mark.few(1)
@pytest.mark.parametrize("made", [drawn(4, events=800), declared(2)])
def test_levels_members_and_events_are_the_same(spark: Any, made: Any, tmp_path: Path) -> None:
    file = tmp_path / "trace.parquet"
    pq.write_table(made.events, file)
    write_tiles(made, tmp_path / "local", "t")
    rows = write_on_spark(spark.read.parquet(str(file)), tmp_path / "spark", "t")
    assert rows == len(made.events)
    said = [json.loads((tmp_path / one / ABOUT).read_text()) for one in ("local", "spark")]
    for name in ("rows", "low", "high", "timed", "levels"):
        assert said[0][name] == said[1][name]
    ours, theirs = (Tiles(tmp_path / one) for one in ("local", "spark"))
    counts = [
        dict(zip(*(one._members[name].to_pylist() for name in ("member", "rows")), strict=True))
        for one in (ours, theirs)
    ]
    assert counts[0] == counts[1]
    for level in said[0]["levels"]:
        found = []
        for one in (ours, theirs):
            names = one._members["member"].to_pylist()
            cells = one._first_axis.read_level(level["level"]).to_table().to_pylist()
            found.append({(c["bin"], names[c["member"]]): c["rows"] for c in cells})
        assert found[0] == found[1]
    blocks = [unpacked(one.block({}))[1] for one in (ours, theirs)]
    for name in ("offsets", "causes", "kind", "place"):
        assert blocks[0][name].tolist() == blocks[1][name].tolist()


def test_a_table_without_ids_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column id"):
        write_on_spark(spark.createDataFrame([(1,)], ["x"]), tmp_path / "t", "t")
    trace = trace_of([{"id": "a", "member": "p"}])
    pq.write_table(trace.events.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="no event"):
        write_on_spark(spark.read.parquet(str(tmp_path / "empty.parquet")), tmp_path / "u", "t")


@pytest.mark.slow
def test_further_columns_are_texts_in_both(spark: Any, tmp_path: Path) -> None:
    made = drawn(4, events=60)
    size = len(made.events)
    own = pa.table(
        {
            "status": ["open", None, "Closed ticket"] * (size // 3) + ["open"] * (size % 3),
            "how long": list(range(size)),
            "raw": [b"\x00\xff"] * size,
        }
    )
    file = tmp_path / "trace.parquet"
    table: Any = made.events
    for name in own.column_names:
        table = table.append_column(name, own[name])
    pq.write_table(table, file)
    write_tiles(replace(made, own=own), tmp_path / "local", "t")
    write_on_spark(spark.read.parquet(str(file)), tmp_path / "spark", "t")
    found = []
    for name in ("local", "spark"):
        events = Tiles(tmp_path / name)._events.to_table().sort_by("file_order")
        found.append(events.select(["own:status", "own:how long", "own:raw"]).to_pylist())
    assert found[0] == found[1]
    assert found[0][2] == {"own:status": "Closed ticket", "own:how long": "2", "own:raw": "00ff"}
    for one in ("local", "spark"):
        meta, _ = unpacked(Tiles(tmp_path / one).block({"find": FIND}))
        assert meta["own"] == own.column_names
