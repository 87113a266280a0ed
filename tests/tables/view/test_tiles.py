"""Tiles: counts and events of every range equal those of the whole trace."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from antecede.errors import InputError
from antecede.tables.causality.queries import EventRef
from antecede.tables.trace.arrow import Trace
from antecede.tables.view import tiles
from antecede.tables.view.columns import compute_event_time
from antecede.tables.view.copies import match_copies
from antecede.tables.view.tiles import ABOUT, Tiles, about, write_tiles
from tests.tables.view.made import T0, declared, drawn, make_row, trace_of
from tests.tables.view.unpacked import unpacked


@pytest.fixture
def trace() -> Trace:
    return drawn(11, events=3000, members=7)


def terms(word: str) -> str:
    return json.dumps([{"word": word}])


def request_block(source: Tiles, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpacked(source.block({name: str(value) for name, value in how.items()}))


def test_every_level_counts_every_row(trace: Trace, tmp_path: Path) -> None:
    write_tiles(trace, tmp_path, "t")
    source = Tiles(tmp_path)
    said = json.loads((tmp_path / ABOUT).read_text())
    assert said["rows"] == len(trace.events)
    times = np.asarray(compute_event_time(trace.events).to_pylist())
    members = trace.events["member"].to_pylist()
    names = source._members["member"].to_pylist()
    for level in said["levels"]:
        cells = source._first_axis.read_level(level["level"]).to_table().to_pylist()
        found = {(cell["bin"], names[cell["member"]]): cell["rows"] for cell in cells}
        wanted: dict[tuple[int, str], int] = {}
        for time, member in zip(times.tolist(), members, strict=True):
            key = (time - said["low"]) // level["width"], str(member)
            wanted[key] = wanted.get(key, 0) + 1
        assert found == wanted


def test_a_stretch_has_its_events_or_their_counts(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 300)
    write_tiles(trace, tmp_path, "t")
    source = Tiles(tmp_path)
    times = np.asarray(compute_event_time(trace.events).to_pylist())
    low, span = times.min(), int(times.max() - times.min())
    draw = random.Random(3)
    kinds = set()
    for _ in range(25):
        x0 = draw.randrange(span)
        x1 = min(span, x0 + int(span * draw.random() ** 4) + 1)
        meta, arrays = request_block(source, x0=x0, x1=x1)
        assert meta["of"] == len(times)
        if "piece" in meta:
            kinds.add("piece")
            first, last = meta["piece"]["from"], meta["piece"]["to"]
            assert first <= x0
            assert last >= x1
            inside = (times >= low + first) & (times <= low + last)
            assert sorted(arrays["time.event_time"]) == sorted(times[inside] - low)
        else:
            kinds.add("grid")
            grid = meta["grid"]
            bins = (times - low) // grid["width"]
            inside = (bins >= x0 // grid["width"]) & (bins <= x1 // grid["width"])
            assert arrays["grid.rows"].sum() == inside.sum()
    assert kinds == {"piece", "grid"}


def test_it_begins_with_an_event_and_finds_others(trace: Trace, tmp_path: Path) -> None:
    write_tiles(trace, tmp_path, "t")
    ids = [str(id) for id in trace.events["id"].to_pylist()]
    meta, arrays = unpacked(Tiles(tmp_path, EventRef(ids[700])).block({}))
    assert arrays["id.texts"][arrays["id"][meta["around"]]] == ids[700]
    meta, arrays = request_block(Tiles(tmp_path), find=terms(ids[-1]))
    assert arrays["id.texts"][arrays["id"][meta["around"]]] == ids[-1]
    with pytest.raises(InputError, match="is not in the tiles"):
        Tiles(tmp_path, EventRef("nowhere"))
    with pytest.raises(InputError, match="no event matches"):
        request_block(Tiles(tmp_path), find=terms("nowhere"))
    with pytest.raises(InputError, match="invalid place"):
        request_block(Tiles(tmp_path), x0="here", x1="there")


def test_without_times_rows_go_as_listed(tmp_path: Path) -> None:
    write_tiles(declared(1), tmp_path, "t")
    meta, arrays = unpacked(Tiles(tmp_path).block({}))
    assert [one["name"] for one in meta["times"]] == ["logical", "order"]
    assert sorted(arrays["place"]) == list(range(50))


def test_rows_without_a_time_are_counted(tmp_path: Path) -> None:
    rows = [make_row("send", "a", "p", 0), {"id": "b", "member": "p", "kind": "send"}]
    write_tiles(trace_of(rows), tmp_path, "t")
    meta, _ = unpacked(Tiles(tmp_path).block({}))
    assert meta["of"] == 1
    assert any("1 row without a time" in one["what"] for one in meta["findings"])


@pytest.mark.slow
def test_a_million_events_at_one_instant(tmp_path: Path) -> None:
    size = 1_000_000
    rows = [{"id": f"e{k}", "member": "p", "send_time": T0} for k in range(size)]
    write_tiles(trace_of(rows), tmp_path, "t")
    meta, arrays = unpacked(Tiles(tmp_path).block({}))
    assert "grid" in meta
    assert arrays["grid.rows"].tolist() == [size]
    meta, arrays = request_block(Tiles(tmp_path), x0=0, x1=0)
    assert arrays["grid.rows"].tolist() == [size]


def test_a_folder_that_is_taken_or_none(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        write_tiles(trace, tmp_path, "t")
    with pytest.raises(InputError, match="not empty"):
        write_tiles(trace, tmp_path, "t", force=True)
    with pytest.raises(InputError, match="is a file"):
        write_tiles(trace, tmp_path / "other", "t")
    folder = tmp_path / "cut"
    write_tiles(trace, folder, "t")
    write_tiles(trace, folder, "t", force=True)
    said = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps({**said, "version": 9}))
    with pytest.raises(InputError, match="version 9"):
        Tiles(folder)
    (folder / ABOUT).write_text(json.dumps(said))
    (file,) = (folder / "events").iterdir()
    pq.write_table(pq.read_table(file).drop_columns("causes"), file)
    with pytest.raises(InputError, match="the tiles lack causes; write them again with --tiles"):
        Tiles(folder)
    (folder / ABOUT).write_text("{")
    with pytest.raises(InputError, match="no readable tiles"):
        Tiles(folder)


def test_a_piece_marks_what_the_whole_trace_lost(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 60)
    write_tiles(trace, tmp_path, "t")
    source = Tiles(tmp_path)
    marks = match_copies(trace.events).marks
    span = json.loads((tmp_path / ABOUT).read_text())["high"] - T0
    seen = set()
    for k in range(40):
        meta, arrays = request_block(source, x0=span * k // 40, x1=span * k // 40)
        assert meta["by"] == "events"
        assert meta["events"] == len(arrays["place"])
        for place, mark in zip(arrays["place"], arrays["marks"], strict=True):
            assert mark == marks[int(place)]
            seen.add(int(mark))
    assert len(seen) > 2


def test_a_piece_with_rows_of_one_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 6)
    sends = [make_row("send", f"a{k}", "p", k) for k in range(10)]
    comes = [make_row("deliver", f"a{k}", "q", 1000 + k) for k in range(10)]
    write_tiles(trace_of([*sends, *comes]), tmp_path, "t")
    meta, arrays = request_block(Tiles(tmp_path), x0=1003 * 10**6, x1=1004 * 10**6)
    assert meta["by"] == "events"
    assert set(arrays["kind"]) == {2}
    assert meta["events"] >= 2


def test_levels_nest() -> None:
    widths = [one["width"] for one in about("t", 10**6, 0, 10**15, True)["levels"]]
    assert all(a == 2 * b for a, b in pairwise(widths))
    assert widths[0] * tiles.FIRST_LEVEL_BINS > 10**15


@pytest.mark.parametrize("x0", ["1e30", "-1e30", str(2**63 - 1), "1e18", "5"])
def test_a_stretch_beyond_the_ends_is_answered(trace: Trace, tmp_path: Path, x0: str) -> None:
    write_tiles(trace, tmp_path, "t")
    source = Tiles(tmp_path)
    for x1 in (x0, "0", "1e31", "-1e31"):
        meta, _ = request_block(source, x0=x0, x1=x1)
        assert "piece" in meta or "grid" in meta
    behind = {"from": x0} if float(x0) > 1e17 else {"from": "1e300"}
    meta, _ = request_block(source, find=terms("m"), **behind)
    assert meta["wrapped"]


def test_a_search_finds_every_match_in_turn(tmp_path: Path) -> None:
    """Includes matches of one instant, and continues at the start after the last one."""
    rows = [make_row("send", f"m{k}", "p", k // 3) for k in range(9)]
    write_tiles(trace_of(rows), tmp_path, "t")
    source, met = Tiles(tmp_path), []
    place: dict[str, Any] = {"from": -1, "place": -1}
    for _ in range(10):
        meta, arrays = request_block(source, find=terms("m"), **place)
        row = meta["around"]
        met.append((arrays["id.texts"][arrays["id"][row]], meta["wrapped"]))
        place = {"from": arrays["time.event_time"][row], "place": int(arrays["place"][row])}
    assert met == [*((f"m{k}", False) for k in range(9)), ("m0", True)]


@pytest.mark.parametrize(
    "find",
    [
        *("", "m", "{}", "[]", "[1]", '[{"word": 1}]', '[{"field": "nosuch", "word": "m"}]'),
        *('[{"field": "own.0", "word": "m"}]', '[{"expression": "(?=m)"}]'),
        json.dumps([{"word": "m"}] * 101),
    ],
)
def test_a_search_that_no_page_sends_is_refused(find: str, tmp_path: Path) -> None:
    write_tiles(trace_of([make_row("send", "m", "p", 0)]), tmp_path, "t")
    with pytest.raises(InputError):
        request_block(Tiles(tmp_path), find=find)


def test_times_that_lie_too_far_apart_are_said(tmp_path: Path) -> None:
    far = [-(2**63), 2**63 - 1, 0, None, -(2**63) + 5]
    rows = [{"id": f"e{k}", "member": "P", "send_time": time} for k, time in enumerate(far)]
    write_tiles(trace_of(rows), tmp_path, "t")
    meta, arrays = request_block(Tiles(tmp_path))
    said = " ".join(one["what"] for one in meta["findings"])
    assert "2 times more than 146 years after the earliest: taken as unknown" in said
    assert "3 rows without a time: not in the picture" in said
    assert sorted(arrays["place"].tolist()) == [0, 4]
    assert meta["extents"]["event_time"] == {"low": 0, "high": 5}


def test_pieces_take_the_place_of_those_of_another_cutter(trace: Trace, tmp_path: Path) -> None:
    write_tiles(drawn(3, events=900, members=4), tmp_path, "t")
    # As Spark leaves them: folders of several parts.
    (tmp_path / "events" / "part-0.parquet").rename(tmp_path / "events" / "part-00000-x.parquet")
    level = tmp_path / "level-0.parquet"
    body = level.read_bytes()
    level.unlink()
    level.mkdir()
    (level / "part-00000-x.parquet").write_bytes(body)
    write_tiles(trace, tmp_path, "t", force=True)
    assert Tiles(tmp_path)._events.count_rows() == len(trace.events)
    assert level.is_file()


def test_a_trace_without_an_event_makes_no_pieces(trace: Trace, tmp_path: Path) -> None:
    nothing = Trace(trace.events.slice(0, 0), trace.quarantine, trace.format, {})
    with pytest.raises(InputError, match="no event"):
        write_tiles(nothing, tmp_path / "t", "t")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("said", ["[1]", "{}", '{"version": 1, "title": "t", "levels": 3}', "nul"])
def test_what_is_said_of_pieces_and_cannot_be_read(trace: Trace, tmp_path: Path, said: str) -> None:
    write_tiles(trace, tmp_path, "t")
    (tmp_path / ABOUT).write_text(said)
    with pytest.raises(InputError, match="has no readable tiles"):
        Tiles(tmp_path)
